// ObjectOpener: finds an object, locks it and opens its bytes, to read or to change it.
// Thread-safe.
#ifndef MOSA_STORAGE_NODE_ENGINE_OBJECT_OPENER_H_
#define MOSA_STORAGE_NODE_ENGINE_OBJECT_OPENER_H_

#include <mutex>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/model/ids.h"
#include "storage-node/engine/object.h"
#include "storage-node/engine/object_ledger.h"
#include "storage-node/engine/object_records.h"
#include "storage-node/engine/object_table.h"
#include "storage-node/engine/verifier.h"
#include "storage-node/store/object_store.h"

namespace mosa::node {

// A locked object with a descriptor. `object` is null if absent.
struct OpenedObject {
  ObjectRef object;
  std::unique_lock<SystemMutex> lock;
  UniqueFd fd;
};

class ObjectOpener {
 public:
  // All must outlive it.
  ObjectOpener(ObjectStore& store, ObjectTable& table, ObjectRecords& records, Verifier& verifier,
               ObjectLedger& ledger)
      : store_(store), table_(table), records_(records), verifier_(verifier), ledger_(ledger) {}

  Result<OpenedObject> ToRead(FileId file) { return Open(file, OpenMode::kRead, nullptr); }
  // Makes the object if absent and `mode` allows it; begins a change.
  Result<OpenedObject> ToChange(FileId file, OpenMode mode, const Changer& changer) {
    return Open(file, mode, &changer);
  }
  // Must be called before any byte of the object changes. Aborted if the changer is not admitted.
  Status BeginChange(Object& object, int fd, const Changer& changer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

 private:
  Result<OpenedObject> Open(FileId file, OpenMode mode, const Changer* changer);

  ObjectStore& store_;
  ObjectTable& table_;
  ObjectRecords& records_;
  Verifier& verifier_;
  ObjectLedger& ledger_;
};

// The errors of an object that is not there, and of a store, which does not know the file.
Status AbsentError(FileId file);
Status Named(const Status& status, FileId file);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_OBJECT_OPENER_H_
