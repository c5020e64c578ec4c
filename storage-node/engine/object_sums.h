// ObjectSums: what nodes that copy an object ask: the checksums of a range, and what has changed.
// Thread-safe.
#ifndef MOSA_STORAGE_NODE_ENGINE_OBJECT_SUMS_H_
#define MOSA_STORAGE_NODE_ENGINE_OBJECT_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/block_sums.h"
#include "common/model/ids.h"
#include "common/model/ranges.h"
#include "storage-node/engine/change_waiters.h"
#include "storage-node/engine/object.h"
#include "storage-node/engine/object_ledger.h"
#include "storage-node/engine/object_opener.h"
#include "storage-node/engine/object_table.h"
#include "storage-node/engine/verifier.h"
#include "storage-node/store/object_store.h"

namespace mosa::node {

class ObjectSums {
 public:
  // All must outlive it.
  ObjectSums(ObjectStore& store, ObjectTable& table, ObjectOpener& opener, Verifier& verifier,
             ObjectLedger& ledger, ChangeWaiters& waiters)
      : store_(store),
        table_(table),
        opener_(opener),
        verifier_(verifier),
        ledger_(ledger),
        waiters_(waiters) {}

  // Returns the changes after `after_change` (from an earlier answer; 0: none), without blocks.
  BlockSums ChangesSince(FileId file, uint64_t after_change);
  // Adds the checksums of at most kSumsBytesMax and computes the unknown ones. An absent object
  // counts as empty.
  Status SumBlocks(FileId file, ByteRange range, BlockSums& sums, std::span<std::byte> scratch);
  // Blocks until ChangesSince would report a change in one of the ranges (any change if there are
  // none), for at most `wait`, or until `give_up`, polled a few times a second, returns true. Holds
  // no lock.
  void AwaitChange(FileId file, uint64_t after_change, std::span<const ByteRange> about,
                   Duration wait, const std::function<bool()>& give_up);
  // Call when a local writer has written `range`.
  Status NoteLocalWrite(FileId file, ByteRange range);
  // Reports a change of these ranges to copying nodes, although their bytes are the same.
  void NoteChanged(FileId file, std::span<const ByteRange> ranges);

 private:
  // If false, `after_change` becomes the latest change, up to which nothing needs checking.
  bool HasChanged(FileId file, uint64_t& after_change, std::span<const ByteRange> about);
  Status MarkData(Object& object, int fd, ByteRange range, BlockSums& sums)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);
  Status SumBlock(Object& object, int fd, BlockIndex block, BlockSum& sum,
                  std::span<std::byte> scratch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(object.mutex);

  ObjectStore& store_;
  ObjectTable& table_;
  ObjectOpener& opener_;
  Verifier& verifier_;
  ObjectLedger& ledger_;
  ChangeWaiters& waiters_;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_OBJECT_SUMS_H_
