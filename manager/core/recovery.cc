#include "manager/core/recovery.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

namespace mosa::manager {
namespace {

struct Piece {
  uint64_t begin = 0;
  uint64_t end = 0;
  NodeId node;
};

// Returns the ranges with data, extended down to whole units of the layout, ascending.
std::vector<Piece> PiecesOf(NodeId node, const AsideObject& object) {
  std::vector<Piece> pieces;
  for (const DataRuns& runs : object.data) {
    for (uint64_t i = 0; i < runs.count; ++i) {
      const uint64_t begin = (runs.begin + i * runs.stride) / kSegmentUnit * kSegmentUnit;
      const uint64_t end = runs.begin + i * runs.stride + runs.length;
      if (!pieces.empty() && begin <= pieces.back().end) {
        pieces.back().end = std::max(pieces.back().end, end);
      } else {
        pieces.push_back({begin, end, node});
      }
    }
  }
  return pieces;
}

bool Overlap(const std::vector<Piece>& taken, const std::vector<Piece>& more) {
  size_t i = 0;
  for (const Piece& piece : more) {
    while (i < taken.size() && taken[i].end <= piece.begin) ++i;
    if (i < taken.size() && taken[i].begin < piece.end) return true;
  }
  return false;
}

std::vector<Piece> Merged(const std::vector<Piece>& a, const std::vector<Piece>& b) {
  std::vector<Piece> merged(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), merged.begin(),
             [](const Piece& x, const Piece& y) { return x.begin < y.begin; });
  return merged;
}

// Returns one segment striped over `width` nodes if all pieces fit it and at least one node has
// several.
std::optional<Layout> AsStripe(const std::vector<Piece>& pieces, size_t width) {
  if (width < 2 || pieces.size() <= width) return std::nullopt;
  const uint64_t chunk = pieces[1].begin - pieces[0].begin;
  if (chunk == 0 || pieces[0].begin != 0) return std::nullopt;
  Layout layout;
  layout.chunk_bytes = chunk;
  layout.segments = {{0, static_cast<uint32_t>(width), std::vector<NodeId>(width, kNoNode)}};
  for (const Piece& piece : pieces) {
    if (piece.begin / chunk != (piece.end - 1) / chunk) return std::nullopt;
    NodeId& place = layout.segments[0].nodes[piece.begin / chunk % width];
    if (place != kNoNode && place != piece.node) return std::nullopt;
    place = piece.node;
  }
  const auto& nodes = layout.segments[0].nodes;
  if (std::find(nodes.begin(), nodes.end(), kNoNode) != nodes.end()) return std::nullopt;
  return layout;
}

}  // namespace

uint64_t FirstAfterRecovery(Time now) {
  return static_cast<uint64_t>(std::max<int64_t>(now.ns, 0)) / 1000;
}

uint64_t Recovery::Recover(uint64_t next_file_id, Time now) {
  // For two recoveries within a microsecond, or a clock that went back: still exceed all earlier
  // numbers.
  constexpr uint64_t kLeap = uint64_t{1} << 32;
  const uint64_t first = FirstAfterRecovery(now);
  record_.kept_below = std::max(first, next_file_id + kLeap);
  record_.version_floor = std::max(first, record_.version_floor + kLeap);
  return record_.kept_below;
}

bool Recovery::MayBeForgotten(FileId file, std::optional<Time> modified,
                              uint64_t settled_below) const {
  return (file.value < record_.kept_below && settled_below != record_.kept_below) ||
         (modified && HasForgottenChange(*modified));
}

bool Recovery::HasForgottenChange(Time modified) const {
  return modified > stored_until_ && modified <= began_;
}

void Recovery::SetAside(NodeId node, std::vector<AsideObject> objects) {
  std::map<FileId, AsideObject> kept;
  for (AsideObject& object : objects) kept.insert_or_assign(object.file, std::move(object));
  if (kept.empty()) {
    aside_.erase(node);
  } else {
    aside_[node] = std::move(kept);
  }
}

void Recovery::Forget(NodeId node, FileId file) {
  const auto found = aside_.find(node);
  if (found == aside_.end()) return;
  found->second.erase(file);
  if (found->second.empty()) aside_.erase(found);
}

std::vector<FileId> Recovery::ListAside(size_t files_max, FileId after) const {
  std::set<FileId> files;
  for (const auto& [node, objects] : aside_) {
    size_t taken = 0;
    for (auto object = objects.upper_bound(after); object != objects.end() && taken < files_max;
         ++object, ++taken)
      files.insert(object->first);
  }
  const size_t count = std::min(files.size(), files_max);
  return {files.begin(), std::next(files.begin(), static_cast<std::ptrdiff_t>(count))};
}

std::map<NodeId, const AsideObject*> Recovery::PartsOf(FileId file) const {
  std::map<NodeId, const AsideObject*> parts;
  for (const auto& [node, objects] : aside_)
    if (const auto found = objects.find(file); found != objects.end())
      parts.emplace(node, &found->second);
  return parts;
}

std::optional<JoinedParts> JoinParts(const std::map<NodeId, const AsideObject*>& parts,
                                     uint64_t chunk_bytes, size_t segments_max) {
  std::vector<std::pair<NodeId, const AsideObject*>> by_size(parts.begin(), parts.end());
  std::stable_sort(by_size.begin(), by_size.end(), [](const auto& a, const auto& b) {
    return a.second->allocated_bytes > b.second->allocated_bytes;
  });
  JoinedParts joined;
  std::vector<Piece> pieces;
  size_t width = 0;
  for (const auto& [node, object] : by_size) {
    const std::vector<Piece> more = PiecesOf(node, *object);
    if (width > 0 && Overlap(pieces, more)) {
      joined.unused.push_back(node);
      continue;
    }
    pieces = Merged(pieces, more);
    joined.size_bytes = std::max(joined.size_bytes, object->size_bytes);
    ++width;
  }
  if (by_size.empty()) return std::nullopt;
  if (auto stripe = AsStripe(pieces, width)) {
    joined.layout = *std::move(stripe);
    return joined;
  }
  joined.layout.chunk_bytes = chunk_bytes;
  for (const Piece& piece : pieces) {
    auto& segments = joined.layout.segments;
    if (!segments.empty() && segments.back().nodes[0] == piece.node) continue;
    segments.push_back({segments.empty() ? 0 : piece.begin, 1, {piece.node}});
  }
  if (joined.layout.segments.empty()) joined.layout.segments = {{0, 1, {by_size[0].first}}};
  if (joined.layout.segments.size() > segments_max) return std::nullopt;
  return joined;
}

}  // namespace mosa::manager
