// Files of a mount that must be looked at again: files that a program may have mapped and can store
// into unseen by the mount, and files whose last commit failed.
#ifndef MOSA_CLIENT_SAI_SAI_WATCHED_FILES_H_
#define MOSA_CLIENT_SAI_SAI_WATCHED_FILES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/sync.h"
#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa::sai {

struct Inode;
struct OpenFile;

// Thread-safe. One thread calls AwaitDue, LookAgain and Finish.
//
// A handle that the kernel has released is *kept* while its file is unfinished. For the manager,
// and for all of this mount's decisions, the file then stays open for writing. One handle per file
// is enough. At the limit nothing more is kept or watched, and the caller reports which file it is.
class WatchedFiles {
 public:
  static constexpr size_t kFilesMax = 16'384;
  using InodeRef = std::shared_ptr<Inode>;
  using Handle = std::shared_ptr<OpenFile>;

  explicit WatchedFiles(const Clock& clock) : clock_(clock) {}
  WatchedFiles(const WatchedFiles&) = delete;
  WatchedFiles& operator=(const WatchedFiles&) = delete;

  // Schedules a look at `due`, unless an earlier one is scheduled.
  void Watch(FileId file, const InodeRef& inode, Time due);
  enum class Keeping : uint8_t { kKept, kOneIsKept, kTooMany };
  // Schedules an immediate look, and keeps `handle` if it is the file's first.
  Keeping Keep(FileId file, const InodeRef& inode, const Handle& handle);

  struct Due {
    FileId file;
    InodeRef inode;
    bool keeps = false;  // A handle is kept.
    uint32_t looks = 0;  // Looks since the handle was kept.
  };
  // Blocks until a file is due; nothing once stopped.
  std::optional<Due> AwaitDue();
  void LookAgain(FileId file, Time due);
  // Ends the watch, unless the file was watched again meanwhile, and returns the kept handle. Null
  // if a handle was kept meanwhile: the next look decides about it.
  Handle Finish(FileId file);
  void Stop();

  size_t kept() const;
  // Files with kept handles, at most `files_max`.
  std::vector<FileId> Kept(size_t files_max) const;

 private:
  struct File {
    InodeRef inode;
    Handle kept;
    std::optional<Time> due;  // Absent: it is being looked at.
    uint32_t looks = 0;
  };
  void Queue(FileId file, File& state, Time due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<FileId, File> files_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<Time, FileId>> order_ ABSL_GUARDED_BY(mutex_);
  size_t kept_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// Files with bytes that this mount could not store after their last close, newest last.
// Thread-safe.
class UnsavedFiles {
 public:
  static constexpr size_t kFilesMax = 64;
  void Note(FileId file);
  std::vector<FileId> All() const;

 private:
  mutable Mutex mutex_;
  std::deque<FileId> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_WATCHED_FILES_H_
