// BlockCache: prefetched bytes of files on other nodes. One bounded cache per mount; BlockIndex
// decides what is in it.
//
// A block is added before its bytes have arrived, so that several readers wait for one fetch.
// Dropping a file's blocks during a fetch leaves that fetch to the readers that already wait for
// it. A fetch that has not begun, and whose block no reader holds, need not begin.
//
// Thread-safe.
#ifndef MOSA_CLIENT_SAI_SAI_BLOCK_CACHE_H_
#define MOSA_CLIENT_SAI_SAI_BLOCK_CACHE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "client-sai/core/block_index.h"
#include "common/base/large_buffer.h"
#include "common/base/sync.h"
#include "common/model/ids.h"
#include "common/model/messages.h"
#include "common/model/ranges.h"
#include "common/observe/duration_table.h"

namespace mosa::sai {

class Block {
 public:
  explicit Block(ByteRange range);
  ByteRange range() const { return range_; }
  // Written by the fetch before Finish; read by others after Wait.
  std::byte* bytes() { return bytes_; }
  const std::byte* bytes() const { return bytes_; }
  void Finish(std::optional<Failure> failure);
  // Waits for Finish, and returns its failure; DeadlineExceeded if the thread's WaitBudget ends
  // first. A wait that blocks is counted in `waits`, if not null.
  std::optional<Failure> Wait(DurationTable* waits = nullptr) const;

 private:
  const ByteRange range_;
  const uint64_t fetched_for_;          // The span that caused the fetch, if requests are logged.
  LargeBuffer large_;                   // Memory of a large block.
  std::unique_ptr<std::byte[]> small_;  // Memory of a small block.
  std::byte* bytes_ = nullptr;
  mutable Mutex mutex_;
  mutable CondVar finished_;
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Failure> failure_ ABSL_GUARDED_BY(mutex_);
};

class BlockCache {
 public:
  using Index = BlockIndex<std::shared_ptr<Block>>;

  explicit BlockCache(uint64_t bytes_max) : index_(bytes_max) {}

  // All as in BlockIndex.
  Index::Step Next(FileId file, ByteRange range);
  std::vector<std::shared_ptr<Block>> Add(FileId file, ByteRange range);
  void DropFile(FileId file);
  void Drop(FileId file, ByteRange range);
  void DropBlock(FileId file, const std::shared_ptr<Block>& block);
  void DropAll();
  uint64_t ShareBytes() const;

 private:
  mutable Mutex mutex_;
  Index index_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_BLOCK_CACHE_H_
