// The files of a mount that are to be looked at again: those that a program may have mapped to
// store into without this mount seeing it, and those of which the last commit has failed.
#ifndef MOSA_CLIENT_SAI_SAI_WATCHED_FILES_H_
#define MOSA_CLIENT_SAI_SAI_WATCHED_FILES_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa::sai {

struct Inode;
struct OpenFile;

// Thread-safe. One thread calls AwaitDue, LookAgain and Finish.
//
// A handle that the kernel has released is *kept* while its file is unfinished: for the manager,
// and for all that this mount decides, the file stays open for writing. One handle of a file is
// enough. At the limit nothing more is kept or watched; the caller then says which file it is.
class WatchedFiles {
 public:
  static constexpr size_t kFilesMax = 16'384;
  using InodeRef = std::shared_ptr<Inode>;
  using Handle = std::shared_ptr<OpenFile>;

  explicit WatchedFiles(const Clock& clock) : clock_(clock) {}
  WatchedFiles(const WatchedFiles&) = delete;
  WatchedFiles& operator=(const WatchedFiles&) = delete;

  // The file is to be looked at at `due`, or earlier if it was to be.
  void Watch(FileId file, const InodeRef& inode, Time due);
  enum class Keeping : uint8_t { kKept, kOneIsKept, kTooMany };
  // The same at once, and `handle` is kept if it is the first.
  Keeping Keep(FileId file, const InodeRef& inode, const Handle& handle);

  struct Due {
    FileId file;
    InodeRef inode;
    bool keeps = false;  // A handle is kept.
    uint32_t looks = 0;  // How often it was looked at since that was kept.
  };
  // Waits for the next file that is due; nothing once stopped.
  std::optional<Due> AwaitDue();
  void LookAgain(FileId file, Time due);
  // There is nothing more to look at, unless the file was watched again meanwhile: then it is
  // looked at again. Returns the handle that was kept.
  Handle Finish(FileId file);
  void Stop();

  size_t kept() const;
  // Files whose handles are kept, at most `files_max`.
  std::vector<FileId> Kept(size_t files_max) const;

 private:
  struct File {
    InodeRef inode;
    Handle kept;
    std::optional<Time> due;  // Absent: it is being looked at.
    uint32_t looks = 0;
  };
  void Queue(FileId file, File& state, Time due);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::map<FileId, File> files_;
  std::set<std::pair<Time, FileId>> order_;
  size_t kept_ = 0;
  bool stopped_ = false;
};

// Files that this mount could not store all of after their last close, newest last. Thread-safe.
class UnsavedFiles {
 public:
  static constexpr size_t kFilesMax = 64;
  void Note(FileId file);
  std::vector<FileId> All() const;

 private:
  mutable std::mutex mutex_;
  std::deque<FileId> files_;  // Guarded by mutex_.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_WATCHED_FILES_H_
