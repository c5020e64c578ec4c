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

bool SharedDirectories::Reserve(FileId directory, const std::string& name, ClientId client,
                                Time now) {
  size_t& count = counts_[client];
  if (count >= kNamesPerClientMax) return false;
  if (reserved_[directory].insert_or_assign(name, Reserved{client, now}).second) ++count;
  return true;
}

void SharedDirectories::EndOne(ClientId client) {
  const auto count = counts_.find(client);
  if (--count->second == 0) counts_.erase(count);
}

void SharedDirectories::EndName(FileId directory, std::string_view name) {
  const auto names = reserved_.find(directory);
  if (names == reserved_.end()) return;
  const auto found = names->second.find(name);
  if (found == names->second.end()) return;
  EndOne(found->second.client);
  names->second.erase(found);
  if (names->second.empty()) reserved_.erase(names);
}

bool SharedDirectories::EndNames(FileId directory, ClientId client) {
  const auto names = reserved_.find(directory);
  if (names == reserved_.end()) return false;
  const size_t ended = std::erase_if(
      names->second, [client](const auto& name) { return name.second.client == client; });
  for (size_t i = 0; i < ended; ++i) EndOne(client);
  if (names->second.empty()) reserved_.erase(names);
  return ended > 0;
}

std::set<FileId> SharedDirectories::EndNamesOf(ClientId client) {
  if (!counts_.contains(client)) return {};
  std::set<FileId> directories = DirectoriesWithNames();
  std::erase_if(directories, [&](FileId directory) { return !EndNames(directory, client); });
  return directories;
}

void SharedDirectories::Forget(FileId directory) {
  makers_.erase(directory);
  for (const ClientId client : HoldersIn(directory)) EndNames(directory, client);
}

std::optional<ClientId> SharedDirectories::HolderOf(FileId directory, std::string_view name) const {
  const auto names = reserved_.find(directory);
  if (names == reserved_.end()) return std::nullopt;
  const auto found = names->second.find(name);
  if (found == names->second.end()) return std::nullopt;
  return found->second.client;
}

std::set<ClientId> SharedDirectories::HoldersIn(FileId directory) const {
  std::set<ClientId> holders;
  if (const auto names = reserved_.find(directory); names != reserved_.end())
    for (const auto& [name, reserved] : names->second) holders.insert(reserved.client);
  return holders;
}

std::set<std::pair<FileId, ClientId>> SharedDirectories::HoldersSince(Time before) const {
  std::set<std::pair<FileId, ClientId>> holders;
  for (const auto& [directory, names] : reserved_)
    for (const auto& [name, reserved] : names)
      if (reserved.since <= before) holders.emplace(directory, reserved.client);
  return holders;
}

std::set<FileId> SharedDirectories::DirectoriesWithNames() const {
  std::set<FileId> directories;
  for (const auto& [directory, names] : reserved_) directories.insert(directory);
  return directories;
}

}  // namespace mosa::manager
