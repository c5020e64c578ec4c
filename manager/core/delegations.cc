#include "manager/core/delegations.h"

#include <optional>
#include <utility>

namespace mosa::manager {
namespace {

constexpr size_t kDelegationsPerSessionMax = 4096;

constexpr size_t kContendedMax = 65536;

// How long a directory wanted by two sessions is not delegated again.
constexpr Duration kContendedFor = Seconds(2);

// Clients use a reserved name at once, or not at all. Until they tell of a file that they have made
// there, the directory's attributes do not show it.
constexpr Duration kReservedFor = Milliseconds(500);

}  // namespace

// A withheld reply may promise a delegation that has been recalled since.
void Delegations::Correct(ClientId client, Pending& pending) const {
  for (const auto& [index, directory] : pending.promised) {
    const auto found = by_directory_.find(directory);
    const bool stands =
        found != by_directory_.end() && !found->second.recalled && found->second.holder == client;
    if (!stands) std::get<MakeReply>(pending.replies[index]).delegated = false;
  }
}

bool Delegations::IsHeldElsewhere(const Session& session, FileId directory) const {
  const auto found = by_directory_.find(directory);
  if (found != by_directory_.end() && found->second.holder != session.start.client) return true;
  return shared_.HasNames(directory, session.start.client);
}

bool Delegations::RecallDelegationFromOthers(const Session& session, FileId directory, Need need) {
  const auto found = by_directory_.find(directory);
  if (found == by_directory_.end() || found->second.holder == session.start.client) return false;
  RecallDelegation(directory, found->second, need);
  return true;
}

bool Delegations::RecallNameFromOthers(const Session& session, FileId directory,
                                       std::string_view name, Need need) {
  if (RecallDelegationFromOthers(session, directory, need)) return true;
  const std::optional<ClientId> holder = shared_.HolderOf(directory, name);
  if (!holder || *holder == session.start.client) return false;
  RecallNames(directory, *holder);
  return true;
}

bool Delegations::RecallFromOthers(const Session& session, FileId directory, Need need) {
  bool recalled = RecallDelegationFromOthers(session, directory, need);
  for (const ClientId holder : shared_.HoldersIn(directory)) {
    if (holder == session.start.client) continue;
    RecallNames(directory, holder);
    recalled = true;
  }
  return recalled;
}

bool Delegations::IsHeld(FileId directory) const {
  return by_directory_.contains(directory) || shared_.HasNames(directory);
}

std::set<FileId> Delegations::Held() const {
  std::set<FileId> held = shared_.DirectoriesWithNames();
  for (const auto& [directory, delegation] : by_directory_) held.insert(directory);
  return held;
}

void Delegations::RecallRuled(FileId within) {
  if (rules_.empty()) return;
  const Directory* top = files_.FindDirectory(within);
  const bool alone = top && top->subdirectories == 0;
  for (const FileId directory : Held()) {
    const bool concerned = directory == within || (!alone && files_.IsWithin(directory, within));
    if (concerned && rules_.MaySettleIn(files_.PathOf(directory))) Recall(directory);
  }
}

bool Delegations::RecallUnder(uint64_t rule) {
  bool none = true;
  for (const FileId directory : Held()) {
    if (!rules_.MaySettleIn(rule, files_.PathOf(directory))) continue;
    Recall(directory);
    none = false;
  }
  return none;
}

const Delegation* Delegations::Find(FileId directory) const {
  const auto found = by_directory_.find(directory);
  return found == by_directory_.end() ? nullptr : &found->second;
}

bool Delegations::Holds(ClientId client, FileId directory) const {
  const auto found = by_directory_.find(directory);
  return found != by_directory_.end() && found->second.holder == client;
}

bool Delegations::MayDelegate(const Session& session, FileId directory) const {
  const auto found = by_directory_.find(directory);
  if (found != by_directory_.end())
    return found->second.holder == session.start.client && !found->second.recalled;
  if (session.delegations.size() >= kDelegationsPerSessionMax || files_.orphans.contains(directory))
    return false;
  const auto contended = contended_.find(directory);
  if (contended != contended_.end() && contended->second > step_.now) return false;
  if (recalls_.IsRecalled(directory) || IsShared(directory) || IsHeldElsewhere(session, directory))
    return false;
  if (!rules_.empty() && rules_.MaySettleIn(files_.PathOf(directory))) return false;
  return interests_.Of(directory, *files_.Find(directory), session.start.client).empty();
}

void Delegations::Delegate(Session& session, FileId directory) {
  by_directory_.try_emplace(directory, Delegation{session.start.client});
  session.delegations.insert(directory);
}

// Requests that waited for the directory run next, in order of arrival.
void Delegations::End(FileId directory) {
  const auto found = by_directory_.find(directory);
  if (found == by_directory_.end()) return;
  if (Session* holder = sessions_.Find(found->second.holder)) holder->delegations.erase(directory);
  by_directory_.erase(found);
  Resume(directory);
}

void Delegations::Resume(FileId directory) {
  if (const auto due = due_delegated_.find(directory); due != due_delegated_.end()) {
    for (const FileId file : due->second) lifetimes_.RecheckDue(file);
    due_delegated_.erase(due);
  }
  const auto queue = queues_.parked.find(directory);
  if (queue == queues_.parked.end()) return;
  // The directory must not be delegated again before these requests, and what they wait for, are
  // done.
  NoteContended(directory);
  queues_.ready.insert(queues_.ready.end(), queue->second.begin(), queue->second.end());
  queues_.parked.erase(queue);
}

void Delegations::NoteMaker(const Session& session, FileId directory, uint32_t turns) {
  if (!Holds(session.start.client, directory))
    shared_.NoteMaker(directory, session.start.client, turns, step_.now);
}

// Nobody else may keep that the name is absent, nor take the directory for empty. To a client that
// has an entries recall to answer, the reply could be older than the recall.
bool Delegations::MayReserve(const Session& session, FileId directory) const {
  const ClientId client = session.start.client;
  return IsShared(directory) && !by_directory_.contains(directory) &&
         !shared_.IsPaused(directory, step_.now) && !files_.orphans.contains(directory) &&
         !recalls_.IsRecalledFrom(client, directory) && !recalls_.IsAwaited(directory) &&
         (rules_.empty() || !rules_.MaySettleIn(files_.PathOf(directory))) &&
         interests_.Of(directory, *files_.Find(directory), client).empty();
}

bool Delegations::Reserve(Session& session, FileId directory, const std::string& name) {
  if (!MayReserve(session, directory) ||
      !shared_.Reserve(directory, name, session.start.client, step_.now))
    return false;
  step_.Schedule(step_.now + kReservedFor);
  return true;
}

bool Delegations::RestoreName(const Session& session, FileId directory, const std::string& name,
                              std::optional<Time> wanted_since) {
  const ClientId client = session.start.client;
  if (wanted_since && *wanted_since + kLetGoMax <= step_.now) return false;
  if (by_directory_.contains(directory) ||
      shared_.HolderOf(directory, name).value_or(client) != client ||
      !shared_.Reserve(directory, name, client, step_.now))
    return false;
  step_.Schedule(step_.now + kReservedFor);
  if (wanted_since) {
    Session& holder = *sessions_.Find(client);
    holder.recalls.at(RecallNames(directory, client)).since = *wanted_since;
  }
  return true;
}

// Its last name may have ended before, when the file was made.
void Delegations::EndNames(FileId directory, ClientId client) {
  shared_.EndNames(directory, client);
  Resume(directory);
}

void Delegations::EndAllNames(ClientId client) {
  for (const FileId directory : shared_.EndNamesOf(client)) Resume(directory);
}

void Delegations::Forget(FileId directory) {
  contended_.erase(directory);
  shared_.Forget(directory);
}

void Delegations::NoteContended(FileId directory) {
  if (contended_.size() >= kContendedMax) contended_.clear();
  contended_[directory] = step_.now + kContendedFor;
  step_.Schedule(step_.now + kContendedFor);
}

void Delegations::TakeRecallBack(FileId directory, ClientId holder) {
  const auto found = by_directory_.find(directory);
  if (found != by_directory_.end() && found->second.holder == holder)
    found->second.recalled = false;
}

void Delegations::RecallAll() {
  for (const FileId directory : Held()) Recall(directory);
}

void Delegations::RecallForDue(FileId directory, FileId file) {
  Recall(directory);
  due_delegated_[directory].insert(file);
}

void Delegations::Tick() {
  std::erase_if(contended_, [this](const auto& entry) { return entry.second <= step_.now; });
  for (const auto& [directory, until] : contended_) step_.Schedule(until);
  shared_.EndPauses(step_.now);
  const Time overdue = step_.now - kReservedFor;
  for (const auto& [directory, client] : shared_.HoldersSince(overdue))
    RecallNames(directory, client);
  if (const auto oldest = shared_.OldestAfter(overdue)) step_.Schedule(*oldest + kReservedFor);
}

void Delegations::Postpone(Duration time) {
  for (auto& [directory, delegation] : by_directory_)
    if (delegation.wanted_since) delegation.wanted_since = *delegation.wanted_since + time;
}

void Delegations::Recall(FileId directory) {
  const auto found = by_directory_.find(directory);
  if (found != by_directory_.end()) RecallDelegation(directory, found->second, Need::kChange);
  for (const ClientId holder : shared_.HoldersIn(directory)) RecallNames(directory, holder);
}

// While nobody changes the directory, what the holder's kernel knows of it stays true; and a kernel
// that must forget names forgets pages of files with them. Whoever changes the directory later
// recalls its entries from all that have interest.
void Delegations::RecallDelegation(FileId directory, Delegation& delegation, Need need) {
  NoteContended(directory);
  if (!delegation.wanted_since) delegation.wanted_since = step_.now;
  if (std::exchange(delegation.recalled, true)) return;
  Session& holder = *sessions_.Find(delegation.holder);
  Inode& inode = *files_.Find(directory);
  if (need == Need::kLook) {
    interests_.Add(holder, directory, inode);
    recalls_.Send(holder, directory, RecallKind::kDelegation);
  } else {
    interests_.Drop(holder, directory, inode);
    recalls_.Send(holder, directory, RecallKind::kEntries);
  }
}

// No name is reserved there for the client while it has an entries recall to answer. If it has no
// interest, it cannot deny what others make there, and they need not wait for it.
RecallId Delegations::RecallNames(FileId directory, ClientId client) {
  Session& holder = *sessions_.Find(client);
  if (const auto recall = recalls_.EntriesRecallOf(holder, directory)) return *recall;
  Inode& inode = *files_.Find(directory);
  const bool interested = interests_.Has(holder, directory, inode);
  interests_.Drop(holder, directory, inode);
  const RecallId recall = recalls_.Send(holder, directory, RecallKind::kEntries);
  holder.recalls.at(recall).only_names = !interested;
  return recall;
}

void Delegations::RecallToAnswer(FileId directory) {
  Recall(directory);
  shared_.Pause(directory, step_.now + kContendedFor);
  step_.Schedule(step_.now + kContendedFor);
}

}  // namespace mosa::manager
