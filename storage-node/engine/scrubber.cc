#include "storage-node/engine/scrubber.h"

#include <algorithm>
#include <utility>

#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/model/checksum_blocks.h"

namespace mosa::node {

uint64_t Scrubber::Next(std::span<std::byte> scratch) {
  const ObjectRef object = table_.Next(file_, /*from_it=*/offset_ > 0);
  if (object == nullptr) {
    file_ = FileId{};
    offset_ = 0;
    return 0;
  }
  if (object->file != file_) offset_ = 0;
  file_ = object->file;
  const SystemMutexLock lock(object->mutex);
  const uint64_t compared = Piece(*object, offset_, scratch);
  if (offset_ >= object->size_bytes) offset_ = 0;
  return std::max<uint64_t>(compared, 1);
}

// Verifies the next piece with data from `offset` on, and moves `offset` past it; to the end if
// there is nothing to verify.
uint64_t Scrubber::Piece(Object& object, uint64_t& offset, std::span<std::byte> scratch) {
  const uint64_t from = std::exchange(offset, object.size_bytes);
  if (object.dropped || !object.checksums.sealed()) return 0;
  const Result<UniqueFd> fd = store_.Open(object.file, OpenMode::kRead);
  if (!fd.ok()) return 0;
  const Result<uint64_t> data = store_.Seek(fd->get(), from, /*data=*/true);
  if (!data.ok()) return 0;
  const uint64_t begin = BeginOf(BlockOf(*data));
  const Result<size_t> got = store_.Read(fd->get(), begin, scratch);
  if (!got.ok()) return 0;
  for (uint64_t at = 0; at < *got; at += kChecksumBlockBytes) {
    const BlockIndex block = BlockOf(begin + at);
    const uint64_t extent = std::min<uint64_t>(kChecksumBlockBytes, *got - at);
    const auto known = object.checksums.Get(block, object.size_bytes);
    if (!known || *known == Crc32c(scratch.data() + at, extent)) continue;
    if (object.checksums.CorruptIn(block, BlockIndex{block.value + 1})) continue;
    ledger_.NoteCorrupt(object, block);
    LogError("the scrubber found block {} of the object of file {} corrupt", block.value,
             object.file.value);
  }
  offset = begin + std::max<uint64_t>(*got, kChecksumBlockBytes);
  return *got;
}

}  // namespace mosa::node
