// Copies: orders to nodes, their reports, and closes that wait for copies.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "manager/core/state.h"

namespace mosa::manager {
namespace {

// A node that is silent for kNodeDeadAfter plus this long is replaced.
constexpr Duration kNodeReplacedAfter = Seconds(5);
// Delay before a node that had no room is tried again, and before another failed order is.
constexpr Duration kFullFor = Seconds(60);
constexpr Duration kFailedFor = Seconds(5);
constexpr size_t kFailureBytesMax = 500;
// Up to this size the single holder sends a file to all copying nodes itself.
constexpr uint64_t kSentByOneBytesMax = 256 << 10;

}  // namespace

// ---- orders

// Collects all copying nodes before it orders any: if a stripe is rotated over the same nodes, they
// fetch from one another.
void ManagerCore::State::OrderCopies(FileId file, const Inode& inode, bool eagerly) {
  const FileBytes& bytes = *inode.bytes;
  const bool writing = write_opens_.contains(file);
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
  for (const NodeId node : ended) EndCopyTask(file, node);
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
      EndCopyTask(file, target);
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
    copy_.last_order = std::max(copy_.last_order + 1, static_cast<uint64_t>(now_.ns));
    order.order = copy_.last_order;
  }
  for (const NodeId target : targets)
    if (orders.contains(target) && !standing.contains(target)) StartCopy(target, orders);
}

// Gives `target` its order. Its relays carry out theirs of these orders.
void ManagerCore::State::StartCopy(NodeId target, const std::map<NodeId, CopyOrder>& orders) {
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
  FileBytes& bytes = *Find(order.file)->bytes;
  const NodeObject* const known = FindObject(bytes, target);
  if (!known || known->holds == ObjectHolds::kOwn) {
    NoteCopies(ObjectOn(bytes, target));
    dirty_.insert(order.file);
  }
  copy_.orders.Start(order.file, target, std::move(task));
  SendOrder(target, std::move(order));
}

// Returns false, and ends any order, if the target has nothing to copy now.
bool ManagerCore::State::MayOrderCopy(FileId file, const Inode& inode, NodeId target, bool follow) {
  const FileBytes& bytes = *inode.bytes;
  const CopyTask* task = copy_.orders.Find(file, target);
  if (!Answers(target)) {
    // Results of a silent target would not count: its sources may go meanwhile.
    if (task && task->running()) EndCopyTask(file, target);
    return false;
  }
  bool is_needed = follow;
  for (size_t i = 0; i < bytes.copies.size(); ++i)
    for (size_t c = 0; c < bytes.copies[i].size() && !is_needed; ++c)
      is_needed = bytes.copies[i][c].node == target && MustCopy(inode, i, c);
  if (!is_needed) {
    EndCopyTask(file, target);
    return false;
  }
  if (task && !task->running() && task->retry_at > now_) {
    RetryCopies(file, task->retry_at);
    return false;
  }
  if (follow || copy_.orders.MayStart(file, target)) return true;
  // The writer that it follows is gone, or it may become the first copy itself.
  if (task && task->running()) EndCopyTask(file, target);
  copy_.orders.Enqueue(file, target, ValidCopies(inode));
  return false;
}

bool ManagerCore::State::Answers(NodeId id) const {
  const Node* node = FindNode(id);
  return node && node->connected && IsReachable(id);
}

// Returns where the owner of a cell should fetch it: from its current source if that still works,
// else from an earlier copy that exists or is being made by one of the `copying` nodes. The copies
// of a position form a chain that begins with the first one, so no two nodes wait for each other's
// bytes.
NodeId ManagerCore::State::SourceFor(const Inode& inode, const CopyPlace& place,
                                     const std::set<NodeId>& copying) const {
  const size_t own = place.cell;
  const Segment& first = inode.bytes->segments[place.segment];
  const std::vector<CopyCell>& cells = inode.bytes->copies[place.segment];
  const size_t position = own % first.width;
  const NodeId primary = first.nodes[position];
  const bool primary_has_it =
      Answers(primary) && !IsLost(*inode.bytes, primary) && !IsDamaged(*inode.bytes, primary);
  const auto has_it = [&](size_t c) {
    return c != own && !place.follow && Answers(cells[c].node) && IsValid(inode, place.segment, c);
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
void ManagerCore::State::FillSources(const Inode& inode, NodeId target,
                                     const std::set<NodeId>& copying, CopyOrder& order) const {
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
      if (own >= cells.size() || (!order.follow && !MustCopy(inode, i, own))) continue;
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
        if (cells[c].node == source && (order.follow || !IsValid(inode, i, c)))
          relays.insert(source);
    }
  }
  order.epoch = counters_.epoch;
  order.empty_sources = EmptyNodesOf(inode, order.sources);
  for (const NodeId node : sources) order.nodes.push_back(FindNode(node)->address);
  for (const NodeId node : relays) order.relays.push_back({node, 0});
}

void ManagerCore::State::EndCopyTask(FileId file, NodeId id) {
  const CopyTask* task = copy_.orders.Find(file, id);
  const Node* node = FindNode(id);
  if (task && task->running() && node && node->connected) {
    SendOrder(id, CancelCopyOrder{file});
    copy_.orders.NoteRelayEnded(file, id);
    copy_.cancelled[file][id] = now_ + kCancelArrivesWithin;
  }
  copy_.orders.Finish(file, id);
}

// Called when the file is gone, or has no bytes left to copy.
void ManagerCore::State::ForgetCopies(FileId file) {
  std::vector<NodeId> nodes;
  for (const auto& [node, task] : copy_.orders.Of(file)) nodes.push_back(node);
  for (const NodeId node : nodes) EndCopyTask(file, node);
  copy_.orders.ForgetFile(file);
  copy_.full.erase(file);
}

// The node has forgotten its orders. Copies that were fetched from it must be ordered again.
void ManagerCore::State::ForgetCopiesBy(NodeId node) {
  for (const FileId file : copy_.orders.ForgetNode(node)) copy_.reviews.insert(file);
}

void ManagerCore::State::RetryCopies(FileId file, Time at) {
  const auto [known, is_new] = copy_.retry_times.try_emplace(file, at);
  if (!is_new && known->second <= at) return;
  copy_.retries.erase({known->second, file});
  known->second = at;
  copy_.retries.emplace(at, file);
  Schedule(at);
}

void ManagerCore::State::CopiesTick() {
  bool scan = false;
  for (auto& [id, node] : nodes_) {
    if (!node.silent_since || node.given_up) continue;
    const Time at = *node.silent_since + kNodeReplacedAfter;
    if (at > now_) {
      Schedule(at);
      continue;
    }
    node.given_up = true;
    scan = true;
    effects_.log.push_back(fmt::format(
        "node {} did not come back: its copies are made on other nodes", node.address.name));
  }
  while (!copy_.retries.empty() && copy_.retries.begin()->first <= now_) {
    const FileId file = copy_.retries.begin()->second;
    copy_.retries.erase(copy_.retries.begin());
    copy_.retry_times.erase(file);
    scan = scan || file == FileId(0);
    if (file != FileId(0)) copy_.reviews.insert(file);
  }
  if (!copy_.retries.empty()) Schedule(copy_.retries.begin()->first);
  if (scan) StartCopyScan();
  for (auto* until : {&copy_.cancelled, &copy_.full}) {
    for (auto& [file, nodes] : *until)
      std::erase_if(nodes, [this](const auto& entry) { return entry.second <= now_; });
    std::erase_if(*until, [](const auto& entry) { return entry.second.empty(); });
  }
  std::vector<FileId> awaited;
  for (const auto& [file, waiters] : copy_.waiters) awaited.push_back(file);
  for (const FileId file : awaited) AnswerCopyWaiters(file, true);
}

// ---- reports

void ManagerCore::State::Handle(const NodeCopyReport& command) {
  const CopyReport& report = command.report;
  const CopyTask* task = copy_.orders.Find(report.file, command.node);
  if (!task || !task->running() || task->order != report.order) return;
  Inode* inode = Find(report.file);
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
                            !write_opens_.contains(report.file);
    if (is_current) FinishCopy(report.file, *inode, command.node, *task, report);
    copy_.orders.Finish(report.file, command.node);
  }
  copy_.reviews.insert(report.file);
}

void ManagerCore::State::FinishCopy(FileId file, Inode& inode, NodeId node, const CopyTask& task,
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
  const std::vector<NodeId> first = LayoutOf(inode).Nodes();
  if (!std::binary_search(first.begin(), first.end(), node)) {
    object.lost = object.damaged = false;
    object.holds = ObjectHolds::kCopies;
  }
  dirty_.insert(file);
  // The node processes orders in sequence, so an earlier cancellation has been carried out.
  if (const auto cancelled = copy_.cancelled.find(file); cancelled != copy_.cancelled.end())
    cancelled->second.erase(node);
  for (size_t i = 0; i < bytes.copies.size(); ++i)
    for (size_t c = 0; c < bytes.copies[i].size(); ++c)
      all_valid = all_valid && (!IsReachable(bytes.copies[i][c].node) || IsValid(inode, i, c));
  // Readers learn of all valid copies at once.
  if (all_valid) TouchAccess(file);
}

void ManagerCore::State::FailCopy(FileId file, NodeId node, const CopyReport& report) {
  const Failure& failure = *report.failure;
  const bool full = failure.code == StatusCode::kResourceExhausted;
  const Time retry_at = now_ + (full ? kFullFor : kFailedFor);
  effects_.frequent_log.push_back(fmt::format("node {} could not copy file {}: {}", NameOf(node),
                                              file.value,
                                              failure.message.substr(0, kFailureBytesMax)));
  copy_.orders.Fail(file, node, failure.message.substr(0, kFailureBytesMax), retry_at);
  RetryCopies(file, retry_at);
  Inode* inode = Find(file);
  if (!full || !inode || !inode->bytes) return;
  // Tries another node, if one has room.
  FileBytes& bytes = *inode->bytes;
  copy_.full[file][node] = retry_at;
  for (auto& cells : bytes.copies)
    for (CopyCell& cell : cells)
      if (cell.node == node && (cell.data_version != inode->data_version || cell.was_first))
        cell = {};
  ObjectOn(bytes, node);
  dirty_.insert(file);
}

// ---- closes that wait

// A silent node may respond again, or its copies may soon go to another node.
bool ManagerCore::State::MayGetCopy(FileId file, NodeId id) const {
  const Node* node = FindNode(id);
  if (!node || node->given_up) return false;
  const CopyTask* task = copy_.orders.Find(file, id);
  return !task || task->running() || task->retry_at - now_ <= kFailedFor;
}

AwaitCopiesReply ManagerCore::State::CopiesReply(FileId file, const Inode& inode) const {
  AwaitCopiesReply reply{.copies_valid = ValidCopies(inode)};
  reply.open_for_writing = write_opens_.contains(file);
  if (!inode.bytes) return reply;
  std::map<NodeId, bool> valid;
  for (size_t i = 0; i < inode.bytes->copies.size(); ++i) {
    const auto& cells = inode.bytes->copies[i];
    for (size_t c = 0; c < cells.size(); ++c) {
      if (cells[c].node == kNoNode) continue;
      const bool has_all = IsValid(inode, i, c);
      const auto [known, is_new] = valid.try_emplace(cells[c].node, has_all);
      known->second = known->second && has_all;
    }
  }
  for (const auto& [node, has_all] : valid) {
    const CopyTask* task = copy_.orders.Find(file, node);
    const uint64_t copied = has_all ? inode.size_bytes : task ? task->copied_bytes : 0;
    reply.copied_bytes += std::min(copied, kFileBytesMax);
    reply.more = reply.more || (!has_all && MayGetCopy(file, node));
  }
  // The review decides which nodes get copies.
  reply.more = reply.more || copy_.reviews.contains(file);
  return reply;
}

uint32_t ManagerCore::State::CopiesAwaited(FileId file, const Inode& inode, uint32_t asked) const {
  const EffectiveHints hints = HintsOf(inode);
  if (hints.replicas != 0) return std::min(asked, hints.replicas);
  const uint32_t copies = CopiesOf(file, inode, hints);
  return hints.close_copies == 0 ? copies : std::min(hints.close_copies, copies);
}

Reply ManagerCore::State::Apply(const AwaitCopiesRequest& request) {
  if (auto failure = CheckRegular(request.file)) return *std::move(failure);
  const Inode& inode = *Find(request.file);
  AwaitCopiesReply reply = CopiesReply(request.file, inode);
  reply.copies_wanted = CopiesAwaited(request.file, inode, request.copies);
  if (reply.copies_valid >= reply.copies_wanted || !reply.more || !only_in_envelope_) {
    ExplainCopies(request.file, inode, reply);
    return reply;
  }
  copy_.waiters[request.file].push_back({actor().start.client, actor_request_});
  wait_ = Pending::Stage::kCopies;
  return reply;
}

// Returns true if one of them has waited long enough, or is gone.
bool ManagerCore::State::IsAnyCopyWaiterDue(const std::vector<Waiter>& waiters) {
  Time next = kNever;
  for (const Waiter& waiter : waiters) {
    const Session* session = FindSession(waiter.client);
    if (!session) return true;
    const auto pending = session->pending.find(waiter.request);
    if (pending == session->pending.end() || pending->second.deadline <= now_) return true;
    next = std::min(next, pending->second.deadline);
  }
  Schedule(next);
  return false;
}

void ManagerCore::State::AnswerCopyWaiters(FileId file, bool only_expired) {
  const auto found = copy_.waiters.find(file);
  if (found == copy_.waiters.end()) return;
  if (only_expired && !IsAnyCopyWaiterDue(found->second)) return;
  const Inode* inode = Find(file);
  const Reply gone = Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                            fmt::format("file {} is gone", file.value));
  AwaitCopiesReply reply = inode ? CopiesReply(file, *inode) : AwaitCopiesReply{};
  std::erase_if(found->second, [&](const Waiter& waiter) {
    Session* session = FindSession(waiter.client);
    if (!session) return true;
    const auto pending = session->pending.find(waiter.request);
    if (pending == session->pending.end() || pending->second.stage != Pending::Stage::kCopies)
      return true;
    const auto& request = std::get<AwaitCopiesRequest>(pending->second.envelope.requests.at(0));
    const bool expired = pending->second.deadline <= now_;
    if (inode) reply.copies_wanted = CopiesAwaited(file, *inode, request.copies);
    const bool settled = reply.copies_valid >= reply.copies_wanted || !reply.more;
    if (inode && !expired && (only_expired || !settled)) {
      Schedule(pending->second.deadline);
      return false;
    }
    AwaitCopiesReply answer = reply;
    if (inode) ExplainCopies(file, *inode, answer);
    session->pending.erase(pending);
    Answer(*session, waiter.request, {inode ? Reply(std::move(answer)) : gone});
    return true;
  });
  if (found->second.empty()) copy_.waiters.erase(found);
}

}  // namespace mosa::manager
