// How many copies a file gets and on which nodes, and what replaces a lost first copy.
#ifndef MOSA_MANAGER_CORE_COPY_PLANNER_H_
#define MOSA_MANAGER_CORE_COPY_PLANNER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "manager/core/cluster.h"
#include "manager/core/copy_queue.h"
#include "manager/core/copy_view.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/generations.h"
#include "manager/core/hints.h"
#include "manager/core/node_table.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/placement/copies.h"

namespace mosa::manager {

class CopyPlanner {
 public:
  CopyPlanner(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes,
              SessionTable& sessions, CopyWork& copy, FileHints& hints, CopyView& copy_view,
              CopyQueue& copy_queue, Generations& generations)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        copy_(copy),
        hints_(hints),
        copy_view_(copy_view),
        copy_queue_(copy_queue),
        generations_(generations) {}

  bool GoesOutToAll(const EffectiveHints& hints) const;
  CopiesChoice ChooseCopiesOf(FileId file, const Inode& inode, const EffectiveHints& hints) const;
  // Returns the copies that `replicas` asks for: a number, or the current choice for auto.
  uint32_t CopiesOf(FileId file, const Inode& inode, const EffectiveHints& hints) const;
  void DescribeCopies(FileId file, const Inode& inode, FileStatus& status) const;
  // Replaces first copies that are gone or leave, and says which nodes are to have the `wanted`
  // copies. Returns true if anything has changed.
  bool Plan(FileId file, Inode& inode, uint32_t wanted);
  Status CheckStrictCopies(const Inode& inode, const EffectiveHints& hints,
                           const Segment& segment) const;
  // Returns the number of copies that a close waits for if it asked for `asked`.
  uint32_t CopiesAwaited(FileId file, const Inode& inode, uint32_t asked) const;

 private:
  uint32_t CopiesIfAllAnswer(FileId file, const Inode& inode) const;
  std::optional<size_t> SuccessorOf(FileId file, const Inode& inode, CopyPlace place, bool gone);
  // Whether something was changed, and whether a copy may go once other nodes have answered.
  struct Change {
    bool made = false;
    bool waits = false;
  };
  // Valid copies of a stripe position on nodes that stay.
  struct SafeCopies {
    uint32_t all = 0;
    uint32_t answering = 0;  // On nodes that have answered since a copy could go.
  };
  Change PromoteCopies(FileId file, Inode& inode, uint32_t wanted);
  Change PlanCells(FileId file, Inode& inode, uint32_t wanted);
  Change DropCells(FileId file, Inode& inode, size_t segment, uint32_t wanted);
  SafeCopies CountSafe(FileId file, const Inode& inode, CopyPlace place) const;
  bool HasAnswered(FileId file, NodeId id) const;
  // A draining node is left even if there cannot be as many copies without it.
  uint32_t PossibleCopies(FileId file, const Inode& inode, size_t segment, uint32_t wanted) const;
  CopiesPlan PlanOf(FileId file, const Inode& inode, size_t segment, uint32_t wanted) const;
  bool AddCells(FileId file, Inode& inode, size_t segment, uint32_t wanted);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  CopyWork& copy_;
  FileHints& hints_;
  CopyView& copy_view_;
  CopyQueue& copy_queue_;
  Generations& generations_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_COPY_PLANNER_H_
