// Interests: which sessions may have cached what of a file, and must be told of its changes. The
// first 64 sessions have a bit each in the inode; later ones are in sets.
//
// Not thread-safe. Each operation on one file costs a few instructions, or O(log files) for a later
// session.
#ifndef MOSA_MANAGER_CORE_INTERESTS_H_
#define MOSA_MANAGER_CORE_INTERESTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "common/model/ids.h"
#include "manager/core/state_types.h"

namespace mosa::manager {

class Interests {
 public:
  // Returns a slot for the client's session. `clear` removes these bits from all inodes: they are
  // left from sessions that have ended.
  uint32_t TakeSlot(ClientId client, const std::function<void(uint64_t bits)>& clear);
  void RetireSlot(uint32_t slot);

  void Add(Session& session, FileId file, Inode& inode);
  void Drop(Session& session, FileId file, Inode& inode);
  bool Has(const Session& session, FileId file, const Inode& inode) const;
  // The clients whose sessions are interested in the file, but for `except`.
  std::vector<ClientId> Of(FileId file, const Inode& inode, ClientId except) const;

 private:
  std::vector<ClientId> slots_;  // The holder of each slot; ClientId{0}: free or retired.
  uint64_t live_slots_ = 0;      // Bits of the slots below 64 that are in use.
  uint64_t retired_slots_ = 0;   // Bits that may remain in inodes but no longer mean anything.
  std::map<FileId, std::set<uint32_t>> far_;  // The slots from 64 on.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_INTERESTS_H_
