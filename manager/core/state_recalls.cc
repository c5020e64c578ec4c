// Tracks which clients may have cached what, and recalls it.
#include <algorithm>

#include "common/base/check.h"
#include "manager/core/state.h"

namespace mosa::manager {
namespace {

constexpr size_t kDelegationsPerSessionMax = 4096;
constexpr size_t kContendedMax = 65536;
// How long a directory wanted by two sessions is not delegated again.
constexpr Duration kContendedFor = Seconds(2);

}  // namespace

uint32_t ManagerCore::State::TakeSlot(ClientId client) {
  return interests_.TakeSlot(client, [this](uint64_t bits) {
    for (auto& [file, inode] : inodes_) inode->interest &= ~bits;
  });
}

RecallId ManagerCore::State::SendRecall(Session& session, FileId file, RecallKind kind) {
  // Recall ids are unique even across restarts of the manager, so a repeated answer is never taken
  // for the answer to another recall.
  last_recall_ = std::max(last_recall_ + 1, static_cast<uint64_t>(now_.ns));
  const RecallId id(last_recall_);
  session.recalls.emplace(id, Recall{file, kind, now_, now_, {}});
  recalls_by_file_[file].emplace(session.start.client, id);
  effects_.to_clients.push_back({session.start.client, Push(RecallPush{id, file, kind})});
  Schedule(now_ + kRecallPatience);
  return id;
}

void ManagerCore::State::TouchAccess(FileId file, bool waits) {
  changed_ = true;
  dirty_.insert(file);
  access_changed_[file] |= waits;
}

// Recalls access from all clients that have the file open: they may store, or their kernel may have
// the object open. A client that has not confirmed an earlier recall has no recorded interest any
// more; it is asked again, because its confirmation may predate what it was told since.
size_t ManagerCore::State::RecallAccess(ClientId actor, std::optional<Waiter> waiter) {
  if (access_changed_.empty()) return 0;
  size_t held_back = 0;
  for (const auto& [file, waits] : std::exchange(access_changed_, {})) {
    const Inode* inode = Find(file);
    if (!inode) continue;
    const std::vector<ClientId> interested = interests_.Of(file, *inode, actor);
    std::set<ClientId> clients(interested.begin(), interested.end());
    if (const auto opens = write_opens_.find(file); opens != write_opens_.end())
      clients.insert(opens->second.begin(), opens->second.end());
    if (const auto orphan = orphans_.find(file); orphan != orphans_.end())
      clients.insert(orphan->second.begin(), orphan->second.end());
    if (const auto recalls = recalls_by_file_.find(file); recalls != recalls_by_file_.end())
      for (const auto& [client, recall] : recalls->second) clients.insert(client);
    clients.erase(actor);
    for (const ClientId client : clients) {
      Session* session = FindSession(client);
      if (!session) continue;
      const RecallId recall = SendRecall(*session, file, RecallKind::kAccess);
      if (!waiter || !waits) continue;
      session->recalls.at(recall).waiters.push_back(*waiter);
      ++held_back;
    }
  }
  return held_back;
}

// Replies that mention names of a directory are withheld until all clients show the same names.
// Otherwise a client could act on a new name while another, silent client still denies that it
// exists. A reply that a name is absent is not withheld: a client can act on it only by a create,
// which waits.
size_t ManagerCore::State::AwaitSameNames(ClientId client, const RequestEnvelope& envelope,
                                          const std::vector<Reply>& replies) {
  if (recalls_by_file_.empty()) return 0;
  const Waiter waiter{client, envelope.id};
  size_t held_back = 0;
  const auto await = [&](FileId directory) { held_back += AwaitRecalls(directory, waiter); };
  for (size_t i = 0; i < std::min(replies.size(), envelope.requests.size()); ++i) {
    const auto* failure = std::get_if<Failure>(&replies[i]);
    if (failure && failure->reason == ErrorReason::kNoEntry) continue;
    std::visit(
        [&](const auto& r) {
          using T = std::decay_t<decltype(r)>;
          if constexpr (std::is_same_v<T, LookupRequest> || std::is_same_v<T, MakeRequest> ||
                        std::is_same_v<T, RemoveRequest>) {
            await(r.parent);
          } else if constexpr (std::is_same_v<T, ListDirectoryRequest>) {
            await(r.directory);
          } else if constexpr (std::is_same_v<T, LinkRequest>) {
            await(r.new_parent);
          } else if constexpr (std::is_same_v<T, RenameRequest>) {
            await(r.old_parent);
            await(r.new_parent);
          }
        },
        envelope.requests[i]);
  }
  return held_back;
}

// Makes `waiter` wait until other clients have confirmed their recalls of `file`. Returns how many.
size_t ManagerCore::State::AwaitRecalls(FileId file, const Waiter& waiter) {
  const auto outstanding = recalls_by_file_.find(file);
  if (outstanding == recalls_by_file_.end()) return 0;
  size_t held_back = 0;
  for (const auto& [client, recall] : outstanding->second) {
    if (client == waiter.client) continue;
    Recall& earlier = FindSession(client)->recalls.at(recall);
    if (earlier.kind == RecallKind::kAccess) continue;
    if (!earlier.waiters.empty() && earlier.waiters.back() == waiter) continue;
    earlier.waiters.push_back(waiter);
    ++held_back;
  }
  return held_back;
}

size_t ManagerCore::State::RecallTouched(ClientId actor, std::optional<Waiter> waiter) {
  size_t held_back = RecallAccess(actor, waiter);
  if (touched_.empty()) return held_back;
  for (const FileId file : std::exchange(touched_, {})) {
    Inode* inode = Find(file);
    if (!inode) continue;
    const RecallKind kind =
        inode->type == FileType::kDirectory ? RecallKind::kEntries : RecallKind::kFile;
    for (const ClientId client : interests_.Of(file, *inode, actor)) {
      Session& session = *FindSession(client);
      interests_.Drop(session, file, *inode);
      SendRecall(session, file, kind);
    }
    // A client that has not confirmed an earlier recall may still show the state before it.
    if (waiter) held_back += AwaitRecalls(file, *waiter);
  }
  return held_back;
}

bool ManagerCore::State::IsRecalledFrom(ClientId client, FileId file) const {
  const auto found = recalls_by_file_.find(file);
  if (found == recalls_by_file_.end()) return false;
  const auto first = found->second.lower_bound({client, RecallId(0)});
  return first != found->second.end() && first->first == client;
}

// Asks one question at a time. Later opens make an answer in transit outdated, so the client is
// then asked again.
void ManagerCore::State::AskHolder(Session& session, FileId file) {
  for (auto& [id, recall] : session.recalls) {
    if (recall.file != file || !recall.asks_holder) continue;
    recall.opened_since = true;
    return;
  }
  session.recalls.at(SendRecall(session, file, RecallKind::kFile)).asks_holder = true;
}

void ManagerCore::State::FinishRecall(Session& session, const RecallDoneRequest& done) {
  const auto found = session.recalls.find(done.recall);
  if (found == session.recalls.end()) return;
  const Recall recall = std::move(found->second);
  session.recalls.erase(found);
  const ClientId client = session.start.client;
  const auto by_file = recalls_by_file_.find(recall.file);
  by_file->second.erase({client, done.recall});
  if (by_file->second.empty()) recalls_by_file_.erase(by_file);

  if (const auto orphan = orphans_.find(recall.file); orphan != orphans_.end()) {
    // Only the answer to the last recall is sure to include every open.
    if (done.holds_open) {
      orphan->second.insert(client);
    } else if (recall.opened_since) {
      AskHolder(session, recall.file);
    } else if (!IsRecalledFrom(client, recall.file)) {
      orphan->second.erase(client);
    }
    orphan_checks_.insert(recall.file);
  } else if (Inode* inode = Find(recall.file); inode && done.holds_open) {
    // The client must learn when the file loses its last name.
    interests_.Add(session, recall.file, *inode);
  }
  NoteHolder(recall.file, client, done.holds_open);
  if (done.writes && Find(recall.file)) NoteWriter(session, recall.file);
  if (Freeze* freeze = FreezeOf(recall.file); freeze && freeze->holder != client)
    freeze->pinned = freeze->pinned || done.pinned;
  if (copy_.leftovers.contains(recall.file)) copy_.leftover_checks.insert(recall.file);
  const auto delegation = delegations_.find(recall.file);
  if (delegation != delegations_.end() && delegation->second.holder == client &&
      delegation->second.recalled)
    EndDelegation(recall.file);
  for (const Waiter& waiter : recall.waiters) FinishPending(waiter);
}

// ---- delegations

bool ManagerCore::State::HoldsDelegation(ClientId client, FileId directory) const {
  const auto found = delegations_.find(directory);
  return found != delegations_.end() && found->second.holder == client;
}

bool ManagerCore::State::MayDelegate(const Session& session, FileId directory) const {
  const auto found = delegations_.find(directory);
  if (found != delegations_.end())
    return found->second.holder == session.start.client && !found->second.recalled;
  if (session.delegations.size() >= kDelegationsPerSessionMax || orphans_.contains(directory))
    return false;
  const auto contended = contended_.find(directory);
  if (contended != contended_.end() && contended->second > now_) return false;
  const auto outstanding = recalls_by_file_.find(directory);
  if (outstanding != recalls_by_file_.end()) return false;
  if (!rules_.empty() && rules_.MaySettleIn(PathOf(directory))) return false;
  return interests_.Of(directory, *Find(directory), session.start.client).empty();
}

void ManagerCore::State::Delegate(Session& session, FileId directory) {
  delegations_.try_emplace(directory, Delegation{session.start.client});
  session.delegations.insert(directory);
}

// Requests that waited for the directory run next, in order of arrival.
void ManagerCore::State::EndDelegation(FileId directory) {
  const auto found = delegations_.find(directory);
  if (found == delegations_.end()) return;
  if (Session* holder = FindSession(found->second.holder)) holder->delegations.erase(directory);
  delegations_.erase(found);
  if (const auto due = due_delegated_.find(directory); due != due_delegated_.end()) {
    due_checks_.insert(due->second.begin(), due->second.end());
    due_delegated_.erase(due);
  }
  const auto queue = parked_.find(directory);
  if (queue == parked_.end()) return;
  // The directory must not be delegated again before these requests, and what they wait for, are
  // done.
  NoteContended(directory);
  ready_.insert(ready_.end(), queue->second.begin(), queue->second.end());
  parked_.erase(queue);
}

void ManagerCore::State::NoteContended(FileId directory) {
  if (contended_.size() >= kContendedMax) contended_.clear();
  contended_[directory] = now_ + kContendedFor;
  Schedule(now_ + kContendedFor);
}

void ManagerCore::State::RecallDelegation(FileId directory) {
  Delegation& delegation = delegations_.at(directory);
  NoteContended(directory);
  if (!delegation.wanted_since) delegation.wanted_since = now_;
  if (std::exchange(delegation.recalled, true)) return;
  Session& holder = *FindSession(delegation.holder);
  if (Inode* inode = Find(directory)) interests_.Drop(holder, directory, *inode);
  SendRecall(holder, directory, RecallKind::kEntries);
}

}  // namespace mosa::manager
