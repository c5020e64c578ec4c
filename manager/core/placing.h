// Decides where a file's bytes go, and takes a placement away.
#ifndef MOSA_MANAGER_CORE_PLACING_H_
#define MOSA_MANAGER_CORE_PLACING_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "manager/core/cluster.h"
#include "manager/core/copy_planner.h"
#include "manager/core/copy_queue.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/generations.h"
#include "manager/core/groups.h"
#include "manager/core/hints.h"
#include "manager/core/interests.h"
#include "manager/core/node_table.h"
#include "manager/core/recalls.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/uncut_objects.h"
#include "manager/placement/policy.h"

namespace mosa::manager {

class Placing {
 public:
  // What the first copies' objects may hold when the file's placement is taken away.
  enum class FirstObjects : uint8_t { kCut, kNotCut };

  Placing(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes, SessionTable& sessions,
          Groups& groups, Interests& interests, FileHints& hints, Recalls& recalls,
          CopyQueue& copy_queue, UncutObjects& uncut_objects, Generations& generations,
          CopyPlanner& copy_planner)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        groups_(groups),
        interests_(interests),
        hints_(hints),
        recalls_(recalls),
        copy_queue_(copy_queue),
        uncut_objects_(uncut_objects),
        generations_(generations),
        copy_planner_(copy_planner) {}

  Result<PlacementPlan> PlaceSegment(const Inode& inode, const EffectiveHints& hints,
                                     PlacementRequest request) const;
  Status Bind(FileId file, Inode& inode, uint64_t first_bytes);
  void Unbind(FileId file, Inode& inode, FirstObjects first_objects);
  void StoreInline(FileId file, Inode& inode, const CommitRequest& request);
  void DropInline(FileId file, Inode& inode);
  std::optional<Failure> MayLayOutAnew(const SetAttributesRequest& request, const Inode& inode);
  void LayOutAnewIfGone(FileId file, Inode& inode);
  // `pinned`: the requester's kernel has the file's object open.
  std::optional<Failure> PrepareLayoutHint(FileId file, Inode& inode, std::string_view hint,
                                           bool pinned);

 private:
  bool IsKnownElsewhere(FileId file, const Inode& inode) const;
  // Returns why the file cannot be laid out anew now, if anything prevents it. kAborted: the actor
  // must freeze it first.
  std::optional<Failure> MayUnbind(FileId file, const Inode& inode);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  Groups& groups_;
  Interests& interests_;
  FileHints& hints_;
  Recalls& recalls_;
  CopyQueue& copy_queue_;
  UncutObjects& uncut_objects_;
  Generations& generations_;
  CopyPlanner& copy_planner_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_PLACING_H_
