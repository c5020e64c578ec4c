// ManagerApi: a client's conversation with the manager. Two implementations: a gRPC stream, and one
// that drives a ManagerCore in the same process (tests, predictor).
//
// Thread-safe. Pushes and the replies to Send arrive in the manager's order on one delivery thread;
// the replies to Call arrive on the calling thread. The listener receives a push only after the
// waiters of all earlier replies can run. A waiter runs only after the listener has returned from
// all earlier pushes. The listener must not wait for a reply on the delivery thread.
#ifndef MOSA_CLIENT_SAI_API_MANAGER_API_H_
#define MOSA_CLIENT_SAI_API_MANAGER_API_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/session.h"

namespace mosa::sai {

class SessionListener {
 public:
  virtual ~SessionListener() = default;
  // A session was opened or reopened. SessionHeld() has run before.
  virtual void OnSessionReady(const SessionReady& ready) = 0;
  virtual void OnPush(const Push& push) = 0;
  // Returns what the client still holds, with client, names and mount point set. Called before each
  // session starts. The client must drop everything cached before it returns.
  virtual SessionStart SessionHeld() = 0;
  // Renews the lease. Called for every reply, as each carries the manager's time; `sent` is when
  // the request left. Runs on any calling thread with any locks held, so it must not block.
  virtual void OnLeaseRenewed(Time sent_monotonic, Time manager_now) = 0;
};

class ManagerApi {
 public:
  using Callback = std::function<void(std::vector<Reply> replies)>;

  virtual ~ManagerApi() = default;
  // Opens the session and keeps it: reconnects, repeats unanswered requests under their ids, and
  // sends keep-alives. Unavailable if the manager cannot be reached within kWaitMax;
  // Unauthenticated or InvalidArgument if the manager refuses.
  virtual Status Start(SessionListener& listener) = 0;
  // Sends the requests as one envelope and blocks until the replies arrive or `deadline` passes.
  // After the deadline the result is one Failure kTimedOut: the requests may have run, and will not
  // run later. If the last reply is a Failure, the requests after it did not run.
  virtual std::vector<Reply> Call(std::vector<Request> requests, Duration deadline) = 0;
  // Like Call, without blocking and without a deadline. `done` runs on the delivery thread and must
  // not block. Returns the request's id.
  virtual RequestId Send(std::vector<Request> requests, Callback done) = 0;
  // Ends the session cleanly (unmount). Precondition: no call is in progress.
  virtual void Stop() = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_MANAGER_API_H_
