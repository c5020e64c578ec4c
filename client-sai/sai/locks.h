// FileLocks: POSIX and flock locks across mounts. The manager decides. A granted lock revalidates
// what is cached of the file. Before a lock is released, written bytes are stored and committed.
//
// Thread-safe. Get, Set, Wait and DropOf call the manager and block within the thread's WaitBudget;
// Wait does not wait for the lock. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_LOCKS_H_
#define MOSA_CLIENT_SAI_SAI_LOCKS_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "client-sai/api/manager_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/commits.h"
#include "client-sai/sai/executor.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/held_locks.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/kernel_pages.h"
#include "client-sai/sai/lock_waits.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/write_behind.h"
#include "client-sai/sai/writer.h"
#include "common/base/clock.h"
#include "common/model/session.h"

namespace mosa::sai {

class FileLocks {
 public:
  // `service` runs the callbacks of waits.
  FileLocks(ManagerApi& manager, ManagerCalls& calls, InodeTable& inodes, HandleTable& handles,
            AttributeCache& attributes, HeldLocks& held_locks, WriteBehind& write_behind,
            Commits& commits, Writer& writer, BlockCache& blocks, KernelPages& pages,
            Executor& service, Stats& stats, const Clock& clock)
      : manager_(manager),
        calls_(calls),
        inodes_(inodes),
        handles_(handles),
        attributes_(attributes),
        held_locks_(held_locks),
        write_behind_(write_behind),
        commits_(commits),
        writer_(writer),
        blocks_(blocks),
        pages_(pages),
        service_(service),
        stats_(stats),
        clock_(clock) {}

  // As in Filesystem.
  Outcome<std::optional<Lock>> Get(FileId file, Lock lock);
  Outcome<Done> Set(FileId file, Lock lock);
  LockWaitId Wait(FileId file, Lock lock, std::function<void(Outcome<Done>)> done);
  void CancelWait(LockWaitId wait);
  void NoteOwner(HandleId handle, uint64_t owner);

  // Releases what the owner holds: its flock locks (`whole_file`) or its POSIX locks.
  void DropOf(Inode& inode, uint64_t owner, bool whole_file);
  // A descriptor of the handle was closed by `flushed_owner`.
  void NoteOwnersClosing(OpenFile& handle, uint64_t flushed_owner);

 private:
  Outcome<Done> Unlock(Inode& inode, const Lock& lock);
  void Revalidate(Inode& inode);
  void AwaitClosing(Inode& inode, uint64_t owner);
  bool IsClosing(Inode& inode, uint64_t owner);

  ManagerApi& manager_;
  ManagerCalls& calls_;
  InodeTable& inodes_;
  HandleTable& handles_;
  AttributeCache& attributes_;
  HeldLocks& held_locks_;
  WriteBehind& write_behind_;
  Commits& commits_;
  Writer& writer_;
  BlockCache& blocks_;
  KernelPages& pages_;
  Executor& service_;
  Stats& stats_;
  const Clock& clock_;
  LockWaits lock_waits_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_LOCKS_H_
