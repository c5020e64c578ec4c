// AsideObjects: objects whose files the manager may have forgotten. They are moved out of reach,
// still count for the node's limit, and wait for an operator's decision. Thread-safe.
#ifndef MOSA_STORAGE_NODE_ENGINE_ASIDE_OBJECTS_H_
#define MOSA_STORAGE_NODE_ENGINE_ASIDE_OBJECTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/model/ids.h"
#include "common/model/storage.h"
#include "storage-node/core/sums_record.h"
#include "storage-node/engine/found_objects.h"
#include "storage-node/engine/object.h"
#include "storage-node/engine/object_ledger.h"
#include "storage-node/engine/object_records.h"
#include "storage-node/engine/object_table.h"
#include "storage-node/engine/room.h"
#include "storage-node/engine/verifier.h"
#include "storage-node/store/object_store.h"
#include "storage-node/store/sums_log.h"

namespace mosa::node {

class AsideObjects {
 public:
  // All must outlive it.
  AsideObjects(ObjectStore& store, ObjectTable& table, Room& room, ObjectRecords& records,
               ObjectLedger& ledger, Verifier& verifier, FoundObjects& found)
      : store_(store),
        table_(table),
        room_(room),
        records_(records),
        ledger_(ledger),
        verifier_(verifier),
        found_(found) {}

  // Lists those in the store. Call once, at the start.
  Status FindAll(SumsFound& known);
  // Carries out an order. A failure is logged and leaves the object as it was.
  void Obey(const AsideOrder& order);
  std::vector<AsideObject> List() const;
  // Appends their records to a log that is written anew.
  Status RewriteRecords();

 private:
  // An object put aside, with its recorded state at that time.
  struct Aside {
    AsideObject object;
    std::optional<SumsRecord> record;  // Also in the log.
    uint64_t record_bytes = 0;
    uint64_t generation = 0;
  };
  AsideObject Describe(const StoredObject& stored) const;
  void Add(Aside aside);
  // Removes its state; returns nothing if it is not aside.
  std::optional<Aside> Take(FileId file);
  Status SetAside(FileId file);
  Status Restore(FileId file);
  // Replaces an object in the table by the one aside.
  Status PutBack(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status Discard(FileId file);

  ObjectStore& store_;
  ObjectTable& table_;
  Room& room_;
  ObjectRecords& records_;
  ObjectLedger& ledger_;
  Verifier& verifier_;
  FoundObjects& found_;

  mutable SystemMutex mutex_;  // After an object's.
  std::map<FileId, Aside> aside_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_ASIDE_OBJECTS_H_
