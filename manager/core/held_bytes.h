// HeldBytes: counts an object's bytes in a sum for the object's lifetime.
//
// The sum must outlive it. Moving it moves the count. Not thread-safe.
#ifndef MOSA_MANAGER_CORE_HELD_BYTES_H_
#define MOSA_MANAGER_CORE_HELD_BYTES_H_

#include <cstdint>
#include <utility>

namespace mosa::manager {

class HeldBytes {
 public:
  HeldBytes() = default;
  HeldBytes(HeldBytes&& other) noexcept
      : sum_(std::exchange(other.sum_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  HeldBytes& operator=(HeldBytes&& other) noexcept {
    if (this == &other) return *this;
    Hold(nullptr, 0);
    sum_ = std::exchange(other.sum_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~HeldBytes() { Hold(nullptr, 0); }

  // Replaces what was held by `bytes`, counted in `sum`. A null `sum` holds nothing.
  void Hold(uint64_t* sum, uint64_t bytes) {
    if (sum_ != nullptr) *sum_ -= bytes_;
    sum_ = sum;
    bytes_ = sum == nullptr ? 0 : bytes;
    if (sum_ != nullptr) *sum_ += bytes_;
  }

  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t* sum_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_HELD_BYTES_H_
