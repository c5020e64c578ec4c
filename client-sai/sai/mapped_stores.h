// MappedStores: what programs store into files behind their last write call. A program that has
// mapped an object by passthrough can store into it unseen by this mount, even long after its
// descriptor was closed. And a commit may fail when no program is left to retry it.
//
// The node learns from the kernel whether a program can still store (no lease is given on a file
// that somebody can write). Comparing the bytes with the last look shows what was stored.
//
// Thread-safe. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_MAPPED_STORES_H_
#define MOSA_CLIENT_SAI_SAI_MAPPED_STORES_H_

#include <memory>

#include "client-sai/api/node_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/block_cache.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/lease.h"
#include "client-sai/sai/node_objects.h"
#include "client-sai/sai/open_modes.h"
#include "client-sai/sai/releases.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/watched_files.h"
#include "client-sai/sai/write_behind.h"
#include "client-sai/sai/writer.h"
#include "common/base/clock.h"
#include "common/base/rare_log.h"
#include "common/base/sync.h"

namespace mosa::sai {

class MappedStores {
 public:
  // `losses`: names files whose bytes were not stored.
  MappedStores(NodeApi& nodes, Lease& lease, AttributeCache& attributes, AccessRights& rights,
               NodeObjects& objects, WriteBehind& write_behind, Writer& writer,
               OpenModes& open_modes, Releases& releases, BlockCache& blocks, RareLog& losses,
               Stats& stats, const Clock& clock)
      : nodes_(nodes),
        lease_(lease),
        attributes_(attributes),
        rights_(rights),
        objects_(objects),
        write_behind_(write_behind),
        writer_(writer),
        open_modes_(open_modes),
        releases_(releases),
        blocks_(blocks),
        losses_(losses),
        stats_(stats),
        clock_(clock),
        watched_(clock) {}

  // Looks at watched files on a thread of its own, until Stop.
  void Start();
  void Stop();

  // True if a program may store into the file through a mapping; an empty file cannot be stored
  // into.
  static bool MayBeStoredInto(const Inode& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(inode.mutex);
  void WatchIfMappable(const std::shared_ptr<OpenFile>& handle);
  // Before a close, fsync or utimensat returns: marks for commit what was stored. The caller must
  // hold the inode's io. Calls the node, and the manager if the node refuses the right.
  void Catch(Inode& inode);

  // The kernel has released the handle, and programs may still store, or a commit is to be tried
  // again. False: end the handle now.
  bool Keep(const std::shared_ptr<OpenFile>& handle);
  // Gives up what the handle holds. Nobody may use it any more.
  void EndHandle(OpenFile& handle);

  // Reports bytes that were written behind the file's last close and are lost.
  void NoteUnsaved(const Inode& inode, const Failure& failure);
  // Logs the files that are kept open although the mount ends.
  void NameKept();
  Stats::Files Files() const;

 private:
  void LookAtWatched();                       // Runs until the mount stops.
  bool LookAt(const WatchedFiles::Due& due);  // Returns true if it is finished.
  // Asks the node what was stored through mappings and marks it for commit. Returns true if a
  // program may still store. While one can, bytes are compared only with `while_written`.
  bool LookAtStores(Inode& inode, bool while_written);
  void CloseWritable(Inode& inode);
  void FinishLocalWrites(const InodePtr& inode, const AccessPtr& access);

  NodeApi& nodes_;
  Lease& lease_;
  AttributeCache& attributes_;
  AccessRights& rights_;
  NodeObjects& objects_;
  WriteBehind& write_behind_;
  Writer& writer_;
  OpenModes& open_modes_;
  Releases& releases_;
  BlockCache& blocks_;
  RareLog& losses_;
  Stats& stats_;
  const Clock& clock_;
  WatchedFiles watched_;
  UnsavedFiles unsaved_;
  Thread finisher_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_MAPPED_STORES_H_
