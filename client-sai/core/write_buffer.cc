#include "client-sai/core/write_buffer.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "common/base/check.h"

namespace mosa::sai {
namespace {

template <typename Map, typename EndOf>
bool AnyOverlap(const Map& extents, ByteRange range, EndOf end_of) {
  if (range.empty()) return false;
  auto it = extents.lower_bound(range.end);
  if (it == extents.begin()) return false;
  return end_of(std::prev(it)->second) > range.begin;
}

// Copies borrowed bytes, before they are changed.
void Own(Extent& extent) {
  if (extent.memory.owner == nullptr) return;
  extent.own.assign(reinterpret_cast<const char*>(extent.lent.data()), extent.lent.size());
  extent.lent = {};
  extent.memory = {};
}

}  // namespace

uint64_t WriteBuffer::BoundaryAfter(uint64_t offset, uint64_t chunk_bytes) {
  const uint64_t chunk_end = (offset / chunk_bytes + 1) * chunk_bytes;
  const uint64_t extent_end = (offset / kExtentBytesMax + 1) * kExtentBytesMax;
  return std::min(chunk_end, extent_end);
}

bool WriteBuffer::OverlapsTaken(ByteRange range) const {
  return AnyOverlap(taken_, range, [](uint64_t end) { return end; });
}

bool WriteBuffer::Overlaps(ByteRange range) const {
  return OverlapsTaken(range) ||
         AnyOverlap(open_, range, [](const auto& extent) { return extent->range().end; });
}

// Returns true if the data were borrowed as the start of a new extent: it had no bytes yet, and the
// data are most of it.
bool WriteBuffer::Lend(uint64_t offset, std::span<const std::byte> data, uint64_t boundary,
                       const Memory& memory) {
  if (memory.owner == nullptr || offset + kExtentBytesMax != boundary ||
      data.size() + memory.spare_bytes < kExtentBytesMax || data.size() < kExtentBytesMax / 2 ||
      Overlaps({offset, boundary}))
    return false;
  open_[offset] = std::make_shared<Extent>(Extent{offset, {}, data, memory});
  bytes_ += data.size();
  return true;
}

uint64_t WriteBuffer::Put(uint64_t offset, std::span<const std::byte> data, uint64_t chunk_bytes,
                          const Memory& memory) {
  if (data.empty()) return 0;
  const ByteRange range{offset, offset + data.size()};
  const uint64_t boundary = BoundaryAfter(offset, chunk_bytes);
  MOSA_CHECK(range.end <= boundary && !OverlapsTaken(range));
  if (Lend(offset, data, boundary, memory)) return data.size();
  const uint64_t bytes_before = bytes_;

  // The target extent: one that the data overlap or continue, or a new one.
  auto next = open_.upper_bound(offset);
  std::shared_ptr<Extent> target;
  if (next != open_.begin()) {
    const auto before = std::prev(next);
    const ByteRange old = before->second->range();
    if (old.end >= offset && BoundaryAfter(old.begin, chunk_bytes) == boundary)
      target = before->second;
  }
  if (!target) {
    target = std::make_shared<Extent>();
    target->offset = offset;
    open_[offset] = target;
  }
  if (target->memory.owner && target->range().end == offset && !Overlaps(range)) {
    std::byte* const end = const_cast<std::byte*>(target->lent.data()) + target->lent.size();
    std::memcpy(end, data.data(), data.size());
    target->lent = {target->lent.data(), target->lent.size() + data.size()};
    bytes_ += data.size();
    return data.size();
  }
  Own(*target);
  const size_t at = static_cast<size_t>(offset - target->offset);
  const size_t overlap = std::min(target->own.size() - at, data.size());
  std::memcpy(target->own.data() + at, data.data(), overlap);
  target->own.append(reinterpret_cast<const char*>(data.data()) + overlap, data.size() - overlap);
  bytes_ += data.size() - overlap;

  // Merges extents behind it that are now overlapped or touched; the new bytes win.
  next = open_.upper_bound(target->offset);
  while (next != open_.end() && next->first <= target->range().end &&
         BoundaryAfter(next->first, chunk_bytes) == boundary) {
    Extent& behind = *next->second;
    Own(behind);
    const uint64_t target_end = target->range().end;
    const size_t covered =
        static_cast<size_t>(std::min<uint64_t>(target_end - behind.offset, behind.own.size()));
    target->own.append(behind.own, covered);
    bytes_ -= covered;
    next = open_.erase(next);
  }
  return bytes_ - bytes_before;
}

std::vector<std::shared_ptr<const Extent>> WriteBuffer::Take(bool all, uint64_t chunk_bytes) {
  std::vector<std::shared_ptr<const Extent>> ready;
  for (auto it = open_.begin(); it != open_.end();) {
    const ByteRange range = it->second->range();
    if (!all && range.end != BoundaryAfter(range.begin, chunk_bytes)) {
      ++it;
      continue;
    }
    taken_[range.begin] = range.end;
    ready.push_back(it->second);
    it = open_.erase(it);
  }
  return ready;
}

void WriteBuffer::Finish(const Extent& extent) {
  MOSA_CHECK(taken_.erase(extent.offset) == 1);
  bytes_ -= extent.bytes().size();
}

void WriteBuffer::PutBack(const Extent& extent) {
  MOSA_CHECK(taken_.erase(extent.offset) == 1);
  open_[extent.offset] = std::make_shared<Extent>(extent);
}

uint64_t WriteBuffer::Cut(uint64_t size_bytes) {
  MOSA_CHECK(taken_.empty());
  const uint64_t bytes_before = bytes_;
  for (auto it = open_.begin(); it != open_.end();) {
    Extent& extent = *it->second;
    const uint64_t keep = size_bytes > extent.offset ? size_bytes - extent.offset : 0;
    if (keep < extent.bytes().size()) {
      bytes_ -= extent.bytes().size() - keep;
      Own(extent);
      extent.own.resize(static_cast<size_t>(keep));
    }
    it = keep == 0 ? open_.erase(it) : std::next(it);
  }
  return bytes_before - bytes_;
}

}  // namespace mosa::sai
