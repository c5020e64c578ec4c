// Appends: the bytes of one appending system call go to the file's end in one step, while other
// mounts append too. An internal lock, invisible to programs, makes size, bytes and commit one
// step for all of a system call, which the kernel may send in pieces.
//
// Thread-safe. Blocks within the thread's WaitBudget. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_APPEND_H_
#define MOSA_CLIENT_SAI_SAI_APPEND_H_

#include <cstddef>
#include <span>

#include "client-sai/core/outcome.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/commits.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/held_locks.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_set.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/write_behind.h"
#include "client-sai/sai/writer.h"
#include "common/base/clock.h"
#include "common/base/sync.h"

namespace mosa::sai {

class Appends {
 public:
  Appends(InodeTable& inodes, Lease& lease, AccessRights& rights, HeldLocks& held_locks,
          WriteBehind& write_behind, Commits& commits, Writer& writer, Stats& stats,
          const Clock& clock)
      : inodes_(inodes),
        lease_(lease),
        rights_(rights),
        held_locks_(held_locks),
        write_behind_(write_behind),
        commits_(commits),
        writer_(writer),
        stats_(stats),
        clock_(clock) {}

  // Appends one piece of a system call. The caller must hold the inode's io.
  Outcome<Done> Write(OpenFile& handle, std::span<const std::byte> data, const CallPiece& piece);
  // Ends the append in progress: commits, if anything was `stored`, and releases the appenders'
  // lock.
  Outcome<Done> End(Inode& inode, bool stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);
  // The same, if it is that of this handle. The handle's next call reports a failure.
  void EndOf(Inode& inode, HandleId handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);
  // Ends the appends of programs that do not continue.
  void EndOverdue();

 private:
  // Takes the appenders' lock and sets the inode's append_hold.
  Outcome<Done> Begin(Inode& inode, HandleId handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);
  void EndOfOthers(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.io);
  // Appends to a file that no other mount can know yet. False: append as to any other file.
  bool WriteUnsent(Inode& inode, std::span<const std::byte> data);
  bool GoesOn(const AppendHold& hold, HandleId handle, size_t size_bytes,
              const CallPiece& piece) const;

  InodeTable& inodes_;
  Lease& lease_;
  AccessRights& rights_;
  HeldLocks& held_locks_;
  WriteBehind& write_behind_;
  Commits& commits_;
  Writer& writer_;
  Stats& stats_;
  const Clock& clock_;
  InodeSet appending_;  // Inodes whose append_hold waits for the rest of its call.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_APPEND_H_
