// Sessions: start, lease, end, and the grace period after a restart.
#include <fmt/format.h>

#include <algorithm>

#include "manager/core/state.h"

namespace mosa::manager {
namespace {

constexpr size_t kHostTextBytesMax = 4096;

}  // namespace

// A tick that comes too early does no harm, one that comes too late does: the earliest time wins.
void ManagerCore::State::Schedule(Time at) { next_tick_ = std::min(next_tick_, at); }

void ManagerCore::State::RefuseSession(ClientId client, StatusCode code, std::string message) {
  effects_.frequent_log.push_back(
      fmt::format("session {:016x} refused: {}", client.value, message));
  effects_.to_clients.push_back({client, Refuse(code, ErrorReason::kInvalid, std::move(message))});
}

void ManagerCore::State::Handle(const StartSession& command) {
  const SessionStart& start = command.start;
  if (start.client.value == 0)
    return RefuseSession(start.client, StatusCode::kInvalidArgument,
                         "a client's id must be a random number above 0");
  if (std::max({start.node_name.size(), start.host_identity.size(), start.mount_point.size()}) >
      kHostTextBytesMax)
    return RefuseSession(start.client, StatusCode::kInvalidArgument,
                         "the host name or the mount point is longer than 4096 bytes");
  Session* session = FindSession(start.client);
  const std::set<FileId> opens_before = session ? session->write_opens : std::set<FileId>();
  if (!session && sessions_.size() >= options_.sessions_max)
    return RefuseSession(
        start.client, StatusCode::kResourceExhausted,
        fmt::format("{} sessions are open, which is the limit; unmount some", sessions_.size()));
  const bool was_known = session != nullptr;
  // An expired session keeps its replies for a while. Without an earlier session nothing is
  // repeated.
  const bool replies_kept = was_known || reply_logs_.contains(start.client);
  if (session) {
    ForgetHeld(*session, /*ended=*/false, /*clean=*/false);
    interests_.RetireSlot(session->slot);
  } else {
    session = &sessions_[start.client];
    effects_.frequent_log.push_back(fmt::format("session {:016x} of {} at {} begins",
                                                start.client.value, start.node_name,
                                                start.mount_point));
  }
  session->start = {};
  session->start.client = start.client;
  session->start.node_name = start.node_name;
  session->start.host_identity = start.host_identity;
  session->start.mount_point = start.mount_point;
  session->connected = true;
  session->awaited = false;
  session->condemned = false;
  session->interests = 0;
  session->slot = TakeSlot(start.client);
  session->heard = now_;
  session->era = ++counters_.era;
  effects_.writes.Put(CountersKey(), Encode(counters_));
  Schedule(now_ + kSessionLease);
  if (const auto log = reply_logs_.find(start.client); log != reply_logs_.end())
    log->second.drop_at.reset();
  effects_.writes.Put(
      SessionKey(start.client),
      Encode(SessionRecord{start.node_name, start.host_identity, start.mount_point}));
  SessionReady ready{.cluster_seed = cluster_.cluster_seed,
                     .cluster_name = cluster_.cluster_name,
                     .now = now_,
                     .nodes = {},
                     .file_ids = TakeFileIds(),
                     .chunk_bytes_default = options_.chunk_bytes,
                     .inline_bytes_max = options_.inline_bytes_max,
                     .era = session->era,
                     .replies_kept = replies_kept};
  ready.nodes.reserve(nodes_.size());
  for (const auto& [id, node] : nodes_) ready.nodes.push_back(node.address);
  effects_.to_clients.push_back({start.client, std::move(ready)});
  Redeclare(*session, start, was_known);
  for (const FileId file : opens_before)
    if (!session->write_opens.contains(file)) EndUncommitted(file);
  EndGraceIfAllAreBack();
}

// Forgets what the session held; Redeclare restores what the client names again. Two things remain.
// Locks and delegations are left to Redeclare, since others wait for them. Access recalls remain
// too, since the client may be storing right now, unless it has `ended` or was asked too long ago.
void ManagerCore::State::ForgetHeld(Session& session, bool ended, bool clean) {
  const ClientId client = session.start.client;
  std::vector<RecallId> recalls;
  for (const auto& [id, recall] : session.recalls)
    if (ended || recall.kind != RecallKind::kAccess || recall.since + kLetGoMax <= now_)
      recalls.push_back(id);
  for (const RecallId id : recalls) {
    const auto delegation = delegations_.find(session.recalls.at(id).file);
    // Redeclare settles a recalled delegation. Until then no client may bypass it.
    if (delegation != delegations_.end() && delegation->second.holder == client)
      delegation->second.recalled = false;
    FinishRecall(session, {id});
  }
  if (ended) fences_.ForgetClient(client);
  for (const FileId file : std::exchange(session.write_opens, {})) {
    if (ended && !clean) fences_.NoteAbsent(file, client);
    const auto opens = write_opens_.find(file);
    opens->second.erase(client);
    if (opens->second.empty()) write_opens_.erase(opens);
    if (ended) EndUncommitted(file);
    if (const Inode* inode = Find(file)) ReviewCopiesLater(file, *inode);
    if (orphans_.contains(file)) orphan_checks_.insert(file);
  }
  while (const auto surplus = fences_.Surplus()) FenceAbsentWriters(*surplus);
  for (auto& [file, holders] : orphans_) {
    if (holders.erase(client) > 0) orphan_checks_.insert(file);
  }
  for (const FileId file : due_) {
    lifetimes_.at(file).holders.erase(client);
    due_checks_.insert(file);
  }
  ReleaseGrants(session);
  // It may not have received the requests to return grants.
  for (auto& [id, node] : nodes_) node.grant_recalls.erase(client);
}

void ManagerCore::State::Redeclare(Session& session, const SessionStart& start, bool was_known) {
  const ClientId client = start.client;
  for (auto& [id, recall] : session.recalls) {
    recall.sent = now_;
    effects_.to_clients.push_back({client, Push(RecallPush{id, recall.file, recall.kind})});
    Schedule(now_ + kRecallPatience);
  }
  for (const HeldOpen& held : start.opens) {
    Inode* inode = Find(held.file);
    if (!inode || inode->type != FileType::kRegular) continue;
    if (held.write) {
      NoteReturned(held.file, client, was_known);
      // The client may have stored bytes since. A copy that counts as valid shows that its open had
      // ended.
      if (HasUnmarkedCopies(*inode)) EndUncommitted(held.file);
      LoseStoresOnEmptyNodes(held.file, *inode);
      session.write_opens.insert(held.file);
      write_opens_[held.file].insert(client);
    }
    const auto orphan = orphans_.find(held.file);
    if (orphan != orphans_.end()) {
      // It may not know that the file lost its last name, and would then not report its close.
      orphan->second.insert(client);
      SendRecall(session, held.file, RecallKind::kFile);
    } else {
      interests_.Add(session, held.file, *inode);
    }
  }
  std::vector<HeldLock> locks = start.locks;
  std::erase_if(locks, [this](const HeldLock& held) { return !Find(held.file); });
  std::vector<LockTable::Waiting> granted;
  for (const HeldLock& lost : locks_.HoldOnly(client, locks, granted))
    effects_.frequent_log.push_back(
        fmt::format("session {:016x} has lost its lock on file {}", client.value, lost.file.value));
  AnswerLocks(granted, EmptyReply{});
  for (const HeldGrant& held : start.grants) {
    Node* node = FindNode(held.node);
    if (!node) continue;
    const uint64_t bytes = std::min(held.bytes, node->limit_bytes);
    session.grants[held.node] += bytes;
    node->granted_bytes += bytes;
  }
  const std::set<FileId> kept(start.delegations.begin(), start.delegations.end());
  for (const FileId directory : std::set<FileId>(session.delegations)) {
    if (!kept.contains(directory)) EndDelegation(directory);
  }
  for (const FileId directory : kept) {
    if (!FindDirectory(directory)) continue;
    if (const auto late = delegations_.find(directory);
        late != delegations_.end() && late->second.holder == client &&
        late->second.wanted_since.value_or(now_) + kLetGoMax <= now_)
      EndDelegation(directory);
    const bool wanted = parked_.contains(directory);
    const auto held = delegations_.find(directory);
    if (held == delegations_.end() && !MayDelegate(session, directory)) {
      SendRecall(session, directory, RecallKind::kEntries);
    } else if (held != delegations_.end() && held->second.holder != client) {
      SendRecall(session, directory, RecallKind::kEntries);
    } else {
      Delegate(session, directory);
      const bool ruled = !rules_.empty() && rules_.MaySettleIn(PathOf(directory));
      if (wanted || ruled) RecallDelegation(directory);
    }
  }
}

void ManagerCore::State::Handle(const SessionLost& command) {
  if (Session* session = FindSession(command.client)) session->connected = false;
}

void ManagerCore::State::Handle(const SessionClosed& command) {
  if (FindSession(command.client)) EndSession(command.client, "it was closed", true);
  EndGraceIfAllAreBack();
}

void ManagerCore::State::EndSession(ClientId client, std::string_view reason, bool clean) {
  Session& session = sessions_.at(client);
  effects_.frequent_log.push_back(fmt::format("session {:016x} of {} at {} ends: {}", client.value,
                                              session.start.node_name, session.start.mount_point,
                                              reason));
  RemoveUncommittedOf(client);
  session.pending.clear();
  std::vector<LockTable::Waiting> granted;
  locks_.Release(client, true, granted);
  ForgetHeld(session, /*ended=*/true, clean);
  // A client that returns may repeat the request under the same id, and waits again.
  for (auto& [other, open] : sessions_)
    for (auto& [id, recall] : open.recalls)
      std::erase_if(recall.waiters, [client](const Waiter& w) { return w.client == client; });
  std::erase_if(freezes_, [client](const auto& entry) { return entry.second.holder == client; });
  AnswerLocks(granted, EmptyReply{});
  for (const FileId directory : std::set<FileId>(session.delegations)) EndDelegation(directory);
  interests_.RetireSlot(session.slot);
  effects_.writes.Delete(SessionKey(client));
  if (!clean) {
    // The client may only be late and repeat requests that ran. An empty log is kept too: it shows
    // that nothing ran.
    reply_logs_[client].drop_at = now_ + kRepliesKeptFor;
    Schedule(now_ + kRepliesKeptFor);
  } else if (const auto log = reply_logs_.find(client); log != reply_logs_.end()) {
    ForgetReplies(log);
  }
  sessions_.erase(client);
  if (!clean) effects_.to_clients.push_back({client, Push(SessionEndPush{std::string(reason)})});
}

void ManagerCore::State::ReleaseGrants(Session& session) {
  for (const auto& [id, bytes] : std::exchange(session.grants, {})) {
    if (Node* node = FindNode(id)) node->granted_bytes -= bytes;
    space_changed_ = true;
  }
}

// Removes files that the client made and never committed: nobody was told of their bytes.
void ManagerCore::State::RemoveUncommittedOf(ClientId client) {
  std::vector<FileId> files;
  for (const auto& [file, uncommitted] : uncommitted_) {
    if (uncommitted.maker == client) files.push_back(file);
  }
  for (const FileId file : files) {
    const Uncommitted gone = uncommitted_.at(file);
    const auto child = ChildOf(gone.parent, gone.name);
    if (child != file) continue;
    EraseEntry(gone.parent, gone.name);
    TouchDirectory(gone.parent, now_);
    Unlink(file, false, client);
    if (Find(file)) {
      abandoned_.insert(file);
      dirty_.insert(file);
    }
    effects_.frequent_log.push_back(
        fmt::format("file {} is removed: session {:016x} created it but never committed it",
                    file.value, client.value));
  }
  // Waiters of the ending session would wait for themselves.
  RecallTouched(client, std::nullopt);
}

FileIdRangeReply ManagerCore::State::TakeFileIds() {
  const FileIdRangeReply range{FileId(cluster_.next_file_id), kFileIdsAtOnce};
  cluster_.next_file_id += kFileIdsAtOnce;
  cluster_dirty_ = true;
  return range;
}

// ---- time

void ManagerCore::State::Handle(const Tick&) {
  next_tick_ = kNever;
  if (grace_end_ && *grace_end_ <= now_) EndGrace();
  std::vector<ClientId> expired;
  for (auto& [client, session] : sessions_) {
    // The oldest recall has the smallest id.
    if (!session.recalls.empty() && !session.condemned) {
      const Time patience_end = session.recalls.begin()->second.sent + kRecallPatience;
      if (patience_end <= now_) {
        session.condemned = true;
        effects_.frequent_log.push_back(fmt::format(
            "session {:016x} did not answer recall {} of file {}: its lease is no longer renewed",
            client.value, session.recalls.begin()->first.value,
            session.recalls.begin()->second.file.value));
        effects_.to_clients.push_back(
            {client, Push(SessionEndPush{"the session did not answer a recall in time"})});
      } else {
        Schedule(patience_end);
      }
    }
    if (session.awaited) continue;
    if (session.heard + kSessionLease <= now_) {
      expired.push_back(client);
    } else {
      Schedule(session.heard + kSessionLease);
    }
  }
  for (const ClientId client : expired) EndSession(client, "its lease expired", false);
  for (auto& [id, node] : nodes_) {
    if (!IsReachable(id)) continue;
    if (node.last_heard + kNodeDeadAfter <= now_) {
      SetNodeState(node, NodeState::kSilent);
    } else {
      Schedule(node.last_heard + kNodeDeadAfter);
    }
  }
  for (auto log = reply_logs_.begin(); log != reply_logs_.end();) {
    if (!log->second.drop_at || *log->second.drop_at > now_) {
      if (log->second.drop_at) Schedule(*log->second.drop_at);
      ++log;
      continue;
    }
    fences_.ForgetAbsent(log->first);
    log = ForgetReplies(log);
  }
  for (const auto& [file, until] : lingering_) {
    if (until <= now_) {
      orphan_checks_.insert(file);
    } else {
      Schedule(until);
    }
  }
  std::erase_if(lingering_, [this](const auto& entry) { return entry.second <= now_; });
  std::erase_if(contended_, [this](const auto& entry) { return entry.second <= now_; });
  for (const auto& [directory, until] : contended_) Schedule(until);
  RetrySpaceWaiters(true);
  CopiesTick();
  if (grace_end_) Schedule(*grace_end_);
}

void ManagerCore::State::Handle(const Stalled& command) {
  for (auto& [client, session] : sessions_) {
    session.heard = now_;
    for (auto& [id, recall] : session.recalls) {
      recall.sent = recall.sent + command.time;
      recall.since = recall.since + command.time;
    }
  }
  NoteStall(command.time);
  for (auto& [directory, delegation] : delegations_)
    if (delegation.wanted_since) delegation.wanted_since = *delegation.wanted_since + command.time;
  // A client that should find these may have sent requests meanwhile.
  for (auto& [client, log] : reply_logs_)
    if (log.drop_at) log.drop_at = *log.drop_at + command.time;
  for (auto& [file, until] : lingering_) until = until + command.time;
  for (auto& [file, freeze] : freezes_) freeze.until = freeze.until + command.time;
  for (auto& [file, nodes] : copy_.cancelled)
    for (auto& [node, until] : nodes) until = until + command.time;
  if (grace_end_) grace_end_ = *grace_end_ + command.time;
  effects_.log.push_back(
      fmt::format("the manager did not run for {} ms: silence during that time does not count",
                  command.time.ns / 1'000'000));
  Handle(Tick{});
}

void ManagerCore::State::EndGraceIfAllAreBack() {
  if (!grace_end_) return;
  const bool awaited = std::any_of(sessions_.begin(), sessions_.end(),
                                   [](const auto& entry) { return entry.second.awaited; });
  if (!awaited) EndGrace();
}

void ManagerCore::State::EndGrace() {
  grace_end_.reset();
  ForgetWhoCameEmpty();
  // The latest rule may have been added before mounts let go of the delegations that they
  // redeclared.
  RecallRuledDelegations(kRootFile);
  std::vector<ClientId> missing;
  for (const auto& [client, session] : sessions_) {
    if (session.awaited) missing.push_back(client);
  }
  for (const ClientId client : missing)
    EndSession(client, "it did not come back after the manager's restart", false);
  EndMarkedOpens();
  for (const auto& [file, holders] : orphans_) orphan_checks_.insert(file);
  due_checks_ = due_;
  effects_.log.push_back(fmt::format("the grace period is over: {} sessions came back, {} did not",
                                     sessions_.size(), missing.size()));
  ready_.insert(ready_.end(), grace_queue_.begin(), grace_queue_.end());
  grace_queue_.clear();
  StartCopyScan();
}

}  // namespace mosa::manager
