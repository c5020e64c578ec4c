// FramePool: memory for the frames of activities, and for what lives about as long. A simulation
// begins and ends several of them for each chunk that it moves, of a few sizes; each size has a
// list of its own, so that a frame costs a few instructions and mostly lies where one was a moment
// ago. Memory of one size (rounded up to 64 B) is never used for another; frames above kBytesMax
// come from the heap and go back to it.
//
// A thread has one, and keeps what its frames have taken at most until it ends. The thread that
// took a frame gives it back.
#ifndef MOSA_PREDICTOR_DES_FRAME_POOL_H_
#define MOSA_PREDICTOR_DES_FRAME_POOL_H_

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace mosa::des {

class FramePool {
 public:
  static FramePool& OfThread() {
    static thread_local FramePool pool;
    return pool;
  }
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  // AddressSanitizer sees a use of an ended frame only if its memory is given back.
#ifdef __SANITIZE_ADDRESS__
  static constexpr size_t kBytesMax = 0;
#else
  static constexpr size_t kBytesMax = 4032;
#endif

  // Precondition: bytes > 0.
  void* Take(size_t bytes) {
    if (bytes > kBytesMax) return ::operator new(bytes);
    const size_t units = UnitsOf(bytes);
    Free*& free = free_[units];
    if (free == nullptr) return ::operator new(kUnitBytes* units);
    Free* const taken = free;
    free = taken->next;
    return taken;
  }
  // `bytes` as when it was taken.
  void Give(void* frame, size_t bytes) {
    if (bytes > kBytesMax) return ::operator delete(frame);
    Free*& free = free_[UnitsOf(bytes)];
    free = new (frame) Free{free};
  }

 private:
  static constexpr size_t kUnitBytes = 64;
  struct Free {
    Free* next;
  };

  FramePool() = default;
  ~FramePool() {
    for (Free* free : free_)
      while (free != nullptr) ::operator delete(std::exchange(free, free->next));
  }
  static size_t UnitsOf(size_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes; }

  std::array<Free*, kBytesMax / kUnitBytes + 1> free_{};  // By size in units.
};

// What inherits from this has its memory from the pool.
struct Pooled {
  static void* operator new(size_t bytes) { return FramePool::OfThread().Take(bytes); }
  static void operator delete(void* frame, size_t bytes) {
    FramePool::OfThread().Give(frame, bytes);
  }
};

// The same for what the standard library allocates: what comes and goes with each chunk.
template <typename T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <typename Other>
  explicit PoolAllocator(const PoolAllocator<Other>& /*other*/) {}
  T* allocate(size_t count) {
    return static_cast<T*>(FramePool::OfThread().Take(count * sizeof(T)));
  }
  void deallocate(T* given, size_t count) { FramePool::OfThread().Give(given, count * sizeof(T)); }
  template <typename Other>
  bool operator==(const PoolAllocator<Other>& /*other*/) const {
    return true;
  }
};

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_FRAME_POOL_H_
