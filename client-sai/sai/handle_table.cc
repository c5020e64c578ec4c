#include "client-sai/sai/handle_table.h"

#include <algorithm>
#include <utility>

namespace mosa::sai {

void HandleTable::AddFile(OpenFilePtr file) {
  const MutexLock lock(mutex_);
  const uint64_t id = file->id.value;
  files_[id] = std::move(file);
}

OpenFilePtr HandleTable::FindFile(HandleId id) const {
  const MutexLock lock(mutex_);
  const auto it = files_.find(id.value);
  return it == files_.end() ? nullptr : it->second;
}

OpenFilePtr HandleTable::TakeFile(HandleId id) {
  const MutexLock lock(mutex_);
  const auto it = files_.find(id.value);
  if (it == files_.end()) return nullptr;
  OpenFilePtr file = std::move(it->second);
  files_.erase(it);
  return file;
}

std::vector<InodePtr> HandleTable::Written() const {
  std::vector<InodePtr> written;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, file] : files_)
      if (file->write) written.push_back(file->inode);
  }
  std::sort(written.begin(), written.end());
  written.erase(std::unique(written.begin(), written.end()), written.end());
  return written;
}

void HandleTable::SetReader(HandleId id, std::string task) {
  const MutexLock lock(mutex_);
  if (const auto it = files_.find(id.value); it != files_.end())
    it->second->reader = std::move(task);
}

bool HandleTable::HasOtherReader(const OpenFile& file) const {
  const MutexLock lock(mutex_);
  return std::any_of(files_.begin(), files_.end(), [&](const auto& entry) {
    const OpenFile& other = *entry.second;
    return &other != &file && other.inode == file.inode && other.reader == file.reader;
  });
}

void HandleTable::AddListing(ListingPtr listing) {
  const MutexLock lock(mutex_);
  const uint64_t id = listing->id.value;
  listings_[id] = std::move(listing);
}

ListingPtr HandleTable::FindListing(HandleId id) const {
  const MutexLock lock(mutex_);
  const auto it = listings_.find(id.value);
  return it == listings_.end() ? nullptr : it->second;
}

void HandleTable::RemoveListing(HandleId id) {
  const MutexLock lock(mutex_);
  listings_.erase(id.value);
}

}  // namespace mosa::sai
