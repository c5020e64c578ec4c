// Counters of a mount, as JSON with stable names. Thread-safe.
#ifndef MOSA_CLIENT_SAI_SAI_STATS_H_
#define MOSA_CLIENT_SAI_SAI_STATS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace mosa::sai {

enum class Counter : uint8_t {
  kBytesReadLocal,
  kBytesReadRemote,
  kBytesReadInline,
  kBytesWrittenLocal,
  kBytesWrittenRemote,
  kBytesWrittenInline,
  kBytesWrittenPassthrough,  // Estimated from the size at close.
  kOpensPassthrough,
  kLookups,
  kLookupsCached,
  kCreates,
  kCreatesDeferred,
  kOpens,
  kOpensCached,
  kReads,
  kWrites,
  kCloses,
  kManagerCalls,
  kRecalls,
  kSpills,
  kErrors,
  kClosesWithoutCopies,
  kPagesWaitsEnded,  // The kernel had not dropped a file's pages in time.
  kStoresFound,   // Looks at mapped files that found unreported stores, or could not exclude them.
  kFilesUnsaved,  // Bytes written behind the last close could not be stored or committed.
  kCount,
};

class Stats {
 public:
  void Add(Counter counter, uint64_t amount = 1) {
    values_[static_cast<size_t>(counter)].fetch_add(amount, std::memory_order_relaxed);
  }
  uint64_t Get(Counter counter) const {
    return values_[static_cast<size_t>(counter)].load(std::memory_order_relaxed);
  }
  // File ids, limited to what fits a page.
  struct Files {
    uint64_t files_kept = 0;        // Open for the manager, though no program has them open.
    std::vector<uint64_t> kept;     // Some of them.
    std::vector<uint64_t> unsaved;  // The latest of kFilesUnsaved.
  };
  std::string Json(const Files& files) const;

 private:
  std::array<std::atomic<uint64_t>, static_cast<size_t>(Counter::kCount)> values_{};
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_STATS_H_
