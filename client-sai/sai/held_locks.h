// HeldLocks: asks the manager for advisory locks on files and records in the inode which ones it
// has granted, because a new session must claim them again.
//
// Thread-safe. Ask and AskToAppend call the manager; the other methods do not block. Borrows the
// constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_HELD_LOCKS_H_
#define MOSA_CLIENT_SAI_SAI_HELD_LOCKS_H_

#include "client-sai/core/outcome.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "common/model/session.h"

namespace mosa::sai {

class HeldLocks {
 public:
  HeldLocks(ManagerCalls& calls, Lease& lease) : calls_(calls), lease_(lease) {}

  // Requests a lock without waiting for its holder; records it if granted.
  Outcome<Done> Ask(Inode& inode, const Lock& lock);
  // Releases a lock whose request failed but may be granted later, because nobody else would.
  // Requests run in order.
  void GiveUp(Inode& inode, Lock lock);
  void Record(Inode& inode, const Lock& lock);

  // The internal lock of whoever appends, which no program can see.
  Outcome<Done> AskToAppend(Inode& inode);
  void EndAppend(Inode& inode);

 private:
  ManagerCalls& calls_;
  Lease& lease_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_HELD_LOCKS_H_
