// Copies of files beyond the first: what nodes are ordered to fetch, and what they report.
#include <fmt/format.h>

#include "manager/core/state.h"

namespace mosa::manager {

// No order goes out yet, so a report is of none.
void ManagerCore::State::Handle(const NodeCopyReport&) {}

Reply ManagerCore::State::Apply(const AwaitCopiesRequest& request) {
  if (auto failure = CheckRegular(request.file)) return *std::move(failure);
  return AwaitCopiesReply{.copies_valid = 1, .copied_bytes = 0, .more = false};
}

}  // namespace mosa::manager
