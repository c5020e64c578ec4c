#include "tools/measure/identify_tasks.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/hosts/host_mount.h"
#include "tools/runner/begin.h"
#include "tools/runner/engine.h"
#include "tools/runner/record.h"

namespace mosa::cli {

Result<double> SecondsOfRun(const predict::RunProbe& probe, const std::vector<RunHost>& hosts,
                            const std::string& scratch) {
  const predict::Workflow workflow = predict::MakeRunProbe(probe);
  RunRecord record;
  record.workflow_path = workflow.name;
  record.hosts = hosts;
  record.tasks.resize(workflow.tasks.size());
  {
    HostMount mount(hosts.front());
    MOSA_RETURN_IF_ERROR(BeginRun(workflow, mount, record));
    MOSA_RETURN_IF_ERROR(SettleDirectories(workflow, mount, record));
  }
  EngineOptions options;
  options.retries = 0;
  options.record_path = scratch + "/run.json";
  options.logs = scratch;
  options.quiet = true;
  MOSA_RETURN_IF_ERROR(Engine(workflow, record, options).Run());
  Time begin = record.tasks.front().attempts.back().start, end = begin;
  for (const TaskRecord& task : record.tasks) {
    begin = std::min(begin, task.attempts.back().start);
    end = std::max(end, task.attempts.back().end);
  }
  return static_cast<double>((end - begin).ns) / 1e9;
}

}  // namespace mosa::cli
