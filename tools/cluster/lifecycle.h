// Up and down: carries out a plan, and undoes it from whatever point it has reached.
#ifndef MOSA_TOOLS_CLUSTER_LIFECYCLE_H_
#define MOSA_TOOLS_CLUSTER_LIFECYCLE_H_

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "tools/cluster/plan.h"
#include "tools/cluster/state.h"

namespace mosa::cluster {

// Facts about this machine and user.
Machine InspectMachine();

// Gives a process that starts a cluster, or removes the last of its network, exclusive use of the
// directory; for root, of this machine's networks too, whatever directories others use. Released
// with the object.
class DirectoryLock {
 public:
  // Makes the directory (and its parents) if absent.
  static Result<DirectoryLock> Take(const std::string& directory);
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  DirectoryLock(DirectoryLock&&) = default;
  void Release();

 private:
  DirectoryLock() = default;
  UniqueFd networks_;
  UniqueFd directory_;
};

// Starts the cluster: directories, network, secret, manager, storage nodes, mounts; returns when
// every mount serves. `lock` is released as soon as names and addresses are claimed. `binaries` is
// where the daemons' programs are.
// AlreadyExists if the name is in use, NotFound if a program is missing. On any failure, and when
// interrupted (Aborted), everything that had been started is removed again.
// Precondition: an InterruptGuard exists.
Result<ClusterState> Up(const ClusterPlan& plan, const std::string& binaries, DirectoryLock lock);

// Restarts the manager of a cluster that is up, at its address and on its data; returns when it
// serves. FailedPrecondition if it is running, or if the cluster is not up. If it does not come up,
// the call can be repeated.
// Precondition: an InterruptGuard exists.
Result<ClusterState> RestartManager(const std::string& directory, const std::string& name,
                                    const std::string& binaries);

// Ends every process of the cluster (including those inside its namespaces), unmounts, and removes
// namespaces, links and directories. Continues after failures and returns the last one.
Status Down(const ClusterState& state);

// Ends a cluster by name, even one whose `up` is still under way or was killed.
Status DownByName(const std::string& directory, const std::string& name);

}  // namespace mosa::cluster

#endif  // MOSA_TOOLS_CLUSTER_LIFECYCLE_H_
