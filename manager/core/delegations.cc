#include "manager/core/delegations.h"

#include <utility>

namespace mosa::manager {
namespace {

constexpr size_t kDelegationsPerSessionMax = 4096;

constexpr size_t kContendedMax = 65536;

// How long a directory wanted by two sessions is not delegated again.
constexpr Duration kContendedFor = Seconds(2);

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

bool Delegations::IsDelegatedElsewhere(const Session& session, FileId directory) const {
  const auto found = by_directory_.find(directory);
  return found != by_directory_.end() && found->second.holder != session.start.client;
}

void Delegations::RecallRuled(FileId within) {
  if (rules_.empty()) return;
  const Directory* top = files_.FindDirectory(within);
  const bool alone = top && top->subdirectories == 0;
  std::vector<FileId> ruled;
  for (const auto& [directory, delegation] : by_directory_) {
    const bool concerned = directory == within || (!alone && files_.IsWithin(directory, within));
    if (concerned && rules_.MaySettleIn(files_.PathOf(directory))) ruled.push_back(directory);
  }
  for (const FileId directory : ruled) Recall(directory);
}

bool Delegations::RecallUnder(uint64_t rule) {
  std::vector<FileId> ruled;
  for (const auto& [directory, delegation] : by_directory_) {
    if (rules_.MaySettleIn(rule, files_.PathOf(directory))) ruled.push_back(directory);
  }
  for (const FileId directory : ruled) Recall(directory);
  return ruled.empty();
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
  if (recalls_.IsRecalled(directory)) return false;
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
  std::vector<FileId> directories;
  for (const auto& [directory, delegation] : by_directory_) directories.push_back(directory);
  for (const FileId directory : directories) Recall(directory);
}

void Delegations::RecallForDue(FileId directory, FileId file) {
  Recall(directory);
  due_delegated_[directory].insert(file);
}

void Delegations::Tick() {
  std::erase_if(contended_, [this](const auto& entry) { return entry.second <= step_.now; });
  for (const auto& [directory, until] : contended_) step_.Schedule(until);
}

void Delegations::Postpone(Duration time) {
  for (auto& [directory, delegation] : by_directory_)
    if (delegation.wanted_since) delegation.wanted_since = *delegation.wanted_since + time;
}

void Delegations::Recall(FileId directory) {
  Delegation& delegation = by_directory_.at(directory);
  NoteContended(directory);
  if (!delegation.wanted_since) delegation.wanted_since = step_.now;
  if (std::exchange(delegation.recalled, true)) return;
  Session& holder = *sessions_.Find(delegation.holder);
  if (Inode* inode = files_.Find(directory)) interests_.Drop(holder, directory, *inode);
  recalls_.Send(holder, directory, RecallKind::kEntries);
}

}  // namespace mosa::manager
