// BlockIndex: which bytes of files on other nodes a mount has fetched ahead or is fetching, within
// a limit of bytes, and what a read takes from them.
//
// The kernel's requests arrive in any order, so a block that was read to its end is kept a little
// longer: up to two per file. After that the kernel holds the bytes, and memory that is reused soon
// is still in the processor's cache.
//
// Pure; driven by the mount (sai::BlockCache) and by the simulator. `Block` is what a block is to
// its owner: a pointer to something with a `range()`. One owner.
#ifndef MOSA_CLIENT_SAI_CORE_BLOCK_INDEX_H_
#define MOSA_CLIENT_SAI_CORE_BLOCK_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "client-sai/core/rules.h"
#include "common/model/ids.h"
#include "common/model/ranges.h"

namespace mosa::sai {

template <typename Block>
class BlockIndex {
 public:
  explicit BlockIndex(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // The next part of a read: from `block`, or to be fetched now if that is null.
  struct Step {
    Block block{};
    ByteRange range;
  };
  // Precondition: `range` is not empty.
  Step Next(FileId file, ByteRange range) {
    if (Block block = Use(file, range.begin, range.end))
      return {block, {range.begin, std::min(range.end, block->range().end)}};
    // Up to the next block that is there or on its way.
    const auto next = blocks_.upper_bound({file, range.begin});
    if (next != blocks_.end() && next->first.first == file)
      range.end = std::min(range.end, next->first.second);
    return {{}, range};
  }

  // Adds what `make(range)` returns for the parts of `range` that have no block, and returns it.
  // Blocks are at most kBlockBytesMax long and are cut at its multiples. The oldest make room.
  template <typename Make>
  std::vector<Block> Add(FileId file, ByteRange range, Make make) {
    std::vector<Block> added;
    uint64_t at = range.begin;
    while (at < range.end) {
      auto next = blocks_.upper_bound({file, at});
      if (next != blocks_.begin()) {
        const auto before = std::prev(next);
        if (before->first.first == file && before->second.block->range().end > at) {
          at = before->second.block->range().end;
          continue;
        }
      }
      uint64_t end = std::min(range.end, (at / kBlockBytesMax + 1) * kBlockBytesMax);
      if (next != blocks_.end() && next->first.first == file)
        end = std::min(end, next->first.second);
      Block block = make(ByteRange{at, end});
      by_age_.push_back({file, at});
      blocks_[{file, at}] = {block, std::prev(by_age_.end()), false};
      bytes_ += end - at;
      ++files_[file];
      added.push_back(std::move(block));
      at = end;
    }
    while (bytes_ > bytes_max_ && blocks_.size() > added.size())
      Erase(blocks_.find(consumed_.empty() ? by_age_.front() : consumed_.front()));
    return added;
  }

  void Drop(FileId file, ByteRange range) {
    auto it = blocks_.upper_bound({file, range.begin});
    if (it != blocks_.begin() && std::prev(it)->first.first == file) --it;
    while (it != blocks_.end() && it->first.first == file && it->first.second < range.end)
      it = it->second.block->range().end > range.begin ? Erase(it) : std::next(it);
  }
  void DropFile(FileId file) { Drop(file, {0, UINT64_MAX}); }
  // Drops a block whose fetch failed, unless another has taken its place.
  void DropBlock(FileId file, const Block& block) {
    const auto it = blocks_.find({file, block->range().begin});
    if (it != blocks_.end() && it->second.block == block) Erase(it);
  }
  void DropAll() {
    blocks_.clear();
    files_.clear();
    by_age_.clear();
    consumed_.clear();
    bytes_ = 0;
  }

  // How many bytes one file may have in flight, so that all files being read find room.
  uint64_t ShareBytes() const { return CacheShare(bytes_max_, files_.size()); }

 private:
  static constexpr size_t kConsumedBlocksPerFile = 2;
  using Key = std::pair<FileId, uint64_t>;  // The block's file and first byte.
  struct Slot {
    Block block;
    typename std::list<Key>::iterator age;
    bool consumed = false;  // Read to its end: `age` is in consumed_, else in by_age_.
  };
  using Map = std::map<Key, Slot>;
  // The block with byte `offset`, or null. The read that asks goes to `read_end`.
  Block Use(FileId file, uint64_t offset, uint64_t read_end) {
    auto it = blocks_.upper_bound({file, offset});
    if (it == blocks_.begin()) return {};
    --it;
    if (it->first.first != file || it->second.block->range().end <= offset) return {};
    Slot& slot = it->second;
    const Block block = slot.block;
    std::list<Key>& from = slot.consumed ? consumed_ : by_age_;
    slot.consumed = slot.consumed || read_end >= block->range().end;
    std::list<Key>& to = slot.consumed ? consumed_ : by_age_;
    to.splice(to.end(), from, slot.age);
    while (consumed_.size() > kConsumedBlocksPerFile * files_.size())
      Erase(blocks_.find(consumed_.front()));
    return block;
  }
  typename Map::iterator Erase(typename Map::iterator it) {
    bytes_ -= it->second.block->range().size();
    (it->second.consumed ? consumed_ : by_age_).erase(it->second.age);
    const auto file = files_.find(it->first.first);
    if (--file->second == 0) files_.erase(file);
    return blocks_.erase(it);
  }

  const uint64_t bytes_max_;
  Map blocks_;
  std::map<FileId, size_t> files_;  // Number of blocks per file.
  std::list<Key> by_age_;           // Least recently used first.
  std::list<Key> consumed_;         // Next to be dropped first.
  uint64_t bytes_ = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_BLOCK_INDEX_H_
