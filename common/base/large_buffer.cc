#include "common/base/large_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <vector>

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace mosa {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kBuffersPerRegion = 32;
constexpr size_t kRegionBytes = kBuffersPerRegion * LargeBuffer::kBytes;
constexpr size_t kWarmMax = 16;
static_assert(kRegionBytes % kHugePageBytes == 0);

struct Pool {
  SystemMutex mutex;
  std::vector<std::byte*> warm ABSL_GUARDED_BY(mutex);  // The most recently returned is last.
  // Without physical memory until first touched.
  std::vector<std::byte*> cold ABSL_GUARDED_BY(mutex);
};

// Never destroyed: other static objects may still hold buffers.
Pool& ThePool() {
  static Pool& pool = *new Pool;
  return pool;
}

void AddRegion(std::vector<std::byte*>& cold) {
  void* const mapped = mmap(nullptr, kRegionBytes + kHugePageBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  MOSA_CHECK(mapped != MAP_FAILED);
  const auto address = reinterpret_cast<uintptr_t>(mapped);
  std::byte* const region =
      static_cast<std::byte*>(mapped) + (kHugePageBytes - address % kHugePageBytes);
  madvise(region, kRegionBytes, MADV_HUGEPAGE);  // Small pages work too.
  for (size_t i = kBuffersPerRegion; i > 0; --i)
    cold.push_back(region + (i - 1) * LargeBuffer::kBytes);
}

}  // namespace

LargeBuffer LargeBuffer::Take() {
  Pool& pool = ThePool();
  const SystemMutexLock lock(pool.mutex);
  if (pool.warm.empty() && pool.cold.empty()) AddRegion(pool.cold);
  std::vector<std::byte*>& from = pool.warm.empty() ? pool.cold : pool.warm;
  std::byte* const data = from.back();
  from.pop_back();
  return LargeBuffer(data);
}

LargeBuffer::~LargeBuffer() {
  if (data_ == nullptr) return;
  Pool& pool = ThePool();
  const SystemMutexLock lock(pool.mutex);
  if (pool.warm.size() < kWarmMax) {
    pool.warm.push_back(data_);
    return;
  }
  madvise(data_, kBytes, MADV_DONTNEED);
  pool.cold.push_back(data_);
}

}  // namespace mosa
