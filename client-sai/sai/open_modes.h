// OpenModes: how the kernel opens a file: by its own pages, past them, or with the object as the
// backing file that it reads, writes and maps by itself (passthrough).
//
// The kernel takes one backing file for all opens of an inode, and none while programs can map its
// pages. So the first opens decide for those that follow.
//
// Thread-safe. Choose and FollowKernelWrites may call manager and nodes and block within the
// thread's WaitBudget. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_OPEN_MODES_H_
#define MOSA_CLIENT_SAI_SAI_OPEN_MODES_H_

#include <atomic>
#include <memory>

#include "client-sai/api/node_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/grants.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/node_objects.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/store_gate.h"
#include "client-sai/sai/write_behind.h"
#include "common/base/clock.h"
#include "common/base/sync.h"

namespace mosa::sai {

class OpenModes {
 public:
  OpenModes(const FilesystemOptions& options, NodeApi& nodes, KernelNotifier& notifier,
            HandleTable& handles, Lease& lease, AttributeCache& attributes, AccessRights& rights,
            StoreGate& gate, NodeObjects& objects, WriteBehind& write_behind, Grants& grants,
            Stats& stats, const Clock& clock)
      : options_(options),
        nodes_(nodes),
        notifier_(notifier),
        handles_(handles),
        lease_(lease),
        attributes_(attributes),
        rights_(rights),
        gate_(gate),
        objects_(objects),
        write_behind_(write_behind),
        grants_(grants),
        stats_(stats),
        clock_(clock) {}

  // Sets the handle's mode and counts it in the inode's numbers of handles.
  Outcome<Done> Choose(OpenFile& handle);
  // The kernel has refused the backing file: returns the mode to open with instead.
  OpenMode PassthroughRefused(HandleId handle);
  // The kernel has opened the file without its backing file.
  void OpenedUnbacked(HandleId handle);
  // The handle uses its object no more.
  void LeaveBacking(OpenFile& handle);

  // Notes what the kernel has written by passthrough, and takes room for more.
  void FollowKernelWrites();
  // False while programs are fully traced: a trace sees all writes, and the first read of what was
  // written.
  void Allow(bool passthrough) { passthrough_allowed_ = passthrough; }
  // True if a program may have mapped the object for writing, by passthrough.
  static bool MayBeMapped(const OpenFile& handle);

 private:
  // Returns the object if the kernel may read (or write) it directly, with room for writing
  // reserved.
  std::shared_ptr<LocalObject> PassthroughObject(Inode& inode, bool write);
  // Returns the object for an open that the kernel will map to its backing file. Null for reading a
  // further copy that is not up to date; Busy if the object does not hold the whole file, or if
  // programs must not store into it unseen.
  Outcome<std::shared_ptr<LocalObject>> ObjectToMap(Inode& inode, bool write);
  static bool IsBacked(Inode& inode);
  // Returns true if the object was not recalled or moved since it was opened.
  bool IsCurrent(const Inode& inode, const LocalObject& object) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  // Count the handle in the inode's numbers of handles. The caller must hold the inode's mutex.
  void EnterBacking(OpenFile& handle, std::shared_ptr<LocalObject> object);
  void EnterPages(OpenFile& handle);
  // Whether the kernel keeps what this handle, which only writes, writes.
  bool FillsPages(const OpenFile& handle) const;

  const FilesystemOptions& options_;
  NodeApi& nodes_;
  KernelNotifier& notifier_;
  HandleTable& handles_;
  Lease& lease_;
  AttributeCache& attributes_;
  AccessRights& rights_;
  StoreGate& gate_;
  NodeObjects& objects_;
  WriteBehind& write_behind_;
  Grants& grants_;
  Stats& stats_;
  const Clock& clock_;
  std::atomic<bool> passthrough_allowed_ = true;  // In addition to the options.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_OPEN_MODES_H_
