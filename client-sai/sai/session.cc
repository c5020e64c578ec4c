// The session: pushes from the manager, invalidation, and timers.
#include <mutex>
#include <utility>

#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {

void Filesystem::Impl::OnSessionReady(const SessionReady& ready) {
  ++sessions_;
  lease_.BeginEra(ready.now);
  recalls_.NoteAll();
  nodes_.SetIdentity(
      {.client = client_, .era = ready.era, .key = ready.bulk_key, .tls = ready.bulk_tls});
  nodes_.SetNodes(ready.nodes);
  node_states_.Set(ready.nodes);
  file_ids_.Reset(ready.file_ids);
  if (session_seen_.exchange(true)) service_.Run([this] { DropEverything(); });
}

SessionStart Filesystem::Impl::SessionHeld() {
  lease_.BeginEra(lease_.ManagerNow());
  recalls_.NoteAll();
  // The manager may answer others as soon as it has the start, so the kernel must have dropped its
  // caches by then. Names come first, because one notice invalidates them all, however many inodes
  // there are to walk over.
  kernel_names_.ForgetAll();
  grants_.ForgetUnreported();
  SessionStart start;
  start.client = client_;
  start.node_name = options_.node_name;
  start.host_identity = options_.host_identity;
  start.mount_point = options_.mount_point;
  start.grants = grants_.Held();
  std::vector<FileId> reached_without_name;
  for (const InodePtr& inode : inodes_.All()) {
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
  // Reachable through an open descriptor or a working directory. This waits for no page.
  for (const FileId file : reached_without_name) pages_.DropAttributes(file);
  return start;
}

void Filesystem::Impl::OnLeaseRenewed(Time sent_monotonic, Time manager_now) {
  if (!lease_.Renew(sent_monotonic, manager_now)) return;
  // The manager may have given up this mount in between.
  recalls_.NoteAll();
  service_.Run([this] { DropEverything(); });
}

void Filesystem::Impl::DropEverything() {
  kernel_names_.ForgetAll();  // Before the walk, which is slow with many inodes.
  blocks_.DropAll();
  std::vector<FileId> unsent;
  std::vector<FileId> cached;
  for (const InodePtr& inode : inodes_.All()) {
    const MutexLock lock(inode->mutex);
    ClearNames(*inode);
    DropUnusedInline(*inode);
    for (const auto& [name, file] : inode->names.unsent) unsent.push_back(file);
    if (inode->passthrough_handles == 0) inode->objects.clear();
    if (inode->unbacked_handles > 0) cached.push_back(inode->file);
  }
  for (const FileId file : cached)
    pages_.Drop(
        file, [] {}, [](bool) {});
  SendUnsent(unsent);
}

void Filesystem::Impl::SendUnsent(const std::vector<FileId>& files) {
  for (const FileId file : files) {
    const InodePtr inode = inodes_.Find(file);
    // The inode keeps a refusal for its open handles.
    if (inode && !EnsureMade(*inode).ok()) stats_.Add(Counter::kErrors);
  }
}

void Filesystem::Impl::OnPush(const Push& push) {
  if (const auto* recall = std::get_if<RecallPush>(&push)) {
    recalls_.NoteForeign(recall->file);
    if (recall->kind == RecallKind::kAccess) return RecallAccess(*recall);
    // At once, so that no later answer from the cache contradicts a reply.
    const InodePtr inode = inodes_.Find(recall->file);
    if (inode) DropCached(*inode, recall->kind);
    service_.Run([this, recall = *recall, inode, session = sessions_.load()] {
      Recall(recall, inode, session);
    });
  } else if (const auto* nodes = std::get_if<NodesPush>(&push)) {
    nodes_.SetNodes(nodes->nodes);
    node_states_.Set(nodes->nodes);
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

void Filesystem::Impl::Recall(const RecallPush& push, const InodePtr& inode, uint64_t session) {
  stats_.Add(Counter::kRecalls);
  const UnconfirmedRecall recall{push.recall, session};
  const InodePtr known = inode ? inode : inodes_.Find(push.file);
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
  if (push.kind == RecallKind::kEntries) kernel_names_.Forget(*known);
  const auto dropped = [this, inode] {
    if (inode) Settle(*inode);
  };
  pages_.Drop(push.file, dropped, [this, known, recall](bool in_time) {
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
  if (const InodePtr inode = inodes_.Find(push.file)) {
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
  const InodePtr inode = inodes_.Find(file);
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
  calls_.Tell(done);
}

void Filesystem::Impl::RunTimers(uint64_t round) {
  pages_.EndOverdue();
  copy_waits_.EndOverdue();
  EvictIdle();
  releases_.Send();
  if (round % 10 == 0) grants_.GiveBackIdle();
}

}  // namespace mosa::sai
