// A host's mount as the runner uses it: the runner does not hang, whatever it asks. Unavailable:
// the mount does not answer. Aborted: a signal ended the wait.
//
// Paths are from the run's directory, or absolute. One thread.
#ifndef MOSA_TOOLS_HOSTS_HOST_MOUNT_H_
#define MOSA_TOOLS_HOSTS_HOST_MOUNT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "predictor/workflow/workflow.h"
#include "tools/console/residence.h"
#include "tools/hosts/files.h"
#include "tools/hosts/hand.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

class HostMount {
 public:
  // `with_checksums`: what is asked about files includes their checksums.
  explicit HostMount(const RunHost& host, bool with_checksums = false);

  struct Look {
    bool answers = false;  // The mount point is there, and commands get to the host.
    bool mosa = false;     // It is a Mosa mount.
  };
  // Looks at the host; several may be looked at at the same time. EndLook waits for a mount at most
  // kLookMax, and for a command elsewhere kReachMax.
  void BeginLook();
  Look EndLook();
  // Whether the mount is still what it was, and commands get there.
  bool Answers();
  // Without waiting: true until a look, of which one begins every kLookEach, says that the mount is
  // gone or stays without an answer for kLookMax.
  bool SeemsAlive(Time now);

  Status MakeDirectory();
  // As the functions of files.h.
  Result<bool> SettleDirectory(const std::string& path, const predict::HintMap& hints);
  Status TryHints(const predict::HintMap& hints);
  // What each of the files is: as many answers as paths, unless there is none.
  using Found = std::vector<Result<FileFacts>>;
  Result<Found> Locate(const std::vector<std::string>& paths);
  // The same for files that must be readable too.
  Result<Found> LocateReadable(const std::vector<std::string>& paths);
  // The same for a task's outputs: FailedPrecondition for one that it has not written.
  Result<Found> LocateWritten(const std::vector<std::string>& paths);
  // Files below the run's directory that the manager knows to be lost, as `mosa lost`; none if the
  // host's environment names no manager.
  Result<std::vector<std::string>> ListLost();
  // Tell the manager of the mount about a run and its tasks, by MOSA_TASK and whether they have
  // succeeded. FailedPrecondition as for TakeResidence(). Within kManagerMax. Nothing else may be
  // asked of the manager between PostTasks() and its answer.
  Status BeginWorkflow(const std::string& run);
  // Posts only; TakeTasks() has the answer: how many of them, from the first on, the manager has
  // taken or refused for good; nothing while there is no answer.
  Status PostTasks(const std::vector<std::pair<std::string, bool>>& tasks);
  Result<std::optional<size_t>> TakeTasks(Duration at_most);
  Status EndWorkflow(const std::string& run);
  // How long requests have stayed in the cluster's daemons so far, if that is known within
  // kManagerMax. FailedPrecondition if neither the host's environment nor ours names the manager,
  // or if that one has no such mount.
  Result<ClusterResidence> TakeResidence();
  // The first that is wrong.
  using HintsOfFiles = std::vector<std::pair<std::string, predict::HintMap>>;
  Status GiveHints(const HintsOfFiles& files);
  Status PrepareOutputs(const HintsOfFiles& outputs);
  // Holds these files open for writing, so that readers of streams wait until EndStreams(), however
  // often the task opens and closes them. The end of this object, or of the runner, ends them too.
  // Unavailable: one was not held any more.
  Status BeginStreams(const std::vector<std::string>& paths);
  Status EndStreams(const std::vector<std::string>& paths);

 private:
  static constexpr Duration kLookEach = Seconds(2);
  static constexpr Duration kLookMax = Seconds(8);
  static constexpr Duration kReachMax = Seconds(15);
  static constexpr Duration kWorkMax = Seconds(120);
  static constexpr Duration kManagerMax = Seconds(8);

  Result<nlohmann::json> AskManager(const char* does, nlohmann::json what);
  Result<nlohmann::json> Ask(const nlohmann::json& question, Duration at_most = kWorkMax);
  Status AskWithHints(const char* does, const HintsOfFiles& files);
  Result<Found> LocateAll(const char* how, const std::vector<std::string>& paths);

  const RunHost host_;
  const bool with_checksums_;
  Hand look_;
  Hand reach_;
  Hand work_;
  Hand manager_;
  Time tasks_posted_;
  Time looked_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_HOSTS_HOST_MOUNT_H_
