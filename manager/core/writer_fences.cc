#include "manager/core/writer_fences.h"

#include <iterator>

namespace mosa::manager {

void WriterFences::NoteAbsent(FileId file, ClientId client) {
  const auto [entry, is_new] = absent_.try_emplace(file);
  entry->second.writers.insert(client);
  if (!is_new) return;
  entry->second.order = ++last_order_;
  by_age_.emplace(last_order_, file);
}

bool WriterFences::TakeBack(FileId file, ClientId client) {
  const auto found = absent_.find(file);
  if (found == absent_.end() || found->second.writers.erase(client) == 0) return false;
  if (found->second.writers.empty()) EraseAbsent(found);
  return true;
}

std::vector<FileId> WriterFences::FilesWithAbsent() const {
  std::vector<FileId> files;
  files.reserve(absent_.size());
  for (const auto& [file, absent] : absent_) files.push_back(file);
  return files;
}

std::optional<FileId> WriterFences::Surplus() const {
  if (absent_.size() <= kFilesMax) return std::nullopt;
  return by_age_.begin()->second;
}

void WriterFences::Fence(FileId file, const std::set<ClientId>& live, uint64_t kept_since_before) {
  if (const auto found = absent_.find(file); found != absent_.end()) EraseAbsent(found);
  if (live.empty()) {
    if (kept_.erase(file) > 0) changed_.insert(file);
    return;
  }
  Bounds& kept = kept_[file];
  std::erase_if(kept, [&](const auto& entry) { return !live.contains(entry.first); });
  for (const ClientId client : live) kept.try_emplace(client, kept_since_before);
  changed_.insert(file);
}

uint64_t WriterFences::KeptSince(FileId file, ClientId client, uint64_t kept_since) const {
  const auto found = kept_.find(file);
  if (found == kept_.end()) return kept_since;
  const auto own = found->second.find(client);
  return own == found->second.end() ? kept_since : own->second;
}

void WriterFences::NoteClosed(FileId file, ClientId client) {
  const auto found = kept_.find(file);
  if (found == kept_.end() || found->second.erase(client) == 0) return;
  changed_.insert(file);
  if (found->second.empty()) kept_.erase(found);
}

void WriterFences::ForgetClient(ClientId client) {
  for (auto entry = kept_.begin(); entry != kept_.end();) {
    if (entry->second.erase(client) > 0) changed_.insert(entry->first);
    entry = entry->second.empty() ? kept_.erase(entry) : std::next(entry);
  }
}

void WriterFences::ForgetAbsent(ClientId client) {
  for (auto entry = absent_.begin(); entry != absent_.end();) {
    entry->second.writers.erase(client);
    entry = entry->second.writers.empty() ? EraseAbsent(entry) : std::next(entry);
  }
}

void WriterFences::ForgetFile(FileId file) {
  if (const auto found = absent_.find(file); found != absent_.end()) EraseAbsent(found);
  if (kept_.erase(file) > 0) changed_.insert(file);
}

WriterFences::Bounds WriterFences::BoundsOf(FileId file) const {
  const auto found = kept_.find(file);
  return found == kept_.end() ? Bounds() : found->second;
}

WriterFences::AbsentFiles::iterator WriterFences::EraseAbsent(AbsentFiles::iterator entry) {
  by_age_.erase(entry->second.order);
  return absent_.erase(entry);
}

}  // namespace mosa::manager
