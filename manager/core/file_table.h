// Files and directories by id, and how to walk them.
//
// Invariants:
//  1. Every directory entry names an inode; every inode has a name or is in `orphans`.
//  2. An inode's link_count is the number of its names (a directory's: 2 plus its subdirectories).
//  3. Every inode in Step::dirty is written before the step ends; no other inode change is durable.
#ifndef MOSA_MANAGER_CORE_FILE_TABLE_H_
#define MOSA_MANAGER_CORE_FILE_TABLE_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/container/btree_map.h"
#include "manager/core/file_attributes.h"
#include "manager/core/records.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"

namespace mosa::manager {

// The kernel's limit. Explaining costs a lookup per directory of the path.
inline constexpr size_t kPathBytesMax = 4096;
Failure Gone(FileId file);

struct FileTable {
  FileTable(Step& step, TextPool& texts) : step_(step), texts_(texts) {}

  Inode* Find(FileId file);
  const Inode* Find(FileId file) const;
  Directory* FindDirectory(FileId file);
  const Directory* FindDirectory(FileId file) const;
  std::optional<FileId> ChildOf(FileId parent, std::string_view name) const;
  std::optional<Failure> CheckRegular(FileId file) const;
  // Returns the file's freeze, or null if there is none.
  Freeze* FreezeOf(FileId file);
  // Returns the path without a trailing "/", so that a name can be appended; the root is "". A path
  // longer than the kernel accepts is shortened to its end, after "/...".
  std::string PathOf(FileId directory) const;
  FileId DirectoryOf(const Inode& inode) const;
  InodeRecord RecordOf(FileId file, const Inode& inode) const;
  std::optional<Failure> CheckDirectory(FileId directory) const;
  std::optional<Failure> CheckName(std::string_view name) const;
  void TouchDirectory(FileId directory, Time at);
  // Keeps an orphan for a while: another client may have looked the name up just before it was
  // removed, and be about to open the file.
  void Linger(FileId orphan);
  bool IsWithin(FileId directory, FileId ancestor) const;
  // `path` is absolute. NotFound names the first missing component. `deepest`, if given, is set to
  // the last directory found on the way.
  Result<FileId> FileAt(std::string_view path, FileId* deepest = nullptr) const;
  // Sets `file`, or returns why `path` is not a regular file.
  std::optional<Failure> FindRegular(const std::string& path, FileId& file) const;

  absl::btree_map<FileId, std::unique_ptr<Inode>> inodes;
  absl::btree_map<FileId, std::unique_ptr<Directory>> directories;
  absl::btree_map<FileId, std::string> symlinks;
  std::map<FileId, FileAttributes> xattrs;
  std::map<FileId, Uncommitted> uncommitted;
  // Files that were removed because their maker's session ended, and are still open somewhere.
  // Nothing can be committed to them: the bytes would have no name.
  std::set<FileId> abandoned;
  // Files without names, and the clients that have them open.
  std::map<FileId, std::set<ClientId>> orphans;
  std::map<FileId, Time> lingering;  // Orphans that are kept until then.
  std::map<FileId, Freeze> freezes;

 private:
  Step& step_;
  TextPool& texts_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_FILE_TABLE_H_
