// LargeBuffer: memory for file bytes on their way from one socket, device or object to another.
//
// malloc hands such memory out in any order, on pages of 4 KiB. Here what was given back last is
// handed out first, since the processor's cache still has it; and it lies on huge pages, so that
// the kernel, which copies into and out of it, needs not look up each page: a fifth of a mount's
// processor time when it reads from other nodes.
#ifndef MOSA_COMMON_BASE_LARGE_BUFFER_H_
#define MOSA_COMMON_BASE_LARGE_BUFFER_H_

#include <cstddef>
#include <span>
#include <utility>

namespace mosa {

// Owns one buffer out of the process' pool, or nothing. The bytes are not zeroed. The pool grows as
// needed and keeps its address space; it keeps 16 unused buffers.
class LargeBuffer {
 public:
  // A MiB, and room for what goes before it.
  static constexpr size_t kBytes = (size_t{1} << 20) + (size_t{64} << 10);

  LargeBuffer() = default;
  static LargeBuffer Take();  // Thread-safe, as giving back is. Ends the process without memory.
  LargeBuffer(LargeBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  LargeBuffer& operator=(LargeBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~LargeBuffer();

  std::byte* data() const { return data_; }
  std::span<std::byte> bytes() const { return {data_, data_ == nullptr ? 0 : kBytes}; }

 private:
  explicit LargeBuffer(std::byte* data) : data_(data) {}

  std::byte* data_ = nullptr;
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_LARGE_BUFFER_H_
