// Sealer: computes the checksums that objects still lack when they are no longer written, and
// records them. Thread-safe.
#ifndef MOSA_STORAGE_NODE_ENGINE_SEALER_H_
#define MOSA_STORAGE_NODE_ENGINE_SEALER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/status.h"
#include "storage-node/engine/aside_objects.h"
#include "storage-node/engine/object.h"
#include "storage-node/engine/object_ledger.h"
#include "storage-node/engine/object_records.h"
#include "storage-node/engine/object_table.h"
#include "storage-node/engine/seal_work.h"
#include "storage-node/engine/verifier.h"
#include "storage-node/store/object_store.h"

namespace mosa::node {

class Sealer {
 public:
  // All must outlive it.
  Sealer(ObjectStore& store, ObjectTable& table, ObjectRecords& records, ObjectLedger& ledger,
         Verifier& verifier, AsideObjects& aside, SealWork& sealing)
      : store_(store),
        table_(table),
        records_(records),
        ledger_(ledger),
        verifier_(verifier),
        aside_(aside),
        sealing_(sealing) {}

  // Seals one object if one is ready; returns false if there was nothing to do. `scratch` holds
  // whole blocks.
  bool SealNext(std::span<std::byte> scratch);
  // Rewrites all valid records into the log's last file, which replaces all earlier files.
  Status RewriteRecords();

 private:
  Status SealObject(const ObjectRef& object, std::span<std::byte> scratch);
  Status SumPiece(Object& object, int fd, uint64_t& offset, std::span<std::byte> scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status SumStale(const ObjectRef& object, int fd, uint64_t epoch, std::span<std::byte> scratch);
  void Record(const ObjectRef& object);

  ObjectStore& store_;
  ObjectTable& table_;
  ObjectRecords& records_;
  ObjectLedger& ledger_;
  Verifier& verifier_;
  AsideObjects& aside_;
  SealWork& sealing_;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_SEALER_H_
