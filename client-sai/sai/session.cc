#include "client-sai/sai/session.h"

#include <algorithm>

#include "common/base/sync.h"

namespace mosa::sai {
namespace {

constexpr size_t kForgetsMax = 256;  // In one request.

}  // namespace

void SessionEvents::OnSessionReady(const SessionReady& ready) {
  const bool is_first = lease_.BeginSession(ready.now) == 1;
  recalls_.NoteAll();
  nodes_.SetIdentity(
      {.client = client_, .era = ready.era, .key = ready.bulk_key, .tls = ready.bulk_tls});
  nodes_.SetNodes(ready.nodes);
  node_states_.Set(ready.nodes);
  file_ids_.Reset(ready.file_ids);
  if (!is_first) service_.Run([this] { DropEverything(); });
}

void SessionEvents::OnPush(const Push& push) {
  if (const auto* recall = std::get_if<RecallPush>(&push)) {
    recalls_.NoteForeign(recall->file);
    if (recall->kind == RecallKind::kAccess) return RecallAccess(*recall);
    // At once, so that no later answer from the cache contradicts a reply.
    const InodePtr inode = inodes_.Find(recall->file);
    if (inode) DropCached(*inode, recall->kind);
    service_.Run([this, recall = *recall, inode, session = lease_.Session()] {
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

SessionStart SessionEvents::SessionHeld() {
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
    const bool is_directory = inode->known.attributes.type == FileType::kDirectory;
    if (inode->uses.handles > 0 || (is_directory && inode->kernel.lookups > 0))
      reached_without_name.push_back(inode->file);
    const bool is_made =
        inode->making.state == MakeState::kSent ||
        (inode->making.state == MakeState::kSending && inode->uses.manager_counts_open);
    if (is_made && (inode->uses.handles > 0 || inode->uses.told_held || inode->uses.closes)) {
      start.opens.push_back({inode->file, inode->MayWriteUnasked() || inode->uses.closes});
      inode->uses.named_while_closing = inode->uses.closes;
    }
    for (const auto& [owner, locks] : inode->locking.held)
      for (const Lock& held : locks) start.locks.push_back({inode->file, held});
    const auto& taken = inode->names.shared.taken();
    for (const std::string& name : taken) start.names.push_back({inode->file, name});
    if (inode->names.unsent.size() > taken.size()) start.delegations.push_back(inode->file);
  }
  // Reachable through an open descriptor or a working directory. This waits for no page.
  for (const FileId file : reached_without_name) pages_.DropAttributes(file);
  return start;
}

void SessionEvents::OnLeaseRenewed(Time sent_monotonic, Time manager_now) {
  if (!lease_.Renew(sent_monotonic, manager_now)) return;
  // The manager may have given up this mount in between.
  recalls_.NoteAll();
  service_.Run([this] { DropEverything(); });
}

void SessionEvents::DropCached(Inode& inode, RecallKind kind) {
  const MutexLock lock(inode.mutex);
  inode.known.Invalidate();
  inode.right.era = 0;
  rights_.DropUnusedInline(inode);
  if (inode.kernel.passthrough_handles == 0) inode.local.objects.clear();
  if (kind == RecallKind::kEntries) name_cache_.Clear(inode);
  if (kind == RecallKind::kDelegation) inode.names.delegated = false;
  ++inode.known.unsettled;
}

void SessionEvents::Recall(const RecallPush& push, const InodePtr& inode, uint64_t session) {
  stats_.Add(Counter::kRecalls);
  const UnconfirmedRecall recall{push.recall, session};
  const InodePtr known = inode ? inode : inodes_.Find(push.file);
  if (!known) return gate_.ConfirmRecall(push.file, recall);
  std::vector<FileId> unsent;
  {
    const MutexLock lock(known->mutex);
    if (push.kind == RecallKind::kEntries || push.kind == RecallKind::kDelegation) {
      for (const auto& [name, file] : known->names.unsent) unsent.push_back(file);
    }
    known->uses.told_held = known->uses.told_held || known->uses.handles > 0;
  }
  SendUnsent(unsent);
  blocks_.DropFile(push.file);
  stream_waits_.NoteChanged(push.file);
  if (push.kind == RecallKind::kEntries) kernel_names_.Forget(*known);
  const auto dropped = [inode] {
    if (inode) AttributeCache::Settle(*inode);
  };
  pages_.Drop(push.file, dropped, [this, known, recall](bool in_time) {
    if (!in_time) {
      // The next open of the file must not keep the remaining pages.
      const MutexLock lock(known->mutex);
      known->kernel.pages_version.reset();
    }
    gate_.ConfirmRecall(known->file, recall);
  });
}

// Waits for no page of the kernel and for no thread, because their holders may wait for this.
void SessionEvents::RecallAccess(const RecallPush& push) {
  stats_.Add(Counter::kRecalls);
  const UnconfirmedRecall recall{push.recall, lease_.Session()};
  if (const InodePtr inode = inodes_.Find(push.file)) {
    const MutexLock lock(inode->mutex);
    inode->right.era = 0;
    rights_.DropUnusedInline(*inode);
    ++inode->right.recalls;
    if (inode->gate.stores > 0) {
      inode->gate.unconfirmed.push_back(recall);
      return;
    }
  }
  gate_.ConfirmRecall(push.file, recall);
}

void SessionEvents::DropEverything() {
  kernel_names_.ForgetAll();  // Before the walk, which is slow with many inodes.
  blocks_.DropAll();
  std::vector<FileId> unsent;
  std::vector<FileId> cached;
  for (const InodePtr& inode : inodes_.All()) {
    const MutexLock lock(inode->mutex);
    name_cache_.Clear(*inode);
    rights_.DropUnusedInline(*inode);
    for (const auto& [name, file] : inode->names.unsent) unsent.push_back(file);
    if (inode->kernel.passthrough_handles == 0) inode->local.objects.clear();
    if (inode->kernel.unbacked_handles > 0) cached.push_back(inode->file);
  }
  for (const FileId file : cached)
    pages_.Drop(
        file, [] {}, [](bool) {});
  SendUnsent(unsent);
}

void SessionEvents::SendUnsent(const std::vector<FileId>& files) {
  for (const FileId file : files) {
    const InodePtr inode = inodes_.Find(file);
    // The inode keeps a refusal for its open handles.
    if (inode && !commits_.EnsureMade(*inode).ok()) stats_.Add(Counter::kErrors);
  }
}

void SessionEvents::RunTimers(uint64_t round) {
  pages_.EndOverdue();
  copies_.EndOverdue();
  EvictIdle();
  releases_.Send();
  if (round % 10 == 0) grants_.GiveBackIdle();
}

void SessionEvents::ForgetUncertain(FileId file) {
  recalls_.NoteForeign(file);  // First, so that no earlier answer is kept.
  const InodePtr inode = inodes_.Find(file);
  if (!inode) return;
  {
    const MutexLock lock(inode->mutex);
    if (inode->making.state != MakeState::kSent) return;  // Its make tells what became of it.
    name_cache_.Clear(*inode);
    name_cache_.NoteHintsChanged();
    inode->names.inline_bytes_max.reset();
    inode->known.Invalidate();
    inode->right.era = 0;
  }
  kernel_names_.Forget(*inode);
  pages_.DropAttributes(file);
}

void SessionEvents::NoteDropped(Inode& inode) {
  inode.mutex.AssertHeld();
  name_cache_.Clear(inode);
  rights_.NoteDropped(inode);
  recalls_.NoteForeign(inode.file);
}

void SessionEvents::EvictIdle() {
  const std::vector<FileId> evicted = inodes_.DropIdle();
  if (evicted.empty()) return;
  for (size_t i = 0; i < evicted.size(); i += kForgetsMax) {
    const auto begin = evicted.begin() + static_cast<int64_t>(i);
    const auto end =
        evicted.begin() + static_cast<int64_t>(std::min(i + kForgetsMax, evicted.size()));
    calls_.Tell(ForgetRequest{{begin, end}});
  }
  // A question from before this mount's interest ended may yet be answered, and nobody would recall
  // that answer.
  bool is_back = false;
  for (const FileId file : evicted) {
    blocks_.DropFile(file);
    recalls_.NoteForeign(file);
    const InodePtr inode = inodes_.Find(file);
    if (!inode) continue;
    is_back = true;
    DropCached(*inode, RecallKind::kEntries);
    pages_.Drop(
        file, [inode] { AttributeCache::Settle(*inode); }, [](bool) {});
    service_.Run([this, inode] {
      if (!commits_.EnsureAllMade(*inode).ok()) stats_.Add(Counter::kErrors);
    });
  }
  if (is_back) kernel_names_.ForgetAll();
}

}  // namespace mosa::sai
