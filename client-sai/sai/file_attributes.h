// FileAttributes: stat, chmod, chown, truncate and utimensat.
//
// Thread-safe. Blocks within the thread's WaitBudget. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_FILE_ATTRIBUTES_H_
#define MOSA_CLIENT_SAI_SAI_FILE_ATTRIBUTES_H_

#include <functional>
#include <optional>

#include "client-sai/core/outcome.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/commits.h"
#include "client-sai/sai/copies.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/mapped_stores.h"
#include "client-sai/sai/releases.h"
#include "client-sai/sai/size_changes.h"
#include "client-sai/sai/store_gate.h"
#include "client-sai/sai/write_behind.h"
#include "client-sai/sai/writer.h"
#include "common/base/clock.h"
#include "common/model/ids.h"
#include "common/model/session.h"

namespace mosa::sai {

class FileAttributes {
 public:
  FileAttributes(ManagerCalls& calls, Lease& lease, RecallLog& recalls, InodeTable& inodes,
                 HandleTable& handles, Releases& releases, AttributeCache& attributes,
                 StoreGate& gate, WriteBehind& write_behind, Commits& commits, Writer& writer,
                 SizeChanges& size_changes, CopiesAtClose& copies, MappedStores& mapped_stores,
                 const Clock& clock)
      : calls_(calls),
        lease_(lease),
        recalls_(recalls),
        inodes_(inodes),
        handles_(handles),
        releases_(releases),
        attributes_(attributes),
        gate_(gate),
        write_behind_(write_behind),
        commits_(commits),
        writer_(writer),
        size_changes_(size_changes),
        copies_(copies),
        mapped_stores_(mapped_stores),
        clock_(clock) {}

  Outcome<AttributesResult> Get(FileId file);
  // As Get, without waiting for the kernel to drop pages that changes in progress make stale.
  Outcome<Attributes> GetUnsettled(FileId file);
  Outcome<AttributesResult> Set(FileId file, const AttributeChanges& changes);
  // The same; a new size is answered once the file has its copies.
  void Set(FileId file, const AttributeChanges& changes,
           std::function<void(Outcome<AttributesResult>)> done);

 private:
  Outcome<Done> Ensure(Inode& inode);
  Outcome<AttributesReply> Change(Inode& inode, SetAttributesRequest request, Mark* mark);
  bool SetUnsent(Inode& inode, const AttributeChanges& changes);
  std::optional<AwaitCopiesRequest> CopiesOfClosed(Inode& inode);

  ManagerCalls& calls_;
  Lease& lease_;
  RecallLog& recalls_;
  InodeTable& inodes_;
  HandleTable& handles_;
  Releases& releases_;
  AttributeCache& attributes_;
  StoreGate& gate_;
  WriteBehind& write_behind_;
  Commits& commits_;
  Writer& writer_;
  SizeChanges& size_changes_;
  CopiesAtClose& copies_;
  MappedStores& mapped_stores_;
  const Clock& clock_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_FILE_ATTRIBUTES_H_
