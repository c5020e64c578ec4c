// Reviews of files: are copies missing or too many? Also answers closes that wait for copies.
//
// Any event that may matter to a file's copies (a bind, write or close; a change of hints, nodes or
// room) only marks the file for review. A review re-evaluates everything and brings the plan and
// the orders to what they should be. If nothing is wrong, it changes nothing.
#ifndef MOSA_MANAGER_CORE_COPY_REVIEWS_H_
#define MOSA_MANAGER_CORE_COPY_REVIEWS_H_

#include <vector>

#include "manager/core/cluster.h"
#include "manager/core/copy_ordering.h"
#include "manager/core/copy_planner.h"
#include "manager/core/copy_queue.h"
#include "manager/core/copy_view.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/node_table.h"
#include "manager/core/recalls.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/uncut_objects.h"
#include "manager/placement/copies.h"

namespace mosa::manager {

class CopyReviews {
 public:
  CopyReviews(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes,
              SessionTable& sessions, CopyWork& copy, FileHints& hints, CopyView& copy_view,
              Recalls& recalls, CopyQueue& copy_queue, UncutObjects& uncut_objects,
              CopyOrdering& copy_ordering, CopyPlanner& copy_planner)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        copy_(copy),
        hints_(hints),
        copy_view_(copy_view),
        recalls_(recalls),
        copy_queue_(copy_queue),
        uncut_objects_(uncut_objects),
        copy_ordering_(copy_ordering),
        copy_planner_(copy_planner) {}

  void Handle(const SetCopiesForecast& command);
  void Run();
  void Review(FileId file);
  void DropLeftovers(FileId file);
  void Tick();
  Reply Apply(const AwaitCopiesRequest& request);

 private:
  void ContinueCopyScan();
  AwaitCopiesReply CopiesReply(FileId file, const Inode& inode) const;
  bool IsAnyCopyWaiterDue(const std::vector<Waiter>& waiters);
  void AnswerCopyWaiters(FileId file, bool only_expired);
  void ExplainCopies(FileId file, const Inode& inode, AwaitCopiesReply& reply) const;

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  CopyWork& copy_;
  FileHints& hints_;
  CopyView& copy_view_;
  Recalls& recalls_;
  CopyQueue& copy_queue_;
  UncutObjects& uncut_objects_;
  CopyOrdering& copy_ordering_;
  CopyPlanner& copy_planner_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_COPY_REVIEWS_H_
