#include "manager/core/copy_reviews.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

constexpr size_t kReviewsPerStep = 1024;

constexpr size_t kScannedPerStep = 4096;

// How often the files of a draining node are counted.
constexpr Duration kCountEvery = Seconds(1);

// A node that is silent for kNodeDeadAfter plus this long is replaced.
constexpr Duration kNodeReplacedAfter = Seconds(5);

}  // namespace

void CopyReviews::Handle(const SetCopiesForecast& command) {
  const bool ascends = std::is_sorted(
      command.sizes.begin(), command.sizes.end(),
      [](const CopiesForBytes& a, const CopiesForBytes& b) { return a.bytes < b.bytes; });
  const bool counts =
      std::all_of(command.sizes.begin(), command.sizes.end(),
                  [](const CopiesForBytes& each) { return each.bytes > 0 && each.copies > 0; });
  if (command.nodes == 0 || command.sizes.empty() || !ascends || !counts)
    return step_.AnswerAdmin(
        InvalidArgumentError(fmt::format("a forecast of copies for {} nodes and {} sizes is "
                                         "invalid: it needs nodes and ascending sizes",
                                         command.nodes, command.sizes.size())));
  std::vector<CopiesForBytes>& row = cluster_.copies_forecast[command.nodes];
  if (row != command.sizes) {
    row = command.sizes;
    copy_queue_.StartScan();
  }
  step_.AnswerAdmin(OkStatus());
}

void CopyReviews::Run() {
  if (cluster_.grace_end) return;
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
    Review(*next);
  }
  step_.Schedule(step_.now + kNextSlice);
}

void CopyReviews::Review(FileId file) {
  Inode* inode = files_.Find(file);
  if (!inode || !inode->bytes || inode->bytes->segments.empty() || files_.orphans.contains(file)) {
    if (inode && inode->bytes && !files_.orphans.contains(file))
      copy_queue_.FindLeftovers(file, *inode->bytes);
    copy_queue_.Forget(file);
    return AnswerCopyWaiters(file, false);
  }
  const EffectiveHints hints = hints_.HintsOf(*inode);
  const uint32_t wanted = copy_planner_.CopiesOf(file, *inode, hints);
  FileBytes& bytes = *inode->bytes;
  const bool leaves = std::any_of(bytes.objects.begin(), bytes.objects.end(), [this](auto& o) {
    const Node* node = nodes_.Find(o.node);
    return node && node->draining;
  });
  const auto drains = [this](const Segment& segment) {
    return std::any_of(segment.nodes.begin(), segment.nodes.end(), [this](NodeId id) {
      const Node* node = nodes_.Find(id);
      return node && node->draining;
    });
  };
  if (wanted > 1 || !bytes.copies.empty() || leaves ||
      std::any_of(bytes.segments.begin(), bytes.segments.end(), drains)) {
    bytes.copies.resize(bytes.segments.size());
    const bool changed = copy_planner_.Plan(file, *inode, wanted);
    if (std::all_of(bytes.copies.begin(), bytes.copies.end(),
                    [](const auto& cells) { return cells.empty(); }))
      bytes.copies.clear();
    copy_queue_.FindLeftovers(file, bytes);
    if (changed) step_.TouchAccess(file);
    copy_ordering_.OrderCopies(file, *inode, hints.copied_eagerly);
  } else {
    copy_.replaced.erase(file);
  }
  AnswerCopyWaiters(file, false);
}

void CopyReviews::ContinueCopyScan() {
  if (!copy_.scan_next) return;
  const bool drains = std::any_of(nodes_.by_id.begin(), nodes_.by_id.end(),
                                  [](const auto& entry) { return entry.second.draining; });
  auto at = files_.inodes.lower_bound(*copy_.scan_next);
  for (size_t i = 0; i < kScannedPerStep && at != files_.inodes.end(); ++i, ++at) {
    const FileBytes* bytes = at->second->bytes.get();
    if (!bytes) continue;
    if (drains || at->second->hints != 0 || !bytes->copies.empty()) Review(at->first);
    if (!drains) continue;
    std::set<NodeId> nodes = NamedNodes(*bytes);
    for (const NodeObject& object : bytes->objects) nodes.insert(object.node);
    for (const NodeId id : nodes)
      if (Node* node = nodes_.Find(id)) ++node->files_counted;
  }
  if (at != files_.inodes.end()) {
    copy_.scan_next = at->first;
    return step_.Schedule(step_.now + kNextSlice);
  }
  copy_.scan_next.reset();
  bool unfinished = false;
  for (auto& [id, node] : nodes_.by_id) {
    if (node.draining && node.files_counted == 0 && node.files_left != 0)
      step_.effects.log.push_back(fmt::format("node {} is drained", node.address.name));
    node.files_left = node.draining ? std::optional(node.files_counted) : std::optional<uint64_t>();
    unfinished = unfinished || (node.draining && node.files_counted > 0);
  }
  if (copy_.scan_again) {
    copy_queue_.StartScan();
  } else if (unfinished) {
    copy_queue_.Retry(FileId(0), step_.now + kCountEvery);
  }
}

void CopyReviews::DropLeftovers(FileId file) {
  const auto found = copy_.leftovers.find(file);
  if (found == copy_.leftovers.end()) return;
  Inode* inode = files_.Find(file);
  if (!inode || !inode->bytes) {
    copy_.leftovers.erase(found);
    return;
  }
  if (recalls_.IsRecalled(file)) return;  // Called again when the last recall is done.
  FileBytes& bytes = *inode->bytes;
  // A file that is laid out anew may get its new bytes on these nodes at any moment, except on
  // draining ones.
  if (bytes.segments.empty())
    std::erase_if(found->second, [this](NodeId id) { return nodes_.Stays(id); });
  const std::set<NodeId> named = NamedNodes(bytes);
  std::vector<NodeId> dropped;
  for (const NodeId id : found->second)
    if (!named.contains(id) && !nodes_.IsUncutDrop(file, id)) dropped.push_back(id);
  copy_.leftovers.erase(found);
  uncut_objects_.Note(file, *inode, dropped);
}

void CopyReviews::Tick() {
  bool scan = false;
  for (auto& [id, node] : nodes_.by_id) {
    if (!node.silent_since || node.given_up) continue;
    const Time at = *node.silent_since + kNodeReplacedAfter;
    if (at > step_.now) {
      step_.Schedule(at);
      continue;
    }
    node.given_up = true;
    scan = true;
    step_.effects.log.push_back(fmt::format(
        "node {} did not come back: its copies are made on other nodes", node.address.name));
  }
  while (!copy_.retries.empty() && copy_.retries.begin()->first <= step_.now) {
    const FileId file = copy_.retries.begin()->second;
    copy_.retries.erase(copy_.retries.begin());
    copy_.retry_times.erase(file);
    scan = scan || file == FileId(0);
    if (file != FileId(0)) copy_.reviews.insert(file);
  }
  if (!copy_.retries.empty()) step_.Schedule(copy_.retries.begin()->first);
  if (scan) copy_queue_.StartScan();
  for (auto* until : {&copy_.cancelled, &copy_.full}) {
    for (auto& [file, nodes] : *until)
      std::erase_if(nodes, [this](const auto& entry) { return entry.second <= step_.now; });
    std::erase_if(*until, [](const auto& entry) { return entry.second.empty(); });
  }
  std::vector<FileId> awaited;
  for (const auto& [file, waiters] : copy_.waiters) awaited.push_back(file);
  for (const FileId file : awaited) AnswerCopyWaiters(file, true);
}

AwaitCopiesReply CopyReviews::CopiesReply(FileId file, const Inode& inode) const {
  AwaitCopiesReply reply{.copies_valid = copy_view_.ValidCopies(inode)};
  reply.open_for_writing = sessions_.write_opens.contains(file);
  if (!inode.bytes) return reply;
  std::map<NodeId, bool> valid;
  for (size_t i = 0; i < inode.bytes->copies.size(); ++i) {
    const auto& cells = inode.bytes->copies[i];
    for (size_t c = 0; c < cells.size(); ++c) {
      if (cells[c].node == kNoNode) continue;
      const bool has_all = copy_view_.IsValid(inode, i, c);
      const auto [known, is_new] = valid.try_emplace(cells[c].node, has_all);
      known->second = known->second && has_all;
    }
  }
  for (const auto& [node, has_all] : valid) {
    const CopyTask* task = copy_.orders.Find(file, node);
    const uint64_t copied = has_all ? inode.size_bytes : task ? task->copied_bytes : 0;
    reply.copied_bytes += std::min(copied, kFileBytesMax);
    reply.more = reply.more || (!has_all && copy_queue_.MayGetCopy(file, node));
  }
  // The review decides which nodes get copies.
  reply.more = reply.more || copy_.reviews.contains(file);
  return reply;
}

Reply CopyReviews::Apply(const AwaitCopiesRequest& request) {
  if (auto failure = files_.CheckRegular(request.file)) return *std::move(failure);
  const Inode& inode = *files_.Find(request.file);
  AwaitCopiesReply reply = CopiesReply(request.file, inode);
  reply.copies_wanted = copy_planner_.CopiesAwaited(request.file, inode, request.copies);
  if (reply.copies_valid >= reply.copies_wanted || !reply.more || !step_.only_in_envelope) {
    ExplainCopies(request.file, inode, reply);
    return reply;
  }
  copy_.waiters[request.file].push_back({step_.actor->start.client, step_.actor_request});
  step_.wait = Pending::Stage::kCopies;
  return reply;
}

// Returns true if one of them has waited long enough, or is gone.
bool CopyReviews::IsAnyCopyWaiterDue(const std::vector<Waiter>& waiters) {
  Time next = Step::kNever;
  for (const Waiter& waiter : waiters) {
    const Session* session = sessions_.Find(waiter.client);
    if (!session) return true;
    const auto pending = session->pending.find(waiter.request);
    if (pending == session->pending.end() || pending->second.deadline <= step_.now) return true;
    next = std::min(next, pending->second.deadline);
  }
  step_.Schedule(next);
  return false;
}

void CopyReviews::AnswerCopyWaiters(FileId file, bool only_expired) {
  const auto found = copy_.waiters.find(file);
  if (found == copy_.waiters.end()) return;
  if (only_expired && !IsAnyCopyWaiterDue(found->second)) return;
  const Inode* inode = files_.Find(file);
  const Reply gone = Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                            fmt::format("file {} is gone", file.value));
  AwaitCopiesReply reply = inode ? CopiesReply(file, *inode) : AwaitCopiesReply{};
  std::erase_if(found->second, [&](const Waiter& waiter) {
    Session* session = sessions_.Find(waiter.client);
    if (!session) return true;
    const auto pending = session->pending.find(waiter.request);
    if (pending == session->pending.end() || pending->second.stage != Pending::Stage::kCopies)
      return true;
    const auto& request = std::get<AwaitCopiesRequest>(pending->second.envelope.requests.at(0));
    const bool expired = pending->second.deadline <= step_.now;
    if (inode) reply.copies_wanted = copy_planner_.CopiesAwaited(file, *inode, request.copies);
    const bool settled = reply.copies_valid >= reply.copies_wanted || !reply.more;
    if (inode && !expired && (only_expired || !settled)) {
      step_.Schedule(pending->second.deadline);
      return false;
    }
    AwaitCopiesReply answer = reply;
    if (inode) ExplainCopies(file, *inode, answer);
    session->pending.erase(pending);
    step_.Answer(*session, waiter.request, {inode ? Reply(std::move(answer)) : gone});
    return true;
  });
  if (found->second.empty()) copy_.waiters.erase(found);
}

void CopyReviews::ExplainCopies(FileId file, const Inode& inode, AwaitCopiesReply& reply) const {
  if (reply.copies_valid >= reply.copies_wanted || !inode.bytes) return;
  FileStatus status;
  copy_planner_.DescribeCopies(file, inode, status);
  const auto full = copy_.full.find(file);
  const auto usable =
      std::count_if(nodes_.by_id.begin(), nodes_.by_id.end(), [this](const auto& entry) {
        return nodes_.Stays(entry.first) && nodes_.IsReachable(entry.first);
      });
  // Nodes could hold a copy, but have no room.
  const bool lacks_room =
      (full != copy_.full.end() && !full->second.empty()) ||
      (!status.copies_missing.empty() && static_cast<size_t>(usable) >= reply.copies_wanted);
  reply.no_room = lacks_room || hints_.HintsOf(inode).strict;
  reply.reason = copy_view_.DamageOf(inode);
  if (reply.reason.empty()) reply.reason = status.copies_missing;
  if (reply.reason.empty() && sessions_.write_opens.contains(file))
    reply.reason = "the file is open for writing";
  for (const CopyStatus& copy : status.copies)
    if (reply.reason.empty() && !copy.why.empty())
      reply.reason = fmt::format("node {}: {}", nodes_.NameOf(copy.node), copy.why);
  if (reply.reason.empty()) reply.reason = "copying takes long";
}

}  // namespace mosa::manager
