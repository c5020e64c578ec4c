// Files without a name: when nobody has them open, they and their objects go.
#ifndef MOSA_MANAGER_CORE_ORPHANS_H_
#define MOSA_MANAGER_CORE_ORPHANS_H_

#include "manager/core/answers.h"
#include "manager/core/cluster.h"
#include "manager/core/copy_queue.h"
#include "manager/core/delegations.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/groups.h"
#include "manager/core/interests.h"
#include "manager/core/lock_table.h"
#include "manager/core/node_table.h"
#include "manager/core/placing.h"
#include "manager/core/quotas.h"
#include "manager/core/recalls.h"
#include "manager/core/session_table.h"
#include "manager/core/staging.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"
#include "manager/core/writer_fences.h"

namespace mosa::manager {

class Orphans {
 public:
  Orphans(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes, SessionTable& sessions,
          CopyWork& copy, WriterFences& fences, Groups& groups, Interests& interests,
          LockTable& locks, Quotas& quotas, TextPool& texts, FileHints& hints, Recalls& recalls,
          CopyQueue& copy_queue, Delegations& delegations, Staging& staging, Placing& placing,
          Answers& answers)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        copy_(copy),
        fences_(fences),
        groups_(groups),
        interests_(interests),
        locks_(locks),
        quotas_(quotas),
        texts_(texts),
        hints_(hints),
        recalls_(recalls),
        copy_queue_(copy_queue),
        delegations_(delegations),
        staging_(staging),
        placing_(placing),
        answers_(answers) {}

  void CheckOrphan(FileId file);

 private:
  void DropInode(FileId file);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  CopyWork& copy_;
  WriterFences& fences_;
  Groups& groups_;
  Interests& interests_;
  LockTable& locks_;
  Quotas& quotas_;
  TextPool& texts_;
  FileHints& hints_;
  Recalls& recalls_;
  CopyQueue& copy_queue_;
  Delegations& delegations_;
  Staging& staging_;
  Placing& placing_;
  Answers& answers_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_ORPHANS_H_
