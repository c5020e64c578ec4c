// FramePool: memory for the frames of activities. A simulation begins and ends several of them for
// each chunk that it moves, of a few sizes; each size has a list of its own, so that a frame costs
// a few instructions and mostly lies where one was a moment ago.
//
// A thread has one, and keeps what its frames have taken at most until it ends. Who has taken a
// frame gives it back on the same thread.
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

  void* Take(size_t bytes) {
    const size_t units = UnitsOf(bytes);
    if (units >= free_.size()) return ::operator new(bytes);
    Free*& free = free_[units];
    if (free == nullptr) return ::operator new(units* kUnitBytes);
    Free* const taken = free;
    free = taken->next;
    return taken;
  }
  // `bytes` as when it was taken.
  void Give(void* frame, size_t bytes) {
    const size_t units = UnitsOf(bytes);
    if (units >= free_.size()) return ::operator delete(frame);
    free_[units] = new (frame) Free{free_[units]};
  }

 private:
  // AddressSanitizer sees who uses a frame that has ended only if its memory is given back.
#ifdef __SANITIZE_ADDRESS__
  static constexpr size_t kUnitsMax = 0;
#else
  static constexpr size_t kUnitsMax = 64;
#endif
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

  std::array<Free*, kUnitsMax> free_{};  // By size in units.
};

// What inherits from this has its memory from the pool.
struct Pooled {
  static void* operator new(size_t bytes) { return FramePool::OfThread().Take(bytes); }
  static void operator delete(void* frame, size_t bytes) {
    FramePool::OfThread().Give(frame, bytes);
  }
};

}  // namespace mosa::des

#endif  // MOSA_PREDICTOR_DES_FRAME_POOL_H_
