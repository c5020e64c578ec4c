// ObjectTable: the objects of a storage node by file, and the layout generations from which stores
// are refused because the manager had an object dropped. Thread-safe; its lock comes after an
// object's.
#ifndef MOSA_STORAGE_NODE_ENGINE_OBJECT_TABLE_H_
#define MOSA_STORAGE_NODE_ENGINE_OBJECT_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/model/ids.h"
#include "storage-node/engine/object.h"

namespace mosa::node {

class ObjectTable {
 public:
  // `clock` must outlive the table.
  explicit ObjectTable(const Clock& clock) : clock_(clock) {}

  // Returns null if absent.
  ObjectRef Find(FileId file) const;
  // Makes the entry if absent. Returns null if there is none and the changer must not make it.
  ObjectRef FindOrAdd(FileId file, const Changer* changer);
  // Returns false, and changes nothing, if the file has an entry.
  bool Add(const ObjectRef& object);
  void Erase(FileId file);
  // Returns the first object from `file` on (after it, unless `from_it`), or null.
  ObjectRef Next(FileId file, bool from_it) const;
  std::vector<FileId> List() const;  // Ascending.
  size_t size() const;

  // Aborted if the changer's layout is older than one that was admitted, or is refused.
  Status Admits(const Object& object, const Changer& changer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // The same for a file that may have no object.
  Status CheckChanger(FileId file, const Changer& changer) const;
  Status CheckRefusals(FileId file, const Changer& changer) const;
  // Refuses changes of the file by this or an earlier layout generation for as long as a capability
  // can be valid. Call it before the object is dropped, which forgets the object's generation.
  void RefuseStoresUpTo(FileId file, uint64_t generation);
  // Forgets refusals that are over. Call from time to time.
  void EndRefusals();

 private:
  bool IsRefused(FileId file, const Changer& changer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  mutable SystemMutex mutex_;
  std::map<FileId, ObjectRef> objects_ ABSL_GUARDED_BY(mutex_);
  // For objects that are to be dropped, or were: until when stores up to a generation are refused.
  struct Refusal {
    uint64_t generation = 0;
    Time until;
  };
  std::map<FileId, Refusal> refusals_ ABSL_GUARDED_BY(mutex_);
  // Ascending.
  std::deque<std::pair<Time, FileId>> refusal_ends_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_refusals_{false};  // There are any.
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_OBJECT_TABLE_H_
