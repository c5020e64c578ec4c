// Recovery: what the manager does about things that it may have forgotten, and what nodes have put
// aside because of that. Pure; one owner.
//
// A database that is not synced loses its last seconds with the machine; one that was restored from
// a copy, or begun anew, has forgotten more. The nodes still hold the bytes. Two rules tell an
// object whose file was forgotten from one whose file was removed:
//  1. Its id is from before the last recovery (or from before an empty store was begun), and its
//     node has not registered without any such object since.
//  2. It was changed after the last change that the database knew when it was loaded, and before
//     this manager began: whoever wrote it then was served by a manager that knew more.
// Such objects are put aside by their nodes, never dropped. People decide (`mosa adopt`).
//
// What a recovery gives out is above anything that was given out before it: file ids,
// data_versions, layout generations, eras and epochs continue at the time in microseconds, faster
// than which none of them can be used up.
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

// Where file ids and data_versions continue after a recovery at `now`.
uint64_t FirstAfterRecovery(Time now);

class Recovery {
 public:
  // ---- while the image is loaded
  void Load(const RecoveryRecord& record) { record_ = record; }
  void NoteStored(Time change_time) { stored_until_ = std::max(stored_until_, change_time); }

  // ---- afterwards
  void Begin(Time now) { began_ = now; }
  // The image may lack what was acknowledged. `next_file_id` is where ids would have continued;
  // returns where they do.
  uint64_t Recover(uint64_t next_file_id, Time now);
  // An empty image: ids begin at `first_file_id`, and none below it is of this store.
  void BeginEmpty(uint64_t first_file_id) { record_.kept_below = first_file_id; }
  const RecoveryRecord& record() const { return record_; }

  // True if an object of `file`, which no file owns, may belong to one that was forgotten.
  // `modified` is when the object was last changed, if its node says so; `settled_below`: what
  // `kept_below` was when its node registered without any such object, or 0.
  bool MayBeForgotten(FileId file, std::optional<Time> modified, uint64_t settled_below) const;
  // True if an object of a file that is known was changed when the image knows no more changes: the
  // file's last changes were forgotten.
  bool HasForgottenChange(Time modified) const;
  // True if a copy with `copy_version` had all that the image knew of its file, whose version is
  // still that of the recovery. It may lack changes that were forgotten, and is to be compared; but
  // where the first copy is gone it is the best there is.
  bool WasValid(uint64_t file_version, uint64_t copy_version) const {
    return record_.version_floor != 0 && file_version == record_.version_floor &&
           copy_version == file_version - 1;
  }

  // ---- what nodes have put aside
  void SetAside(NodeId node, std::vector<AsideObject> objects);
  // At most `files_max` files that something of is aside, ascending, greater than `after`.
  std::vector<FileId> ListAside(size_t files_max, FileId after) const;
  void Forget(NodeId node, FileId file);
  // The parts of `file` that nodes have put aside.
  std::map<NodeId, const AsideObject*> PartsOf(FileId file) const;

 private:
  RecoveryRecord record_;
  Time stored_until_;
  Time began_;
  std::map<NodeId, std::map<FileId, AsideObject>> aside_;
};

// A file put together from what nodes hold of it.
struct JoinedParts {
  Layout layout;               // One copy.
  uint64_t size_bytes = 0;     // Size of the longest part.
  std::vector<NodeId> unused;  // Nodes whose part repeats bytes of the others: other copies.
};
// Puts parts at disjoint places together: each byte is on the node that has data there. Parts that
// overlap others are copies; the largest of these is taken. Nothing if there would be more than
// `segments_max` pieces. `chunk_bytes` is the size of chunks where no regular stripe shows another.
std::optional<JoinedParts> JoinParts(const std::map<NodeId, const AsideObject*>& parts,
                                     uint64_t chunk_bytes, size_t segments_max);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_RECOVERY_H_
