// Queries over all files: which must be copied out of the store, and which have lost bytes.
#include <algorithm>

#include "manager/core/state.h"

namespace mosa::manager {

// Counts the file. Returns true if it is to be kept and exists only in the store.
bool ManagerCore::State::CountUnstaged(UnstagedFiles& unstaged, FileId file,
                                       const Inode& inode) const {
  if (inode.type != FileType::kRegular || inode.link_count == 0) return false;
  ++unstaged.all_files;
  unstaged.all_bytes += inode.size_bytes;
  if (!HintsOf(inode).keep) return false;
  ++unstaged.kept_files;
  if (IsStaged(file, inode)) return false;
  ++unstaged.files;
  unstaged.bytes += inode.size_bytes;
  return true;
}

void ManagerCore::State::ScanFile(FileScan& scan, FileId file, const Inode& inode) const {
  const size_t files_max = scan.question.files_max;
  if (scan.question.kind == FileScanQuestion::Kind::kLost) {
    if (scan.found_lost.size() >= files_max || !(LostAt(inode) || DamagedAt(inode))) return;
    scan.found_lost.emplace(file, StatusOf(file, inode, ""));
  } else {
    if (!CountUnstaged(scan.unstaged, file, inode)) return;
    if (file <= scan.question.after || scan.found_unstaged.size() >= files_max) return;
    scan.found_unstaged.emplace(file, UnstagedFile{{}, file, inode.size_bytes});
  }
  scan.nameless.insert(file);
  scan.likely_directories.insert(inode.named_in);
}

// Examines at most `steps` files, and leaves in `steps` how many were not needed.
void ManagerCore::State::ScanFiles(FileScan& scan, size_t& steps) const {
  const bool counts_all = scan.question.kind == FileScanQuestion::Kind::kUnstaged;
  const auto is_full = [&] {
    return !counts_all && scan.found_lost.size() >= scan.question.files_max;
  };
  auto entry = inodes_.lower_bound(scan.next_file);
  for (; entry != inodes_.end() && !is_full() && steps > 0; ++entry, --steps)
    ScanFile(scan, entry->first, *entry->second);
  if (entry == inodes_.end() || is_full()) {
    scan.stage = FileScan::Stage::kLikelyDirectories;
  } else {
    scan.next_file = entry->first;
  }
}

// Only directories hold names. Examines one directory; returns true if it was completed.
bool ManagerCore::State::ScanNames(FileScan& scan, FileId id, const Directory& directory,
                                   size_t& steps) const {
  const bool goes_on = scan.next_entry.first == id;
  auto entry =
      goes_on ? directory.entries.lower_bound(scan.next_entry.second) : directory.entries.begin();
  for (; entry != directory.entries.end() && steps > 0; ++entry, --steps) {
    const auto& [name, child] = *entry;
    if (scan.nameless.erase(child) == 0) continue;
    std::string path = PathOf(id) + "/" + name;
    if (const auto found = scan.found_lost.find(child); found != scan.found_lost.end())
      found->second.path = std::move(path);
    else
      scan.found_unstaged.at(child).path = std::move(path);
  }
  if (entry == directory.entries.end()) return true;
  scan.next_entry = {id, entry->first};
  return false;
}

void ManagerCore::State::ScanLikelyDirectories(FileScan& scan, size_t& steps) const {
  std::set<FileId>& likely = scan.likely_directories;
  while (!likely.empty() && !scan.nameless.empty()) {
    if (steps == 0) return;
    const Directory* const directory = FindDirectory(*likely.begin());
    if (directory && !ScanNames(scan, *likely.begin(), *directory, steps)) return;
    likely.erase(likely.begin());
    steps -= std::min<size_t>(steps, 1);
  }
  scan.next_entry = {};
  scan.stage = FileScan::Stage::kAllDirectories;
}

void ManagerCore::State::ScanAllDirectories(FileScan& scan, size_t& steps) const {
  for (auto entry = directories_.lower_bound(scan.next_entry.first);
       !scan.nameless.empty() && entry != directories_.end(); ++entry) {
    if (steps == 0) {
      scan.next_entry = {entry->first, ""};
      return;
    }
    if (!ScanNames(scan, entry->first, *entry->second, steps)) return;
    steps -= std::min<size_t>(steps, 1);
  }
  scan.stage = FileScan::Stage::kDone;
  for (auto& [file, item] : scan.found_unstaged)
    if (!item.path.empty()) scan.unstaged.first.push_back(std::move(item));
  for (auto& [file, status] : scan.found_lost) scan.lost.push_back(std::move(status));
}

bool ManagerCore::State::ContinueScan(FileScan& scan, size_t steps) const {
  if (scan.stage == FileScan::Stage::kFiles) ScanFiles(scan, steps);
  if (scan.stage == FileScan::Stage::kLikelyDirectories && steps > 0)
    ScanLikelyDirectories(scan, steps);
  if (scan.stage == FileScan::Stage::kAllDirectories && steps > 0) ScanAllDirectories(scan, steps);
  return scan.stage == FileScan::Stage::kDone;
}

}  // namespace mosa::manager
