#include "client-sai/sai/manager_calls.h"

#include <initializer_list>

#include "client-sai/api/wait_budget.h"
#include "client-sai/sai/failures.h"

namespace mosa::sai {
namespace {

// The files whose names or attributes the request changes. (Commits and requests about bytes have
// ways of their own to learn what became of them.)
struct ChangedFiles {
  void operator()(const MakeRequest& request) { Add({request.parent}); }
  void operator()(const LinkRequest& request) { Add({request.file, request.new_parent}); }
  void operator()(const RemoveRequest& request) { Add({request.parent, request.file}); }
  void operator()(const RenameRequest& request) {
    Add({request.old_parent, request.new_parent, request.moved,
         request.replaced.value_or(FileId{})});
  }
  void operator()(const SetAttributesRequest& request) { Add({request.file}); }
  void operator()(const SetXattrRequest& request) { Add({request.file}); }
  void operator()(const RemoveXattrRequest& request) { Add({request.file}); }
  template <typename Other>
  void operator()(const Other&) {}

  void Add(std::initializer_list<FileId> changed) {
    for (const FileId file : changed)
      if (file != FileId{}) files.push_back(file);
  }
  std::vector<FileId> files{};
};

}  // namespace

Failure ManagerCalls::UnexpectedReply() {
  return Fail(StatusCode::kInternal, ErrorReason::kNone,
              "the manager's reply does not match the kind of the request");
}

std::vector<Reply> ManagerCalls::AskEach(std::vector<Request> requests) {
  ChangedFiles changed;
  for (const Request& request : requests) std::visit(changed, request);
  stats_.Add(Counter::kManagerCalls);
  std::vector<Reply> replies = manager_.Call(std::move(requests), WaitBudget::ForQuestion());
  const auto* failure = replies.empty() ? nullptr : std::get_if<Failure>(&replies.back());
  if (failure != nullptr && failure->reason == ErrorReason::kTimedOut)
    for (const FileId file : changed.files) forget_(file);
  return replies;
}

Outcome<std::vector<Reply>> ManagerCalls::AskAll(std::vector<Request> requests) {
  const size_t asked = requests.size();
  std::vector<Reply> replies = AskEach(std::move(requests));
  if (replies.empty()) return UnexpectedReply();
  if (const auto* failure = std::get_if<Failure>(&replies.back())) return *failure;
  if (replies.size() != asked) return UnexpectedReply();
  return replies;
}

void ManagerCalls::Tell(Request request) {
  manager_.Send({std::move(request)}, [](const std::vector<Reply>&) {});
}

}  // namespace mosa::sai
