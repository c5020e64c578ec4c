// Verifier: compares objects with their records after the machine crashed, before anybody relies on
// their bytes. Thread-safe.
#ifndef MOSA_STORAGE_NODE_ENGINE_VERIFIER_H_
#define MOSA_STORAGE_NODE_ENGINE_VERIFIER_H_

#include <cstddef>
#include <span>

#include "storage-node/engine/object.h"
#include "storage-node/engine/object_ledger.h"
#include "storage-node/engine/object_records.h"
#include "storage-node/engine/seal_work.h"
#include "storage-node/store/object_store.h"

namespace mosa::node {

class Verifier {
 public:
  // All must outlive it.
  Verifier(ObjectStore& store, ObjectRecords& records, ObjectLedger& ledger,
           const SealWork& sealing)
      : store_(store), records_(records), ledger_(ledger), sealing_(sealing) {}

  // Verifies the object in pieces, so that others need not wait for the whole of it. Several
  // callers share the work. The object is not changed until all of it is verified. Call without its
  // lock; `scratch` holds a block, or is empty.
  void VerifyAll(const ObjectRef& object, std::span<std::byte> scratch);
  // Verifies what VerifyAll left.
  void VerifyRest(Object& object, int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  // Marks those of the blocks as corrupt whose bytes do not have these checksums.
  void Verify(Object& object, int fd, std::span<const KnownSum> sums, std::span<std::byte> scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

 private:
  // Verifies the next unverified blocks, at most so many.
  void VerifyNext(Object& object, int fd, size_t blocks_max, std::span<std::byte> scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

  ObjectStore& store_;
  ObjectRecords& records_;
  ObjectLedger& ledger_;
  const SealWork& sealing_;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_VERIFIER_H_
