// ManagerCalls: questions to the manager whose reply has the type that the caller wants, and
// messages whose reply does not matter.
//
// Thread-safe. Borrows the manager and the counters.
#ifndef MOSA_CLIENT_SAI_SAI_MANAGER_CALLS_H_
#define MOSA_CLIENT_SAI_SAI_MANAGER_CALLS_H_

#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "client-sai/api/manager_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/sai/stats.h"
#include "common/model/session.h"

namespace mosa::sai {

class ManagerCalls {
 public:
  // `forget` is called, on the thread that has asked, for each file whose names or attributes a
  // request was to change that the manager has not answered in time: it may have made the change.
  ManagerCalls(ManagerApi& manager, Stats& stats, std::function<void(FileId)> forget)
      : manager_(manager), stats_(stats), forget_(std::move(forget)) {}

  // Sends the requests together and blocks for at most the thread's WaitBudget. Returns the reply
  // to each, until the first that failed. Call it without an inode's mutex.
  std::vector<Reply> AskEach(std::vector<Request> requests);
  // As AskEach. The failure is that of the first request that failed.
  Outcome<std::vector<Reply>> AskAll(std::vector<Request> requests);
  template <typename R>
  Outcome<R> Ask(Request request) {
    return LastOf<R>(AskAll({std::move(request)}));
  }
  template <typename R>
  static Outcome<R> LastOf(Outcome<std::vector<Reply>> replies) {
    if (!replies.ok()) return replies.failure();
    R* reply = std::get_if<R>(&replies->back());
    if (reply == nullptr) return UnexpectedReply();
    return std::move(*reply);
  }
  static Failure UnexpectedReply();

  // Sends the request and ignores its reply. Does not block.
  void Tell(Request request);

 private:
  ManagerApi& manager_;
  Stats& stats_;
  const std::function<void(FileId)> forget_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_MANAGER_CALLS_H_
