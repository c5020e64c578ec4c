// ManagerApi: the client's one conversation with the manager. Two implementations: a gRPC stream,
// and one that drives a ManagerCore in the same process (tests, predictor).
//
// Thread-safe. Pushes and the replies of Send arrive in the manager's order on one delivery thread,
// the replies of Call on the thread that called. A push is handed to the listener only after every
// earlier reply's waiter can run, and a waiter runs only after the listener has returned from every
// earlier push; the listener must not wait for a reply on that thread.
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
  // A session was opened (again). Before SessionHeld() was asked, everything cached was to be
  // dropped.
  virtual void OnSessionReady(const SessionReady& ready) = 0;
  virtual void OnPush(const Push& push) = 0;
  // What the client still holds; called when a broken session is opened again. Client, names and
  // mount point are filled.
  virtual SessionStart SessionHeld() = 0;
  // Every reply of the manager carries its time; `sent` is when the request left. Renews the lease.
  // On any thread that calls, with whatever locks it holds: it must not wait.
  virtual void OnLeaseRenewed(Time sent_monotonic, Time manager_now) = 0;
};

class ManagerApi {
 public:
  using Callback = std::function<void(std::vector<Reply> replies)>;

  virtual ~ManagerApi() = default;
  // Opens the session and keeps it: reconnects, repeats unanswered requests under their ids, sends
  // keep-alives. Unavailable if the manager cannot be reached within kWaitMax; Unauthenticated,
  // InvalidArgument as the manager says.
  virtual Status Start(SessionListener& listener) = 0;
  // Sends requests as one envelope and waits for the replies; at most `deadline`, then one Failure
  // kTimedOut: the requests may have run by then, and do not run any more. The last reply may be a
  // Failure; then later requests did not run.
  virtual std::vector<Reply> Call(std::vector<Request> requests, Duration deadline) = 0;
  // The same without waiting, however long it takes. `done` runs on the delivery thread and must
  // not block. Returns the request's id.
  virtual RequestId Send(std::vector<Request> requests, Callback done) = 0;
  // Ends the session cleanly (unmount). No call may be under way.
  virtual void Stop() = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_MANAGER_API_H_
