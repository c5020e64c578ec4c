#include "manager/core/session_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

constexpr size_t kHostTextBytesMax = 4096;

}  // namespace

void SessionEvents::Handle(const SessionRequest& command) {
  Session* session = sessions_.Find(command.client);
  if (!session || session->awaited || session->condemned) {
    step_.effects.to_clients.push_back(
        {command.client,
         Push(SessionEndPush{session && session->condemned
                                 ? "the session did not answer a recall in time: open it again"
                                 : "the session does not exist or has expired: open it again"})});
    return;
  }
  session->heard = step_.now;
  session->connected = true;
  envelopes_.ReceiveEnvelope(*session, command.envelope);
}

void SessionEvents::Handle(const StartSession& command) {
  const SessionStart& start = command.start;
  if (start.client.value == 0)
    return step_.RefuseSession(start.client, StatusCode::kInvalidArgument,
                               "a client's id must be a random number above 0");
  if (std::max({start.node_name.size(), start.host_identity.size(), start.mount_point.size()}) >
      kHostTextBytesMax)
    return step_.RefuseSession(start.client, StatusCode::kInvalidArgument,
                               "the host name or the mount point is longer than 4096 bytes");
  Session* session = sessions_.Find(start.client);
  const std::set<FileId> opens_before = session ? session->write_opens : std::set<FileId>();
  if (!session && sessions_.by_client.size() >= cluster_.options.sessions_max)
    return step_.RefuseSession(start.client, StatusCode::kResourceExhausted,
                               fmt::format("{} sessions are open, which is the limit; unmount some",
                                           sessions_.by_client.size()));
  const bool was_known = session != nullptr;
  // An expired session keeps its replies for a while. Without an earlier session nothing is
  // repeated.
  const bool replies_kept = was_known || reply_logs_.Has(start.client);
  std::map<FileId, Time> recalled;
  if (session) {
    for (const auto& [id, recall] : session->recalls)
      if (recall.kind == RecallKind::kEntries) recalled.try_emplace(recall.file, recall.since);
    ForgetHeld(*session, /*ended=*/false, /*clean=*/false);
    interests_.RetireSlot(session->slot);
  } else {
    session = &sessions_.by_client[start.client];
    step_.effects.frequent_log.push_back(fmt::format("session {:016x} of {} at {} begins",
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
  session->slot = recalls_.TakeSlot(start.client);
  session->heard = step_.now;
  session->era = ++cluster_.counters.era;
  step_.effects.writes.Put(CountersKey(), Encode(cluster_.counters));
  step_.Schedule(step_.now + kSessionLease);
  reply_logs_.Keep(start.client);
  step_.effects.writes.Put(
      SessionKey(start.client),
      Encode(SessionRecord{start.node_name, start.host_identity, start.mount_point}));
  SessionReady ready{.cluster_seed = cluster_.record.cluster_seed,
                     .cluster_name = cluster_.record.cluster_name,
                     .now = step_.now,
                     .nodes = {},
                     .file_ids = cluster_.TakeFileIds(),
                     .chunk_bytes_default = cluster_.options.chunk_bytes,
                     .inline_bytes_max = cluster_.options.inline_bytes_max,
                     .era = session->era,
                     .replies_kept = replies_kept};
  ready.nodes.reserve(nodes_.by_id.size());
  for (const auto& [id, node] : nodes_.by_id) ready.nodes.push_back(node.address);
  step_.effects.to_clients.push_back({start.client, std::move(ready)});
  Redeclare(*session, start, was_known);
  RedeclareNames(*session, start.names, recalled);
  for (const FileId file : opens_before) {
    if (session->write_opens.contains(file)) continue;
    generations_.EndUncommitted(file);
    generations_.EndStream(file);  // The mount lives and has closed it.
  }
  EndGraceIfAllAreBack();
}

// Forgets what the session held; Redeclare restores what the client names again. Two things remain.
// Locks and delegations are left to Redeclare, since others wait for them. Access recalls remain
// too, since the client may be storing right now, unless it has `ended` or was asked too long ago.
void SessionEvents::ForgetHeld(Session& session, bool ended, bool clean) {
  const ClientId client = session.start.client;
  std::vector<RecallId> recalls;
  for (const auto& [id, recall] : session.recalls)
    if (ended || recall.kind != RecallKind::kAccess || recall.since + kLetGoMax <= step_.now)
      recalls.push_back(id);
  for (const RecallId id : recalls) {
    // Redeclare settles a recalled delegation. Until then no client may bypass it.
    delegations_.TakeRecallBack(session.recalls.at(id).file, client);
    envelopes_.FinishRecall(session, {id});
  }
  if (ended) fences_.ForgetClient(client);
  for (const FileId file : std::exchange(session.write_opens, {})) {
    if (ended && !clean) fences_.NoteAbsent(file, client);
    const auto opens = sessions_.write_opens.find(file);
    opens->second.erase(client);
    if (opens->second.empty()) sessions_.write_opens.erase(opens);
    if (ended) generations_.EndUncommitted(file);
    if (ended) generations_.NoteWriterGone(file);
    if (const Inode* inode = files_.Find(file)) copy_queue_.ReviewLater(file, *inode);
    if (files_.orphans.contains(file)) step_.orphan_checks.insert(file);
  }
  while (const auto surplus = fences_.Surplus()) generations_.FenceAbsentWriters(*surplus);
  for (auto& [file, holders] : files_.orphans) {
    if (holders.erase(client) > 0) step_.orphan_checks.insert(file);
  }
  lifetimes_.ForgetHolder(client);
  grants_.Release(session);
  // It may not have received the requests to return grants.
  for (auto& [id, node] : nodes_.by_id) node.grant_recalls.erase(client);
}

void SessionEvents::Redeclare(Session& session, const SessionStart& start, bool was_known) {
  const ClientId client = start.client;
  for (auto& [id, recall] : session.recalls) {
    recall.sent = step_.now;
    step_.effects.to_clients.push_back({client, Push(RecallPush{id, recall.file, recall.kind})});
    step_.Schedule(step_.now + kRecallPatience);
  }
  for (const HeldOpen& held : start.opens) {
    Inode* inode = files_.Find(held.file);
    if (!inode || inode->type != FileType::kRegular) continue;
    if (held.write) {
      generations_.NoteReturned(held.file, client, was_known);
      // The client may have stored bytes since. A copy that counts as valid shows that its open had
      // ended.
      if (HasUnmarkedCopies(*inode)) generations_.EndUncommitted(held.file);
      generations_.LoseStoresOnEmptyNodes(held.file, *inode);
      session.write_opens.insert(held.file);
      sessions_.write_opens[held.file].insert(client);
      generations_.MarkMayDiffer(held.file);
    }
    const auto orphan = files_.orphans.find(held.file);
    if (orphan != files_.orphans.end()) {
      // It may not know that the file lost its last name, and would then not report its close.
      orphan->second.insert(client);
      recalls_.Send(session, held.file, RecallKind::kFile);
    } else {
      interests_.Add(session, held.file, *inode);
    }
  }
  std::vector<HeldLock> locks = start.locks;
  std::erase_if(locks, [this](const HeldLock& held) { return !files_.Find(held.file); });
  std::vector<LockTable::Waiting> granted;
  for (const HeldLock& lost : locks_.HoldOnly(client, locks, granted))
    step_.effects.frequent_log.push_back(
        fmt::format("session {:016x} has lost its lock on file {}", client.value, lost.file.value));
  answers_.AnswerLocks(granted, EmptyReply{});
  for (const HeldGrant& held : start.grants) {
    Node* node = nodes_.Find(held.node);
    if (!node) continue;
    const uint64_t bytes = std::min(held.bytes, node->limit_bytes);
    session.grants[held.node] += bytes;
    node->granted_bytes += bytes;
  }
  const std::set<FileId> kept(start.delegations.begin(), start.delegations.end());
  for (const FileId directory : std::set<FileId>(session.delegations)) {
    if (!kept.contains(directory)) delegations_.End(directory);
  }
  for (const FileId directory : kept) {
    if (!files_.FindDirectory(directory)) continue;
    if (const Delegation* late = delegations_.Find(directory);
        late && late->holder == client &&
        late->wanted_since.value_or(step_.now) + kLetGoMax <= step_.now)
      delegations_.End(directory);
    const bool wanted = queues_.parked.contains(directory);
    const Delegation* const held = delegations_.Find(directory);
    if (held ? held->holder != client : !delegations_.MayDelegate(session, directory)) {
      recalls_.Send(session, directory, RecallKind::kEntries);
    } else {
      delegations_.Delegate(session, directory);
      const bool ruled = !rules_.empty() && rules_.MaySettleIn(files_.PathOf(directory));
      if (wanted || ruled) delegations_.Recall(directory);
    }
  }
}

// The mount tells of its unsent files anyway, now that the session is open. It is asked to do so
// where a name cannot be reserved again: whoever was faster has it.
void SessionEvents::RedeclareNames(Session& session, const std::vector<HeldName>& names,
                                   const std::map<FileId, Time>& recalled) {
  delegations_.EndAllNames(session.start.client);
  std::set<FileId> lost;
  for (const HeldName& held : names) {
    if (!files_.FindDirectory(held.directory) || files_.ChildOf(held.directory, held.name))
      continue;
    const auto since = recalled.find(held.directory);
    const auto wanted = since == recalled.end() ? std::nullopt : std::optional(since->second);
    if (!delegations_.RestoreName(session, held.directory, held.name, wanted))
      lost.insert(held.directory);
  }
  for (const FileId directory : lost)
    if (!Recalls::EntriesRecallOf(session, directory))
      recalls_.Send(session, directory, RecallKind::kEntries);
}

void SessionEvents::Handle(const SessionLost& command) {
  if (Session* session = sessions_.Find(command.client)) session->connected = false;
}

void SessionEvents::Handle(const SessionClosed& command) {
  if (sessions_.Find(command.client)) EndSession(command.client, "it was closed", true);
  EndGraceIfAllAreBack();
}

void SessionEvents::EndSession(ClientId client, std::string_view reason, bool clean) {
  Session& session = sessions_.by_client.at(client);
  step_.effects.frequent_log.push_back(fmt::format("session {:016x} of {} at {} ends: {}",
                                                   client.value, session.start.node_name,
                                                   session.start.mount_point, reason));
  reclaim_.RemoveUncommittedOf(client);
  session.pending.clear();
  std::vector<LockTable::Waiting> granted;
  locks_.Release(client, true, granted);
  ForgetHeld(session, /*ended=*/true, clean);
  // A client that returns may repeat the request under the same id, and waits again.
  for (auto& [other, open] : sessions_.by_client)
    for (auto& [id, recall] : open.recalls)
      std::erase_if(recall.waiters, [client](const Waiter& w) { return w.client == client; });
  std::erase_if(files_.freezes,
                [client](const auto& entry) { return entry.second.holder == client; });
  answers_.AnswerLocks(granted, EmptyReply{});
  for (const FileId directory : std::set<FileId>(session.delegations)) delegations_.End(directory);
  delegations_.EndAllNames(client);
  interests_.RetireSlot(session.slot);
  step_.effects.writes.Delete(SessionKey(client));
  if (!clean) {
    reply_logs_.DropLater(client);
  } else {
    reply_logs_.Drop(client);
  }
  sessions_.by_client.erase(client);
  if (!clean)
    step_.effects.to_clients.push_back({client, Push(SessionEndPush{std::string(reason)})});
}

void SessionEvents::Handle(const Tick&) {
  step_.wake_at = Step::kNever;
  if (cluster_.grace_end && *cluster_.grace_end <= step_.now) EndGrace();
  std::vector<ClientId> expired;
  for (auto& [client, session] : sessions_.by_client) {
    // The oldest recall has the smallest id.
    if (!session.recalls.empty() && !session.condemned) {
      const Time patience_end = session.recalls.begin()->second.sent + kRecallPatience;
      if (patience_end <= step_.now) {
        session.condemned = true;
        step_.effects.frequent_log.push_back(fmt::format(
            "session {:016x} did not answer recall {} of file {}: its lease is no longer renewed",
            client.value, session.recalls.begin()->first.value,
            session.recalls.begin()->second.file.value));
        step_.effects.to_clients.push_back(
            {client, Push(SessionEndPush{"the session did not answer a recall in time"})});
      } else {
        step_.Schedule(patience_end);
      }
    }
    if (session.awaited) continue;
    if (session.heard + kSessionLease <= step_.now) {
      expired.push_back(client);
    } else {
      step_.Schedule(session.heard + kSessionLease);
    }
  }
  for (const ClientId client : expired) EndSession(client, "its lease expired", false);
  for (auto& [id, node] : nodes_.by_id) {
    if (!nodes_.IsReachable(id)) continue;
    if (node.last_heard + kNodeDeadAfter <= step_.now) {
      node_events_.SetNodeState(node, NodeState::kSilent);
    } else {
      step_.Schedule(node.last_heard + kNodeDeadAfter);
    }
  }
  for (const ClientId client : reply_logs_.DropExpired()) fences_.ForgetAbsent(client);
  for (const auto& [file, until] : files_.lingering) {
    if (until <= step_.now) {
      step_.orphan_checks.insert(file);
    } else {
      step_.Schedule(until);
    }
  }
  std::erase_if(files_.lingering, [this](const auto& entry) { return entry.second <= step_.now; });
  delegations_.Tick();
  envelopes_.RetrySpaceWaiters(true);
  copy_reviews_.Tick();
  if (cluster_.grace_end) step_.Schedule(*cluster_.grace_end);
}

void SessionEvents::Handle(const Stalled& command) {
  for (auto& [client, session] : sessions_.by_client) {
    session.heard = step_.now;
    for (auto& [id, recall] : session.recalls) {
      recall.sent = recall.sent + command.time;
      recall.since = recall.since + command.time;
    }
  }
  nodes_.NoteStall(command.time);
  delegations_.Postpone(command.time);
  reply_logs_.Postpone(command.time);
  for (auto& [file, until] : files_.lingering) until = until + command.time;
  for (auto& [file, freeze] : files_.freezes) freeze.until = freeze.until + command.time;
  for (auto& [file, nodes] : copy_.cancelled)
    for (auto& [node, until] : nodes) until = until + command.time;
  copy_.replaced.clear();  // Nodes count as heard now, but have said nothing.
  if (cluster_.grace_end) cluster_.grace_end = *cluster_.grace_end + command.time;
  step_.effects.log.push_back(
      fmt::format("the manager did not run for {} ms: silence during that time does not count",
                  command.time.ns / 1'000'000));
  Handle(Tick{});
}

void SessionEvents::EndGraceIfAllAreBack() {
  if (!cluster_.grace_end) return;
  const bool awaited = std::any_of(sessions_.by_client.begin(), sessions_.by_client.end(),
                                   [](const auto& entry) { return entry.second.awaited; });
  if (!awaited) EndGrace();
}

void SessionEvents::EndGrace() {
  cluster_.grace_end.reset();
  nodes_.ForgetWhoCameEmpty();
  // The latest rule may have been added before mounts let go of the delegations that they
  // redeclared.
  delegations_.RecallRuled(kRootFile);
  std::vector<ClientId> missing;
  for (const auto& [client, session] : sessions_.by_client) {
    if (session.awaited) missing.push_back(client);
  }
  for (const ClientId client : missing)
    EndSession(client, "it did not come back after the manager's restart", false);
  generations_.EndMarkedOpens(missing.empty());
  generations_.EndAbandonedStreams(missing.empty());
  for (const auto& [file, holders] : files_.orphans) step_.orphan_checks.insert(file);
  lifetimes_.RecheckAll();
  step_.effects.log.push_back(
      fmt::format("the grace period is over: {} sessions came back, {} did not",
                  sessions_.by_client.size(), missing.size()));
  queues_.ready.insert(queues_.ready.end(), queues_.grace.begin(), queues_.grace.end());
  queues_.grace.clear();
  copy_queue_.StartScan();
}

}  // namespace mosa::manager
