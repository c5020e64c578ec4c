// Recovery: handles state that the manager may have forgotten, and the objects that nodes put aside
// because of it. Pure; one owner.
//
// A database without fsync loses its last seconds if the machine crashes. One that was restored
// from a backup, or started anew, has lost more. The nodes still hold the bytes. Two rules
// distinguish an object whose file was forgotten from one whose file was removed:
//  1. Its id predates the last recovery (or the start of an empty store), and its node has not
//     since registered without any such object.
//  2. It was changed after the last change that the loaded database knew, and before this manager
//     began. Whoever wrote it then was served by a manager that knew more.
// Nodes put such objects aside and never drop them. An operator decides (`mosa adopt`).
//
// A recovery only issues numbers above all that were issued before it: file ids, data_versions,
// layout generations, eras and epochs continue at the time in microseconds. None of them can be
// used up faster than that.
#ifndef MOSA_MANAGER_CORE_RECOVERY_H_
#define MOSA_MANAGER_CORE_RECOVERY_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "common/model/storage.h"
#include "manager/core/records.h"

namespace mosa::manager {

// Returns where file ids and data_versions continue after a recovery at `now`.
uint64_t FirstAfterRecovery(Time now);

class Recovery {
 public:
  // ---- while the image is loaded
  void Load(const RecoveryRecord& record) { record_ = record; }
  void NoteStored(Time change_time) { stored_until_ = std::max(stored_until_, change_time); }

  // ---- afterwards
  void Begin(Time now) { began_ = now; }
  // Call if the image may lack acknowledged changes. `next_file_id` is where ids would have
  // continued; returns where they continue instead.
  uint64_t Recover(uint64_t next_file_id, Time now);
  // Call for an empty image: ids begin at `first_file_id`, and lower ids are of an earlier store.
  void BeginEmpty(uint64_t first_file_id) { record_.kept_below = first_file_id; }
  const RecoveryRecord& record() const { return record_; }

  // Returns true if an object of `file`, which no file owns, may belong to a forgotten file.
  // `modified`: when the object last changed, if its node knows. `settled_below`: the value of
  // `kept_below` when its node registered without any such object, or 0.
  bool MayBeForgotten(FileId file, std::optional<Time> modified, uint64_t settled_below) const;
  // Returns true if an object of a known file changed after the last change that the image knows.
  // Then the file's last changes were forgotten.
  bool HasForgottenChange(Time modified) const;
  // Returns true if a copy with `copy_version` was valid in the image and its file has not changed
  // since the recovery. The copy may lack forgotten changes and must be compared; but where the
  // first copy is gone, it is the best there is.
  bool WasValid(uint64_t file_version, uint64_t copy_version) const {
    return record_.version_floor != 0 && file_version == record_.version_floor &&
           copy_version == file_version - 1;
  }

  // ---- objects that nodes have put aside
  void SetAside(NodeId node, std::vector<AsideObject> objects);
  // Returns at most `files_max` files with objects aside, ascending, with ids above `after`.
  std::vector<FileId> ListAside(size_t files_max, FileId after) const;
  void Forget(NodeId node, FileId file);
  // Returns the parts of `file` that nodes have put aside.
  std::map<NodeId, const AsideObject*> PartsOf(FileId file) const;

 private:
  RecoveryRecord record_;
  Time stored_until_;
  Time began_;
  std::map<NodeId, std::map<FileId, AsideObject>> aside_;
};

// A file assembled from the parts that nodes hold.
struct JoinedParts {
  Layout layout;               // One copy.
  uint64_t size_bytes = 0;     // Size of the longest part.
  std::vector<NodeId> unused;  // Nodes whose part repeats bytes of others: further copies.
};
// Assembles parts at disjoint places: each byte lies on the node that has data there. Parts that
// overlap are copies; the largest is taken. Nothing if that needs more than `segments_max`
// segments. `chunk_bytes` is the chunk size where no regular stripe shows another one.
std::optional<JoinedParts> JoinParts(const std::map<NodeId, const AsideObject*>& parts,
                                     uint64_t chunk_bytes, size_t segments_max);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_RECOVERY_H_
