// Directories: listings. A listing is a list of items that does not change and grows page by page
// as it is read, until it is read from the beginning again.
//
// Thread-safe. Read may call the manager and blocks within the thread's WaitBudget. Borrows the
// constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_DIRECTORIES_H_
#define MOSA_CLIENT_SAI_SAI_DIRECTORIES_H_

#include <cstddef>
#include <cstdint>

#include "client-sai/core/outcome.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/commits.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/name_cache.h"
#include "common/base/sync.h"

namespace mosa::sai {

class Directories {
 public:
  Directories(ManagerCalls& calls, Lease& lease, RecallLog& recalls, InodeTable& inodes,
              HandleTable& handles, AttributeCache& attributes, NameCache& name_cache,
              Commits& commits)
      : calls_(calls),
        lease_(lease),
        recalls_(recalls),
        inodes_(inodes),
        handles_(handles),
        attributes_(attributes),
        name_cache_(name_cache),
        commits_(commits) {}

  Outcome<HandleId> Open(FileId directory);
  Outcome<DirectoryPage> Read(HandleId handle, uint64_t offset, size_t items_max);
  // The kernel is told of a listing's entry as if it had looked it up. Empty: it may not be.
  EntryResult Remember(HandleId handle, const DirectoryItem& item);

 private:
  // The caller must hold the listing's mutex.
  Outcome<Done> BeginListing(Listing& listing);
  Outcome<Done> ContinueListing(Listing& listing);
  static void KeepOffsets(Listing& listing);
  bool ListFromCache(Listing& listing);

  ManagerCalls& calls_;
  Lease& lease_;
  RecallLog& recalls_;
  InodeTable& inodes_;
  HandleTable& handles_;
  AttributeCache& attributes_;
  NameCache& name_cache_;
  Commits& commits_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_DIRECTORIES_H_
