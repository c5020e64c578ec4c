// AttributeCache: the attributes of inodes as this mount shows them, which are the manager's with
// the mount's own changes on top, and how long they may be kept.
//
// Thread-safe. Borrows its arguments.
#ifndef MOSA_CLIENT_SAI_SAI_ATTRIBUTE_CACHE_H_
#define MOSA_CLIENT_SAI_SAI_ATTRIBUTE_CACHE_H_

#include <cstdint>
#include <optional>

#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/grants.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/stats.h"
#include "common/base/clock.h"
#include "common/base/sync.h"
#include "common/base/time.h"

namespace mosa::sai {

class AttributeCache {
 public:
  AttributeCache(Lease& lease, RecallLog& recalls, Grants& grants, Stats& stats, const Clock& clock)
      : lease_(lease), recalls_(recalls), grants_(grants), stats_(stats), clock_(clock) {}

  // Keeps attributes from a reply. `own`: the reply answers one of this mount's own changes.
  void Store(Inode& inode, const Attributes& attributes, Mark mark, bool own);
  bool AreValid(const Inode& inode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // The manager tells this mount when they change. (They may be valid for a moment without that.)
  bool AreWatched(const Inode& inode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // How long the kernel may cache the attributes.
  Duration CachedFor(const Inode& inode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);

  static Attributes View(const Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // As View, with `view` instead of the inode's attributes.
  static Attributes ViewOn(const Inode& inode, Attributes view)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Builds the answer to a lookup. `kernel_may_keep`: the kernel may cache the name. `asked`: when
  // the kernel's question for the entry was read, if it was one.
  EntryResult EntryOf(Inode& inode, bool kernel_may_keep, std::optional<Time> asked = {});

  // Notes what the kernel has written into local objects by itself.
  void NoteKernelWrites(Inode& inode);

  // Blocks until the kernel has dropped the pages that changes in progress make stale.
  static void AwaitSettled(Inode& inode, MutexLock& lock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  static void Settle(Inode& inode);

 private:
  Lease& lease_;
  RecallLog& recalls_;
  Grants& grants_;
  Stats& stats_;
  const Clock& clock_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_ATTRIBUTE_CACHE_H_
