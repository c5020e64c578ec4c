// The session: pushes from the manager, invalidation, and timers.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/sai/impl.h"
#include "common/base/log.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

constexpr Duration kTimerEvery = Milliseconds(100);
constexpr uint64_t kFileIdsLow = 256;
// Shorter than the manager's patience with an unanswered recall. By then a silent node counts as
// dead, and the requests that wait for it are over.
constexpr Duration kPagesWaitMax = Seconds(6);
// How soon a file that the kernel did not know is invalidated again; doubles.
constexpr Duration kUnknownPauseMin = Milliseconds(1);
constexpr Duration kUnknownPauseMax = Milliseconds(64);

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
              "the manager's reply does not match the kind of the request");
}

Outcome<std::vector<Reply>> Filesystem::Impl::AskAll(std::vector<Request> requests) {
  const size_t asked = requests.size();
  stats_.Add(Counter::kManagerCalls);
  std::vector<Reply> replies = manager_.Call(std::move(requests), WaitBudget::ForQuestion());
  if (replies.empty()) return UnexpectedReply();
  if (const auto* failure = std::get_if<Failure>(&replies.back())) return *failure;
  if (replies.size() != asked) return UnexpectedReply();
  return replies;
}

void Filesystem::Impl::OnSessionReady(const SessionReady& ready) {
  ++sessions_;
  lease_.BeginEra(ready.now);
  recalls_.NoteAll();
  nodes_.SetIdentity(
      {.client = client_, .era = ready.era, .key = ready.bulk_key, .tls = ready.bulk_tls});
  nodes_.SetNodes(ready.nodes);
  NoteNodes(ready.nodes);
  bool again = false;
  {
    const MutexLock lock(session_mutex_);
    again = std::exchange(session_seen_, true);
    id_ranges_.clear();
    if (ready.file_ids.count > 0) id_ranges_.push_back(ready.file_ids);
    inline_bytes_max_ = ready.inline_bytes_max;
  }
  if (again) service_.Run([this] { DropEverything(); });
}

SessionStart Filesystem::Impl::SessionHeld() {
  lease_.BeginEra(lease_.ManagerNow());
  recalls_.NoteAll();
  // The manager may answer others as soon as it has the start, so the kernel must have dropped its
  // caches by then. Names come first, because one notice invalidates them all, however many inodes
  // there are to walk over.
  ForgetAllKernelNames();
  grants_.ForgetUnreported();
  SessionStart start;
  start.client = client_;
  start.node_name = options_.node_name;
  start.host_identity = options_.host_identity;
  start.mount_point = options_.mount_point;
  start.grants = grants_.Held();
  std::vector<InodePtr> all;
  {
    const MutexLock lock(table_mutex_);
    for (const auto& [id, inode] : inodes_) all.push_back(inode);
  }
  std::vector<FileId> reached_without_name;
  for (const InodePtr& inode : all) {
    const MutexLock lock(inode->mutex);
    const bool is_directory = inode->attributes.type == FileType::kDirectory;
    if (inode->handles > 0 || (is_directory && inode->kernel_lookups > 0))
      reached_without_name.push_back(inode->file);
    const bool is_made = inode->make_state == MakeState::kSent ||
                         (inode->make_state == MakeState::kSending && inode->manager_counts_open);
    if (is_made && (inode->handles > 0 || inode->told_held || inode->closes)) {
      start.opens.push_back({inode->file, inode->MayWriteUnasked() || inode->closes});
      inode->named_while_closing = inode->closes;
    }
    for (const auto& [owner, locks] : inode->locks)
      for (const Lock& held : locks) start.locks.push_back({inode->file, held});
    if (!inode->names.unsent.empty()) start.delegations.push_back(inode->file);
  }
  // Reachable through an open descriptor or a working directory. Unlike DropPages, this waits for
  // no page.
  for (const FileId file : reached_without_name) {
    NoteInKernel(file, &SizeInKernel::NoteTelling);
    notifier_.InvalidateAttributes(file);
  }
  return start;
}

void Filesystem::Impl::OnLeaseRenewed(Time sent_monotonic, Time manager_now) {
  if (!lease_.Renew(sent_monotonic, manager_now)) return;
  // The manager may have given up this mount in between.
  recalls_.NoteAll();
  service_.Run([this] { DropEverything(); });
}

void Filesystem::Impl::DropEverything() {
  ForgetAllKernelNames();  // Before the walk, which is slow with many inodes.
  blocks_.DropAll();
  std::vector<InodePtr> all;
  {
    const MutexLock lock(table_mutex_);
    for (const auto& [id, inode] : inodes_) all.push_back(inode);
  }
  std::vector<FileId> unsent;
  std::vector<FileId> cached;
  for (const InodePtr& inode : all) {
    const MutexLock lock(inode->mutex);
    ClearNames(*inode);
    DropUnusedInline(*inode);
    for (const auto& [name, file] : inode->names.unsent) unsent.push_back(file);
    if (inode->passthrough_handles == 0) inode->objects.clear();
    if (inode->unbacked_handles > 0) cached.push_back(inode->file);
  }
  for (const FileId file : cached)
    DropPages(
        file, [] {}, [](bool) {});
  SendUnsent(unsent);
}

void Filesystem::Impl::SendUnsent(const std::vector<FileId>& files) {
  for (const FileId file : files) {
    const InodePtr inode = Find(file);
    // The inode keeps a refusal for its open handles.
    if (inode && !EnsureMade(*inode).ok()) stats_.Add(Counter::kErrors);
  }
}

void Filesystem::Impl::OnPush(const Push& push) {
  if (const auto* recall = std::get_if<RecallPush>(&push)) {
    recalls_.NoteForeign(recall->file);
    if (recall->kind == RecallKind::kAccess) return RecallAccess(*recall);
    // At once, so that no later answer from the cache contradicts a reply.
    const InodePtr inode = Find(recall->file);
    if (inode) DropCached(*inode, recall->kind);
    service_.Run([this, recall = *recall, inode, session = sessions_.load()] {
      Recall(recall, inode, session);
    });
  } else if (const auto* nodes = std::get_if<NodesPush>(&push)) {
    nodes_.SetNodes(nodes->nodes);
    NoteNodes(nodes->nodes);
  } else if (const auto* grant = std::get_if<GrantRecallPush>(&push)) {
    grants_.GiveBack(grant->node);
  } else {
    recalls_.NoteAll();  // The session is over; ManagerApi opens the next one.
    lease_.BeginEra(lease_.ManagerNow());
  }
}

void Filesystem::Impl::DropCached(Inode& inode, RecallKind kind) {
  const MutexLock lock(inode.mutex);
  inode.attributes_era = 0;
  inode.access_era = 0;
  DropUnusedInline(inode);
  if (inode.passthrough_handles == 0) inode.objects.clear();
  if (kind == RecallKind::kEntries) ClearNames(inode);
  ++inode.unsettled;
}

// A reply that introduces the file to the kernel may be in flight. Until its caller runs, the
// kernel does not know the file, and then it caches the outdated attributes of the reply.
void Filesystem::Impl::InvalidateInKernel(FileId file) {
  NoteInKernel(file, &SizeInKernel::NoteTelling);
  for (Duration pause = kUnknownPauseMin; !notifier_.InvalidateFile(file); pause = pause * 2) {
    const InodePtr inode = Find(file);
    if (!inode || pause > kUnknownPauseMax) return;
    {
      const MutexLock lock(inode->mutex);
      if (inode->kernel_lookups == 0) return;
    }
    SleepFor(pause);
  }
  NoteInKernel(file, &SizeInKernel::NoteTold);
}

void Filesystem::Impl::NoteInKernel(FileId file, void (SizeInKernel::*note)(Time)) {
  const InodePtr inode = Find(file);
  if (!inode) return;
  const MutexLock lock(inode->mutex);
  const bool is_read_by_pages = inode->attributes.type == FileType::kRegular;
  if (is_read_by_pages && inode->kernel_lookups > 0)
    (inode->size_in_kernel.*note)(clock_.Monotonic());
}

// Nodes were to truncate or zero the file together. If only some have done so, no node has the
// state that is cached here, and other mounts must hear of it with the next commit. Does not wait
// for the pages, because the kernel may hold back their writes until this call is answered.
void Filesystem::Impl::EndPartialChange(Inode& inode) {
  if (!std::exchange(inode.partly_changed, false)) return;
  {
    const MutexLock lock(inode.mutex);
    inode.pages.Clear();
    inode.allocated.clear();
    inode.allocated_version.reset();
    inode.unsaved.needs_commit = inode.unsaved.change_failed = true;
  }
  DropFailedPages(inode);
}

void Filesystem::Impl::DropPages(FileId file, Dropped dropped, DropDone done) {
  std::list<Drop>::iterator drop;
  {
    const MutexLock lock(pending_drops_mutex_);
    const Time until = clock_.Monotonic() + kPagesWaitMax;
    drop = pending_drops_.insert(pending_drops_.end(), {file, until, std::move(done)});
  }
  drops_.Run([this, file, drop, dropped = std::move(dropped)] {
    InvalidateInKernel(file);
    dropped();
    DropDone waiting;
    {
      const MutexLock lock(pending_drops_mutex_);
      waiting = std::move(drop->done);
      pending_drops_.erase(drop);
    }
    if (waiting) waiting(true);
  });
}

bool Filesystem::Impl::DropPagesNow(FileId file, Dropped dropped) {
  bool in_time = false;
  Countdown done(1);
  DropPages(file, std::move(dropped), [&](bool is_in_time) {
    in_time = is_in_time;
    done.Arrive();
  });
  done.Wait();
  return in_time;
}

void Filesystem::Impl::EndOverdueDrops() {
  std::vector<Drop> overdue;
  {
    const MutexLock lock(pending_drops_mutex_);
    const Time now = clock_.Monotonic();
    for (Drop& drop : pending_drops_) {
      if (drop.until > now) break;
      if (drop.done) overdue.push_back({drop.file, drop.until, std::exchange(drop.done, nullptr)});
    }
  }
  for (const Drop& drop : overdue) {
    stats_.Add(Counter::kPagesWaitsEnded);
    delays_.Warning(
        "the kernel did not drop the pages of file {} within {} s: a request that locks one of "
        "them waits for a node or another mount",
        drop.file.value, kPagesWaitMax.ns / 1'000'000'000);
    drop.done(false);
  }
}

void Filesystem::Impl::Recall(const RecallPush& push, const InodePtr& inode, uint64_t session) {
  stats_.Add(Counter::kRecalls);
  const UnconfirmedRecall recall{push.recall, session};
  const InodePtr known = inode ? inode : Find(push.file);
  if (!known) return ConfirmRecall(push.file, recall);
  std::vector<FileId> unsent;
  {
    const MutexLock lock(known->mutex);
    if (push.kind == RecallKind::kEntries) {
      for (const auto& [name, file] : known->names.unsent) unsent.push_back(file);
    }
    known->told_held = known->told_held || known->handles > 0;
  }
  SendUnsent(unsent);
  blocks_.DropFile(push.file);
  if (push.kind == RecallKind::kEntries) ForgetKernelNames(*known);
  const auto dropped = [this, inode] {
    if (inode) Settle(*inode);
  };
  DropPages(push.file, dropped, [this, known, recall](bool in_time) {
    if (!in_time) {
      // The next open of the file must not keep the remaining pages.
      const MutexLock lock(known->mutex);
      known->pages_version.reset();
    }
    ConfirmRecall(known->file, recall);
  });
}

// Waits for no page of the kernel and for no thread, because their holders may wait for this.
void Filesystem::Impl::RecallAccess(const RecallPush& push) {
  stats_.Add(Counter::kRecalls);
  const UnconfirmedRecall recall{push.recall, sessions_};
  if (const InodePtr inode = Find(push.file)) {
    const MutexLock lock(inode->mutex);
    inode->access_era = 0;
    DropUnusedInline(*inode);
    ++inode->access_recalls;
    if (inode->stores > 0) {
      inode->unconfirmed.push_back(recall);
      return;
    }
  }
  ConfirmRecall(push.file, recall);
}

void Filesystem::Impl::ConfirmRecall(FileId file, UnconfirmedRecall recall) {
  RecallDoneRequest done{recall.recall};
  const InodePtr inode = Find(file);
  // Held until the message is sent, so that a later commit cannot report the end of writing before
  // it. Send never runs its callback on this thread.
  std::unique_lock<Mutex> lock;
  if (inode) {
    lock = std::unique_lock(inode->mutex);
    inode->mutex.AssertHeld();
    done.holds_open = inode->handles > 0;
    done.pinned = inode->passthrough_handles > 0;
    // After a reported close, another descriptor of the same open may still exist. The mount learns
    // this only at the kernel's release, which follows the reply to a close that waits for copies.
    done.writes =
        inode->MayWriteUnasked() || (inode->write_handles > 0 && inode->closes_waiting == 0);
    inode->told_held = inode->told_held || done.holds_open;
  }
  // Another session has its own recall numbers.
  if (recall.session != sessions_) return;
  if (inode && done.writes) {
    inode->mutex.AssertHeld();
    inode->manager_counts_open = true;
  }
  manager_.Send({done}, [](const std::vector<Reply>&) {});
}

// Repeats reads from a node that has returned empty.
void Filesystem::Impl::NoteNodes(const std::vector<NodeAddress>& nodes) {
  const MutexLock lock(session_mutex_);
  node_states_.clear();
  for (const NodeAddress& node : nodes) {
    node_states_[node.node] = node.state;
    uint64_t& incarnation = node_incarnations_[node.node];
    if (incarnation != 0 && incarnation != node.incarnation) ++incarnations_;
    incarnation = node.incarnation;
  }
}

bool Filesystem::Impl::NodeAlive(NodeId node) const {
  const MutexLock lock(session_mutex_);
  const auto it = node_states_.find(node);
  return it != node_states_.end() &&
         (it->second == NodeState::kLive || it->second == NodeState::kDraining);
}

bool Filesystem::Impl::NodeAnswers(NodeId node) const {
  if (!NodeAlive(node)) return false;
  const MutexLock lock(session_mutex_);
  return !unanswered_.contains(node);
}

void Filesystem::Impl::NoteCall(NodeId node, bool answered) {
  const MutexLock lock(session_mutex_);
  if (answered)
    unanswered_.erase(node);
  else
    unanswered_.insert(node);
}

Outcome<FileId> Filesystem::Impl::NewFileId() {
  MutexLock lock(session_mutex_);
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
    const MutexLock lock(session_mutex_);
    asking_for_ids_ = false;
    if (replies.empty()) return;
    if (const auto* range = std::get_if<FileIdRangeReply>(&replies.back()))
      id_ranges_.push_back(*range);
  });
}

void Filesystem::Impl::QueueRelease(ReleaseRequest release) {
  const MutexLock lock(releases_mutex_);
  releases_.push_back(std::move(release));
}

void Filesystem::Impl::SendQueued() {
  // Under the lock, so that an open that takes its file out of the queue cannot be overtaken. The
  // handlers of the manager's messages do not take this lock.
  const MutexLock lock(releases_mutex_);
  for (ReleaseRequest& release : std::exchange(releases_, {})) {
    const InodePtr inode = release.reader ? nullptr : Find(release.file);
    if (!inode) {
      manager_.Send({std::move(release)}, [](const std::vector<Reply>&) {});
      continue;
    }
    {
      // Held until the message is sent, so that an answer to a recall which says that the file is
      // open is not followed by a release which says that it is not.
      const MutexLock held(inode->mutex);
      if (inode->manager_counts_open) {
        // The mount has become a writer again, and its end tells the manager.
        inode->unsaved.change_failed = inode->unsaved.change_failed || release.uncommitted;
        inode->unsaved.needs_commit = inode->unsaved.needs_commit || release.uncommitted;
        continue;
      }
      release.holds_open = inode->told_held = inode->handles > 0;
      manager_.Send({std::move(release)}, [](const std::vector<Reply>&) {});
    }
    const MutexLock table(table_mutex_);
    EraseRemoved(inode);
  }
}

void Filesystem::Impl::Repeat(const std::function<void(uint64_t round)>& step) {
  MutexLock lock(timer_mutex_);
  for (uint64_t round = 0; !stopping_; ++round) {
    timer_wake_.wait_for(lock, kTimerEvery);
    lock.unlock();
    step(round);
    lock.lock();
  }
}

void Filesystem::Impl::RunTimers() {
  Repeat([this](uint64_t round) {
    EndOverdueDrops();
    copy_waits_.EndOverdue();
    EvictIdle();
    SendQueued();
    if (round % 10 == 0) grants_.GiveBackIdle();
  });
}

}  // namespace mosa::sai
