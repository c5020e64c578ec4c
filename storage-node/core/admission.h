// Admission: tracks how much of a node's limit is used, and whether more fits. Pure; one owner.
//
// `used` is what objects occupy; `reserved` is what writes in progress may still occupy. A write
// reserves before it starts and gives back when it is done, while `used` follows what was actually
// allocated. So admitted writes never push used + reserved above the limit.
#ifndef MOSA_STORAGE_NODE_CORE_ADMISSION_H_
#define MOSA_STORAGE_NODE_CORE_ADMISSION_H_

#include <cstdint>

#include "common/base/status.h"
#include "common/model/ids.h"

namespace mosa::node {

class Admission {
 public:
  explicit Admission(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // ResourceExhausted, with the numbers, if `incoming_bytes` do not fit; then nothing changes.
  Status Reserve(FileId file, uint64_t incoming_bytes);
  // Precondition: at most this much is reserved.
  void GiveBack(uint64_t reserved_bytes);
  // Replaces an object's `before_bytes` by `after_bytes`.
  void Account(uint64_t before_bytes, uint64_t after_bytes);

  uint64_t limit_bytes() const { return limit_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t reserved_bytes() const { return reserved_bytes_; }

 private:
  const uint64_t limit_bytes_;
  uint64_t used_bytes_ =
      0;  // May exceed the limit: local writers are bounded by the RAM disk only.
  uint64_t reserved_bytes_ = 0;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_ADMISSION_H_
