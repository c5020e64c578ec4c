#include "client-sai/sai/name_cache.h"

#include <cstdint>

namespace mosa::sai {

std::optional<FileId> NameCache::Find(Inode& directory, const std::string& name) {
  const MutexLock lock(directory.mutex);
  if (const auto it = directory.names.unsent.find(name); it != directory.names.unsent.end())
    return it->second;
  const uint64_t era = lease_.ValidEra();
  if (era == 0 || directory.names.era != era) return std::nullopt;
  if (const auto it = directory.names.entries.find(name); it != directory.names.entries.end())
    return it->second;
  if (directory.names.complete || directory.names.shared.IsFree(name)) return FileId{};
  return std::nullopt;
}

void NameCache::Reserve(Inode& directory, const std::string& name, uint32_t uid, Mark mark) {
  const MutexLock lock(directory.mutex);
  if (recalls_.HappenedForeign(mark.log, directory.file) || directory.names.unsent.contains(name))
    return;
  if (directory.names.era != mark.era) {
    Clear(directory);
    directory.names.era = mark.era;
  }
  directory.names.shared.Reserve(name, uid, mark.log);
}

bool NameCache::Store(Inode& directory, const std::string& name, FileId file, Mark mark, bool own) {
  const MutexLock lock(directory.mutex);
  Names& names = directory.names;
  const bool uncertain = own ? recalls_.HappenedForeign(mark.log, directory.file)
                             : recalls_.Happened(mark.log, directory.file);
  if (uncertain) {
    // The answer to a lookup is simply not cached. After an own change, cached names may be wrong.
    if (own) Forget(directory, name);
    return false;
  }
  if (names.era != mark.era) {
    Clear(directory);
    names.era = mark.era;
  }
  if (count_ >= names_max_ && !names.entries.contains(name)) {
    ClearEntries(directory);
    names.complete = false;
    return false;
  }
  Add(directory, name, file);
  return true;
}

void NameCache::Change(Inode& directory, Mark mark,
                       const std::vector<std::pair<std::string, FileId>>& changes,
                       const Attributes* attributes, bool shared) {
  // The change is noted first, so that an answer from before it cannot overwrite what is stored
  // now.
  if (attributes != nullptr) {
    attributes_.Store(directory, *attributes, mark, true);
  } else {
    const MutexLock lock(directory.mutex);
    recalls_.NoteOwn(directory.file);
    directory.known.Invalidate();
  }
  if (!shared) {
    for (const auto& [name, file] : changes) Store(directory, name, file, mark, true);
  }
  const Mark now = recalls_.Now();
  const MutexLock lock(directory.mutex);
  if (shared) directory.names.shared.Note(true);
  for (const auto& [name, file] : changes) {
    directory.names.shared.End(name, now.log);
    if (shared) Forget(directory, name);
  }
}

bool NameCache::MayMakeUnasked(Inode& directory) const {
  const MutexLock lock(directory.mutex);
  return directory.names.inline_bytes_max.value_or(0) > 0 && directory.known.received &&
         directory.names.hints_generation == hints_generation_;
}

void NameCache::Clear(Inode& directory) {
  ClearEntries(directory);
  directory.names.complete = false;
  directory.names.delegated = false;
  directory.names.era = 0;
  directory.names.shared.Clear();
}

// Frees the memory, which clear() would keep.
void NameCache::ClearEntries(Inode& directory) {
  count_ -= directory.names.entries.size();
  std::exchange(directory.names.entries, {});
}

void NameCache::Add(Inode& directory, const std::string& name, FileId file) {
  if (directory.names.entries.insert_or_assign(name, file).second) ++count_;
}

void NameCache::Forget(Inode& directory, const std::string& name) {
  if (directory.names.entries.erase(name) > 0) --count_;
  directory.names.complete = false;
}

std::optional<FileId> NameCache::FindSeen(Inode& directory, const std::string& name) {
  const Mark now = recalls_.Now();
  const MutexLock lock(directory.mutex);
  SharedNames& names = directory.names.shared;
  const SharedNames::Seen seen = names.LastSeen(name);
  if (!seen.log_mark || recalls_.HappenedForeign(*seen.log_mark, seen.file)) return std::nullopt;
  names.Saw(name, {seen.file, now.log}, now.log);
  return seen.file;
}

void NameCache::Saw(Inode& directory, const std::string& name, const Entry& entry, Mark mark) {
  const MutexLock lock(directory.mutex);
  // Nobody is told of changes of a shared directory.
  const auto log_mark = entry.attributes.shared ? std::nullopt : std::optional(mark.log);
  directory.names.shared.Saw(name, {entry.file, log_mark}, mark.log);
}

void NameCache::EndSeen(Inode& directory, const std::string& name) {
  const Mark now = recalls_.Now();
  const MutexLock lock(directory.mutex);
  directory.names.shared.End(name, now.log);
}

std::optional<FileId> NameCache::Guess(Inode& directory, const std::string& name) {
  if (const std::optional<FileId> known = Find(directory, name)) return known;
  const FileId seen = LastSeen(directory, name);
  return seen == FileId{} ? std::nullopt : std::optional(seen);
}

FileId NameCache::LastSeen(Inode& directory, const std::string& name) {
  const MutexLock lock(directory.mutex);
  const auto it = directory.names.entries.find(name);
  return it == directory.names.entries.end() ? directory.names.shared.LastSeen(name).file
                                             : it->second;
}

}  // namespace mosa::sai
