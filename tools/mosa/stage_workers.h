// The processes that copy: some on each host, each of which is told one file after the other. They
// end with this process; what one had under way when it was lost is given to another.
//
// One thread.
#ifndef MOSA_TOOLS_MOSA_STAGE_WORKERS_H_
#define MOSA_TOOLS_MOSA_STAGE_WORKERS_H_

#include <sys/types.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "tools/mosa/run_hosts.h"
#include "tools/mosa/stage_copy.h"

namespace mosa::cli {

class StageWorkers {
 public:
  // Before a job is handed out: with what it has become meanwhile (a fresh temporary).
  using Prepare = std::function<CopyJob(size_t job, size_t host)>;
  using Done = std::function<void(size_t job, size_t host, const Result<CopyResult>& result)>;

  // So many processes as `counts` has for each host. Unavailable if one cannot be started.
  static Result<StageWorkers> Start(const std::vector<RunHost>& hosts,
                                    const std::vector<size_t>& counts);
  StageWorkers(StageWorkers&&) = default;
  StageWorkers& operator=(StageWorkers&&) = delete;
  ~StageWorkers();

  // Runs each job on its host, or on another one when its host has lost all processes. `done` is
  // called once for each, unless a signal comes: then what is under way is ended, and the status is
  // Aborted. `tick` is called now and then.
  Status Run(const std::vector<size_t>& host_of_job, const Prepare& prepare, const Done& done,
             const std::function<void()>& tick);

 private:
  struct Worker {
    size_t host = 0;
    pid_t pid = -1;
    UniqueFd channel;
    std::string received;
    std::optional<size_t> job;  // Under way.
  };
  StageWorkers() = default;
  Status Spawn(const RunHost& host, size_t index);
  bool Feed(Worker& worker, std::deque<size_t>& queue, const Prepare& prepare);
  void Receive(Worker& worker, std::vector<std::deque<size_t>>& queues, const Done& done);
  void Lose(Worker& worker, std::vector<std::deque<size_t>>& queues, const Done& done);
  void Rehome(std::vector<std::deque<size_t>>& queues);
  static void End(Worker& worker);

  std::vector<Worker> workers_;
  std::vector<std::string> host_names_;
  std::vector<size_t> losses_;  // By job: workers that were lost with it.
};

// What such a process does until its input ends: `mosa stage worker`. `parent` is the process with
// which it ends, if it runs beside it; 0: none.
void ServeAsStageWorker(pid_t parent);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_STAGE_WORKERS_H_
