#include "client-sai/sai/manager_calls.h"

#include "client-sai/api/wait_budget.h"
#include "client-sai/sai/failures.h"

namespace mosa::sai {

Failure ManagerCalls::UnexpectedReply() {
  return Fail(StatusCode::kInternal, ErrorReason::kNone,
              "the manager's reply does not match the kind of the request");
}

Outcome<std::vector<Reply>> ManagerCalls::AskAll(std::vector<Request> requests) {
  const size_t asked = requests.size();
  stats_.Add(Counter::kManagerCalls);
  std::vector<Reply> replies = manager_.Call(std::move(requests), WaitBudget::ForQuestion());
  if (replies.empty()) return UnexpectedReply();
  if (const auto* failure = std::get_if<Failure>(&replies.back())) return *failure;
  if (replies.size() != asked) return UnexpectedReply();
  return replies;
}

void ManagerCalls::Tell(Request request) {
  manager_.Send({std::move(request)}, [](const std::vector<Reply>&) {});
}

}  // namespace mosa::sai
