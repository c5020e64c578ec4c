// ObjectRecords: the checksums and writers' generations that a node keeps beside its objects, so
// that they outlive its process. A record is written when an object is sealed, and withdrawn before
// it changes. Thread-safe: what concerns one object is called under its lock. Without a log of the
// store's (ObjectStore::sums), nothing is kept.
#ifndef MOSA_STORAGE_NODE_ENGINE_OBJECT_RECORDS_H_
#define MOSA_STORAGE_NODE_ENGINE_OBJECT_RECORDS_H_

#include <atomic>
#include <cstdint>

#include "common/base/status.h"
#include "storage-node/core/sums_record.h"
#include "storage-node/engine/object.h"
#include "storage-node/store/object_store.h"

namespace mosa::node {

class ObjectRecords {
 public:
  // `store` must outlive it.
  explicit ObjectRecords(ObjectStore& store) : store_(store) {}

  static SumsRecord Damaged() { return {.damaged = true, .size_bytes = 0, .sums = {}}; }

  // Precondition: not kSums.
  Status Log(Object& object, LoggedState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // The same; a failure goes to the log.
  void TryLog(Object& object, LoggedState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Invalidates its record, unless of damage.
  Status Forget(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Logged, so that later stores are not overwritten by older ones after a restart either.
  void SetGeneration(Object& object, uint64_t generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  bool MayAppend(const Object& object) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Records its checksums. One with too many becomes unrecordable.
  Status Append(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Call for an object that is removed.
  void Remove(Object& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

  // Counts the bytes of valid records that others found or ended.
  void CountBytes(uint64_t before, uint64_t after) { valid_bytes_ += after - before; }
  static uint64_t BytesOf(uint64_t generation) {
    return generation > 0 ? kGenerationRecordBytes : 0;
  }
  // True if the log holds so much that is no longer valid that it should be written anew.
  bool HasGarbage() const;
  // Syncs the log to disk, if it has one and anything was added.
  void Sync();

  SumsLog* log() const { return store_.sums(); }

  // Objects not verified against their records since the machine crashed.
  std::atomic<uint64_t> unverified_count{0};

 private:
  ObjectStore& store_;
  std::atomic<uint64_t> valid_bytes_{0};  // Bytes in records that are still valid.
  std::atomic<bool> has_unsynced_{false};
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_OBJECT_RECORDS_H_
