// The implementation of Filesystem: its parts, put together. Each has a header of its own and
// borrows only parts that are declared before it. (InodeTable and ManagerCalls call SessionEvents
// back.)
#ifndef MOSA_CLIENT_SAI_SAI_IMPL_H_
#define MOSA_CLIENT_SAI_SAI_IMPL_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/append.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/closer.h"
#include "client-sai/sai/commits.h"
#include "client-sai/sai/copies.h"
#include "client-sai/sai/directories.h"
#include "client-sai/sai/executor.h"
#include "client-sai/sai/file_attributes.h"
#include "client-sai/sai/file_ids.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/grants.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/handle_writer.h"
#include "client-sai/sai/held_locks.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/kernel_names.h"
#include "client-sai/sai/kernel_pages.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/locks.h"
#include "client-sai/sai/manager_calls.h"
#include "client-sai/sai/mapped_stores.h"
#include "client-sai/sai/name_cache.h"
#include "client-sai/sai/names.h"
#include "client-sai/sai/node_objects.h"
#include "client-sai/sai/node_states.h"
#include "client-sai/sai/open_modes.h"
#include "client-sai/sai/opener.h"
#include "client-sai/sai/periodic.h"
#include "client-sai/sai/reader.h"
#include "client-sai/sai/releases.h"
#include "client-sai/sai/session.h"
#include "client-sai/sai/size_changes.h"
#include "client-sai/sai/spill.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/store_gate.h"
#include "client-sai/sai/write_behind.h"
#include "client-sai/sai/writer.h"
#include "client-sai/sai/xattrs.h"
#include "client-sai/trace/task_names.h"
#include "common/base/rare_log.h"
#include "common/base/sync.h"

namespace mosa::sai {

// Lock order: Inode::io, Inode::look, Inode::mutex, then any of the mutexes inside members.
// KernelNames and Releases hold theirs while they take Inode::mutex; see also InodeTable.
//
// These locks are held across blocking calls: Inode::io, Inode::look, Inode::renewing and
// Listing::mutex across calls to manager and nodes, and that of KernelNames while the kernel is
// notified. No other lock is.
class Filesystem::Impl {
 public:
  Impl(FilesystemOptions options, ManagerApi& manager, NodeApi& nodes, KernelNotifier& notifier,
       const Clock& clock);
  ~Impl();

  Status Start();
  Status Stop();

  std::string StatsJson() const { return stats_.Json(mapped_stores_.Files()); }

  // ---- tracing (tracing.cc)
  Time ManagerNow() { return lease_.ManagerNow(); }
  void SetPassthrough(bool allowed) { open_modes_.Allow(allowed); }
  std::vector<TracedMount::NamedFile> KnownNames();
  uint64_t KnownSize(FileId file);

  const FilesystemOptions options_;
  const ClientId client_;  // Random, for this run of the mount.
  ManagerApi& manager_;

  // Self-locking.
  Stats stats_;
  ManagerCalls calls_;
  Lease lease_;
  RecallLog recalls_;
  InodeTable inodes_;
  HandleTable handles_;
  NodeStates node_states_;
  FileIds file_ids_;
  Releases releases_;
  Grants grants_;
  AttributeCache attributes_;
  NameCache name_cache_;
  AccessRights rights_;
  HeldLocks held_locks_;
  StoreGate gate_;
  BlockCache blocks_;
  TaskNames tasks_;
  KernelNames kernel_names_;
  Executor reads_;    // Prefetching; not delayed by a node that hangs in a write.
  Executor service_;  // Recalls and granted locks.
  KernelPages pages_;
  NodeObjects objects_;
  Spiller spiller_;
  WriteBehind write_behind_;
  RareLog losses_{100};  // Each names a file whose bytes were not stored.
  Commits commits_;
  Writer writer_;
  Appends appends_;
  Reader reader_;
  SizeChanges size_changes_;
  FileLocks locks_;
  CopiesAtClose copies_;
  OpenModes open_modes_;
  MappedStores mapped_stores_;
  FileAttributes file_attributes_;
  Xattrs xattrs_;
  Namespace namespace_;
  Directories directories_;
  Opener opener_;
  Closer closer_;
  HandleWriter handle_writer_;
  SessionEvents session_;

  Periodic timer_;
  Periodic follower_;
  std::atomic<bool> started_{false};
  Status stop_status_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_IMPL_H_
