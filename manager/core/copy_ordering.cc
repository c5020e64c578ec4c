#include "manager/core/copy_ordering.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

// Delay before a node that had no room is tried again, and before another failed order is.
constexpr Duration kFullFor = Seconds(60);

constexpr size_t kFailureBytesMax = 500;

// Up to this size the single holder sends a file to all copying nodes itself.
constexpr uint64_t kSentByOneBytesMax = 256 << 10;

}  // namespace

// Collects all copying nodes before it orders any: if a stripe is rotated over the same nodes, they
// fetch from one another.
void CopyOrdering::OrderCopies(FileId file, const Inode& inode, bool eagerly) {
  const FileBytes& bytes = *inode.bytes;
  const bool writing = sessions_.write_opens.contains(file);
  std::vector<NodeId> targets;
  std::set<NodeId> known{kNoNode};
  // While a client writes, the bytes are not those of the commit.
  if (!bytes.is_inline && (!writing || eagerly)) {
    for (const auto& cells : bytes.copies)
      for (const CopyCell& cell : cells)
        if (known.insert(cell.node).second) targets.push_back(cell.node);
  }
  std::vector<NodeId> ended;
  for (const auto& [node, task] : copy_.orders.Of(file))
    if (!known.contains(node)) ended.push_back(node);
  for (const NodeId node : ended) copy_queue_.EndTask(file, node);
  std::set<NodeId> copying;
  for (const NodeId target : targets)
    if (MayOrderCopy(file, inode, target, writing)) copying.insert(target);
  std::map<NodeId, CopyOrder> orders;
  std::set<NodeId> standing;
  for (const NodeId target : copying) {
    CopyOrder order{.file = file,
                    .data_version = inode.data_version,
                    .size_bytes = inode.size_bytes,
                    .follow = writing,
                    .sources = {},
                    .nodes = {},
                    .relays = {},
                    .generation = bytes.generation};
    FillSources(inode, target, copying, order);
    if (order.nodes.empty()) {  // No node has the bytes.
      copy_queue_.EndTask(file, target);
      continue;
    }
    const CopyTask* task = copy_.orders.Find(file, target);
    if (task && task->running() && task->follow == writing && !task->relay_ended &&
        (writing || task->data_version == order.data_version) && task->sources == order.sources &&
        task->generation == order.generation)
      standing.insert(target);
    orders.emplace(target, std::move(order));
  }
  // A relay whose order does not continue may have fetched from a node that is no longer a source.
  const auto has_stale_relay = [&](NodeId target) {
    const std::vector<CopyRelay>& relays = orders.at(target).relays;
    return std::any_of(relays.begin(), relays.end(),
                       [&](const CopyRelay& relay) { return !standing.contains(relay.node); });
  };
  while (std::erase_if(standing, has_stale_relay) > 0) {
  }
  for (auto& [target, order] : orders) {
    if (standing.contains(target)) {
      order.order = copy_.orders.Find(file, target)->order;
      continue;
    }
    copy_.last_order = std::max(copy_.last_order + 1, static_cast<uint64_t>(step_.now.ns));
    order.order = copy_.last_order;
  }
  for (const NodeId target : targets)
    if (orders.contains(target) && !standing.contains(target)) StartCopy(target, orders);
}

// Gives `target` its order. Its relays carry out theirs of these orders.
void CopyOrdering::StartCopy(NodeId target, const std::map<NodeId, CopyOrder>& orders) {
  CopyOrder order = orders.at(target);
  CopyTask task{.order = order.order,
                .data_version = order.data_version,
                .follow = order.follow,
                .sources = order.sources,
                .generation = order.generation};
  for (CopyRelay& relay : order.relays) {
    relay.order = orders.at(relay.node).order;
    task.relays.push_back(relay.node);
  }
  FileBytes& bytes = *files_.Find(order.file)->bytes;
  const NodeObject* const known = FindObject(bytes, target);
  if (!known || known->holds == ObjectHolds::kOwn) {
    NoteCopies(ObjectOn(bytes, target));
    step_.dirty.insert(order.file);
  }
  copy_.orders.Start(order.file, target, std::move(task));
  step_.SendOrder(target, std::move(order));
}

// Returns false, and ends any order, if the target has nothing to copy now.
bool CopyOrdering::MayOrderCopy(FileId file, const Inode& inode, NodeId target, bool follow) {
  const FileBytes& bytes = *inode.bytes;
  const CopyTask* task = copy_.orders.Find(file, target);
  if (!nodes_.Answers(target)) {
    // Results of a silent target would not count: its sources may go meanwhile.
    if (task && task->running()) copy_queue_.EndTask(file, target);
    return false;
  }
  bool is_needed = follow;
  for (size_t i = 0; i < bytes.copies.size(); ++i)
    for (size_t c = 0; c < bytes.copies[i].size() && !is_needed; ++c)
      is_needed = bytes.copies[i][c].node == target && copy_view_.MustCopy(inode, i, c);
  if (!is_needed) {
    copy_queue_.EndTask(file, target);
    return false;
  }
  if (task && !task->running() && task->retry_at > step_.now) {
    copy_queue_.Retry(file, task->retry_at);
    return false;
  }
  if (follow || copy_.orders.MayStart(file, target)) return true;
  // The writer that it follows is gone, or it may become the first copy itself.
  if (task && task->running()) copy_queue_.EndTask(file, target);
  copy_.orders.Enqueue(file, target, copy_view_.ValidCopies(inode));
  return false;
}

// Returns where the owner of a cell should fetch it: from its current source if that still works,
// else from an earlier copy that exists or is being made by one of the `copying` nodes. The copies
// of a position form a chain that begins with the first one, so no two nodes wait for each other's
// bytes.
NodeId CopyOrdering::SourceFor(const Inode& inode, const CopyPlace& place,
                               const std::set<NodeId>& copying) const {
  const size_t own = place.cell;
  const Segment& first = inode.bytes->segments[place.segment];
  const std::vector<CopyCell>& cells = inode.bytes->copies[place.segment];
  const size_t position = own % first.width;
  const NodeId primary = first.nodes[position];
  const bool primary_has_it = nodes_.Answers(primary) && !IsLost(*inode.bytes, primary) &&
                              !IsDamaged(*inode.bytes, primary);
  const auto has_it = [&](size_t c) {
    return c != own && !place.follow && nodes_.Answers(cells[c].node) &&
           copy_view_.IsValid(inode, place.segment, c);
  };
  bool somebody_has_it = primary_has_it;
  for (size_t c = position; c < cells.size(); c += first.width)
    somebody_has_it = somebody_has_it || has_it(c);
  if (!somebody_has_it) return kNoNode;
  // Relaying takes longer than sending a small file several times.
  const bool relayed = place.follow || !primary_has_it || inode.size_bytes > kSentByOneBytesMax;
  const auto usable = [&](size_t c) {
    if (has_it(c)) return true;
    if (c >= own || !relayed || !copying.contains(cells[c].node)) return false;
    // A node with everything that was committed must not get older bytes, or none: it may have to
    // replace the first copy.
    return HoldsLastCommit(inode, cells[c]) || !HoldsLastCommit(inode, cells[own]);
  };
  if (place.current == primary && primary_has_it) return place.current;
  for (size_t c = position; place.current != kNoNode && c < cells.size(); c += first.width)
    if (cells[c].node == place.current && usable(c)) return place.current;
  NodeId avoided = kNoNode;
  const auto take = [&](NodeId node) {
    if (node == place.avoided) avoided = node;
    return node != place.avoided;
  };
  // Copy number 0 is the first copy.
  for (size_t number = own / first.width; number > 0; --number) {
    const size_t c = (number - 1) * first.width + position;
    if (usable(c) && take(cells[c].node)) return cells[c].node;
  }
  if (primary_has_it && take(primary)) return primary;
  for (size_t c = position; c < cells.size(); c += first.width)
    if (usable(c) && take(cells[c].node)) return cells[c].node;
  return avoided;
}

// Fills in the source of each of the target's positions, and which sources are relays.
void CopyOrdering::FillSources(const Inode& inode, NodeId target, const std::set<NodeId>& copying,
                               CopyOrder& order) const {
  const FileBytes& bytes = *inode.bytes;
  const CopyTask* task = copy_.orders.Find(order.file, target);
  std::set<NodeId> sources;
  std::set<NodeId> relays;
  order.sources.chunk_bytes = bytes.chunk_bytes;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    const Segment& first = bytes.segments[i];
    Segment& segment = order.sources.segments.emplace_back(first);
    const auto& cells = bytes.copies[i];
    const bool ordered = task && i < task->sources.segments.size() &&
                         task->sources.segments[i].nodes.size() == first.nodes.size();
    for (size_t position = 0; position < first.width; ++position) {
      NodeId& source = segment.nodes[position];
      source = kNoNode;
      size_t own = position;
      while (own < cells.size() && cells[own].node != target) own += first.width;
      if (own >= cells.size() || (!order.follow && !copy_view_.MustCopy(inode, i, own))) continue;
      const NodeId before = ordered ? task->sources.segments[i].nodes[position] : kNoNode;
      const bool goes_on = task && task->running();
      source = SourceFor(inode,
                         {.segment = i,
                          .cell = own,
                          .current = goes_on ? before : kNoNode,
                          .avoided = goes_on ? kNoNode : before,
                          .follow = order.follow},
                         copying);
      if (source == kNoNode) continue;
      sources.insert(source);
      for (size_t c = position; c < cells.size(); c += first.width)
        if (cells[c].node == source && (order.follow || !copy_view_.IsValid(inode, i, c)))
          relays.insert(source);
    }
  }
  order.epoch = cluster_.counters.epoch;
  order.empty_sources = copy_view_.EmptyNodesOf(inode, order.sources);
  for (const NodeId node : sources) order.nodes.push_back(nodes_.Find(node)->address);
  for (const NodeId node : relays) order.relays.push_back({node, 0});
}

void CopyOrdering::Handle(const NodeCopyReport& command) {
  const CopyReport& report = command.report;
  const CopyTask* task = copy_.orders.Find(report.file, command.node);
  if (!task || !task->running() || task->order != report.order) return;
  Inode* inode = files_.Find(report.file);
  if (report.failure) {
    FailCopy(report.file, command.node, report);
  } else if (!report.done || task->follow) {
    copy_.orders.SetProgress(report.file, command.node, report.copied_bytes);
    return;
  } else {
    // A writer may have opened the file before the cancellation reached the node.
    const bool is_current = inode && inode->bytes && report.data_version == task->data_version &&
                            report.data_version == inode->data_version &&
                            task->generation == inode->bytes->generation &&
                            !sessions_.write_opens.contains(report.file);
    if (is_current) FinishCopy(report.file, *inode, command.node, *task, report);
    copy_.orders.Finish(report.file, command.node);
  }
  copy_.reviews.insert(report.file);
}

void CopyOrdering::FinishCopy(FileId file, Inode& inode, NodeId node, const CopyTask& task,
                              const CopyReport& report) {
  FileBytes& bytes = *inode.bytes;
  bool all_valid = true;
  for (size_t i = 0; i < bytes.copies.size() && i < task.sources.segments.size(); ++i) {
    const Segment& sources = task.sources.segments[i];
    for (size_t c = 0; c < bytes.copies[i].size(); ++c) {
      CopyCell& cell = bytes.copies[i][c];
      if (cell.node == node && sources.width == bytes.segments[i].width &&
          sources.nodes[c % sources.width] != kNoNode)
        cell = {node, inode.data_version};
    }
  }
  NodeObject& object = ObjectOn(bytes, node);
  object.allocated_bytes = report.allocated_bytes;
  object.uncut = false;
  const std::vector<NodeId> first = hints_.LayoutOf(inode).Nodes();
  if (!std::binary_search(first.begin(), first.end(), node)) {
    object.lost = object.damaged = false;
    object.holds = ObjectHolds::kCopies;
  }
  step_.dirty.insert(file);
  // The node processes orders in sequence, so an earlier cancellation has been carried out.
  if (const auto cancelled = copy_.cancelled.find(file); cancelled != copy_.cancelled.end())
    cancelled->second.erase(node);
  for (size_t i = 0; i < bytes.copies.size(); ++i)
    for (size_t c = 0; c < bytes.copies[i].size(); ++c)
      all_valid = all_valid &&
                  (!nodes_.IsReachable(bytes.copies[i][c].node) || copy_view_.IsValid(inode, i, c));
  // Readers learn of all valid copies at once.
  if (all_valid) step_.TouchAccess(file);
}

void CopyOrdering::FailCopy(FileId file, NodeId node, const CopyReport& report) {
  const Failure& failure = *report.failure;
  const bool full = failure.code == StatusCode::kResourceExhausted;
  const Time retry_at = step_.now + (full ? kFullFor : kFailedFor);
  step_.effects.frequent_log.push_back(fmt::format("node {} could not copy file {}: {}",
                                                   nodes_.NameOf(node), file.value,
                                                   failure.message.substr(0, kFailureBytesMax)));
  copy_.orders.Fail(file, node, failure.message.substr(0, kFailureBytesMax), retry_at);
  copy_queue_.Retry(file, retry_at);
  Inode* inode = files_.Find(file);
  if (!full || !inode || !inode->bytes) return;
  // Tries another node, if one has room.
  FileBytes& bytes = *inode->bytes;
  copy_.full[file][node] = retry_at;
  for (auto& cells : bytes.copies)
    for (CopyCell& cell : cells)
      if (cell.node == node && (cell.data_version != inode->data_version || cell.was_first))
        cell = {};
  ObjectOn(bytes, node);
  step_.dirty.insert(file);
}

}  // namespace mosa::manager
