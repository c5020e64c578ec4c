// The files of a wrapped directory that the kernel knows, each with a descriptor that stays with it
// whatever it is called: renamed, linked twice or unlinked, it is the same one.
#ifndef MOSA_TOOLS_WRAP_INODE_TABLE_H_
#define MOSA_TOOLS_WRAP_INODE_TABLE_H_

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/ids.h"

namespace mosa::wrap {

// What a file is known by. Its place is not enough: a server gives the number of a file that it has
// removed to another one, whatever its clients have open.
struct InodeKey {
  dev_t device = 0;
  ino_t number = 0;
  FileId file;  // In the trace.
  bool operator==(const InodeKey&) const = default;
};

// Constant but for `lookups`.
struct Inode {
  UniqueFd descriptor;  // O_PATH.
  InodeKey key;
  uint64_t lookups = 0;  // That the kernel counts; guarded by the table.

  FileId file() const { return key.file; }

  // A path that opens the file itself, for calls that take no O_PATH descriptor.
  std::string Path() const;
};

// What a file is called in a trace: a hash of what its file system tells it by from all that it has
// ever had (name_to_handle_at(2): the inode's number and generation, the same on all hosts of a
// shared file system), or where that has none, of its number and time of birth. The root of
// `root_device` is called 1.
FileId FileIdOf(int descriptor, const struct stat& attributes, dev_t root_device);

// Thread-safe. Inodes live until the kernel has forgotten all their lookups; a caller that serves a
// request about one may use it as long.
class InodeTable {
 public:
  // NotFound, PermissionDenied, or FailedPrecondition if `directory` is none.
  static Result<std::unique_ptr<InodeTable>> Open(const std::string& directory);

  struct Found {
    Inode* inode = nullptr;
    struct stat attributes {};
  };

  Inode& root() { return root_; }
  // One more lookup of `name` in `parent`, as it is now. 0 or an errno; the first time that no
  // descriptor is left is logged.
  int LookUp(const Inode& parent, const char* name, Found& found);
  // The same of the file that `descriptor` has open.
  int LookUpOpen(int descriptor, Found& found);
  // The kernel has forgotten so many lookups; the inode is gone with the last of them.
  void Forget(Inode& inode, uint64_t lookups);
  size_t size() const;

 private:
  struct KeyHash {
    size_t operator()(const InodeKey& key) const;
  };

  InodeTable() = default;
  void LogExhausted() const;
  // Adds what `descriptor` (O_PATH) stands for.
  int Add(UniqueFd descriptor, Found& found);

  Inode root_;
  std::once_flag exhausted_;
  mutable SystemMutex mutex_;  // Held without waiting for the file system.
  // All but the root.
  std::unordered_map<InodeKey, std::unique_ptr<Inode>, KeyHash> inodes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::wrap

#endif  // MOSA_TOOLS_WRAP_INODE_TABLE_H_
