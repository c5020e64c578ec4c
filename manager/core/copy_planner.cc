#include "manager/core/copy_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/hash.h"
#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

constexpr Duration kMissingRetry = Seconds(60);

// Nodes that replace a copy must all answer within this time, and are looked at again so often.
constexpr Duration kAnswersTogether = Seconds(10);
constexpr Duration kAnswersRetry = Seconds(2);

// Removes cells without a node and moves later ones up, so that there are as few rows as possible.
void CloseUp(std::vector<CopyCell>& cells, size_t width) {
  std::vector<CopyCell> closed;
  for (size_t position = 0; position < width; ++position) {
    size_t row = 0;
    for (size_t i = position; i < cells.size(); i += width) {
      if (cells[i].node == kNoNode) continue;
      if (closed.size() < (row + 1) * width) closed.resize((row + 1) * width);
      closed[row * width + position] = cells[i];
      ++row;
    }
  }
  cells = std::move(closed);
}

}  // namespace

// If every node gets a file of an untagged placement before its close returns, the first copy is
// best on the writer's own node: its link then carries the file once, to the first node of a chain.
// With a stripe its link would carry all parts except its own, and then the others' parts back.
bool CopyPlanner::GoesOutToAll(const EffectiveHints& hints) const {
  if (hints.settles_placement || hints.width_asked || !hints.copied_eagerly ||
      hints.close_copies != 0)
    return false;
  const uint32_t nodes = nodes_.CountStayingNodes();
  const uint32_t copies = hints.replicas != 0
                              ? hints.replicas
                              : ChooseCopies(cluster_.copies_forecast, nodes, std::nullopt).copies;
  return nodes > 1 && copies >= nodes;
}

// Copies that follow the writer begin before the file's length is known. Then the forecast for the
// largest size decides: extra copies of a short file cost little, those of a long one would come
// too late.
CopiesChoice CopyPlanner::ChooseCopiesOf(FileId file, const Inode& inode,
                                         const EffectiveHints& hints) const {
  std::optional<uint64_t> size_bytes = inode.size_bytes;
  if (inode.size_bytes == 0 && hints.copied_eagerly && sessions_.write_opens.contains(file))
    size_bytes.reset();
  return ChooseCopies(cluster_.copies_forecast, nodes_.CountStayingNodes(), size_bytes);
}

// While a file is being written, its size is that of its last commit. Copies already begun are not
// given up because of that size.
uint32_t CopyPlanner::CopiesOf(FileId file, const Inode& inode, const EffectiveHints& hints) const {
  if (hints.replicas != 0) return hints.replicas;
  uint32_t copies = ChooseCopiesOf(file, inode, hints).copies;
  if (!inode.bytes || !sessions_.write_opens.contains(file)) return copies;
  for (size_t i = 0; i < inode.bytes->copies.size(); ++i) {
    const std::vector<CopyCell>& cells = inode.bytes->copies[i];
    const size_t width = inode.bytes->segments[i].width;
    for (size_t position = 0; position < width; ++position) {
      uint32_t begun = 1;
      for (size_t c = position; c < cells.size(); c += width)
        begun += nodes_.Stays(cells[c].node) ? 1 : 0;
      copies = std::max(copies, begun);
    }
  }
  return copies;
}

// As CopiesOf, if the silent nodes returned.
uint32_t CopyPlanner::CopiesIfAllAnswer(FileId file, const Inode& inode) const {
  const EffectiveHints hints = hints_.HintsOf(inode);
  if (hints.replicas != 0) return hints.replicas;
  const auto nodes =
      std::ranges::count_if(nodes_.by_id, [](const auto& entry) { return !entry.second.draining; });
  const CopiesChoice choice =
      ChooseCopies(cluster_.copies_forecast, static_cast<size_t>(nodes), inode.size_bytes);
  return std::max(choice.copies, CopiesOf(file, inode, hints));
}

void CopyPlanner::DescribeCopies(FileId file, const Inode& inode, FileStatus& status) const {
  const EffectiveHints hints = hints_.HintsOf(inode);
  status.copies_wanted = CopiesOf(file, inode, hints);
  status.copies_valid = copy_view_.ValidCopies(inode);
  const FileBytes& bytes = *inode.bytes;
  std::map<NodeId, CopyStatus> copies;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    for (size_t c = 0; !bytes.copies.empty() && c < bytes.copies[i].size(); ++c) {
      const NodeId node = bytes.copies[i][c].node;
      if (node == kNoNode) continue;
      const auto [at, is_new] = copies.try_emplace(node, CopyStatus{.node = node, .why = {}});
      if (is_new) at->second.state = CopyStatus::State::kValid;
      if (!copy_view_.IsValid(inode, i, c)) at->second.state = CopyStatus::State::kWaiting;
    }
    if (status.copies_missing.empty() &&
        !copy_view_.HasEnoughHolders(bytes, i, status.copies_wanted))
      status.copies_missing = PlanOf(file, inode, i, status.copies_wanted).reason;
  }
  for (auto& [node, copy] : copies) {
    const CopyTask* task = copy_.orders.Find(file, node);
    if (copy.state == CopyStatus::State::kValid) {
      copy.copied_bytes = inode.size_bytes;
      if (!nodes_.IsReachable(node)) copy.why = "the node is silent";
    } else if (task && task->running()) {
      copy.state = CopyStatus::State::kCopying;
      copy.copied_bytes = task->copied_bytes;
    } else if (task) {
      copy.state = CopyStatus::State::kFailed;
      copy.why = task->failure;
    } else {
      copy.why = IsDamaged(bytes, node)                 ? "damage was found there"
                 : sessions_.write_opens.contains(file) ? "the file is open for writing"
                 : copy_.orders.IsQueued(file, node)    ? "the node makes other copies first"
                 : !nodes_.IsReachable(node)            ? "the node is silent"
                                                        : "no order was given yet";
    }
    status.copies.push_back(std::move(copy));
  }
}

// Returns the copy that may replace the first one now, if any. A copy equal to the first is
// preferred; if the first is gone, one with the last commit suffices. `gone`: the first copy cannot
// be read.
std::optional<size_t> CopyPlanner::SuccessorOf(FileId file, const Inode& inode, CopyPlace place,
                                               bool gone) {
  const FileBytes& bytes = *inode.bytes;
  const std::vector<CopyCell>& cells = bytes.copies[place.segment];
  const std::vector<NodeId> ordered = copy_queue_.StillOrdered(file);
  for (const bool equal : {true, false}) {
    if (!equal && !gone) break;
    bool waits = false;
    for (size_t c = place.cell; c < cells.size(); c += bytes.segments[place.segment].width) {
      const NodeId node = cells[c].node;
      const bool has_it =
          equal ? copy_view_.IsValid(inode, place.segment, c)
                : HoldsLastCommit(inode, cells[c]) ||
                      cluster_.recovery.WasValid(inode.data_version, cells[c].data_version);
      // A node with a `lost` mark for an earlier first copy must not become first again: the mark
      // would then refer to other bytes.
      if (!has_it || !nodes_.IsReachable(node) || IsLost(bytes, node) || IsDamaged(bytes, node) ||
          (!gone && !nodes_.Stays(node)))
        continue;
      if (std::find(ordered.begin(), ordered.end(), node) == ordered.end()) return c;
      waits = true;
    }
    if (!waits) continue;
    copy_queue_.Retry(file, step_.now + kCancelArrivesWithin);
    break;
  }
  return std::nullopt;
}

bool CopyPlanner::Plan(FileId file, Inode& inode, uint32_t wanted) {
  const auto known = copy_.replaced.find(file);
  if (known != copy_.replaced.end() &&
      (known->second.since + kAnswersTogether < step_.now || known->second.wanted != wanted))
    copy_.replaced.erase(known);
  const Change promoted = PromoteCopies(file, inode, wanted);
  const Change planned = PlanCells(file, inode, wanted);
  const bool made = promoted.made || planned.made;
  const bool waits = promoted.waits || planned.waits;
  // What the nodes have answered counts for one change only.
  if (made || !waits) copy_.replaced.erase(file);
  if (waits) {
    const bool begins = copy_.replaced.try_emplace(file, step_.now, wanted).second;
    copy_queue_.Retry(file, step_.now + (begins ? kHeartbeatEvery * 3 : kAnswersRetry));
  }
  return made;
}

// A node that has failed counts as live until it is missed, and may return empty. So before a copy
// goes, the nodes with those that stay must have answered since it could go. (What they say may
// have been under way for a moment.)
bool CopyPlanner::HasAnswered(FileId file, NodeId id) const {
  const auto replaced = copy_.replaced.find(file);
  return replaced != copy_.replaced.end() && nodes_.Answers(id) &&
         nodes_.Find(id)->last_heard > replaced->second.since + kHeartbeatEvery;
}

uint32_t CopyPlanner::PossibleCopies(FileId file, const Inode& inode, size_t segment,
                                     uint32_t wanted) const {
  return std::max(std::min(wanted, PlanOf(file, inode, segment, wanted).copies), 1U);
}

CopyPlanner::SafeCopies CopyPlanner::CountSafe(FileId file, const Inode& inode,
                                               CopyPlace place) const {
  const FileBytes& bytes = *inode.bytes;
  const std::vector<CopyCell>& cells = bytes.copies[place.segment];
  const Segment& segment = bytes.segments[place.segment];
  SafeCopies safe;
  const auto count = [&](NodeId node) {
    ++safe.all;
    safe.answering += HasAnswered(file, node) ? 1 : 0;
  };
  const NodeId first = segment.nodes[place.cell];
  if (nodes_.Stays(first) && nodes_.IsReachable(first) && !IsLost(bytes, first) &&
      !IsDamaged(bytes, first))
    count(first);
  for (size_t c = place.cell; c < cells.size(); c += segment.width)
    if (nodes_.Stays(cells[c].node) && copy_view_.IsValid(inode, place.segment, c))
      count(cells[c].node);
  return safe;
}

// Replaces first copies on nodes that are gone, have damaged the file or are draining. Not while a
// client writes: what it has stored and not committed exists nowhere else.
CopyPlanner::Change CopyPlanner::PromoteCopies(FileId file, Inode& inode, uint32_t wanted) {
  FileBytes& bytes = *inode.bytes;
  if (sessions_.write_opens.contains(file) || files_.FreezeOf(file) || bytes.is_inline) return {};
  bool promoted = false;
  bool waits = false;
  bool unequal = false;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    Segment& segment = bytes.segments[i];
    for (size_t position = 0; position < segment.width; ++position) {
      NodeId& first = segment.nodes[position];
      const bool has_bytes = !IsLost(bytes, first) && !IsDamaged(bytes, first);
      const bool gone = !nodes_.IsReachable(first) || !has_bytes;
      const Node* node = nodes_.Find(first);
      if (!gone && !(node && node->draining)) continue;
      const auto successor = SuccessorOf(file, inode, {.segment = i, .cell = position}, gone);
      if (!successor) continue;
      if (!gone) {
        const SafeCopies safe = CountSafe(file, inode, {.segment = i, .cell = position});
        const uint32_t needed = PossibleCopies(file, inode, i, wanted);
        waits = waits || (safe.answering < needed && safe.all >= needed);
        if (safe.answering < needed) continue;
      }
      CopyCell& cell = bytes.copies[i][*successor];
      unequal = unequal || !copy_view_.IsValid(inode, i, *successor);
      NoteCopies(ObjectOn(bytes, first));
      const NodeId before = std::exchange(first, cell.node);
      ObjectOn(bytes, first).holds = ObjectHolds::kBoth;
      cell = {};
      if (node && (!node->draining || (gone && has_bytes)))
        cell = {.node = before,
                .data_version = has_bytes ? inode.data_version : 0,
                .uncut = true,
                .was_first = has_bytes};
      promoted = true;
    }
    CloseUp(bytes.copies[i], segment.width);
  }
  // No session has the file open for writing. This fences writers that stored to the previous
  // nodes.
  if (promoted) generations_.FenceWriters(file, inode, {});
  // For a node that holds no first copy any more, the cells' versions say what it has.
  const std::vector<NodeId> firsts = hints_.LayoutOf(inode).Nodes();
  for (NodeObject& object : bytes.objects)
    if (promoted && !std::binary_search(firsts.begin(), firsts.end(), object.node))
      object.lost = object.damaged = false;
  if (unequal) {
    step_.effects.log.push_back(fmt::format(
        "file {}: bytes stored after its last commit are lost with their node", file.value));
    generations_.RaiseVersion(file, inode, /*committed=*/false);
    step_.Touch(file);
  }
  return {promoted, waits};
}

CopyPlanner::Change CopyPlanner::PlanCells(FileId file, Inode& inode, uint32_t wanted) {
  FileBytes& bytes = *inode.bytes;
  Change change;
  bool missing = false;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    const Change dropped = DropCells(file, inode, i, wanted);
    change.made = change.made || dropped.made;
    change.waits = change.waits || dropped.waits;
    missing = !AddCells(file, inode, i, wanted) || missing;
  }
  if (missing) copy_queue_.Retry(file, step_.now + kMissingRetry);
  return change;
}

// Removes copies on silent and draining nodes once others replace them, and surplus copies: first
// invalid ones, then the last rows. A silent node may return with its copy, so the copy stays until
// as many others as are wanted are valid.
CopyPlanner::Change CopyPlanner::DropCells(FileId file, Inode& inode, size_t segment,
                                           uint32_t wanted) {
  FileBytes& bytes = *inode.bytes;
  std::vector<CopyCell>& cells = bytes.copies[segment];
  const Segment& first = bytes.segments[segment];
  const size_t width = first.width;
  Change change;
  const auto take_out = [&](CopyCell& cell) {
    ObjectOn(bytes, cell.node);
    cell = {};
    change.made = true;
  };
  const uint32_t before_silence = std::max(wanted, CopiesIfAllAnswer(file, inode));
  for (size_t position = 0; position < width; ++position) {
    const NodeId node = first.nodes[position];
    const bool first_has_it =
        nodes_.IsReachable(node) && !IsLost(bytes, node) && !IsDamaged(bytes, node);
    uint32_t staying = nodes_.Stays(node) && first_has_it ? 1 : 0;
    for (size_t c = position; c < cells.size(); c += width)
      staying += nodes_.Stays(cells[c].node) ? 1 : 0;
    SafeCopies safe = CountSafe(file, inode, {.segment = segment, .cell = position});
    for (size_t c = position; c < cells.size(); c += width) {
      if (cells[c].node == kNoNode || nodes_.Stays(cells[c].node)) continue;
      const Node* const holder = nodes_.Find(cells[c].node);
      const bool may_return = holder && holder->given_up && !holder->draining;
      const uint32_t needed =
          may_return ? before_silence : PossibleCopies(file, inode, segment, wanted);
      if (!holder || safe.answering >= needed)
        take_out(cells[c]);
      else
        change.waits = change.waits || safe.all >= needed;
    }
    if (safe.all == 0) continue;  // One of the others may have to replace the first copy.
    for (const bool valid : {false, true}) {
      for (size_t c = cells.size(); c > 0 && staying > std::max(wanted, 1U); --c) {
        CopyCell& cell = cells[c - 1];
        if ((c - 1) % width != position || cell.node == kNoNode || !nodes_.Stays(cell.node) ||
            copy_view_.IsValid(inode, segment, c - 1) != valid)
          continue;
        const uint32_t answers = valid && HasAnswered(file, cell.node) ? 1 : 0;
        if (valid && safe.answering - answers < std::max(wanted, 1U)) {
          change.waits = true;
          continue;
        }
        take_out(cell);
        safe.answering -= answers;
        --staying;
      }
    }
  }
  CloseUp(cells, width);
  return change;
}

CopiesPlan CopyPlanner::PlanOf(FileId file, const Inode& inode, size_t segment,
                               uint32_t wanted) const {
  const FileBytes& bytes = *inode.bytes;
  CopiesRequest request{.seed = HashCombine(inode.placement_seed, segment),
                        .holders = bytes.segments[segment],
                        .copies = wanted};
  if (!bytes.copies.empty())
    for (const CopyCell& cell : bytes.copies[segment]) request.holders.nodes.push_back(cell.node);
  for (const NodeId node : request.holders.nodes)
    if (node != kNoNode && !nodes_.Stays(node)) request.leaving.push_back(node);
  request.excluded = UncutNodesOf(inode);
  request.needed_bytes =
      std::max(inode.size_bytes / bytes.segments.size() / request.holders.width, kRoomBytesMin);
  if (const auto full = copy_.full.find(file); full != copy_.full.end())
    for (const auto& [node, until] : full->second)
      if (until > step_.now) request.excluded.push_back(node);
  for (const NodeId node : sessions_.WritersOf(file)) request.writers.push_back(node);
  return PlanCopies(nodes_.ViewFor(nullptr, false), request);
}

// Returns false if there are too few nodes.
bool CopyPlanner::AddCells(FileId file, Inode& inode, size_t segment, uint32_t wanted) {
  FileBytes& bytes = *inode.bytes;
  if (copy_view_.HasEnoughHolders(bytes, segment, wanted)) return true;
  std::vector<CopyCell>& cells = bytes.copies[segment];
  const Segment& first = bytes.segments[segment];
  const CopiesPlan plan = PlanOf(file, inode, segment, wanted);
  cells.resize(plan.holders.nodes.size() - first.width);
  const std::vector<NodeId> firsts = hints_.LayoutOf(inode).Nodes();
  for (size_t c = 0; c < cells.size(); ++c) {
    const NodeId node = plan.holders.nodes[first.width + c];
    if (cells[c].node == node) continue;
    cells[c] = {node, 0, MayHoldOtherBytes(bytes, node, firsts)};
    step_.dirty.insert(file);
  }
  return plan.copies >= wanted;
}

Status CopyPlanner::CheckStrictCopies(const Inode& inode, const EffectiveHints& hints,
                                      const Segment& segment) const {
  // The file's final length is unknown, and no later step can refuse.
  const uint32_t wanted = hints.replicas != 0
                              ? hints.replicas
                              : MostCopies(cluster_.copies_forecast, nodes_.CountStayingNodes());
  if (!hints.strict || wanted == 1) return OkStatus();
  const CopiesPlan plan =
      PlanCopies(nodes_.ViewFor(nullptr, false), {.seed = inode.placement_seed,
                                                  .holders = segment,
                                                  .copies = wanted,
                                                  .needed_bytes = kRoomBytesMin});
  if (plan.copies >= wanted) return OkStatus();
  return ResourceExhaustedError(
      fmt::format("strict=1, but the file cannot have all of its copies: {}; add nodes, ask for "
                  "fewer copies, or set strict to 0",
                  plan.reason));
}

uint32_t CopyPlanner::CopiesAwaited(FileId file, const Inode& inode, uint32_t asked) const {
  const EffectiveHints hints = hints_.HintsOf(inode);
  if (hints.replicas != 0) return std::min(asked, hints.replicas);
  const uint32_t copies = CopiesOf(file, inode, hints);
  return hints.close_copies == 0 ? copies : std::min(hints.close_copies, copies);
}

}  // namespace mosa::manager
