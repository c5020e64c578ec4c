// CopiesAtClose: the mount's part in copying files: the last close waits for as many copies as the
// file's `ack` requires.
//
// Thread-safe. Holds no thread while it waits. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_COPIES_H_
#define MOSA_CLIENT_SAI_SAI_COPIES_H_

#include <functional>
#include <optional>

#include "client-sai/api/manager_api.h"
#include "client-sai/api/node_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/copy_waits.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/stats.h"
#include "common/base/clock.h"
#include "common/model/session.h"

namespace mosa::sai {

class CopiesAtClose {
 public:
  CopiesAtClose(ManagerApi& manager, NodeApi& nodes, InodeTable& inodes, AccessRights& rights,
                Stats& stats, const Clock& clock)
      : nodes_(nodes),
        inodes_(inodes),
        rights_(rights),
        stats_(stats),
        copy_waits_(manager, clock) {}

  // Before the last close's commit: no node's copy counts while this mount could write unseen. Only
  // for files whose close waits for copies. The caller must hold the inode's io. Calls nodes.
  void Prepare(Inode& inode);
  // After the commit: the copies to wait for, if any.
  static std::optional<AwaitCopiesRequest> Awaited(Inode& inode);
  // Calls `done` when the copies exist, or with an error when copying makes no progress for long.
  // The bytes are already committed and stay. `done` must not block.
  void Await(const AwaitCopiesRequest& request, std::function<void(Outcome<Done>)> done);

  // Ends waits that are over time, and, when the mount ends, all.
  void EndOverdue() { copy_waits_.EndOverdue(); }
  void EndAll() { copy_waits_.EndAll(); }

 private:
  void NoteCopied(const AwaitCopiesRequest& request);

  NodeApi& nodes_;
  InodeTable& inodes_;
  AccessRights& rights_;
  Stats& stats_;
  CopyWaits copy_waits_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_COPIES_H_
