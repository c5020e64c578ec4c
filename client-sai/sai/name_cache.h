// NameCache: which names directories have, as far as this mount knows. The manager tells a session
// of changes by others (interest), so names are valid while the era in which they were learned is.
//
// Thread-safe. Does not block. Find, LastSeen, Store and Change lock the directory's mutex. Borrows
// the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_NAME_CACHE_H_
#define MOSA_CLIENT_SAI_SAI_NAME_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "common/base/sync.h"
#include "common/model/attributes.h"
#include "common/model/ids.h"

namespace mosa::sai {

class NameCache {
 public:
  // Keeps at most `names_max` names of all directories.
  NameCache(size_t names_max, Lease& lease, RecallLog& recalls, AttributeCache& attributes)
      : names_max_(names_max), lease_(lease), recalls_(recalls), attributes_(attributes) {}

  // The file of that name; FileId{}: there is none. Absent: ask the manager.
  std::optional<FileId> Find(Inode& directory, const std::string& name);
  // The file of that name in a shared directory, if it was seen since others have last changed it.
  // It has the name still if its own attributes are valid.
  std::optional<FileId> FindSeen(Inode& directory, const std::string& name);
  // A reply to a question asked at `mark` has named the file in a shared directory.
  static void Saw(Inode& directory, const std::string& name, const Entry& entry, Mark mark);
  // This mount is about to change the name. What is known of it in a shared directory ends, also if
  // the reply is not heard.
  void EndSeen(Inode& directory, const std::string& name);
  // The file that last had this name as far as is known, however old that knowledge is; FileId{}:
  // unknown.
  static FileId LastSeen(Inode& directory, const std::string& name);
  // As Find, or else the file that was last seen.
  std::optional<FileId> Guess(Inode& directory, const std::string& name);

  // The answer to a lookup in a shared directory, about a name that does not exist and that is
  // reserved for this mount.
  void Reserve(Inode& directory, const std::string& name, uint32_t uid, Mark mark);
  // `file` == FileId{}: absent. `own`: this mount's change; false: the answer to a lookup. Returns
  // false if it is not kept.
  bool Store(Inode& directory, const std::string& name, FileId file, Mark mark, bool own);
  // Stores this mount's own changes, and the directory's attributes after them if they are known.
  // The names of a `shared` directory are not kept.
  void Change(Inode& directory, Mark mark,
              const std::vector<std::pair<std::string, FileId>>& changes,
              const Attributes* attributes, bool shared);
  // Adds a name that only this mount knows, whatever has happened meanwhile.
  void Add(Inode& directory, const std::string& name, FileId file)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(directory.mutex);
  // Whether it exists is unknown from now on.
  void Forget(Inode& directory, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(directory.mutex);
  void Clear(Inode& directory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(directory.mutex);

  // True if what is known of hints allows to make a file there and to tell the manager later,
  // provided that the name is this mount's alone.
  bool MayMakeUnasked(Inode& directory) const;

  // Counts this mount's changes of hints. What directories remember about hints is valid for one
  // value.
  uint64_t hints_generation() const { return hints_generation_; }
  void NoteHintsChanged() { ++hints_generation_; }

 private:
  void ClearEntries(Inode& directory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(directory.mutex);

  const size_t names_max_;
  Lease& lease_;
  RecallLog& recalls_;
  AttributeCache& attributes_;
  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> hints_generation_{0};
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_NAME_CACHE_H_
