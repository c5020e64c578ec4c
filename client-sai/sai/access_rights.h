// AccessRights: the rights to the bytes of files that this mount holds, with the inline content
// that comes with them. Asks the manager for one when none that is valid serves.
//
// Thread-safe. Ensure, EnsureFresh and Renew may call the manager; the caller must not hold the
// inode's mutex. The other methods do not block. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_ACCESS_RIGHTS_H_
#define MOSA_CLIENT_SAI_SAI_ACCESS_RIGHTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client-sai/core/outcome.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/releases.h"
#include "common/base/sync.h"

namespace mosa::sai {

using AccessPtr = std::shared_ptr<const DataAccess>;

// The right and the attributes at one moment, because size and inline content belong together.
struct Fresh {
  AccessPtr access;
  Attributes attributes;  // Without this mount's own changes.
  uint64_t version = 0;   // data_version of the access' inline content.
  uint64_t own_changes = 0;
};

class AccessRights {
 public:
  AccessRights(ManagerCalls& calls, Lease& lease, RecallLog& recalls, Releases& releases,
               AttributeCache& attributes)
      : calls_(calls),
        lease_(lease),
        recalls_(recalls),
        releases_(releases),
        attributes_(attributes) {}

  // Returns the right to the bytes, asking the manager if it is not held. `task`: who opens.
  Outcome<AccessPtr> Ensure(Inode& inode, bool write, const std::string& task = {});
  Outcome<Fresh> EnsureFresh(Inode& inode, bool write, const std::string& task = {});
  // A node has refused a right, for example because its process began after the right was issued.
  // Returns a new one, or the same if there is none.
  AccessPtr Renew(Inode& inode, const AccessPtr& refused);

  // Keeps the access from the reply to this mount's own change. `version`: the data_version of its
  // inline content, if any.
  AccessPtr Store(Inode& inode, DataAccess access, Mark mark, uint64_t version = 0);
  // The manager may count this mount as a writer although a request to open has failed.
  void NoteUnheardOpen(Inode& inode);

  // What was written inline and is committed becomes the content that the right has.
  void KeepInline(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // The inline content is in objects now.
  void NoteInlineMoved(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Drops inline bytes that no handle needs, if they are outdated or there are too many of them.
  void DropUnusedInline(Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // The inode is about to be forgotten.
  void NoteDropped(const Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);

 private:
  std::optional<Outcome<Fresh>> FreshFromCache(Inode& inode, bool write, bool with_attributes);
  Outcome<Fresh> AskFresh(Inode& inode, bool write, const std::string& task);
  void Keep(Inode& inode, AccessPtr access, Mark mark, uint64_t version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  void EndReadAsWriter(Inode& inode);
  bool TakeBackRelease(Inode& inode);

  ManagerCalls& calls_;
  Lease& lease_;
  RecallLog& recalls_;
  Releases& releases_;
  AttributeCache& attributes_;
  std::atomic<uint64_t> inline_bytes_{0};  // In all rights together.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_ACCESS_RIGHTS_H_
