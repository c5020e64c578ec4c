// What one setattr of the kernel changes.
#ifndef MOSA_CLIENT_SAI_CORE_ATTRIBUTE_CHANGES_H_
#define MOSA_CLIENT_SAI_CORE_ATTRIBUTE_CHANGES_H_

#include <cstdint>
#include <optional>

#include "common/base/time.h"

namespace mosa::sai {

// `size_bytes` truncates or extends.
struct AttributeChanges {
  std::optional<uint32_t> permissions;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  std::optional<uint64_t> size_bytes;
  std::optional<Time> access_time;
  std::optional<Time> modify_time;
  bool access_time_now = false;
  bool modify_time_now = false;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_ATTRIBUTE_CHANGES_H_
