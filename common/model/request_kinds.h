// Classes of envelopes for measuring their duration. The class follows from the first request and
// from whether others came with it. Envelopes that wait for a lock form a class of their own: they
// wait for another holder, which is not service time.
#ifndef MOSA_COMMON_MODEL_REQUEST_KINDS_H_
#define MOSA_COMMON_MODEL_REQUEST_KINDS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/model/messages.h"

namespace mosa {

// In the order of Request, followed by the class that waits for a lock.
inline constexpr std::array<std::string_view, 29> kRequestNames = {
    "lookup",         "get_attributes", "list_directory", "make",
    "link",           "remove",         "rename",         "read_symlink",
    "set_attributes", "open",           "bind",           "freeze",
    "relocate",       "commit",         "release",        "grant",
    "get_xattr",      "list_xattrs",    "set_xattr",      "remove_xattr",
    "get_lock",       "set_lock",       "cancel_lock",    "stat_filesystem",
    "file_id_range",  "forget",         "recall_done",    "await_copies",
    "set_lock_held"};
static_assert(std::variant_size_v<Request> + 1 == kRequestNames.size());

// Returns the class of an envelope. Precondition: `requests` is not empty.
inline size_t EnvelopeKindOf(const std::vector<Request>& requests) {
  const bool is_held = std::ranges::any_of(requests, [](const Request& request) {
    const auto* const lock = std::get_if<SetLockRequest>(&request);
    return lock != nullptr && lock->wait;
  });
  const size_t name = is_held ? kRequestNames.size() - 1 : requests.front().index();
  return 2 * name + (requests.size() > 1 ? 1 : 0);
}

// Names by EnvelopeKindOf: "lookup", then "lookup+" for envelopes with several requests; `suffix`
// is appended to each.
inline std::vector<std::string> EnvelopeKindNames(std::string_view prefix,
                                                  std::string_view suffix = "") {
  std::vector<std::string> names;
  for (const std::string_view name : kRequestNames)
    for (const std::string_view more : {"", "+"})
      names.push_back(std::string(prefix).append(name).append(more).append(suffix));
  return names;
}

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_REQUEST_KINDS_H_
