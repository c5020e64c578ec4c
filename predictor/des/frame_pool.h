// FramePool: memory for coroutine frames, and for objects that live about as long. A simulation
// creates and destroys several of them for each chunk it moves, in a few sizes. Each size has a
// free list, so that a frame costs a few instructions and mostly reuses memory that is still in the
// processor's caches. Memory of one size (rounded up to 64 B) is never used for another. Frames
// above kBytesMax come from the heap and go back to it.
//
// One pool per thread. It keeps all its memory until the thread ends. A frame must be returned by
// the thread that took it.
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

  // AddressSanitizer sees a use after free only if the memory really goes back to the heap.
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
  // `bytes` must be the value passed to Take().
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

  std::array<Free*, kBytesMax / kUnitBytes + 1> free_{};  // By size, in units of kUnitBytes.
};

// Classes that derive from this are allocated from the pool.
struct Pooled {
  static void* operator new(size_t bytes) { return FramePool::OfThread().Take(bytes); }
  static void operator delete(void* frame, size_t bytes) {
    FramePool::OfThread().Give(frame, bytes);
  }
};

// The same for containers of the standard library that come and go with each chunk.
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
