// Namespace: lookup, create, link, remove and rename. A change of names is the manager's; only a
// file that this mount has made and nobody else knows can be removed without a question.
//
// Thread-safe. Methods with an Outcome block within the thread's WaitBudget. Borrows the
// constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_NAMES_H_
#define MOSA_CLIENT_SAI_SAI_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client-sai/core/outcome.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/commits.h"
#include "client-sai/sai/file_ids.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/kernel_names.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/name_cache.h"
#include "client-sai/sai/releases.h"
#include "client-sai/sai/stats.h"
#include "common/base/clock.h"
#include "common/model/ids.h"
#include "common/model/session.h"

namespace mosa::sai {

class Namespace {
 public:
  Namespace(ManagerCalls& calls, Lease& lease, RecallLog& recalls, InodeTable& inodes,
            FileIds& file_ids, Releases& releases, AttributeCache& attributes,
            NameCache& name_cache, AccessRights& rights, BlockCache& blocks,
            KernelNames& kernel_names, Commits& commits, Stats& stats, const Clock& clock)
      : calls_(calls),
        lease_(lease),
        recalls_(recalls),
        inodes_(inodes),
        file_ids_(file_ids),
        releases_(releases),
        attributes_(attributes),
        name_cache_(name_cache),
        rights_(rights),
        blocks_(blocks),
        kernel_names_(kernel_names),
        commits_(commits),
        stats_(stats),
        clock_(clock) {}

  // As in Filesystem.
  Outcome<EntryResult> Lookup(FileId parent, std::string_view name, std::optional<uint32_t> uid);
  void NoteForeignChange(Inode& directory, const Attributes& found);
  Outcome<EntryResult> Make(const NewEntry& entry, MakeRequest request);
  Outcome<EntryResult> Link(FileId file, FileId new_parent, std::string_view new_name);
  Outcome<Done> Remove(FileId parent, std::string_view name, bool directory);
  Outcome<Done> Rename(const RenameRequest& request);
  Outcome<std::string> ReadSymlink(FileId file);

 private:
  Outcome<Done> RemoveOnce(FileId parent, const std::string& name, bool directory);
  Outcome<Done> RenameOnce(const RenameRequest& request);
  // Another file has the name now. Looks it up, so that the next request refers to that file.
  Outcome<Done> SeeAgain(FileId parent, const std::string& name);
  InodePtr BeginMake(Inode& directory, const std::string& name, std::vector<Request>* requests);
  bool BeginRemoval(FileId file);
  void EndRemoval(FileId file);
  void NoteSaidHeld(FileId file);
  void NoteRenamed(const RenameRequest& request, const RenameReply& reply, Inode& source,
                   Inode& target, Mark mark);
  void LostName(FileId file, uint32_t links_left, bool said_held);

  ManagerCalls& calls_;
  Lease& lease_;
  RecallLog& recalls_;
  InodeTable& inodes_;
  FileIds& file_ids_;
  Releases& releases_;
  AttributeCache& attributes_;
  NameCache& name_cache_;
  AccessRights& rights_;
  BlockCache& blocks_;
  KernelNames& kernel_names_;
  Commits& commits_;
  Stats& stats_;
  const Clock& clock_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_NAMES_H_
