// BlockCache: prefetched bytes of files on other nodes. One bounded cache per mount.
//
// A block is added before its bytes have arrived, so that several readers wait for one fetch.
// Dropping a file's blocks during a fetch leaves that fetch to the readers that already wait for
// it. A fetch that has not begun, and whose block no reader holds, need not begin.
//
// Thread-safe.
#ifndef MOSA_CLIENT_SAI_SAI_BLOCK_CACHE_H_
#define MOSA_CLIENT_SAI_SAI_BLOCK_CACHE_H_

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client-sai/core/rules.h"
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
  explicit BlockCache(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  // Returns the block that contains byte `offset`, or null. `read_end` is the end of the read.
  // Blocks that were read to their end are kept, up to two per cached file, because the kernel's
  // requests arrive in any order. Then the kernel holds the bytes, and memory that is reused soon
  // is still in the processor's cache.
  std::shared_ptr<Block> Find(FileId file, uint64_t offset, uint64_t read_end = 0);
  // How many bytes one file may have in flight, so that all files being read find room.
  uint64_t ShareBytes() const;
  // Adds blocks for the parts of `range` that have none, and returns them for fetching. Blocks are
  // at most kBlockBytesMax long and are cut at its multiples. The oldest blocks make room.
  std::vector<std::shared_ptr<Block>> Add(FileId file, ByteRange range);
  void DropFile(FileId file);
  void DropRange(FileId file, ByteRange range);
  // Drops a block whose fetch failed.
  void DropBlock(FileId file, const Block& block);
  void DropAll();

 private:
  using Key = std::pair<FileId, uint64_t>;  // The block's file and first byte.
  struct Slot {
    std::shared_ptr<Block> block;
    std::list<Key>::iterator age;
    bool consumed = false;  // Read to its end: `age` is in consumed_, else in by_age_.
  };
  using Map = std::map<Key, Slot>;
  Map::iterator Erase(Map::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t bytes_max_;
  mutable Mutex mutex_;
  Map blocks_ ABSL_GUARDED_BY(mutex_);
  std::map<FileId, size_t> files_ ABSL_GUARDED_BY(mutex_);  // Number of blocks per file.
  std::list<Key> by_age_ ABSL_GUARDED_BY(mutex_);           // Least recently used first.
  std::list<Key> consumed_ ABSL_GUARDED_BY(mutex_);         // Next to be dropped first.
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_BLOCK_CACHE_H_
