// Copies beyond the first: which nodes should have them, which nodes do, and what replaces the
// first.
//
// Any event that may matter to a file's copies (a bind, write or close; a change of hints, nodes or
// room) only marks the file for review. A review re-evaluates everything and brings the plan and
// the orders to what they should be. If nothing is wrong, it changes nothing.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/hash.h"
#include "manager/core/state.h"

namespace mosa::manager {
namespace {

constexpr size_t kReviewsPerStep = 1024;
constexpr size_t kScannedPerStep = 4096;
constexpr Duration kNextSlice = Milliseconds(1);
// How often the files of a draining node are counted.
constexpr Duration kCountEvery = Seconds(1);
constexpr Duration kMissingRetry = Seconds(60);

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

// ---- current state

bool ManagerCore::State::HasBytes(const FileBytes& bytes, uint64_t size_bytes, size_t segment,
                                  size_t position) {
  if (segment == 0 && position == 0) return true;
  const Segment& s = bytes.segments[segment];
  const uint64_t first =
      position == 0 ? s.begin : (s.begin / bytes.chunk_bytes + position) * bytes.chunk_bytes;
  const bool is_last = segment + 1 == bytes.segments.size();
  return first < (is_last ? size_bytes : std::min(size_bytes, bytes.segments[segment + 1].begin));
}

bool ManagerCore::State::IsReachable(NodeId id) const {
  const Node* node = FindNode(id);
  return node &&
         (node->address.state == NodeState::kLive || node->address.state == NodeState::kDraining);
}

bool ManagerCore::State::IsLost(const FileBytes& bytes, NodeId node) {
  return std::any_of(bytes.objects.begin(), bytes.objects.end(),
                     [node](const NodeObject& o) { return o.node == node && o.lost; });
}

// Also true for a node that has been silent only briefly.
bool ManagerCore::State::Stays(NodeId id) const {
  const Node* node = FindNode(id);
  return node && !node->draining && !node->given_up;
}

bool ManagerCore::State::IsValid(const Inode& inode, size_t segment, size_t cell) const {
  const FileBytes& bytes = *inode.bytes;
  const CopyCell& copy = bytes.copies[segment][cell];
  if (copy.node == kNoNode) return false;
  const size_t position = cell % bytes.segments[segment].width;
  // A position without bytes counts as copied, unless the node may hold bytes that were cut off.
  if (inode.size_bytes == 0 || !HasBytes(bytes, inode.size_bytes, segment, position))
    return !copy.uncut;
  return copy.data_version == inode.data_version && !copy.was_first;
}

bool ManagerCore::State::MustCopy(const Inode& inode, size_t segment, size_t cell) const {
  return inode.bytes->copies[segment][cell].node != kNoNode && !IsValid(inode, segment, cell);
}

std::set<NodeId> ManagerCore::State::NamedNodes(const FileBytes& bytes) const {
  std::set<NodeId> nodes;
  for (const Segment& segment : bytes.segments)
    nodes.insert(segment.nodes.begin(), segment.nodes.end());
  for (const auto& cells : bytes.copies)
    for (const CopyCell& cell : cells) nodes.insert(cell.node);
  nodes.erase(kNoNode);
  return nodes;
}

uint32_t ManagerCore::State::CountStayingNodes() const {
  return static_cast<uint32_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [this](const auto& entry) { return Stays(entry.first); }));
}

// Copies that follow the writer begin before the file's length is known. Then the forecast for the
// largest size decides: extra copies of a short file cost little, those of a long one would come
// too late.
CopiesChoice ManagerCore::State::ChooseCopiesOf(FileId file, const Inode& inode,
                                                const EffectiveHints& hints) const {
  std::optional<uint64_t> size_bytes = inode.size_bytes;
  if (inode.size_bytes == 0 && hints.copied_eagerly && write_opens_.contains(file))
    size_bytes.reset();
  return ChooseCopies(copies_forecast_, CountStayingNodes(), size_bytes);
}

// While a file is being written, its size is that of its last commit. Copies already begun are not
// given up because of that size.
uint32_t ManagerCore::State::CopiesOf(FileId file, const Inode& inode,
                                      const EffectiveHints& hints) const {
  if (hints.replicas != 0) return hints.replicas;
  uint32_t copies = ChooseCopiesOf(file, inode, hints).copies;
  if (!inode.bytes || !write_opens_.contains(file)) return copies;
  for (size_t i = 0; i < inode.bytes->copies.size(); ++i) {
    const std::vector<CopyCell>& cells = inode.bytes->copies[i];
    const size_t width = inode.bytes->segments[i].width;
    for (size_t position = 0; position < width; ++position) {
      uint32_t begun = 1;
      for (size_t c = position; c < cells.size(); c += width) begun += Stays(cells[c].node) ? 1 : 0;
      copies = std::max(copies, begun);
    }
  }
  return copies;
}

// As CopiesOf, if the silent nodes returned.
uint32_t ManagerCore::State::CopiesIfAllAnswer(FileId file, const Inode& inode) const {
  const EffectiveHints hints = HintsOf(inode);
  if (hints.replicas != 0) return hints.replicas;
  const auto nodes =
      std::ranges::count_if(nodes_, [](const auto& entry) { return !entry.second.draining; });
  const CopiesChoice choice =
      ChooseCopies(copies_forecast_, static_cast<size_t>(nodes), inode.size_bytes);
  return std::max(choice.copies, CopiesOf(file, inode, hints));
}

void ManagerCore::State::Handle(const SetCopiesForecast& command) {
  const bool ascends = std::is_sorted(
      command.sizes.begin(), command.sizes.end(),
      [](const CopiesForBytes& a, const CopiesForBytes& b) { return a.bytes < b.bytes; });
  const bool counts =
      std::all_of(command.sizes.begin(), command.sizes.end(),
                  [](const CopiesForBytes& each) { return each.bytes > 0 && each.copies > 0; });
  if (command.nodes == 0 || command.sizes.empty() || !ascends || !counts)
    return AnswerAdmin(
        InvalidArgumentError(fmt::format("a forecast of copies for {} nodes and {} sizes is "
                                         "invalid: it needs nodes and ascending sizes",
                                         command.nodes, command.sizes.size())));
  std::vector<CopiesForBytes>& row = copies_forecast_[command.nodes];
  if (row != command.sizes) {
    row = command.sizes;
    StartCopyScan();
  }
  AnswerAdmin(OkStatus());
}

// A reader can use any copy, so copies on nodes that answer come first. A position with fewer
// copies than others repeats its own.
Layout ManagerCore::State::ReaderLayoutOf(const Inode& inode) const {
  Layout layout = LayoutOf(inode);
  if (!inode.bytes || inode.bytes->copies.empty() || inode.bytes->is_inline) return layout;
  const FileBytes& bytes = *inode.bytes;
  for (size_t i = 0; i < layout.segments.size(); ++i) {
    Segment& segment = layout.segments[i];
    std::vector<std::vector<NodeId>> holders(segment.width);
    size_t rows = 1;
    for (size_t position = 0; position < segment.width; ++position) {
      const NodeId first = segment.nodes[position];
      const bool usable = IsReachable(first) && !IsLost(bytes, first) && !IsDamaged(bytes, first);
      if (usable) holders[position].push_back(first);
      for (size_t c = position; c < bytes.copies[i].size(); c += segment.width) {
        if (IsValid(inode, i, c) && IsReachable(bytes.copies[i][c].node))
          holders[position].push_back(bytes.copies[i][c].node);
      }
      if (holders[position].empty()) holders[position].push_back(first);
      rows = std::max(rows, holders[position].size());
    }
    segment.nodes.clear();
    for (size_t row = 0; row < rows; ++row)
      for (const auto& nodes : holders) segment.nodes.push_back(nodes[row % nodes.size()]);
  }
  return layout;
}

// Returns the node, if any, whose lost bytes are in no copy on a node that answers. With
// `count_silent` a silent node counts as lost.
std::optional<NodeId> ManagerCore::State::UncoveredNode(const Inode& inode,
                                                        bool count_silent) const {
  if (!inode.bytes || inode.size_bytes == 0 || inode.bytes->is_inline) return std::nullopt;
  const FileBytes& bytes = *inode.bytes;
  for (const NodeObject& object : bytes.objects) {
    const bool gone =
        object.lost || (count_silent && HasCommitted(object) && !IsReachable(object.node));
    if (!gone) continue;
    for (size_t i = 0; i < bytes.segments.size(); ++i) {
      const Segment& segment = bytes.segments[i];
      for (size_t position = 0; position < segment.width; ++position) {
        if (segment.nodes[position] != object.node ||
            !HasBytes(bytes, inode.size_bytes, i, position))
          continue;
        bool covered = false;
        for (size_t c = position; !bytes.copies.empty() && c < bytes.copies[i].size();
             c += segment.width) {
          const bool answers = IsReachable(bytes.copies[i][c].node);
          covered = covered || (IsValid(inode, i, c) && (answers || !count_silent));
        }
        if (!covered) return object.node;
      }
    }
  }
  return std::nullopt;
}

bool ManagerCore::State::IsFirstCopyLost(const Inode& inode) {
  if (!inode.bytes || inode.size_bytes == 0 || inode.bytes->is_inline) return false;
  const FileBytes& bytes = *inode.bytes;
  for (size_t i = 0; i < bytes.segments.size(); ++i)
    for (size_t position = 0; position < bytes.segments[i].width; ++position)
      if (IsLost(bytes, bytes.segments[i].nodes[position]) &&
          HasBytes(bytes, inode.size_bytes, i, position))
        return true;
  return false;
}

uint32_t ManagerCore::State::ValidCopies(const Inode& inode) const {
  if (!inode.bytes || inode.bytes->segments.empty()) return 1;
  const FileBytes& bytes = *inode.bytes;
  uint32_t fewest = UINT32_MAX;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    const Segment& segment = bytes.segments[i];
    for (size_t position = 0; position < segment.width; ++position) {
      if (!HasBytes(bytes, inode.size_bytes, i, position)) continue;
      const NodeId first = segment.nodes[position];
      const bool is_gone = !IsReachable(first) || IsLost(bytes, first) || IsDamaged(bytes, first);
      uint32_t valid = is_gone ? 0 : 1;
      for (size_t c = position; !bytes.copies.empty() && c < bytes.copies[i].size();
           c += segment.width)
        valid += IsValid(inode, i, c) && IsReachable(bytes.copies[i][c].node) ? 1 : 0;
      fewest = std::min(fewest, valid);
    }
  }
  return fewest;
}

void ManagerCore::State::DescribeCopies(FileId file, const Inode& inode, FileStatus& status) const {
  const EffectiveHints hints = HintsOf(inode);
  status.copies_wanted = CopiesOf(file, inode, hints);
  status.copies_valid = ValidCopies(inode);
  const FileBytes& bytes = *inode.bytes;
  std::map<NodeId, CopyStatus> copies;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    for (size_t c = 0; !bytes.copies.empty() && c < bytes.copies[i].size(); ++c) {
      const NodeId node = bytes.copies[i][c].node;
      if (node == kNoNode) continue;
      const auto [at, is_new] = copies.try_emplace(node, CopyStatus{.node = node, .why = {}});
      if (is_new) at->second.state = CopyStatus::State::kValid;
      if (!IsValid(inode, i, c)) at->second.state = CopyStatus::State::kWaiting;
    }
    if (status.copies_missing.empty() && !HasEnoughHolders(bytes, i, status.copies_wanted))
      status.copies_missing = PlanOf(file, inode, i, status.copies_wanted).reason;
  }
  for (auto& [node, copy] : copies) {
    const CopyTask* task = copy_.orders.Find(file, node);
    if (copy.state == CopyStatus::State::kValid) {
      copy.copied_bytes = inode.size_bytes;
      if (!IsReachable(node)) copy.why = "the node is silent";
    } else if (task && task->running()) {
      copy.state = CopyStatus::State::kCopying;
      copy.copied_bytes = task->copied_bytes;
    } else if (task) {
      copy.state = CopyStatus::State::kFailed;
      copy.why = task->failure;
    } else {
      copy.why = IsDamaged(bytes, node)              ? "damage was found there"
                 : write_opens_.contains(file)       ? "the file is open for writing"
                 : copy_.orders.IsQueued(file, node) ? "the node makes other copies first"
                 : !IsReachable(node)                ? "the node is silent"
                                                     : "no order was given yet";
    }
    status.copies.push_back(std::move(copy));
  }
}

// ---- reviews

void ManagerCore::State::ReviewCopiesLater(FileId file, const Inode& inode) {
  if (!inode.bytes || (inode.hints == 0 && inode.bytes->copies.empty())) return;
  copy_.reviews.insert(file);
}

void ManagerCore::State::RunCopyReviews() {
  if (grace_end_) return;
  ContinueCopyScan();
  for (size_t i = 0; i < kReviewsPerStep; ++i) {
    std::optional<FileId> next;
    if (copy_.reviews.empty()) {
      next = copy_.orders.TakeNext();
    } else {
      next = *copy_.reviews.begin();
      copy_.reviews.erase(copy_.reviews.begin());
    }
    if (!next) return;
    ReviewCopies(*next);
  }
  Schedule(now_ + kNextSlice);
}

void ManagerCore::State::ReviewCopies(FileId file) {
  Inode* inode = Find(file);
  if (!inode || !inode->bytes || inode->bytes->segments.empty() || orphans_.contains(file)) {
    if (inode && inode->bytes && !orphans_.contains(file)) FindLeftovers(file, *inode->bytes);
    ForgetCopies(file);
    return AnswerCopyWaiters(file, false);
  }
  const EffectiveHints hints = HintsOf(*inode);
  const uint32_t wanted = CopiesOf(file, *inode, hints);
  FileBytes& bytes = *inode->bytes;
  const bool leaves = std::any_of(bytes.objects.begin(), bytes.objects.end(), [this](auto& o) {
    const Node* node = FindNode(o.node);
    return node && node->draining;
  });
  const auto drains = [this](const Segment& segment) {
    return std::any_of(segment.nodes.begin(), segment.nodes.end(), [this](NodeId id) {
      const Node* node = FindNode(id);
      return node && node->draining;
    });
  };
  if (wanted > 1 || !bytes.copies.empty() || leaves ||
      std::any_of(bytes.segments.begin(), bytes.segments.end(), drains)) {
    bytes.copies.resize(bytes.segments.size());
    bool changed = PromoteCopies(file, *inode);
    changed = PlanCells(file, *inode, wanted) || changed;
    if (std::all_of(bytes.copies.begin(), bytes.copies.end(),
                    [](const auto& cells) { return cells.empty(); }))
      bytes.copies.clear();
    FindLeftovers(file, bytes);
    if (changed) TouchAccess(file);
    OrderCopies(file, *inode, hints.copied_eagerly);
  }
  AnswerCopyWaiters(file, false);
}

void ManagerCore::State::StartCopyScan() {
  copy_.scan_again = copy_.scan_next.has_value();
  if (!copy_.scan_next) {
    copy_.scan_next = FileId(0);
    for (auto& [id, node] : nodes_) node.files_counted = 0;
  }
  Schedule(now_ + kNextSlice);
}

void ManagerCore::State::ContinueCopyScan() {
  if (!copy_.scan_next) return;
  const bool drains = std::any_of(nodes_.begin(), nodes_.end(),
                                  [](const auto& entry) { return entry.second.draining; });
  auto at = inodes_.lower_bound(*copy_.scan_next);
  for (size_t i = 0; i < kScannedPerStep && at != inodes_.end(); ++i, ++at) {
    const FileBytes* bytes = at->second->bytes.get();
    if (!bytes) continue;
    if (drains || at->second->hints != 0 || !bytes->copies.empty()) ReviewCopies(at->first);
    if (!drains) continue;
    std::set<NodeId> nodes = NamedNodes(*bytes);
    for (const NodeObject& object : bytes->objects) nodes.insert(object.node);
    for (const NodeId id : nodes)
      if (Node* node = FindNode(id)) ++node->files_counted;
  }
  if (at != inodes_.end()) {
    copy_.scan_next = at->first;
    return Schedule(now_ + kNextSlice);
  }
  copy_.scan_next.reset();
  bool unfinished = false;
  for (auto& [id, node] : nodes_) {
    if (node.draining && node.files_counted == 0 && node.files_left != 0)
      effects_.log.push_back(fmt::format("node {} is drained", node.address.name));
    node.files_left = node.draining ? std::optional(node.files_counted) : std::optional<uint64_t>();
    unfinished = unfinished || (node.draining && node.files_counted > 0);
  }
  if (copy_.scan_again) {
    StartCopyScan();
  } else if (unfinished) {
    RetryCopies(FileId(0), now_ + kCountEvery);
  }
}

// ---- replacing the first copy

// Returns the copy that may replace the first one now, if any. A copy equal to the first is
// preferred; if the first is gone, one with the last commit suffices. `gone`: the first copy cannot
// be read.
std::optional<size_t> ManagerCore::State::SuccessorOf(FileId file, const Inode& inode,
                                                      CopyPlace place, bool gone) {
  const FileBytes& bytes = *inode.bytes;
  const std::vector<CopyCell>& cells = bytes.copies[place.segment];
  const std::vector<NodeId> ordered = StillOrdered(file);
  for (const bool equal : {true, false}) {
    if (!equal && !gone) break;
    bool waits = false;
    for (size_t c = place.cell; c < cells.size(); c += bytes.segments[place.segment].width) {
      const NodeId node = cells[c].node;
      const bool has_it = equal ? IsValid(inode, place.segment, c)
                                : HoldsLastCommit(inode, cells[c]) ||
                                      recovery_.WasValid(inode.data_version, cells[c].data_version);
      // A node with a `lost` mark for an earlier first copy must not become first again: the mark
      // would then refer to other bytes.
      if (!has_it || !IsReachable(node) || IsLost(bytes, node) || IsDamaged(bytes, node) ||
          (!gone && !Stays(node)))
        continue;
      if (std::find(ordered.begin(), ordered.end(), node) == ordered.end()) return c;
      waits = true;
    }
    if (!waits) continue;
    RetryCopies(file, now_ + kCancelArrivesWithin);
    break;
  }
  return std::nullopt;
}

// Replaces first copies on nodes that are gone, have damaged the file or are draining. Not while a
// client writes: what it has stored and not committed exists nowhere else.
bool ManagerCore::State::PromoteCopies(FileId file, Inode& inode) {
  FileBytes& bytes = *inode.bytes;
  if (write_opens_.contains(file) || FreezeOf(file) || bytes.is_inline) return false;
  bool promoted = false;
  bool unequal = false;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    Segment& segment = bytes.segments[i];
    for (size_t position = 0; position < segment.width; ++position) {
      NodeId& first = segment.nodes[position];
      const bool has_bytes = !IsLost(bytes, first) && !IsDamaged(bytes, first);
      const bool gone = !IsReachable(first) || !has_bytes;
      const Node* node = FindNode(first);
      if (!gone && !(node && node->draining)) continue;
      const auto successor = SuccessorOf(file, inode, {.segment = i, .cell = position}, gone);
      if (!successor) continue;
      CopyCell& cell = bytes.copies[i][*successor];
      unequal = unequal || !IsValid(inode, i, *successor);
      NoteCopies(ObjectOn(bytes, first));
      const NodeId before = std::exchange(first, cell.node);
      ObjectOn(bytes, first).holds = ObjectHolds::kBoth;
      cell = {};
      if (node && !node->draining)
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
  if (promoted) FenceWriters(file, inode, {});
  // For a node that holds no first copy any more, the cells' versions say what it has.
  const std::vector<NodeId> firsts = LayoutOf(inode).Nodes();
  for (NodeObject& object : bytes.objects)
    if (promoted && !std::binary_search(firsts.begin(), firsts.end(), object.node))
      object.lost = object.damaged = false;
  if (unequal) {
    effects_.log.push_back(fmt::format(
        "file {}: bytes stored after its last commit are lost with their node", file.value));
    RaiseVersion(file, inode, /*committed=*/false);
    Touch(file);
  }
  return promoted;
}

// ---- planning copies

bool ManagerCore::State::PlanCells(FileId file, Inode& inode, uint32_t wanted) {
  FileBytes& bytes = *inode.bytes;
  bool changed = false;
  bool missing = false;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    changed = DropCells(file, inode, i, wanted) || changed;
    missing = !AddCells(file, inode, i, wanted) || missing;
  }
  if (missing) RetryCopies(file, now_ + kMissingRetry);
  return changed;
}

// Removes copies on silent and draining nodes once others replace them, and surplus copies: first
// invalid ones, then the last rows. A silent node may return with its copy, so the copy stays until
// as many others as are wanted are valid.
bool ManagerCore::State::DropCells(FileId file, Inode& inode, size_t segment, uint32_t wanted) {
  FileBytes& bytes = *inode.bytes;
  std::vector<CopyCell>& cells = bytes.copies[segment];
  const Segment& first = bytes.segments[segment];
  const size_t width = first.width;
  bool dropped = false;
  const auto take_out = [&](CopyCell& cell) {
    ObjectOn(bytes, cell.node);
    cell = {};
    dropped = true;
  };
  // A draining node is left even if there cannot be as many copies without it.
  const uint32_t possible = std::max(std::min(wanted, CountStayingNodes()), 1U);
  const uint32_t before_silence = std::max(wanted, CopiesIfAllAnswer(file, inode));
  for (size_t position = 0; position < width; ++position) {
    const NodeId node = first.nodes[position];
    const bool first_has_it = IsReachable(node) && !IsLost(bytes, node) && !IsDamaged(bytes, node);
    uint32_t staying = Stays(node) && first_has_it ? 1 : 0;
    uint32_t safe = staying;  // Those of them with all bytes.
    for (size_t c = position; c < cells.size(); c += width) {
      if (!Stays(cells[c].node)) continue;
      ++staying;
      safe += IsValid(inode, segment, c) ? 1 : 0;
    }
    for (size_t c = position; c < cells.size(); c += width) {
      if (cells[c].node == kNoNode || Stays(cells[c].node)) continue;
      const Node* const holder = FindNode(cells[c].node);
      const bool may_return = holder && holder->given_up && !holder->draining;
      if (!holder || safe >= (may_return ? before_silence : possible)) take_out(cells[c]);
    }
    if (safe == 0) continue;  // One of the others may have to replace the first copy.
    for (const bool valid : {false, true}) {
      for (size_t c = cells.size(); c > 0 && staying > std::max(wanted, 1U); --c) {
        CopyCell& cell = cells[c - 1];
        if ((c - 1) % width != position || cell.node == kNoNode || !Stays(cell.node) ||
            IsValid(inode, segment, c - 1) != valid)
          continue;
        take_out(cell);
        --staying;
      }
    }
  }
  CloseUp(cells, width);
  return dropped;
}

std::set<NodeId> ManagerCore::State::WritersOf(FileId file) const {
  std::set<NodeId> nodes;
  const auto opens = write_opens_.find(file);
  if (opens == write_opens_.end()) return nodes;
  for (const ClientId client : opens->second)
    if (const auto session = sessions_.find(client); session != sessions_.end())
      nodes.insert(NodeOfSession(session->second));
  return nodes;
}

CopiesPlan ManagerCore::State::PlanOf(FileId file, const Inode& inode, size_t segment,
                                      uint32_t wanted) const {
  const FileBytes& bytes = *inode.bytes;
  CopiesRequest request{.seed = HashCombine(inode.placement_seed, segment),
                        .holders = bytes.segments[segment],
                        .copies = wanted};
  if (!bytes.copies.empty())
    for (const CopyCell& cell : bytes.copies[segment]) request.holders.nodes.push_back(cell.node);
  for (const NodeId node : request.holders.nodes)
    if (node != kNoNode && !Stays(node)) request.leaving.push_back(node);
  request.excluded = UncutNodesOf(inode);
  request.needed_bytes =
      std::max(inode.size_bytes / bytes.segments.size() / request.holders.width, kRoomBytesMin);
  if (const auto full = copy_.full.find(file); full != copy_.full.end())
    for (const auto& [node, until] : full->second)
      if (until > now_) request.excluded.push_back(node);
  for (const NodeId node : WritersOf(file)) request.writers.push_back(node);
  return PlanCopies(ViewFor(nullptr, false), request);
}

// Returns true if a plan for this many copies would change nothing.
bool ManagerCore::State::HasEnoughHolders(const FileBytes& bytes, size_t segment,
                                          uint32_t wanted) const {
  const Segment& first = bytes.segments[segment];
  for (size_t position = 0; position < first.width; ++position) {
    uint32_t staying = Stays(first.nodes[position]) ? 1 : 0;
    if (!bytes.copies.empty()) {
      const std::vector<CopyCell>& cells = bytes.copies[segment];
      for (size_t c = position; c < cells.size(); c += first.width)
        staying += Stays(cells[c].node) ? 1 : 0;
    }
    if (staying < wanted) return false;
  }
  return true;
}

// Returns false if there are too few nodes.
bool ManagerCore::State::AddCells(FileId file, Inode& inode, size_t segment, uint32_t wanted) {
  FileBytes& bytes = *inode.bytes;
  if (HasEnoughHolders(bytes, segment, wanted)) return true;
  std::vector<CopyCell>& cells = bytes.copies[segment];
  const Segment& first = bytes.segments[segment];
  const CopiesPlan plan = PlanOf(file, inode, segment, wanted);
  cells.resize(plan.holders.nodes.size() - first.width);
  const std::vector<NodeId> firsts = LayoutOf(inode).Nodes();
  for (size_t c = 0; c < cells.size(); ++c) {
    const NodeId node = plan.holders.nodes[first.width + c];
    if (cells[c].node == node) continue;
    cells[c] = {node, 0, MayHoldOtherBytes(bytes, node, firsts)};
    dirty_.insert(file);
  }
  return plan.copies >= wanted;
}

Status ManagerCore::State::CheckStrictCopies(const Inode& inode, const EffectiveHints& hints,
                                             const Segment& segment) const {
  // The file's final length is unknown, and no later step can refuse.
  const uint32_t wanted =
      hints.replicas != 0 ? hints.replicas : MostCopies(copies_forecast_, CountStayingNodes());
  if (!hints.strict || wanted == 1) return OkStatus();
  const CopiesPlan plan = PlanCopies(ViewFor(nullptr, false), {.seed = inode.placement_seed,
                                                               .holders = segment,
                                                               .copies = wanted,
                                                               .needed_bytes = kRoomBytesMin});
  if (plan.copies >= wanted) return OkStatus();
  return ResourceExhaustedError(
      fmt::format("strict=1, but the file cannot have all of its copies: {}; add nodes, ask for "
                  "fewer copies, or set strict to 0",
                  plan.reason));
}

void ManagerCore::State::KeepCells(FileBytes& bytes, const std::vector<Segment>& before) {
  if (bytes.copies.empty()) return;
  std::vector<std::vector<CopyCell>> kept(bytes.segments.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto same = std::find(before.begin(), before.end(), bytes.segments[i]);
    if (same != before.end())
      kept[i] = std::move(bytes.copies[static_cast<size_t>(same - before.begin())]);
  }
  bytes.copies = std::move(kept);
}

// ---- objects outside of the layout

// A reader with an older layout would take a missing object for a hole. So wait until such readers
// have let go of the layout.
void ManagerCore::State::FindLeftovers(FileId file, FileBytes& bytes) {
  const std::set<NodeId> named = NamedNodes(bytes);
  // Also what a node has lost: it may have begun to copy the file again.
  for (const NodeObject& object : bytes.objects)
    if (!named.contains(object.node) && !IsUncutDrop(file, object.node))
      copy_.leftovers[file].insert(object.node);
  if (copy_.leftovers.contains(file)) copy_.leftover_checks.insert(file);
}

void ManagerCore::State::DropLeftovers(FileId file) {
  const auto found = copy_.leftovers.find(file);
  if (found == copy_.leftovers.end()) return;
  Inode* inode = Find(file);
  if (!inode || !inode->bytes) {
    copy_.leftovers.erase(found);
    return;
  }
  if (recalls_by_file_.contains(file)) return;  // Called again when the last recall is done.
  FileBytes& bytes = *inode->bytes;
  // A file that is laid out anew may get its new bytes on these nodes at any moment, except on
  // draining ones.
  if (bytes.segments.empty()) std::erase_if(found->second, [this](NodeId id) { return Stays(id); });
  const std::set<NodeId> named = NamedNodes(bytes);
  std::vector<NodeId> dropped;
  for (const NodeId id : found->second)
    if (!named.contains(id) && !IsUncutDrop(file, id)) dropped.push_back(id);
  copy_.leftovers.erase(found);
  NoteUncut(file, *inode, dropped);
}

// Returns the nodes whose objects may hold bytes in a hole of the first copy at `offset`, such as
// what was punched out. The nodes of its segment hold none, unless they were also copies.
std::vector<NodeId> ManagerCore::State::NodesWithOlderBytes(const Inode& inode,
                                                            uint64_t offset) const {
  const std::vector<NodeId> first = LayoutOf(inode).SegmentAt(offset).nodes;
  std::vector<NodeId> nodes;
  for (const NodeObject& object : inode.bytes->objects)
    if (object.holds != ObjectHolds::kOwn || std::ranges::count(first, object.node) == 0)
      nodes.push_back(object.node);
  return nodes;
}

// Returns the nodes whose last order for the file may still change bytes there, and those that have
// yet to drop what they hold. New bytes must not be placed on them yet.
std::vector<NodeId> ManagerCore::State::StillOrdered(FileId file) const {
  std::vector<NodeId> nodes;
  if (const Inode* const inode = Find(file)) nodes = UncutNodesOf(*inode);
  for (const auto& [node, task] : copy_.orders.Of(file))
    if (task.running()) nodes.push_back(node);
  if (const auto found = copy_.cancelled.find(file); found != copy_.cancelled.end())
    for (const auto& [node, until] : found->second)
      if (until > now_) nodes.push_back(node);
  return nodes;
}

}  // namespace mosa::manager
