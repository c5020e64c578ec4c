#include "manager/core/writer_fences.h"

namespace mosa::manager {

void WriterFences::NoteAbsent(FileId file, ClientId client) { absent_[file].insert(client); }

bool WriterFences::TakeBack(FileId file, ClientId client) {
  const auto found = absent_.find(file);
  if (found == absent_.end() || found->second.erase(client) == 0) return false;
  if (found->second.empty()) absent_.erase(found);
  return true;
}

std::optional<FileId> WriterFences::Surplus() const {
  if (absent_.size() <= kFilesMax) return std::nullopt;
  return absent_.begin()->first;
}

void WriterFences::Fence(FileId file, const std::set<ClientId>& live, uint64_t kept_since_before) {
  absent_.erase(file);
  if (live.empty()) {
    kept_.erase(file);
    return;
  }
  std::map<ClientId, uint64_t>& kept = kept_[file];
  std::erase_if(kept, [&](const auto& entry) { return !live.contains(entry.first); });
  for (const ClientId client : live) kept.try_emplace(client, kept_since_before);
}

uint64_t WriterFences::KeptSince(FileId file, ClientId client, uint64_t kept_since) const {
  const auto found = kept_.find(file);
  if (found == kept_.end()) return kept_since;
  const auto own = found->second.find(client);
  return own == found->second.end() ? kept_since : own->second;
}

void WriterFences::NoteClosed(FileId file, ClientId client) {
  const auto found = kept_.find(file);
  if (found == kept_.end()) return;
  found->second.erase(client);
  if (found->second.empty()) kept_.erase(found);
}

void WriterFences::ForgetClient(ClientId client) {
  for (auto entry = kept_.begin(); entry != kept_.end();) {
    entry->second.erase(client);
    entry = entry->second.empty() ? kept_.erase(entry) : std::next(entry);
  }
}

void WriterFences::ForgetFile(FileId file) {
  absent_.erase(file);
  kept_.erase(file);
}

}  // namespace mosa::manager
