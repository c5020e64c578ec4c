// LargeBuffer: memory for file bytes in transit between sockets, devices and objects.
//
// malloc returns such buffers in any order and on 4 KiB pages. This pool reuses the most recently
// returned buffer first, while it is still in the processor's cache. Its buffers lie on huge pages,
// so the kernel need not look up every small page when it copies. That saves a fifth of a mount's
// processor time when it reads from other nodes.
#ifndef MOSA_COMMON_BASE_LARGE_BUFFER_H_
#define MOSA_COMMON_BASE_LARGE_BUFFER_H_

#include <cstddef>
#include <span>
#include <utility>

namespace mosa {

// Owns one buffer from the process-wide pool, or nothing. The bytes are not zeroed. The pool grows
// as needed and never returns address space; up to 16 unused buffers keep their memory.
class LargeBuffer {
 public:
  // 1 MiB of data plus 64 KiB for headers.
  static constexpr size_t kBytes = (size_t{1} << 20) + (size_t{64} << 10);

  LargeBuffer() = default;
  static LargeBuffer Take();  // Thread-safe, like the destructor. Aborts when out of memory.
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
