// The session: what arrives unasked, what is dropped, what is sent by the clock.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client-sai/sai/impl.h"

namespace mosa::sai {
namespace {

constexpr Duration kTimerEvery = Milliseconds(100);
constexpr uint64_t kFileIdsLow = 256;
constexpr size_t kBatchMax = 256;

}  // namespace

Failure Fail(StatusCode code, ErrorReason reason, std::string message) {
  return {code, reason, std::move(message)};
}

Failure FromStatus(const Status& status) {
  ErrorReason reason = ErrorReason::kNone;
  switch (status.code()) {
    case StatusCode::kResourceExhausted:
      reason = ErrorReason::kNoSpace;
      break;
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      reason = ErrorReason::kNodeLost;
      break;
    case StatusCode::kDataLoss:
      reason = ErrorReason::kCorrupt;
      break;
    case StatusCode::kPermissionDenied:
    case StatusCode::kNotFound:
      reason = ErrorReason::kStale;
      break;
    case StatusCode::kInvalidArgument:
      reason = ErrorReason::kInvalid;
      break;
    case StatusCode::kUnimplemented:
      reason = ErrorReason::kUnsupported;
      break;
    default:
      break;
  }
  return {status.code(), reason, MessageOf(status)};
}

Failure Filesystem::Impl::UnexpectedReply() {
  return Fail(StatusCode::kInternal, ErrorReason::kNone,
              "the manager answered a request with a reply of another kind");
}

Outcome<std::vector<Reply>> Filesystem::Impl::AskAll(std::vector<Request> requests) {
  const size_t asked = requests.size();
  stats_.Add(Counter::kManagerCalls);
  std::vector<Reply> replies = manager_.Call(std::move(requests));
  if (replies.empty()) return UnexpectedReply();
  if (const auto* failure = std::get_if<Failure>(&replies.back())) return *failure;
  if (replies.size() != asked) return UnexpectedReply();
  return replies;
}

void Filesystem::Impl::OnSessionReady(const SessionReady& ready) {
  ++sessions_;
  lease_.BeginEra(ready.now);
  recalls_.NoteAll();
  nodes_.SetNodes(ready.nodes);
  bool again = false;
  {
    const std::lock_guard lock(session_mutex_);
    again = std::exchange(session_seen_, true);
    node_states_.clear();
    for (const NodeAddress& node : ready.nodes) node_states_[node.node] = node.state;
    id_ranges_.clear();
    if (ready.file_ids.count > 0) id_ranges_.push_back(ready.file_ids);
    inline_bytes_max_ = ready.inline_bytes_max;
  }
  if (again) service_.Run([this] { DropEverything(); });
}

SessionStart Filesystem::Impl::SessionHeld() {
  lease_.BeginEra(lease_.ManagerNow());
  recalls_.NoteAll();
  grants_.ForgetUnreported();
  SessionStart start;
  start.client = client_;
  start.node_name = options_.node_name;
  start.host_identity = options_.host_identity;
  start.mount_point = options_.mount_point;
  start.grants = grants_.Held();
  std::vector<InodePtr> all;
  {
    const std::lock_guard lock(table_mutex_);
    for (const auto& [id, inode] : inodes_) all.push_back(inode);
  }
  for (const InodePtr& inode : all) {
    const std::lock_guard lock(inode->mutex);
    if (inode->make_state == MakeState::kSent && (inode->handles > 0 || inode->told_held))
      start.opens.push_back({inode->file, inode->write_handles > 0});
    for (const auto& [owner, locks] : inode->locks)
      for (const Lock& held : locks) start.locks.push_back({inode->file, held});
    if (!inode->names.unsent.empty()) start.delegations.push_back(inode->file);
  }
  return start;
}

void Filesystem::Impl::OnLeaseRenewed(Time sent_monotonic, Time manager_now) {
  if (!lease_.Renew(sent_monotonic, manager_now)) return;
  // The manager may have stopped to count on this mount in between.
  recalls_.NoteAll();
  service_.Run([this] { DropEverything(); });
}

void Filesystem::Impl::DropEverything() {
  blocks_.DropAll();
  std::vector<InodePtr> all;
  {
    const std::lock_guard lock(table_mutex_);
    for (const auto& [id, inode] : inodes_) all.push_back(inode);
  }
  std::vector<FileId> unsent;
  std::vector<FileId> cached;
  for (const InodePtr& inode : all) {
    const std::lock_guard lock(inode->mutex);
    ClearNames(*inode);
    for (const auto& [name, file] : inode->names.unsent) unsent.push_back(file);
    if (inode->passthrough_handles == 0) inode->objects.clear();
    if (inode->cached_handles > 0) cached.push_back(inode->file);
  }
  if (notifier_.capabilities().epoch) notifier_.InvalidateEntries();
  for (const FileId file : cached) notifier_.InvalidateFile(file);
  SendUnsent(unsent);
}

void Filesystem::Impl::SendUnsent(const std::vector<FileId>& files) {
  for (const FileId file : files) {
    const InodePtr inode = Find(file);
    // A refusal is kept in the inode, for those who have it open.
    if (inode && !EnsureMade(*inode).ok()) stats_.Add(Counter::kErrors);
  }
}

void Filesystem::Impl::OnPush(const Push& push) {
  if (const auto* recall = std::get_if<RecallPush>(&push)) {
    recalls_.NoteForeign(recall->file);
    if (recall->kind == RecallKind::kAccess) return RecallAccess(*recall);
    // At once, so that nothing is answered from here that a later reply contradicts.
    const InodePtr inode = Find(recall->file);
    if (inode) DropCached(*inode, recall->kind);
    service_.Run([this, recall = *recall, inode, session = sessions_.load()] {
      Recall(recall, session);
      if (inode) Settle(*inode);
    });
  } else if (const auto* nodes = std::get_if<NodesPush>(&push)) {
    nodes_.SetNodes(nodes->nodes);
    const std::lock_guard lock(session_mutex_);
    node_states_.clear();
    for (const NodeAddress& node : nodes->nodes) node_states_[node.node] = node.state;
  } else if (const auto* grant = std::get_if<GrantRecallPush>(&push)) {
    grants_.GiveBack(grant->node);
  } else {
    recalls_.NoteAll();  // The session is over; ManagerApi opens the next one.
    lease_.BeginEra(lease_.ManagerNow());
  }
}

void Filesystem::Impl::DropCached(Inode& inode, RecallKind kind) {
  const std::lock_guard lock(inode.mutex);
  inode.attributes_era = 0;
  inode.access_era = 0;
  if (inode.passthrough_handles == 0) inode.objects.clear();
  if (kind == RecallKind::kEntries) ClearNames(inode);
  ++inode.unsettled;
}

void Filesystem::Impl::Recall(const RecallPush& push, uint64_t session) {
  stats_.Add(Counter::kRecalls);
  if (const InodePtr inode = Find(push.file)) {
    std::vector<FileId> unsent;
    {
      const std::lock_guard lock(inode->mutex);
      if (push.kind == RecallKind::kEntries) {
        for (const auto& [name, file] : inode->names.unsent) unsent.push_back(file);
      }
      inode->told_held = inode->told_held || inode->handles > 0;
    }
    SendUnsent(unsent);
    blocks_.DropFile(push.file);
    if (push.kind == RecallKind::kEntries && notifier_.capabilities().epoch)
      notifier_.InvalidateEntries();
    notifier_.InvalidateFile(push.file);
  }
  ConfirmRecall(push.file, {push.recall, session});
}

// Waits for no page of the kernel's and for no thread: what holds those may wait for this.
void Filesystem::Impl::RecallAccess(const RecallPush& push) {
  stats_.Add(Counter::kRecalls);
  const UnconfirmedRecall recall{push.recall, sessions_};
  if (const InodePtr inode = Find(push.file)) {
    const std::lock_guard lock(inode->mutex);
    inode->access_era = 0;
    if (inode->stores > 0) {
      inode->unconfirmed.push_back(recall);
      return;
    }
  }
  ConfirmRecall(push.file, recall);
}

void Filesystem::Impl::ConfirmRecall(FileId file, UnconfirmedRecall recall) {
  RecallDoneRequest done{recall.recall};
  if (const InodePtr inode = Find(file)) {
    const std::lock_guard lock(inode->mutex);
    done.holds_open = inode->handles > 0;
    done.pinned = inode->passthrough_handles > 0;
    inode->told_held = inode->told_held || done.holds_open;
  }
  // Another session counts its recalls anew.
  if (recall.session == sessions_) manager_.Send({done}, [](const std::vector<Reply>&) {});
}

bool Filesystem::Impl::NodeAlive(NodeId node) const {
  const std::lock_guard lock(session_mutex_);
  const auto it = node_states_.find(node);
  return it != node_states_.end() &&
         (it->second == NodeState::kLive || it->second == NodeState::kDraining);
}

Outcome<FileId> Filesystem::Impl::NewFileId() {
  std::unique_lock lock(session_mutex_);
  uint64_t left = 0;
  for (const FileIdRangeReply& range : id_ranges_) left += range.count;
  const bool ask = left < kFileIdsLow && left > 0 && !std::exchange(asking_for_ids_, true);
  if (left == 0) {
    lock.unlock();
    auto range = Ask<FileIdRangeReply>(FileIdRangeRequest{});
    if (!range.ok()) return range.failure();
    lock.lock();
    id_ranges_.push_back(*range);
  }
  FileIdRangeReply& range = id_ranges_.front();
  const FileId id = range.first;
  ++range.first.value;
  if (--range.count == 0) id_ranges_.pop_front();
  lock.unlock();
  if (ask) AskForFileIds();
  return id;
}

void Filesystem::Impl::AskForFileIds() {
  manager_.Send({FileIdRangeRequest{}}, [this](const std::vector<Reply>& replies) {
    const std::lock_guard lock(session_mutex_);
    asking_for_ids_ = false;
    if (replies.empty()) return;
    if (const auto* range = std::get_if<FileIdRangeReply>(&replies.back()))
      id_ranges_.push_back(*range);
  });
}

void Filesystem::Impl::QueueRelease(FileId file, std::optional<std::string> reader) {
  const std::lock_guard lock(releases_mutex_);
  releases_.push_back({file, std::move(reader)});
}

void Filesystem::Impl::SendQueued() {
  // Under the lock, so that an open that takes its file out of the queue cannot be overtaken. What
  // the manager sends is handled without this lock.
  const std::lock_guard lock(releases_mutex_);
  for (ReleaseRequest& release : std::exchange(releases_, {}))
    manager_.Send({std::move(release)}, [](const std::vector<Reply>&) {});
  std::vector<FileId> forgets = std::exchange(forgets_, {});
  for (size_t i = 0; i < forgets.size(); i += kBatchMax) {
    const auto begin = forgets.begin() + static_cast<int64_t>(i);
    const auto end =
        forgets.begin() + static_cast<int64_t>(std::min(i + kBatchMax, forgets.size()));
    manager_.Send({ForgetRequest{{begin, end}}}, [](const std::vector<Reply>&) {});
  }
}

void Filesystem::Impl::Repeat(const std::function<void(uint64_t round)>& step) {
  std::unique_lock lock(timer_mutex_);
  for (uint64_t round = 0; !stopping_; ++round) {
    timer_wake_.wait_for(lock, std::chrono::nanoseconds(kTimerEvery.ns));
    lock.unlock();
    step(round);
    lock.lock();
  }
}

void Filesystem::Impl::RunTimers() {
  Repeat([this](uint64_t round) {
    EvictIdle();
    SendQueued();
    if (round % 10 == 0) grants_.GiveBackIdle();
  });
}

}  // namespace mosa::sai
