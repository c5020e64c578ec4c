#include "manager/core/recalls.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace mosa::manager {

uint32_t Recalls::TakeSlot(ClientId client) {
  return interests_.TakeSlot(client, [this](uint64_t bits) {
    for (auto& [file, inode] : files_.inodes) inode->interest &= ~bits;
  });
}

RecallId Recalls::Send(Session& session, FileId file, RecallKind kind) {
  // Recall ids are unique even across restarts of the manager, so a repeated answer is never taken
  // for the answer to another recall.
  last_ = std::max(last_ + 1, static_cast<uint64_t>(step_.now.ns));
  const RecallId id(last_);
  session.recalls.emplace(id, Recall{file, kind, step_.now, step_.now, {}});
  by_file_[file].emplace(session.start.client, id);
  step_.effects.to_clients.push_back({session.start.client, Push(RecallPush{id, file, kind})});
  step_.Schedule(step_.now + kRecallPatience);
  return id;
}

// Recalls access from all clients that have the file open: they may store, or their kernel may have
// the object open. A client that has not confirmed an earlier recall has no recorded interest any
// more; it is asked again, because its confirmation may predate what it was told since.
size_t Recalls::RecallAccess(ClientId actor, std::optional<Waiter> waiter) {
  if (step_.access_changed.empty()) return 0;
  size_t held_back = 0;
  for (const auto& [file, waits] : std::exchange(step_.access_changed, {})) {
    const Inode* inode = files_.Find(file);
    if (!inode) continue;
    const std::vector<ClientId> interested = interests_.Of(file, *inode, actor);
    std::set<ClientId> clients(interested.begin(), interested.end());
    if (const auto opens = sessions_.write_opens.find(file); opens != sessions_.write_opens.end())
      clients.insert(opens->second.begin(), opens->second.end());
    if (const auto orphan = files_.orphans.find(file); orphan != files_.orphans.end())
      clients.insert(orphan->second.begin(), orphan->second.end());
    if (const auto recalls = by_file_.find(file); recalls != by_file_.end())
      for (const auto& [client, recall] : recalls->second) clients.insert(client);
    clients.erase(actor);
    for (const ClientId client : clients) {
      Session* session = sessions_.Find(client);
      if (!session) continue;
      const RecallId recall = Send(*session, file, RecallKind::kAccess);
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
size_t Recalls::AwaitSameNames(ClientId client, const RequestEnvelope& envelope,
                               const std::vector<Reply>& replies) {
  if (by_file_.empty()) return 0;
  const Waiter waiter{client, envelope.id};
  size_t held_back = 0;
  const auto await = [&](FileId directory) { held_back += AwaitRecalls(directory, waiter); };
  for (size_t i = 0; i < std::min(replies.size(), envelope.requests.size()); ++i) {
    const auto* failure = std::get_if<Failure>(&replies[i]);
    if (failure && failure->reason == ErrorReason::kNoEntry) continue;
    const auto* entry = std::get_if<EntryReply>(&replies[i]);
    if (entry != nullptr && entry->entry.file == FileId{}) continue;
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
size_t Recalls::AwaitRecalls(FileId file, const Waiter& waiter) {
  const auto outstanding = by_file_.find(file);
  if (outstanding == by_file_.end()) return 0;
  size_t held_back = 0;
  for (const auto& [client, recall] : outstanding->second) {
    if (client == waiter.client) continue;
    Recall& earlier = sessions_.Find(client)->recalls.at(recall);
    if (earlier.kind == RecallKind::kAccess || earlier.only_names) continue;
    if (!earlier.waiters.empty() && earlier.waiters.back() == waiter) continue;
    earlier.waiters.push_back(waiter);
    ++held_back;
  }
  return held_back;
}

size_t Recalls::RecallTouched(ClientId actor, std::optional<Waiter> waiter) {
  size_t held_back = RecallAccess(actor, waiter);
  if (step_.touched.empty()) return held_back;
  for (const FileId file : std::exchange(step_.touched, {})) {
    Inode* inode = files_.Find(file);
    if (!inode) continue;
    const RecallKind kind =
        inode->type == FileType::kDirectory ? RecallKind::kEntries : RecallKind::kFile;
    for (const ClientId client : interests_.Of(file, *inode, actor)) {
      Session& session = *sessions_.Find(client);
      interests_.Drop(session, file, *inode);
      Send(session, file, kind);
    }
    // A client that has not confirmed an earlier recall may still show the state before it.
    if (waiter) held_back += AwaitRecalls(file, *waiter);
  }
  return held_back;
}

bool Recalls::IsAwaited(FileId file) const {
  const auto outstanding = by_file_.find(file);
  return outstanding != by_file_.end() &&
         std::ranges::any_of(outstanding->second, [this](const auto& recall) {
           const Recall& sent = sessions_.Find(recall.first)->recalls.at(recall.second);
           return sent.kind != RecallKind::kAccess && !sent.only_names;
         });
}

std::optional<RecallId> Recalls::EntriesRecallOf(const Session& session, FileId directory) {
  for (const auto& [id, recall] : session.recalls)
    if (recall.file == directory && recall.kind == RecallKind::kEntries) return id;
  return std::nullopt;
}

void Recalls::NoteDone(ClientId client, RecallId id, FileId file) {
  const auto found = by_file_.find(file);
  found->second.erase({client, id});
  if (found->second.empty()) by_file_.erase(found);
}

bool Recalls::IsRecalledFromOthers(ClientId client, FileId file) const {
  const auto found = by_file_.find(file);
  return found != by_file_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [&](const auto& recall) { return recall.first != client; });
}

bool Recalls::IsRecalledFrom(ClientId client, FileId file) const {
  const auto found = by_file_.find(file);
  if (found == by_file_.end()) return false;
  const auto first = found->second.lower_bound({client, RecallId(0)});
  return first != found->second.end() && first->first == client;
}

// Asks one question at a time. Later opens make an answer in transit outdated, so the client is
// then asked again.
void Recalls::AskHolder(Session& session, FileId file) {
  for (auto& [id, recall] : session.recalls) {
    if (recall.file != file || !recall.asks_holder) continue;
    recall.opened_since = true;
    return;
  }
  session.recalls.at(Send(session, file, RecallKind::kFile)).asks_holder = true;
}

}  // namespace mosa::manager
