#include "storage-node/core/copy_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "storage-node/core/checksum_table.h"

namespace mosa::node {
namespace {

constexpr ByteRange kEverything{0, kFileBytesMax};
// Checksums are requested ahead until this many bytes are waiting to be fetched.
constexpr uint64_t kWantedAheadBytes = 16 << 20;
// A question covers the ranges of this many chunks, and everything after them.
constexpr uint64_t kAboutChunksMax = 256;

uint64_t BlockFloor(uint64_t offset) { return offset / kChecksumBlockBytes * kChecksumBlockBytes; }

ByteRange WidenToBlocks(ByteRange range) {
  return {BlockFloor(range.begin),
          std::min(kFileBytesMax, BlockFloor(range.end - 1) + kChecksumBlockBytes)};
}

uint32_t CrcWithZeroes(uint32_t crc, uint64_t bytes) {
  static const std::vector<char> zeroes(kChecksumBlockBytes);
  return ExtendCrc32c(crc, zeroes.data(), bytes);
}

// Returns true if two checksums of a block, in objects of different sizes, stand for the same
// bytes.
bool SameContent(BlockIndex block, uint32_t crc_a, uint64_t a_bytes, uint32_t crc_b,
                 uint64_t b_bytes) {
  const uint64_t extent_a = ExtentOf(block, a_bytes);
  const uint64_t extent_b = ExtentOf(block, b_bytes);
  const uint64_t extent = std::max(extent_a, extent_b);
  return CrcWithZeroes(crc_a, extent - extent_a) == CrcWithZeroes(crc_b, extent - extent_b);
}

void KeepOnly(const IntervalSet& kept, IntervalSet& set) {
  for (const ByteRange& part : set.All())
    for (const ByteRange& missing : kept.Missing(part)) set.Remove(missing);
}

}  // namespace

CopyTask::CopyTask(CopyOrder order, CopyLimits limits) : order_(std::move(order)), limits_(limits) {
  MOSA_CHECK(order_.sources.bound() && order_.sources.chunk_bytes > 0);
  for (const NodeId node : order_.sources.Nodes()) {
    if (node == kNoNode) {
      owns_all_ = false;
      continue;
    }
    Source source{.node = node};
    SetRelay(source);
    const auto address = std::ranges::find(order_.nodes, node, &NodeAddress::node);
    MOSA_CHECK(address != order_.nodes.end());
    source.incarnation = address->incarnation;
    source.dirty.Add(kEverything);
    sources_.push_back(std::move(source));
  }
  done_ = sources_.empty() && !order_.follow;
}

void CopyTask::SetRelay(Source& source) const {
  const auto relay = std::ranges::find(order_.relays, source.node, &CopyRelay::node);
  source.relay = relay != order_.relays.end();
  source.relay_order = source.relay ? relay->order : 0;
}

bool CopyTask::GoesOnAs(const CopyOrder& next) const {
  if (!order_.follow || failure_ || sources_.empty() || next.file != order_.file ||
      next.sources != order_.sources)
    return false;
  return std::ranges::all_of(sources_, [&next](const Source& source) {
    const auto address = std::ranges::find(next.nodes, source.node, &NodeAddress::node);
    return address != next.nodes.end() && address->incarnation == source.incarnation;
  });
}

void CopyTask::GoOnAs(CopyOrder next) {
  MOSA_CHECK(GoesOnAs(next));
  order_ = std::move(next);
  for (Source& source : sources_) {
    SetRelay(source);
    for (const CopyAction& action : source.wanted) source.busy.Remove(action.range);
    source.wanted.clear();
    source.dirty.Add(kEverything);
    source.unsettled.Clear();
    // Answers to questions of the earlier order no longer count.
    source.asking = source.confirmed = false;
    source.without_order_since.reset();
  }
  copied_bytes_ = 0;
}

CopyTask::Source* CopyTask::Find(NodeId node) {
  const auto found = std::ranges::find(sources_, node, &Source::node);
  return found == sources_.end() ? nullptr : &*found;
}

// ---- the next action

std::optional<CopyAction> CopyTask::Next(Time now, CopyRoom room) {
  if (finished()) return std::nullopt;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const size_t turn = (turn_ + i) % sources_.size();
    if (std::optional<CopyAction> action = NextOf(sources_[turn], now, room)) {
      turn_ = turn + 1;
      action->begun = now;
      action->order = order_.order;
      return action;
    }
  }
  if (order_.follow || cut_begun_ || !AllConfirmed()) return std::nullopt;
  cut_begun_ = true;
  return CopyAction{.kind = CopyAction::Kind::kCut,
                    .range = {order_.size_bytes, order_.size_bytes},
                    .begun = now,
                    .order = order_.order};
}

std::optional<CopyAction> CopyTask::NextOf(Source& source, Time now, CopyRoom room) {
  if (now < source.retry_at) return std::nullopt;
  if (!source.wanted.empty() && room.fetches && source.fetches < limits_.fetches_per_source_max) {
    CopyAction action = source.wanted.front();
    source.wanted.pop_front();
    ++source.fetches;
    return action;
  }
  if (source.asking || source.wanted.size() * limits_.fetch_bytes >= kWantedAheadBytes)
    return std::nullopt;
  if (const auto window = NextWindow(source)) return Ask(source, *window, /*hold=*/false);
  // What is dirty but not busy does not come from this source.
  KeepOnly(source.busy, source.dirty);
  if (!source.dirty.empty()) return std::nullopt;
  if (!order_.follow && (!source.busy.empty() || source.confirmed)) return std::nullopt;
  const bool hold = order_.follow || !source.unsettled.empty();
  if (hold && !room.holds) return std::nullopt;
  return Ask(source, {}, hold);
}

CopyAction CopyTask::Ask(Source& source, ByteRange window, bool hold) {
  source.dirty.Remove(window);
  source.asking = true;
  source.asked = window;
  return {.kind = CopyAction::Kind::kAsk,
          .source = source.node,
          .range = window,
          .after_change = source.change,
          .hold = hold,
          .about = hold ? AwaitedOf(source) : std::vector<ByteRange>{},
          .settles = source.busy.empty()};
}

// At a relay, every byte that it receives is a change; most are not this source's part.
std::vector<ByteRange> CopyTask::AwaitedOf(const Source& source) const {
  const std::vector<ByteRange> parts =
      order_.follow ? std::vector{kEverything} : source.unsettled.All();
  const uint64_t chunks_end =
      (parts.empty() ? 0 : parts.front().begin) + kAboutChunksMax * order_.sources.chunk_bytes;
  // A relay announces that it is done by a change after the file's end.
  const uint64_t end = std::min(chunks_end, order_.follow ? kFileBytesMax : order_.size_bytes);
  std::vector<ByteRange> awaited;
  for (const ByteRange& part : parts) {
    const uint64_t limit = std::min(part.end, end);
    for (auto run = NextRun(source.node, part.begin, limit); run;
         run = NextRun(source.node, run->end, limit)) {
      if (awaited.size() + 1 == kAboutRangesMax) {
        awaited.push_back({run->begin, kFileBytesMax});
        return awaited;
      }
      awaited.push_back(*run);
    }
  }
  awaited.push_back({end, kFileBytesMax});
  return awaited;
}

std::optional<ByteRange> CopyTask::NextRun(NodeId node, uint64_t from, uint64_t limit) const {
  while (from < limit) {
    const Segment& segment = order_.sources.SegmentAt(from);
    const uint64_t segment_end = std::min(limit, order_.sources.SegmentEnd(from));
    if (std::ranges::find(segment.nodes, node) != segment.nodes.end()) {
      const Piece piece = FirstPiece(order_.sources, {from, segment_end});
      if (piece.nodes.front() == node) return piece.range;
      from = piece.range.end;
    } else {
      from = segment_end;
    }
  }
  return std::nullopt;
}

// Returns whole blocks of the source, as many as fit a window, or the source's part of one block.
std::optional<ByteRange> CopyTask::NextWindow(const Source& source) const {
  for (uint64_t from = 0;;) {
    const auto dirty = source.dirty.NextFrom(from);
    if (!dirty) return std::nullopt;
    const auto busy = source.busy.NextFrom(dirty->begin);
    if (busy && busy->begin <= dirty->begin) {
      from = busy->end;
      continue;
    }
    const uint64_t limit = busy ? std::min(dirty->end, busy->begin) : dirty->end;
    const auto run = NextRun(source.node, dirty->begin, limit);
    if (!run) {
      from = limit;
      continue;
    }
    const uint64_t block_end = BlockFloor(run->begin) + kChecksumBlockBytes;
    if (run->begin % kChecksumBlockBytes != 0 || run->end < block_end)
      return ByteRange{run->begin, std::min(run->end, block_end)};
    const uint64_t window_limit = BlockFloor(std::min(limit, run->begin + limits_.window_bytes));
    uint64_t end = BlockFloor(std::min(run->end, window_limit));
    while (end < window_limit) {
      const auto next = NextRun(source.node, end, window_limit);
      if (!next) {
        end = window_limit;
      } else if (next->begin % kChecksumBlockBytes != 0 || next->end % kChecksumBlockBytes != 0) {
        end = std::max(end, BlockFloor(next->begin));
        break;
      } else {
        end = next->end;
      }
    }
    return ByteRange{run->begin, end};
  }
}

std::optional<Time> CopyTask::next_time(Time now) const {
  std::optional<Time> next;
  if (finished()) return next;
  for (const Source& source : sources_)
    if (source.retry_at > now && (!next || source.retry_at < *next)) next = source.retry_at;
  return next;
}

// ---- outcomes

void CopyTask::Fail(StatusCode code, std::string message) {
  if (!finished()) failure_ = Failure{code, ErrorReason::kNone, std::move(message)};
}

bool CopyTask::CheckRelay(Source& source, const BlockSums& sums, Time now) {
  if (!source.relay || order_.follow) return true;
  if (sums.order >= source.relay_order) {
    // Bytes that the relay's order does not cover were there all along and never change.
    if (source.without_order_since) {
      for (const ByteRange& range : source.unsettled.All()) source.dirty.Add(range);
      source.unsettled.Clear();
    }
    source.without_order_since.reset();
    return true;
  }
  if (!source.without_order_since) source.without_order_since = now;
  if (now - *source.without_order_since >= limits_.relay_wait_max) {
    Fail(StatusCode::kUnavailable,
         fmt::format(
             "node {} must pass on version {} of file {} but has had no copy order for it for {} s",
             source.node.value, order_.data_version, order_.file.value,
             limits_.relay_wait_max.ns / 1'000'000'000));
  }
  return false;
}

void CopyTask::NoteChanges(Source& source, const CopyAction& ask, const BlockSums& sums) {
  if (sums.all_changed) source.dirty.Add(kEverything);
  for (const ByteRange& range : sums.changed) {
    if (range.empty() || range.begin >= kFileBytesMax) continue;
    const ByteRange blocks = WidenToBlocks(range);
    source.dirty.Add(blocks);
    // Only part of a long range may have changed, since the source merges old changes. What was cut
    // off since must be compared.
    if (order_.follow && ask.range.empty() && range.size() <= limits_.change_bytes &&
        range.end <= sums.object_bytes)
      FetchChanged(source, blocks, sums.object_bytes);
  }
  source.dirty.Remove(ask.range);  // The checksums are more recent than these changes.
  source.change = sums.change;
}

void CopyTask::FetchChanged(Source& source, ByteRange range, uint64_t object_bytes) {
  for (auto run = NextRun(source.node, range.begin, range.end); run;
       run = NextRun(source.node, run->end, range.end)) {
    for (const ByteRange& part : source.busy.Missing(*run)) {
      source.dirty.Remove(part);
      Want(source, CopyAction::Kind::kFetch, {part.begin, std::min(part.end, object_bytes)},
           /*settles=*/false);
    }
  }
}

void CopyTask::OnSums(const CopyAction& ask, const BlockSums& theirs, const BlockSums& own,
                      Time now) {
  if (ask.order != order_.order) return;
  Source& source = *Find(ask.source);
  source.asking = false;
  source.failures = 0;
  if (theirs.incarnation != source.incarnation) {
    return Fail(
        StatusCode::kUnavailable,
        fmt::format("node {} has restarted (incarnation {:x}, not {:x}), so its object of file {} "
                    "is a different one",
                    source.node.value, theirs.incarnation, source.incarnation, order_.file.value));
  }
  const bool final = CheckRelay(source, theirs, now) && theirs.quiet;
  if (finished()) return;
  NoteChanges(source, ask, theirs);
  source.unsettled.Remove(ask.range);
  const bool cannot_tell = ask.range.empty() && theirs.change == 0;
  if (final && !order_.follow && (!source.relay || theirs.tail_settled || cannot_tell)) {
    // Nobody can store at the source unseen any more, or the relay is complete or has no object. It
    // will not announce this as a change (again).
    for (const ByteRange& range : source.unsettled.All()) source.dirty.Add(range);
    source.unsettled.Clear();
  }
  if (!ask.range.empty()) {
    Compare(source, ask, theirs, own, final);
    if (!final) source.unsettled.Add(ask.range);
    if (final && !order_.follow) news_.push_back(ask.range);
  }
  DropTail(source, theirs, own, final);
  source.confirmed = ask.settles && source.settled();
  // If everything is this node's own, the bytes after the file's end are cut off first.
  if (!owns_all_ && !order_.follow && AllConfirmed()) Finish();
}

// Nodes that copy from here may be waiting only to learn that no more bytes follow.
void CopyTask::Finish() {
  done_ = true;
  const uint64_t tail = BlockFloor(order_.size_bytes + kChecksumBlockBytes - 1);
  news_.push_back({tail, tail + 1});
}

bool CopyTask::AllConfirmed() const { return std::ranges::all_of(sources_, &Source::confirmed); }

// Nothing after both ends needs comparing. While a relay may still grow, its end is the file's.
void CopyTask::DropTail(Source& source, const BlockSums& theirs, const BlockSums& own, bool final) {
  const bool may_grow = source.relay && !order_.follow && !(final && theirs.tail_settled);
  uint64_t reach = std::max(may_grow ? order_.size_bytes : theirs.object_bytes, own.object_bytes);
  // Fetches in progress may make the own object longer.
  if (const auto busy = source.busy.All(); !busy.empty()) reach = std::max(reach, busy.back().end);
  const ByteRange tail{BlockFloor(reach + kChecksumBlockBytes - 1), kFileBytesMax};
  const bool was_dirty = !source.dirty.empty();
  source.dirty.Remove(tail);
  if (final) {
    source.unsettled.Remove(tail);
    if (was_dirty && source.dirty.empty()) news_.push_back({reach, reach + 1});
  } else {
    source.unsettled.Add(tail);
  }
}

void CopyTask::Compare(Source& source, const CopyAction& ask, const BlockSums& theirs,
                       const BlockSums& own, bool final) {
  const uint64_t first_block = ask.range.begin / kChecksumBlockBytes;
  MOSA_CHECK(theirs.blocks.size() == own.blocks.size());
  const uint64_t reach = std::max(theirs.object_bytes, own.object_bytes);
  const uint64_t limit = std::min(ask.range.end, std::max(reach, ask.range.begin));
  for (auto run = NextRun(source.node, ask.range.begin, ask.range.end); run;
       run = NextRun(source.node, run->end, ask.range.end)) {
    for (uint64_t at = run->begin; at < run->end && !finished();) {
      const ByteRange part{at, std::min(run->end, BlockFloor(at) + kChecksumBlockBytes)};
      const size_t i = at / kChecksumBlockBytes - first_block;
      const bool settles = final && (!source.relay || theirs.blocks[i].settled);
      if (at < limit) CompareBlock(source, part, theirs, own, i, settles);
      if (!settles) source.unsettled.Add(part);
      at = part.end;
    }
  }
}

void CopyTask::CompareBlock(Source& source, ByteRange part, const BlockSums& theirs_all,
                            const BlockSums& own_all, size_t i, bool settles) {
  const BlockSum& theirs = theirs_all.blocks[i];
  const BlockSum& own = own_all.blocks[i];
  const bool is_cut = !order_.follow && theirs_all.object_bytes > order_.size_bytes;
  const uint64_t source_bytes = is_cut ? order_.size_bytes : theirs_all.object_bytes;
  const uint64_t source_end = std::clamp(source_bytes, part.begin, part.end);
  const uint64_t own_end = std::clamp(own_all.object_bytes, part.begin, part.end);
  // What a relay lacks is not a hole: the own bytes may be the only ones.
  const bool may_clear = own.has_data && (!source.relay || settles);
  if (!theirs.has_data || source_end == part.begin) {
    if (may_clear) Want(source, CopyAction::Kind::kClear, {part.begin, own_end}, settles);
    return;
  }
  if (theirs.damaged) {
    return Fail(StatusCode::kDataLoss, fmt::format("block {} of file {} is corrupt on node {}",
                                                   part.begin / kChecksumBlockBytes,
                                                   order_.file.value, source.node.value));
  }
  const bool whole = part.size() == kChecksumBlockBytes;
  const bool comparable =
      whole && own.has_data && !own.damaged && (!is_cut || source_end == part.end);
  if (comparable && SameContent(BlockOf(part.begin), theirs.crc, theirs_all.object_bytes, own.crc,
                                own_all.object_bytes)) {
    copied_bytes_ += source_end - part.begin;
    return;
  }
  Want(source, CopyAction::Kind::kFetch, {part.begin, source_end}, settles);
  if (may_clear) Want(source, CopyAction::Kind::kClear, {source_end, own_end}, settles);
}

void CopyTask::Want(Source& source, CopyAction::Kind kind, ByteRange range, bool settles) {
  if (range.empty()) return;
  source.busy.Add(range);
  // Cut at multiples of the fetch size, so that merged ranges never exceed it.
  const uint64_t at_once = limits_.fetch_bytes;
  for (ByteRange piece{range.begin, 0}; piece.begin < range.end; piece.begin = piece.end) {
    piece.end = std::min(range.end, (piece.begin / at_once + 1) * at_once);
    CopyAction* const before = source.wanted.empty() ? nullptr : &source.wanted.back();
    if (before != nullptr && before->kind == kind && before->settles == settles &&
        before->range.end == piece.begin && piece.begin % at_once != 0) {
      before->range.end = piece.end;
    } else {
      source.wanted.push_back(
          {.kind = kind, .source = source.node, .range = piece, .settles = settles});
    }
  }
}

void CopyTask::OnDone(const CopyAction& action, Time) {
  if (action.kind == CopyAction::Kind::kCut) {
    Finish();
    return;
  }
  Source& source = *Find(action.source);
  --source.fetches;
  source.busy.Remove(action.range);
  if (action.order != order_.order) {
    // Partial blocks are fetched without being compared.
    source.dirty.Add(WidenToBlocks(action.range));
  } else if (action.settles) {
    news_.push_back(action.range);
  } else {
    source.unsettled.Add(action.range);
  }
  if (action.kind != CopyAction::Kind::kFetch) return;
  source.failures = source.failed_fetches = 0;
  fetched_bytes_ += action.range.size();
  // What an earlier order began counts only once it has been compared.
  if (action.order == order_.order) copied_bytes_ += action.range.size();
}

void CopyTask::OnFailed(const CopyAction& action, const Status& status, Time now) {
  const bool asked = action.kind == CopyAction::Kind::kAsk;
  if (asked && action.order != order_.order) return;
  if (Source* const source = Find(action.source)) {
    if (asked) {
      source->asking = false;
    } else {
      --source->fetches;
      source->busy.Remove(action.range);
      if (source->failed_fetches++ == 0) source->fetches_fail_since = action.begun;
    }
    source->dirty.Add(action.range);
    if (source->failures++ == 0) source->failing_since = action.begun;
    Duration delay = limits_.retry_first;
    for (uint32_t i = 1; i < source->failures && delay < limits_.retry_max; ++i) delay = delay * 2;
    source->retry_at = now + std::min(delay, limits_.retry_max);
    const bool final = status.code() == StatusCode::kResourceExhausted ||
                       status.code() == StatusCode::kDataLoss ||
                       status.code() == StatusCode::kFailedPrecondition;
    // A source that answers questions is still failing if nothing can be fetched from it.
    const Time since = asked ? source->failing_since : source->fetches_fail_since;
    if (!final && now - since < limits_.give_up_after) return;
  }
  const bool silent = status.code() == StatusCode::kDeadlineExceeded;
  Fail(silent ? StatusCode::kUnavailable : status.code(), MessageOf(status));
}

// ---- settled ranges, for nodes that copy from here

bool CopyTask::Settled(ByteRange range) const {
  if (order_.follow) return false;
  if (done_) return true;
  for (const Source& source : sources_) {
    for (const IntervalSet* set : {&source.dirty, &source.busy, &source.unsettled}) {
      for (auto part = set->NextFrom(range.begin); part && part->begin < range.end;
           part = set->NextFrom(part->end)) {
        if (NextRun(source.node, part->begin, std::min(part->end, range.end))) return false;
      }
    }
    // A window in question is in no set until its answer arrives.
    if (source.asking && source.asked.begin < range.end && range.begin < source.asked.end)
      return false;
  }
  return true;
}

std::vector<ByteRange> CopyTask::TakeSettled() { return std::exchange(news_, {}); }

}  // namespace mosa::node
