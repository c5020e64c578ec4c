// WriteBuffer: bytes of one file that were written but not yet sent, merged into extents.
//
// No extent crosses a boundary: a multiple of kExtentBytesMax or of the chunk size. An extent is
// open (writes merge into it), then taken (being sent, its bytes do not change), then gone.
// One owner; the caller locks. Invariant: extents do not overlap one another, whether open or
// taken.
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

// Whose memory bytes are: it stays as it is for as long as somebody has `owner`. Null: only the
// caller's, and only until it returns.
struct Memory {
  std::shared_ptr<const void> owner;
  size_t spare_bytes = 0;  // Behind the bytes; the holder of `owner` may write them.
};

// Bytes that follow each other: a copy in `own`, or `lent` by `memory`.
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
  // Where an extent that holds `offset` must end.
  static uint64_t BoundaryAfter(uint64_t offset, uint64_t chunk_bytes);

  // True if bytes of `range` are being sent: wait before putting them again.
  bool OverlapsTaken(ByteRange range) const;
  bool Overlaps(ByteRange range) const;
  // Merges `data` in. Preconditions: it crosses no boundary of `chunk_bytes`, and overlaps no taken
  // extent. Returns how many bytes the buffer has grown by. With `memory` nothing is copied if the
  // data are a whole extent, or begin one of which the rest fits behind them: programs' buffers
  // mostly begin a little behind a page, and the kernel then sends their last bytes apart.
  uint64_t Put(uint64_t offset, std::span<const std::byte> data, uint64_t chunk_bytes,
               const Memory& memory = {});

  // Open extents that end at their boundary, or all open ones, become taken and are returned.
  std::vector<std::shared_ptr<const Extent>> Take(bool all, uint64_t chunk_bytes);
  // A taken extent is stored, or given up.
  void Finish(const Extent& extent);
  // A taken extent is open again: it could not be stored where it was sent.
  void PutBack(const Extent& extent);
  // Drops what lies at or beyond `size_bytes`. Precondition: nothing is taken. Returns how many
  // bytes went.
  uint64_t Cut(uint64_t size_bytes);

  bool empty() const { return open_.empty() && taken_.empty(); }
  bool any_taken() const { return !taken_.empty(); }
  bool any_open() const { return !open_.empty(); }
  uint64_t bytes() const { return bytes_; }
  // The first open extent's bytes. Precondition: any_open().
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
