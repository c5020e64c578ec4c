// BlockCache: bytes of files on other nodes that were fetched ahead, bounded over the mount.
//
// A block is put in before its bytes have come, so that several readers wait for one fetch.
// Dropping a file's blocks while a fetch runs leaves that fetch to those who already wait for it;
// one that has not begun, and whose block nobody else holds then, need not begin.
// Thread-safe.
#ifndef MOSA_CLIENT_SAI_SAI_BLOCK_CACHE_H_
#define MOSA_CLIENT_SAI_SAI_BLOCK_CACHE_H_

#include <condition_variable>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/large_buffer.h"
#include "common/model/ids.h"
#include "common/model/messages.h"
#include "common/model/ranges.h"
#include "common/observe/duration_table.h"

namespace mosa::sai {

class Block {
 public:
  explicit Block(ByteRange range);
  ByteRange range() const { return range_; }
  // Written by the fetch, before Finish; read by others after Wait.
  std::byte* bytes() { return bytes_; }
  const std::byte* bytes() const { return bytes_; }
  void Finish(std::optional<Failure> failure);
  // Waits for Finish; what it said. A wait that is one is counted in `waits`, if that is not null.
  std::optional<Failure> Wait(DurationTable* waits = nullptr) const;

 private:
  const ByteRange range_;
  const uint64_t fetched_for_;          // The span that had it fetched, if requests are logged.
  LargeBuffer large_;                   // Holds large blocks;
  std::unique_ptr<std::byte[]> small_;  // small_ holds small ones.
  std::byte* bytes_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::condition_variable finished_;
  bool is_finished_ = false;        // Guarded by mutex_.
  std::optional<Failure> failure_;  // Guarded by mutex_.
};

class BlockCache {
 public:
  static constexpr uint64_t kBlockBytesMax = 1 << 20;

  explicit BlockCache(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  // The block that holds byte `offset`, or null. One that is read to its end stays for two more of
  // its file's, since the kernel's requests come in any order: the kernel has those bytes now, and
  // memory that is used again soon is still in the processor's cache.
  std::shared_ptr<Block> Find(FileId file, uint64_t offset, uint64_t read_end = 0);
  // How much one file may have on its way, so that all that are read find room.
  uint64_t ShareBytes() const;
  // Makes blocks of at most kBlockBytesMax, cut at its multiples, for the parts of `range` that
  // have none, and returns them for fetching. The oldest blocks make room.
  std::vector<std::shared_ptr<Block>> Add(FileId file, ByteRange range);
  void DropFile(FileId file);
  void DropRange(FileId file, ByteRange range);
  // A fetch of it has failed.
  void DropBlock(FileId file, const Block& block);
  void DropAll();

 private:
  using Key = std::pair<FileId, uint64_t>;  // The block's first byte.
  struct Slot {
    std::shared_ptr<Block> block;
    std::list<Key>::iterator age;
    bool consumed = false;  // Read to its end: `age` is in consumed_, else in by_age_.
  };
  using Map = std::map<Key, Slot>;
  Map::iterator Erase(Map::iterator it);  // Caller holds mutex_.

  const uint64_t bytes_max_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  Map blocks_;
  std::map<FileId, size_t> files_;  // How many blocks each has.
  std::list<Key> by_age_;           // The least recently used first.
  std::list<Key> consumed_;         // The first to be dropped first.
  uint64_t bytes_ = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_BLOCK_CACHE_H_
