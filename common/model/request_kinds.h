// Classes of envelopes, for those who measure how long these take: by their first request, and
// whether others came with it.
#ifndef MOSA_COMMON_MODEL_REQUEST_KINDS_H_
#define MOSA_COMMON_MODEL_REQUEST_KINDS_H_

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/model/messages.h"

namespace mosa {

// In the order of Request.
inline constexpr std::array<std::string_view, 28> kRequestNames = {
    "lookup",         "get_attributes", "list_directory", "make",
    "link",           "remove",         "rename",         "read_symlink",
    "set_attributes", "open",           "bind",           "freeze",
    "relocate",       "commit",         "release",        "grant",
    "get_xattr",      "list_xattrs",    "set_xattr",      "remove_xattr",
    "get_lock",       "set_lock",       "cancel_lock",    "stat_filesystem",
    "file_id_range",  "forget",         "recall_done",    "await_copies"};
static_assert(std::variant_size_v<Request> == kRequestNames.size());

// Precondition: there is at least one request.
inline size_t EnvelopeKindOf(const std::vector<Request>& requests) {
  return 2 * requests.front().index() + (requests.size() > 1 ? 1 : 0);
}

// By EnvelopeKindOf: "lookup", "lookup+" if others came with it; with `suffix` behind each.
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
