#include "predictor/compare/seen_run.h"

#include <algorithm>

#include "predictor/model/cost.h"

namespace mosa::predict {
namespace {

struct HeldFile {
  uint64_t size_bytes = 0;
  BytesByNodeName held;
};

Duration ComputedBy(const Task& task) {
  Duration work = task.operations.empty() ? task.expected.value_or(Duration()) : Duration();
  for (const TaskOperation& operation : task.operations) work = work + operation.before;
  return work * int64_t{task.needs.cores};
}

}  // namespace

void AddFile(uint64_t size_bytes, const BytesByNodeName& held, const std::string& host,
             BytesByNodeName& found) {
  const auto own = held.find(host);
  const uint64_t here = own == held.end() ? 0 : std::min(size_bytes, own->second);
  if (here > 0) found[host] += here;
  const uint64_t rest = size_bytes - here;
  uint64_t elsewhere = 0;
  for (const auto& [node, bytes] : held)
    if (node != host) elsewhere += bytes;
  if (rest == 0 || elsewhere == 0) return;
  for (const auto& [node, bytes] : held) {
    const double share = static_cast<double>(bytes) / static_cast<double>(elsewhere);
    if (node != host) found[node] += static_cast<uint64_t>(static_cast<double>(rest) * share);
  }
}

SeenRun SeenOf(const Workflow& workflow, const Prediction& prediction, const Platform& platform,
               const std::vector<std::string>& hosts) {
  SeenRun run;
  run.hosts = hosts;
  run.computing = prediction.computing;
  for (const PredictedStage& stage : prediction.stages)
    run.stage_computing[stage.name] = stage.computing;
  const auto name_of = [&](uint32_t machine) {
    return machine < hosts.size() ? hosts[machine] : prediction.machines[machine].name;
  };
  std::map<std::string, std::string> peers;
  for (uint32_t i = 0; i < prediction.machines.size(); ++i)
    peers.emplace(prediction.machines[i].name, name_of(i));
  std::vector<HeldFile> files(workflow.files.size());
  for (const PredictedFile& file : prediction.files) {
    HeldFile& held = files[file.file.value];
    held.size_bytes = workflow.at(file.file).size_bytes.value_or(0);
    if (file.is_inline || !file.layout.bound()) continue;
    for (const auto& [machine, bytes] : file.held) held.held[name_of(machine.value)] += bytes;
    run.bytes_by_chunk[file.layout.chunk_bytes] += held.size_bytes;
  }
  for (const PredictedDaemon& daemon : prediction.daemons) {
    const bool is_manager = daemon.daemon == Daemon::kManager;
    for (const ResidenceRow& row : daemon.rows) {
      const auto peer = peers.find(row.peer);
      Add(SeenOf(row.times), run.requests[{ToText(daemon.daemon), row.name,
                                           is_manager ? "-" : name_of(daemon.machine.value),
                                           peer == peers.end() ? row.peer : peer->second}]);
    }
  }
  const Duration notice = Nanoseconds(static_cast<int64_t>(platform.runner.notice_ns));
  for (size_t i = 0; i < prediction.tasks.size(); ++i) {
    const PredictedTask& from = prediction.tasks[i];
    SeenTask& task = run.tasks.emplace_back();
    task.ran = from.ran;
    run.whole = run.whole && from.ran;
    if (!from.ran) continue;
    task.host = from.host;
    task.start = from.start;
    task.end = from.end + notice;
    task.computing = std::min(from.computing, from.end - from.start);
    task.work = ComputedBy(workflow.tasks[i]);
    const std::string host = name_of(from.host.value);
    run.fetched[host] += from.read_remote;
    for (const PathIndex file : workflow.tasks[i].inputs)
      AddFile(files[file.value].size_bytes, files[file.value].held, host, task.read);
    for (const PathIndex file : workflow.tasks[i].outputs)
      AddFile(files[file.value].size_bytes, files[file.value].held, host, task.written);
  }
  return run;
}

}  // namespace mosa::predict
