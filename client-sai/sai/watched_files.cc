#include "client-sai/sai/watched_files.h"

#include <algorithm>

#include "common/base/sync.h"

namespace mosa::sai {

void WatchedFiles::Queue(FileId file, File& state, Time due) {
  if (state.due && *state.due <= due) return;
  if (state.due) order_.erase({*state.due, file});
  state.due = due;
  order_.insert({due, file});
  changed_.notify_one();
}

void WatchedFiles::Watch(FileId file, const InodeRef& inode, Time due) {
  const MutexLock lock(mutex_);
  if (!files_.contains(file) && files_.size() >= kFilesMax) return;
  File& state = files_[file];
  state.inode = inode;
  Queue(file, state, due);
}

WatchedFiles::Keeping WatchedFiles::Keep(FileId file, const InodeRef& inode, const Handle& handle) {
  const MutexLock lock(mutex_);
  if (stopped_ || (!files_.contains(file) && files_.size() >= kFilesMax)) return Keeping::kTooMany;
  File& state = files_[file];
  state.inode = inode;
  state.looks = 0;
  Queue(file, state, clock_.Monotonic());
  if (state.kept) return Keeping::kOneIsKept;
  state.kept = handle;
  ++kept_;
  return Keeping::kKept;
}

std::optional<WatchedFiles::Due> WatchedFiles::AwaitDue() {
  MutexLock lock(mutex_);
  while (!stopped_) {
    if (order_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto [due, file] = *order_.begin();
    const Duration left = due - clock_.Monotonic();
    if (left > Duration{}) {
      changed_.wait_for(lock, left);
      continue;
    }
    order_.erase(order_.begin());
    File& state = files_.at(file);
    state.due.reset();
    return Due{file, state.inode, state.kept != nullptr, state.looks++};
  }
  return std::nullopt;
}

void WatchedFiles::LookAgain(FileId file, Time due) {
  const MutexLock lock(mutex_);
  Queue(file, files_.at(file), due);
}

WatchedFiles::Handle WatchedFiles::Finish(FileId file) {
  const MutexLock lock(mutex_);
  const auto found = files_.find(file);
  const bool watched_again = found->second.due.has_value();
  // A handle was kept during this look: the next look finishes it.
  if (watched_again && found->second.looks == 0) return nullptr;
  Handle kept = std::move(found->second.kept);
  found->second.kept = nullptr;
  if (kept) --kept_;
  if (!watched_again) files_.erase(found);
  return kept;
}

void WatchedFiles::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

size_t WatchedFiles::kept() const {
  const MutexLock lock(mutex_);
  return kept_;
}

std::vector<FileId> WatchedFiles::Kept(size_t files_max) const {
  const MutexLock lock(mutex_);
  std::vector<FileId> files;
  for (const auto& [file, state] : files_)
    if (state.kept && files.size() < files_max) files.push_back(file);
  return files;
}

void UnsavedFiles::Note(FileId file) {
  const MutexLock lock(mutex_);
  std::erase(files_, file);
  files_.push_back(file);
  if (files_.size() > kFilesMax) files_.pop_front();
}

std::vector<FileId> UnsavedFiles::All() const {
  const MutexLock lock(mutex_);
  return {files_.begin(), files_.end()};
}

}  // namespace mosa::sai
