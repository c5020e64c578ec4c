// Closer: what fsync and close promise, and the end of a handle once the kernel has released it.
//
// Thread-safe. Blocks within the thread's WaitBudget. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_CLOSER_H_
#define MOSA_CLIENT_SAI_SAI_CLOSER_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "client-sai/core/outcome.h"
#include "client-sai/sai/append.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/commits.h"
#include "client-sai/sai/copies.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/grants.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/locks.h"
#include "client-sai/sai/mapped_stores.h"
#include "client-sai/sai/open_modes.h"
#include "client-sai/sai/releases.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/stream_waits.h"
#include "client-sai/sai/write_behind.h"
#include "client-sai/sai/writer.h"
#include "common/model/session.h"

namespace mosa::sai {

class Closer {
 public:
  Closer(HandleTable& handles, Releases& releases, Grants& grants, AttributeCache& attributes,
         WriteBehind& write_behind, Commits& commits, Writer& writer, Appends& appends,
         FileLocks& locks, CopiesAtClose& copies, OpenModes& open_modes,
         MappedStores& mapped_stores, StreamWaits& stream_waits, Stats& stats)
      : handles_(handles),
        releases_(releases),
        grants_(grants),
        attributes_(attributes),
        write_behind_(write_behind),
        commits_(commits),
        writer_(writer),
        appends_(appends),
        locks_(locks),
        copies_(copies),
        open_modes_(open_modes),
        mapped_stores_(mapped_stores),
        stream_waits_(stream_waits),
        stats_(stats) {}

  // close(2) of one descriptor. `done` is called once the file has the copies that its `ack`
  // requires; no thread waits for them.
  void Flush(HandleId handle, uint64_t lock_owner, std::function<void(Outcome<Done>)> done);
  Outcome<Done> Fsync(HandleId handle);
  // The kernel has no descriptor and no mapping by its own pages left.
  void Release(HandleId handle, std::optional<uint64_t> flock_owner);

 private:
  void EndStream(Inode& inode);
  // Does all of Flush except the wait for copies; sets `awaited` to the copies to wait for, if any.
  Outcome<Done> FlushData(OpenFile& handle, uint64_t lock_owner,
                          std::optional<AwaitCopiesRequest>* awaited);
  bool CommitAtRelease(Inode& inode, HandleId handle);
  void DropObject(OpenFile& handle);

  HandleTable& handles_;
  Releases& releases_;
  Grants& grants_;
  AttributeCache& attributes_;
  WriteBehind& write_behind_;
  Commits& commits_;
  Writer& writer_;
  Appends& appends_;
  FileLocks& locks_;
  CopiesAtClose& copies_;
  OpenModes& open_modes_;
  MappedStores& mapped_stores_;
  StreamWaits& stream_waits_;
  Stats& stats_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_CLOSER_H_
