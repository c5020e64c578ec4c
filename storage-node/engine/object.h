// The state of one object in a storage node, and who may change it. The object's bytes are in the
// store.
#ifndef MOSA_STORAGE_NODE_ENGINE_OBJECT_H_
#define MOSA_STORAGE_NODE_ENGINE_OBJECT_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/mutex.h"
#include "common/base/time.h"
#include "common/model/ids.h"
#include "storage-node/core/change_log.h"
#include "storage-node/core/checksum_table.h"

namespace mosa::node {

// The author of a change. Bytes stored under a later layout of a file must never be overwritten
// under an earlier one. So every change names its author and is admitted under the object's lock.
struct Changer {
  uint64_t generation = 0;  // The layout's generation.
  bool is_order = false;    // This node itself, which stores under no layout.

  static Changer OfLayout(uint64_t generation) { return {generation, false}; }
  // A store under a later layout than that of the order ends it.
  static Changer OfOrder(uint64_t generation) { return {generation, true}; }
};

// What the stored records say about one object.
enum class LoggedState : uint8_t {
  kNothing = 1,
  kSums,     // Its complete checksums.
  kDamaged,  // No byte of it can be trusted.
};

// What an object held when somebody looked.
struct SeenBytes {
  ChecksumTable sums = ChecksumTable::ForUnknownBytes();
  uint64_t size_bytes = 0;
};

// Its mutex is held while its bytes are read or written (memory speed), so that bytes and checksums
// agree; never while waiting for a socket. It comes before every other lock of the engine.
struct Object {
  explicit Object(FileId id) : file(id) {}
  const FileId file;
  SystemMutex mutex;
  // No longer in the table: the caller must look the file up again.
  bool dropped ABSL_GUARDED_BY(mutex) = false;
  uint64_t size_bytes ABSL_GUARDED_BY(mutex) = 0;
  uint64_t allocated_bytes ABSL_GUARDED_BY(mutex) = 0;
  ChecksumTable checksums ABSL_GUARDED_BY(mutex) = ChecksumTable::ForNewObject();
  uint64_t forgotten_count ABSL_GUARDED_BY(mutex) = 0;  // How often all checksums were forgotten.
  // Kept from the first request for it on.
  std::unique_ptr<ChangeLog> changes ABSL_GUARDED_BY(mutex);
  // Highest generation that was admitted to change it. Logged.
  uint64_t writer_generation ABSL_GUARDED_BY(mutex) = 0;
  bool lent ABSL_GUARDED_BY(mutex) = false;  // Local programs may be writing. Also in LentFiles.
  // At the last look: from when it was lent until its mount has reported all changes. A write
  // through this node makes all checksums unknown.
  std::optional<SeenBytes> told ABSL_GUARDED_BY(mutex);
  // When a mount had reported all changes although the kernel still knew a writer.
  std::optional<SeenBytes> finished ABSL_GUARDED_BY(mutex);
  // A look found a difference. Kept because the asker may die before it has told everybody, and
  // `told` no longer holds the earlier checksums.
  bool answered ABSL_GUARDED_BY(mutex) = false;
  // Since when no program can store into it while its changes are still unreported.
  std::optional<Time> left_untold ABSL_GUARDED_BY(mutex);
  bool counted_unsealed ABSL_GUARDED_BY(mutex) = false;
  // Never kSums while it is lent.
  LoggedState logged ABSL_GUARDED_BY(mutex) = LoggedState::kNothing;
  // Not verified against its record since the machine crashed.
  bool unverified ABSL_GUARDED_BY(mutex) = false;
  // While unverified: blocks before this one are verified.
  BlockIndex compared_end ABSL_GUARDED_BY(mutex){};
  bool unrecordable ABSL_GUARDED_BY(mutex) = false;  // It has too many checksums to record.
  // Incremented whenever bytes may be changed.
  uint64_t changes_begun ABSL_GUARDED_BY(mutex) = 0;
  // While its checksums are logged: the record's length, and the object's size in it.
  uint64_t record_bytes ABSL_GUARDED_BY(mutex) = 0;
  uint64_t recorded_size_bytes ABSL_GUARDED_BY(mutex) = 0;
};

using ObjectRef = std::shared_ptr<Object>;  // Shared by connections; freed by the last one.

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_OBJECT_H_
