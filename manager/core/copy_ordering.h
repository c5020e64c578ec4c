// Orders to nodes to fetch copies, and their reports.
#ifndef MOSA_MANAGER_CORE_COPY_ORDERING_H_
#define MOSA_MANAGER_CORE_COPY_ORDERING_H_

#include <map>
#include <set>

#include "manager/core/cluster.h"
#include "manager/core/copy_queue.h"
#include "manager/core/copy_view.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/node_table.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"

namespace mosa::manager {

class CopyOrdering {
 public:
  CopyOrdering(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes,
               SessionTable& sessions, CopyWork& copy, FileHints& hints, CopyView& copy_view,
               CopyQueue& copy_queue)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        copy_(copy),
        hints_(hints),
        copy_view_(copy_view),
        copy_queue_(copy_queue) {}

  void OrderCopies(FileId file, const Inode& inode, bool eagerly);
  void Handle(const NodeCopyReport& command);

 private:
  void StartCopy(NodeId target, const std::map<NodeId, CopyOrder>& orders);
  bool MayOrderCopy(FileId file, const Inode& inode, NodeId target, bool follow);
  NodeId SourceFor(const Inode& inode, const CopyPlace& place,
                   const std::set<NodeId>& copying) const;
  void FillSources(const Inode& inode, NodeId target, const std::set<NodeId>& copying,
                   CopyOrder& order) const;
  void FinishCopy(FileId file, Inode& inode, NodeId node, const CopyTask& task,
                  const CopyReport& report);
  void FailCopy(FileId file, NodeId node, const CopyReport& report);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  CopyWork& copy_;
  FileHints& hints_;
  CopyView& copy_view_;
  CopyQueue& copy_queue_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_COPY_ORDERING_H_
