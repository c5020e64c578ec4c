#include "manager/core/shared_directories.h"

#include <algorithm>

namespace mosa::manager {
namespace {

constexpr size_t kMakersMax = 65536;
constexpr size_t kNamesPerClientMax = 4096;

// Sessions take turns if one makes a name so soon after another, and a directory stays shared for
// so long after the last turn.
constexpr Duration kTurnWithin = Seconds(2);

}  // namespace

void SharedDirectories::NoteMaker(FileId directory, ClientId client, uint32_t turns, Time now) {
  if (makers_.size() >= kMakersMax && !makers_.contains(directory)) makers_.clear();
  Makers& makers = makers_.try_emplace(directory, Makers{client, now}).first->second;
  if (now >= makers.at + kTurnWithin && now >= makers.shared_until) makers.turns = 0;
  if (makers.last != client && ++makers.turns >= turns) makers.shared_until = now + kTurnWithin;
  makers.last = client;
  makers.at = now;
}

bool SharedDirectories::IsShared(FileId directory, Time now) const {
  const auto found = makers_.find(directory);
  return found != makers_.end() && now < found->second.shared_until;
}

bool SharedDirectories::IsPaused(FileId directory, Time now) const {
  const auto found = paused_.find(directory);
  return found != paused_.end() && now < found->second;
}

void SharedDirectories::EndPauses(Time now) {
  std::erase_if(paused_, [now](const auto& paused) { return paused.second <= now; });
}

bool SharedDirectories::Reserve(FileId directory, const std::string& name, ClientId client,
                                Time now) {
  size_t& count = counts_[client];
  if (count >= kNamesPerClientMax) return false;
  Names& names = reserved_[directory];
  if (!names.by_name.insert_or_assign(name, Reserved{client, now}).second) return true;
  ++count;
  ++names.counts[client];
  return true;
}

void SharedDirectories::EndName(FileId directory, std::string_view name) {
  const auto names = reserved_.find(directory);
  if (names == reserved_.end()) return;
  auto& [by_name, counts] = names->second;
  const auto found = by_name.find(name);
  if (found == by_name.end()) return;
  const ClientId client = found->second.client;
  if (--counts.at(client) == 0) counts.erase(client);
  if (--counts_.at(client) == 0) counts_.erase(client);
  by_name.erase(found);
  if (by_name.empty()) reserved_.erase(names);
}

void SharedDirectories::EndNames(FileId directory, ClientId client) {
  const auto names = reserved_.find(directory);
  if (names == reserved_.end() || !names->second.counts.contains(client)) return;
  auto& [by_name, counts] = names->second;
  const auto total = counts_.find(client);
  total->second -= counts.at(client);
  if (total->second == 0) counts_.erase(total);
  counts.erase(client);
  std::erase_if(by_name, [client](const auto& name) { return name.second.client == client; });
  if (by_name.empty()) reserved_.erase(names);
}

std::set<FileId> SharedDirectories::EndNamesOf(ClientId client) {
  std::set<FileId> directories;
  if (!counts_.contains(client)) return directories;
  for (const auto& [directory, names] : reserved_)
    if (names.counts.contains(client)) directories.insert(directory);
  for (const FileId directory : directories) EndNames(directory, client);
  return directories;
}

void SharedDirectories::Forget(FileId directory) {
  makers_.erase(directory);
  paused_.erase(directory);
  for (const ClientId client : HoldersIn(directory)) EndNames(directory, client);
}

std::optional<ClientId> SharedDirectories::HolderOf(FileId directory, std::string_view name) const {
  const auto names = reserved_.find(directory);
  if (names == reserved_.end()) return std::nullopt;
  const auto found = names->second.by_name.find(name);
  if (found == names->second.by_name.end()) return std::nullopt;
  return found->second.client;
}

bool SharedDirectories::HasNames(FileId directory, ClientId except) const {
  const auto names = reserved_.find(directory);
  if (names == reserved_.end()) return false;
  return names->second.counts.size() > (names->second.counts.contains(except) ? 1u : 0u);
}

std::vector<ClientId> SharedDirectories::HoldersIn(FileId directory) const {
  std::vector<ClientId> holders;
  if (const auto names = reserved_.find(directory); names != reserved_.end())
    for (const auto& [client, count] : names->second.counts) holders.push_back(client);
  return holders;
}

std::set<std::pair<FileId, ClientId>> SharedDirectories::HoldersSince(Time then) const {
  std::set<std::pair<FileId, ClientId>> holders;
  for (const auto& [directory, names] : reserved_)
    for (const auto& [name, reserved] : names.by_name)
      if (reserved.since <= then) holders.emplace(directory, reserved.client);
  return holders;
}

std::optional<Time> SharedDirectories::OldestAfter(Time then) const {
  std::optional<Time> oldest;
  for (const auto& [directory, names] : reserved_)
    for (const auto& [name, reserved] : names.by_name)
      if (reserved.since > then) oldest = std::min(oldest.value_or(reserved.since), reserved.since);
  return oldest;
}

std::set<FileId> SharedDirectories::DirectoriesWithNames() const {
  std::set<FileId> directories;
  for (const auto& [directory, names] : reserved_) directories.insert(directory);
  return directories;
}

}  // namespace mosa::manager
