// Scrubber: reads sealed objects again and compares them with their checksums. One thread.
#ifndef MOSA_STORAGE_NODE_ENGINE_SCRUBBER_H_
#define MOSA_STORAGE_NODE_ENGINE_SCRUBBER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/model/ids.h"
#include "storage-node/engine/object.h"
#include "storage-node/engine/object_ledger.h"
#include "storage-node/engine/object_table.h"
#include "storage-node/store/object_store.h"

namespace mosa::node {

class Scrubber {
 public:
  // All must outlive it.
  Scrubber(ObjectStore& store, const ObjectTable& table, ObjectLedger& ledger)
      : store_(store), table_(table), ledger_(ledger) {}

  // Verifies the next blocks of the round. Returns the number of bytes, 0 after the last object.
  uint64_t Next(std::span<std::byte> scratch);

 private:
  uint64_t Piece(Object& object, uint64_t& offset, std::span<std::byte> scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

  ObjectStore& store_;
  const ObjectTable& table_;
  ObjectLedger& ledger_;
  // Where it is.
  FileId file_;
  uint64_t offset_ = 0;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_SCRUBBER_H_
