// Opener: creates and opens files. In a directory that the manager has delegated to this mount, a
// create is deferred: nobody else knows the file until it is closed.
//
// Thread-safe. Blocks within the thread's WaitBudget. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_OPENER_H_
#define MOSA_CLIENT_SAI_SAI_OPENER_H_

#include <cstdint>
#include <string>

#include "client-sai/core/outcome.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/file_attributes.h"
#include "client-sai/sai/file_ids.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/kernel_names.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/mapped_stores.h"
#include "client-sai/sai/name_cache.h"
#include "client-sai/sai/open_modes.h"
#include "client-sai/sai/releases.h"
#include "client-sai/sai/stats.h"
#include "client-sai/trace/task_names.h"
#include "common/model/ids.h"
#include "common/model/session.h"

namespace mosa::sai {

class Opener {
 public:
  Opener(ManagerCalls& calls, Lease& lease, RecallLog& recalls, InodeTable& inodes,
         HandleTable& handles, FileIds& file_ids, Releases& releases, AttributeCache& attributes,
         NameCache& name_cache, AccessRights& rights, TaskNames& tasks, KernelNames& kernel_names,
         OpenModes& open_modes, MappedStores& mapped_stores, FileAttributes& file_attributes,
         Stats& stats)
      : calls_(calls),
        lease_(lease),
        recalls_(recalls),
        inodes_(inodes),
        handles_(handles),
        file_ids_(file_ids),
        releases_(releases),
        attributes_(attributes),
        name_cache_(name_cache),
        rights_(rights),
        tasks_(tasks),
        kernel_names_(kernel_names),
        open_modes_(open_modes),
        mapped_stores_(mapped_stores),
        file_attributes_(file_attributes),
        stats_(stats) {}

  Outcome<CreateResult> Create(const NewEntry& entry, uint32_t flags);
  Outcome<OpenResult> Open(FileId file, uint32_t flags, const Caller& caller);

 private:
  InodePtr DeferCreate(Inode& parent, const MakeRequest& request);
  Outcome<InodePtr> CreateNow(const NewEntry& entry, MakeRequest request);
  Outcome<OpenResult> OpenReserved(const InodePtr& inode, uint32_t flags, const std::string& task);
  // Counts a handle that is about to be opened. AddHandle creates it; ReturnHandle gives it up.
  static void ReserveHandle(Inode& inode, uint32_t flags);
  void ReturnHandle(Inode& inode, uint32_t flags);
  Outcome<OpenResult> AddHandle(const InodePtr& inode, uint32_t flags, std::string task,
                                bool begins_empty, StreamState stream);
  // For files that count their readers: records the handle's task.
  void NoteReader(Inode& inode, HandleId handle, uint32_t pid);

  ManagerCalls& calls_;
  Lease& lease_;
  RecallLog& recalls_;
  InodeTable& inodes_;
  HandleTable& handles_;
  FileIds& file_ids_;
  Releases& releases_;
  AttributeCache& attributes_;
  NameCache& name_cache_;
  AccessRights& rights_;
  TaskNames& tasks_;
  KernelNames& kernel_names_;
  OpenModes& open_modes_;
  MappedStores& mapped_stores_;
  FileAttributes& file_attributes_;
  Stats& stats_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_OPENER_H_
