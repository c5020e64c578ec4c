// StoreGate: lets stores on nodes through while the layout by which they are made is valid, and
// holds them back while the file is frozen or being moved. The manager is told that a recall is
// done once no store by the recalled layout is in progress.
//
// Thread-safe. Begin, Run, EnsureThawed, Thaw and AskFreezing may call the manager and block within
// the thread's WaitBudget; Close blocks until stores in progress have ended; the others do not
// block. The caller must not hold the inode's mutex, except for OwnBytesAreLate. Borrows the
// constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_STORE_GATE_H_
#define MOSA_CLIENT_SAI_SAI_STORE_GATE_H_

#include <functional>
#include <optional>
#include <vector>

#include "client-sai/core/outcome.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/held_locks.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/stats.h"
#include "common/base/clock.h"
#include "common/base/sync.h"
#include "common/base/time.h"

namespace mosa::sai {

// What a store does if bytes of the file are lost: its commit would outdate the copies that can
// replace them. A cut goes on, because the kept bytes may be whole: the manager decides.
enum class IfLost : uint8_t { kFail, kGoOn };

class StoreGate {
 public:
  StoreGate(ManagerCalls& calls, Lease& lease, InodeTable& inodes, AccessRights& rights,
            HeldLocks& held_locks, Stats& stats, const Clock& clock)
      : calls_(calls),
        lease_(lease),
        inodes_(inodes),
        rights_(rights),
        held_locks_(held_locks),
        stats_(stats),
        clock_(clock) {}

  // Brackets a store on nodes by the layout that Begin returns. Must not be nested.
  Outcome<AccessPtr> Begin(Inode& inode, IfLost if_lost);
  void End(Inode& inode);
  // Runs `store` between Begin and End. Repeats it while it fails with kAborted, because the layout
  // may have changed.
  Outcome<Done> Run(Inode& inode, const std::function<Outcome<Done>(const DataAccess&)>& store,
                    IfLost if_lost = IfLost::kFail);
  // True if the layout used by the current store has been valid throughout.
  bool MayStillStore(Inode& inode);
  static void Pause(int attempt);  // Between two attempts to store.

  // No store begins between Close, which waits for those in progress, and Open.
  void Close(Inode& inode);
  void Open(Inode& inode);

  // Blocks until no other client has the file frozen, and returns the right to write that the inode
  // holds.
  Outcome<AccessPtr> EnsureThawed(Inode& inode);
  static Failure FrozenTooLong(const Inode& inode, Duration waited);
  // Ends this mount's freeze, unless it is still moving inline content into objects.
  void Thaw(Inode& inode);

  // Sends the request. Repeats it with the file frozen if other mounts know the layout that it is
  // to lose.
  Outcome<std::vector<Reply>> AskFreezing(Inode& inode, const Request& request);

  // Tells the manager that no store uses the recalled layout any more.
  void ConfirmRecall(FileId file, UnconfirmedRecall recall);

  // Why bytes that this mount has yet to commit are no part of the file by this layout.
  static std::optional<Failure> OwnBytesAreLate(const Inode& inode, const DataAccess& access)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  static Outcome<Done> CheckBound(const Inode& inode, const DataAccess& access);

 private:
  Outcome<Done> RenewAppendRight(Inode& inode);

  ManagerCalls& calls_;
  Lease& lease_;
  InodeTable& inodes_;
  AccessRights& rights_;
  HeldLocks& held_locks_;
  Stats& stats_;
  const Clock& clock_;
};

// A store in progress, if `access` is OK.
class StoreSection {
 public:
  StoreSection(StoreGate& gate, Inode& inode, IfLost if_lost = IfLost::kFail)
      : gate_(gate), inode_(inode), access_(gate.Begin(inode, if_lost)) {}
  StoreSection(const StoreSection&) = delete;
  StoreSection& operator=(const StoreSection&) = delete;
  ~StoreSection() {
    if (access_.ok()) gate_.End(inode_);
  }
  const Outcome<AccessPtr>& access() const { return access_; }

 private:
  StoreGate& gate_;
  Inode& inode_;
  const Outcome<AccessPtr> access_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_STORE_GATE_H_
