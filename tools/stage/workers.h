// The workers that copy: some on each host. Each gets one file after the other; if it is lost, its
// file goes to another worker. They end with this process.
//
// One thread.
#ifndef MOSA_TOOLS_STAGE_WORKERS_H_
#define MOSA_TOOLS_STAGE_WORKERS_H_

#include <sys/types.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "tools/hosts/hosts.h"
#include "tools/hosts/worker.h"
#include "tools/stage/copy.h"

namespace mosa::cli {

class StageWorkers {
 public:
  // Before a job is handed out: with what it has become meanwhile (a fresh temporary).
  using Prepare = std::function<CopyJob(size_t job, size_t host)>;
  using Done = std::function<void(size_t job, size_t host, const Result<CopyResult>& result)>;

  struct Options {
    std::string task;   // As which they read and write.
    std::string probe;  // A file that every host must see; empty: none.
    Duration greeting_max = Seconds(30);
  };
  // So many processes as `counts` has for each host. Unavailable if one cannot be started.
  static Result<StageWorkers> Start(const std::vector<RunHost>& hosts,
                                    const std::vector<size_t>& counts, const Options& options);
  StageWorkers(StageWorkers&&) = default;
  StageWorkers& operator=(StageWorkers&&) = delete;
  ~StageWorkers();

  // Runs each job on its host, or on another one when its host has lost all processes, does not
  // begin to talk within `greeting_max`, or finds the job's files unavailable. `done` is called
  // once for each, unless a signal comes: then the status is Aborted. `tick` is called now and
  // then.
  Status Run(const std::vector<size_t>& host_of_job, const Prepare& prepare, const Done& done,
             const std::function<void()>& tick);

 private:
  struct CopyWorker : Worker {
    size_t host = 0;
    std::optional<size_t> job;  // Under way; until it has greeted it gets none.
  };
  StageWorkers() = default;
  bool Feed(CopyWorker& worker, const Prepare& prepare);
  void Receive(CopyWorker& worker, const Done& done);
  void Finish(CopyWorker& worker, const Result<CopyResult>& result, const Done& done);
  void Lose(CopyWorker& worker, const Done& done);
  void Rehome();
  std::optional<size_t> OtherHost(size_t host);

  std::vector<CopyWorker> workers_;
  std::vector<std::string> host_names_;
  std::vector<std::deque<size_t>> queues_;  // By host: jobs that wait.
  std::vector<size_t> losses_;              // By job: attempts that were lost.
  Duration greeting_max_;
  size_t next_host_ = 0;  // For jobs that change their host.
};

// What such a process does until its input ends: `mosa stage worker`. `parent` is the process with
// which it ends, if it runs beside it; 0: none. FailedPrecondition if it does not see `probe`.
Status ServeAsStageWorker(pid_t parent, const std::string& probe);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_STAGE_WORKERS_H_
