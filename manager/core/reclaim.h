// Removes files that nobody needs: those whose lifetime is over, and those whose maker is gone. A
// file goes once no client has it open. Clients that know it are asked, and a mount that has it
// open reports its close.
#ifndef MOSA_MANAGER_CORE_RECLAIM_H_
#define MOSA_MANAGER_CORE_RECLAIM_H_

#include "manager/core/cluster.h"
#include "manager/core/delegations.h"
#include "manager/core/file_table.h"
#include "manager/core/interests.h"
#include "manager/core/lifetimes.h"
#include "manager/core/names.h"
#include "manager/core/recalls.h"
#include "manager/core/runs.h"
#include "manager/core/session_table.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"

namespace mosa::manager {

class Reclaim {
 public:
  Reclaim(Step& step, Cluster& cluster, FileTable& files, SessionTable& sessions,
          Interests& interests, Runs& runs, TextPool& texts, Recalls& recalls, Lifetimes& lifetimes,
          Delegations& delegations, Namespace& names)
      : step_(step),
        cluster_(cluster),
        files_(files),
        sessions_(sessions),
        interests_(interests),
        runs_(runs),
        texts_(texts),
        recalls_(recalls),
        lifetimes_(lifetimes),
        delegations_(delegations),
        names_(names) {}

  void Handle(const EndWorkflow& command);
  void CheckDue();
  void RemoveUncommittedOf(ClientId client);

 private:
  // If no client is known to have the file open, asks those that may have.
  bool MayReclaim(FileId file);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  SessionTable& sessions_;
  Interests& interests_;
  Runs& runs_;
  TextPool& texts_;
  Recalls& recalls_;
  Lifetimes& lifetimes_;
  Delegations& delegations_;
  Namespace& names_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_RECLAIM_H_
