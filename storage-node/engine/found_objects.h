// FoundObjects: takes objects from the store into the table, with what was recorded of them.
#ifndef MOSA_STORAGE_NODE_ENGINE_FOUND_OBJECTS_H_
#define MOSA_STORAGE_NODE_ENGINE_FOUND_OBJECTS_H_

#include <cstdint>
#include <map>

#include "common/model/ids.h"
#include "storage-node/core/sums_record.h"
#include "storage-node/engine/lent_files.h"
#include "storage-node/engine/object.h"
#include "storage-node/engine/object_ledger.h"
#include "storage-node/engine/object_records.h"
#include "storage-node/engine/object_table.h"
#include "storage-node/store/object_store.h"

namespace mosa::node {

class FoundObjects {
 public:
  // All must outlive it. `is_suspect`: the machine has crashed and records were kept, so an object
  // without one is damaged: without checksums, damage cannot be told from correct bytes.
  FoundObjects(ObjectStore& store, ObjectTable& table, ObjectRecords& records, ObjectLedger& ledger,
               LentFiles& lent, bool is_suspect)
      : store_(store),
        table_(table),
        records_(records),
        ledger_(ledger),
        lent_(lent),
        is_suspect_(is_suspect) {}

  // Returns the record of an object that was found; that of damage if one was required and is
  // missing; null if there is none. It lives as long as `records`.
  const SumsRecord* RecordOf(FileId file, const std::map<FileId, SumsRecord>& records) const;
  // Adds an object from the store to the table. Precondition: it is not there.
  void Add(const StoredObject& found, const SumsRecord* record, uint64_t generation);
  // The same for an object that is in the table.
  void Take(Object& object, const StoredObject& found, const SumsRecord* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

 private:
  void TakeRecord(Object& object, const StoredObject& found, const SumsRecord* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  void MarkDamaged(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

  ObjectStore& store_;
  ObjectTable& table_;
  ObjectRecords& records_;
  ObjectLedger& ledger_;
  LentFiles& lent_;
  const bool is_suspect_;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_FOUND_OBJECTS_H_
