// WriteBuffer: bytes of one file that were written but not yet sent, merged into extents.
//
// No extent crosses a boundary, which is a multiple of kExtentBytesMax or of the chunk size. An
// extent is first open (writes merge into it), then taken (being sent; its bytes do not change),
// then gone. One owner; the caller locks.
//
// Invariant: extents, open or taken, do not overlap.
#ifndef MOSA_CLIENT_SAI_CORE_WRITE_BUFFER_H_
#define MOSA_CLIENT_SAI_CORE_WRITE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/model/ranges.h"

namespace mosa::sai {

inline constexpr uint64_t kExtentBytesMax = 1 << 20;

// Borrowed bytes. They stay unchanged while `owner` is held. If `owner` is null, they belong to the
// caller and are valid only until the call returns.
struct Memory {
  std::shared_ptr<const void> owner;
  size_t spare_bytes = 0;  // Room behind the bytes that the holder of `owner` may write.
};

// Consecutive bytes: a copy in `own`, or bytes `lent` by `memory`.
struct Extent {
  uint64_t offset = 0;
  std::string own;
  std::span<const std::byte> lent;
  Memory memory;

  std::span<const std::byte> bytes() const {
    return memory.owner ? lent : std::as_bytes(std::span(own));
  }
  ByteRange range() const { return {offset, offset + bytes().size()}; }
};

class WriteBuffer {
 public:
  // Where an extent that contains `offset` must end.
  static uint64_t BoundaryAfter(uint64_t offset, uint64_t chunk_bytes);

  // True if bytes of `range` are being sent: wait before writing them again.
  bool OverlapsTaken(ByteRange range) const;
  bool Overlaps(ByteRange range) const;
  // Merges `data` in, and returns by how many bytes the buffer grew. Preconditions: the data cross
  // no boundary of `chunk_bytes` and overlap no taken extent. With `memory`, nothing is copied if
  // the data form a whole extent, or the beginning of one whose rest fits into `spare_bytes`. The
  // latter is common: programs' buffers often begin a little behind a page boundary, and the kernel
  // then sends their last bytes separately.
  uint64_t Put(uint64_t offset, std::span<const std::byte> data, uint64_t chunk_bytes,
               const Memory& memory = {});

  // Marks open extents as taken and returns them: all, or only those that end at their boundary.
  std::vector<std::shared_ptr<const Extent>> Take(bool all, uint64_t chunk_bytes);
  // A taken extent was stored or given up.
  void Finish(const Extent& extent);
  // A taken extent could not be stored at its target: makes it open again.
  void PutBack(const Extent& extent);
  // Drops bytes at or beyond `size_bytes`, and returns how many. Precondition: nothing is taken.
  uint64_t Cut(uint64_t size_bytes);

  bool empty() const { return open_.empty() && taken_.empty(); }
  bool any_taken() const { return !taken_.empty(); }
  bool any_open() const { return !open_.empty(); }
  size_t open_extents() const { return open_.size(); }
  size_t extents() const { return open_.size() + taken_.size(); }
  uint64_t bytes() const { return bytes_; }
  // The range of the first open extent. Precondition: any_open().
  ByteRange first_open() const { return open_.begin()->second->range(); }

 private:
  bool Lend(uint64_t offset, std::span<const std::byte> data, uint64_t boundary,
            const Memory& memory);

  std::map<uint64_t, std::shared_ptr<Extent>> open_;  // By offset.
  std::map<uint64_t, uint64_t> taken_;                // Offset -> end.
  uint64_t bytes_ = 0;                                // In both.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_WRITE_BUFFER_H_
