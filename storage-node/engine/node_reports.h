// NodeReports: what a node has to tell the manager in its heartbeats: damaged and healed objects,
// objects that local programs changed unseen, and which drop orders are carried out. Each is named
// once, and once more to a new stream. Thread-safe; its lock comes after all others.
#ifndef MOSA_STORAGE_NODE_ENGINE_NODE_REPORTS_H_
#define MOSA_STORAGE_NODE_ENGINE_NODE_REPORTS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <set>

#include "common/base/mutex.h"
#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/storage.h"

namespace mosa::node {

class NodeReports {
 public:
  // The object has so many corrupt blocks now; with 0, one that had some is healed.
  void SetCorruptBlocks(FileId file, uint64_t count);
  // The same for damage that was found just now, which is named even if the object was named.
  void NoteDamage(FileId file, uint64_t corrupt_blocks);
  // Local programs changed it, and no mount has told anybody.
  void NoteUntold(FileId file);
  // The object was removed.
  void Forget(FileId file);

  // A drop order of this number (0: none) has been tried; these of its files are to be tried again.
  void NoteDropOrder(uint64_t number, const std::set<FileId>& failed);
  void NoteDropped(FileId file);
  std::set<FileId> drops_to_repeat() const;

  // Adds the reports that no earlier heartbeat of this stream has named, up to a few thousand of
  // each kind.
  void Take(Time now, NodeHeartbeat& heartbeat);
  // Call for a new stream to the manager (ObjectEngine::RepeatReports).
  void Repeat();

 private:
  std::atomic<uint64_t> damaged_count_{0};  // Entries of corrupt_blocks_of_.
  mutable SystemMutex mutex_;
  std::map<FileId, uint64_t> corrupt_blocks_of_ ABSL_GUARDED_BY(mutex_);
  std::set<FileId> corrupt_to_report_ ABSL_GUARDED_BY(mutex_);
  // Objects whose damage was replaced, and those of them that no heartbeat has named yet.
  std::set<FileId> healed_ ABSL_GUARDED_BY(mutex_);
  std::set<FileId> healed_to_report_ ABSL_GUARDED_BY(mutex_);
  std::set<FileId> untold_to_report_ ABSL_GUARDED_BY(mutex_);
  // When a heartbeat named it.
  std::map<FileId, Time> untold_reported_ ABSL_GUARDED_BY(mutex_);
  std::set<FileId> drops_to_repeat_ ABSL_GUARDED_BY(mutex_);
  // The last order since the node registered, and the last one when all drops had succeeded.
  uint64_t last_drop_order_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t drops_done_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_NODE_REPORTS_H_
