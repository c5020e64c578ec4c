#include "storage-node/core/admission.h"

#include <fmt/format.h>

#include "common/base/check.h"

namespace mosa::node {

Status Admission::Reserve(FileId file, uint64_t incoming_bytes) {
  const uint64_t taken = used_bytes_ + reserved_bytes_;
  const uint64_t free = taken < limit_bytes_ ? limit_bytes_ - taken : 0;
  if (incoming_bytes > free) {
    return ResourceExhaustedError(fmt::format(
        "no free space for {} more bytes of file {}: {} of {} bytes are used and {} reserved",
        incoming_bytes, file.value, used_bytes_, limit_bytes_, reserved_bytes_));
  }
  reserved_bytes_ += incoming_bytes;
  return OkStatus();
}

void Admission::GiveBack(uint64_t reserved_bytes) {
  MOSA_CHECK(reserved_bytes <= reserved_bytes_);
  reserved_bytes_ -= reserved_bytes;
}

void Admission::Account(uint64_t before_bytes, uint64_t after_bytes) {
  MOSA_CHECK(before_bytes <= used_bytes_);
  used_bytes_ = used_bytes_ - before_bytes + after_bytes;
}

}  // namespace mosa::node
