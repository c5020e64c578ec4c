// Requests of mounts about a file's bytes: open, bind, freeze, relocate, commit, release.
#ifndef MOSA_MANAGER_CORE_BYTE_REQUESTS_H_
#define MOSA_MANAGER_CORE_BYTE_REQUESTS_H_

#include <optional>
#include <vector>

#include "manager/core/cluster.h"
#include "manager/core/copy_queue.h"
#include "manager/core/copy_reviews.h"
#include "manager/core/copy_view.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/file_view.h"
#include "manager/core/generations.h"
#include "manager/core/grants.h"
#include "manager/core/groups.h"
#include "manager/core/interests.h"
#include "manager/core/lifetimes.h"
#include "manager/core/limits.h"
#include "manager/core/node_table.h"
#include "manager/core/placing.h"
#include "manager/core/recalls.h"
#include "manager/core/staging.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"
#include "manager/core/uncut_objects.h"

namespace mosa::manager {

class ByteRequests {
 public:
  ByteRequests(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes, Groups& groups,
               Interests& interests, TextPool& texts, FileHints& hints, Limits& limits,
               CopyView& copy_view, Recalls& recalls, Lifetimes& lifetimes, CopyQueue& copy_queue,
               UncutObjects& uncut_objects, Grants& grants, Generations& generations,
               Staging& staging, CopyReviews& copy_reviews, Placing& placing, FileView& file_view)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        groups_(groups),
        interests_(interests),
        texts_(texts),
        hints_(hints),
        limits_(limits),
        copy_view_(copy_view),
        recalls_(recalls),
        lifetimes_(lifetimes),
        copy_queue_(copy_queue),
        uncut_objects_(uncut_objects),
        grants_(grants),
        generations_(generations),
        staging_(staging),
        copy_reviews_(copy_reviews),
        placing_(placing),
        file_view_(file_view) {}

  Reply Apply(const OpenRequest& request);
  Reply Apply(const ReleaseRequest& request);
  Reply Apply(const BindRequest& request);
  Reply Apply(const FreezeRequest& request);
  Reply Apply(const RelocateRequest& request);
  Reply Apply(const CommitRequest& request);

 private:
  // Freezes the file for the actor. The caller's reply waits until no client stores by the layout.
  std::optional<Failure> FreezeFor(FileId file);
  Reply Relocate(const RelocateRequest& request, Inode& inode);
  // Has the client punch out what the nodes have in the range, under a generation that they accept.
  Reply AskToClean(FileId file, Inode& inode, std::vector<NodeId> nodes);
  std::optional<Failure> CheckCommit(const CommitRequest& request);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  Groups& groups_;
  Interests& interests_;
  TextPool& texts_;
  FileHints& hints_;
  Limits& limits_;
  CopyView& copy_view_;
  Recalls& recalls_;
  Lifetimes& lifetimes_;
  CopyQueue& copy_queue_;
  UncutObjects& uncut_objects_;
  Grants& grants_;
  Generations& generations_;
  Staging& staging_;
  CopyReviews& copy_reviews_;
  Placing& placing_;
  FileView& file_view_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_BYTE_REQUESTS_H_
