// Xattrs: extended attributes: the manager's, checksums, and this mount's counters.
//
// Thread-safe. Blocks within the thread's WaitBudget. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_XATTRS_H_
#define MOSA_CLIENT_SAI_SAI_XATTRS_H_

#include <string>
#include <string_view>
#include <vector>

#include "client-sai/core/outcome.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/commits.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/mapped_stores.h"
#include "client-sai/sai/name_cache.h"
#include "client-sai/sai/reader.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/store_gate.h"
#include "client-sai/sai/write_behind.h"
#include "client-sai/sai/writer.h"
#include "common/model/ids.h"

namespace mosa::sai {

class Xattrs {
 public:
  Xattrs(ManagerCalls& calls, RecallLog& recalls, InodeTable& inodes, AttributeCache& attributes,
         NameCache& name_cache, StoreGate& gate, WriteBehind& write_behind, Commits& commits,
         Writer& writer, Reader& reader, MappedStores& mapped_stores, Stats& stats)
      : calls_(calls),
        recalls_(recalls),
        inodes_(inodes),
        attributes_(attributes),
        name_cache_(name_cache),
        gate_(gate),
        write_behind_(write_behind),
        commits_(commits),
        writer_(writer),
        reader_(reader),
        mapped_stores_(mapped_stores),
        stats_(stats) {}

  Outcome<std::string> Get(FileId file, std::string_view name);
  Outcome<std::vector<std::string>> List(FileId file);
  Outcome<Done> Set(FileId file, std::string_view name, std::string_view value, XattrMode mode);
  Outcome<Done> Remove(FileId file, std::string_view name);

 private:
  Outcome<std::string> Checksum(const InodePtr& inode);
  // Before a hint is set: commits what was written here, because a file with bytes does not move.
  // Returns true if the kernel has an object open. The caller must hold the inode's io.
  Outcome<bool> SettleForHint(Inode& inode);
  // Adds the hint to a file that the manager does not know yet. False: ask the manager.
  bool DeferHint(Inode& inode, std::string_view attribute, std::string_view value);

  ManagerCalls& calls_;
  RecallLog& recalls_;
  InodeTable& inodes_;
  AttributeCache& attributes_;
  NameCache& name_cache_;
  StoreGate& gate_;
  WriteBehind& write_behind_;
  Commits& commits_;
  Writer& writer_;
  Reader& reader_;
  MappedStores& mapped_stores_;
  Stats& stats_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_XATTRS_H_
