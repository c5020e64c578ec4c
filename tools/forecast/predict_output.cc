#include "tools/forecast/predict_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "predictor/model/cost.h"
#include "tools/console/output.h"

namespace mosa::cli {
namespace {

using predict::PredictedTask;
using predict::SecondsOf;

double MicrosecondsOf(Duration duration) { return static_cast<double>(duration.ns) / 1e3; }
std::string ShowSeconds(Duration duration) { return fmt::format("{:.3f}", SecondsOf(duration)); }
std::string ShowBytes(uint64_t bytes) { return HumanBytes(static_cast<int64_t>(bytes)); }

double NodeHoursOf(const predict::Prediction& prediction, Duration time) {
  return predict::NodeHours(static_cast<uint32_t>(prediction.machines.size()), time);
}

struct StageSum {
  Duration reading, computing, writing;
  uint64_t local = 0, remote = 0, cached = 0, written = 0;
};

StageSum SumOf(const predict::Workflow& workflow, const predict::Prediction& prediction,
               const std::string& stage) {
  StageSum sum;
  for (size_t i = 0; i < prediction.tasks.size(); ++i) {
    const PredictedTask& task = prediction.tasks[i];
    if (workflow.tasks[i].stage != stage) continue;
    sum.reading = sum.reading + task.reading;
    sum.computing = sum.computing + task.computing;
    sum.writing = sum.writing + task.writing;
    sum.local += task.read_local;
    sum.remote += task.read_remote;
    sum.cached += task.read_cached;
    sum.written += task.written;
  }
  return sum;
}

// Tasks that ran, by start.
std::vector<size_t> ByStart(const predict::Prediction& prediction) {
  std::vector<size_t> order;
  for (size_t i = 0; i < prediction.tasks.size(); ++i)
    if (prediction.tasks[i].ran) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return prediction.tasks[a].start < prediction.tasks[b].start;
  });
  return order;
}

nlohmann::json Slice(const std::string& name, const std::string& category, size_t process,
                     size_t thread, Duration begin, Duration duration) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", MicrosecondsOf(begin)},
          {"dur", MicrosecondsOf(duration)},
          {"pid", process},
          {"tid", thread}};
}

// A metadata event that sets a name or another property of a process, or of one of its threads.
nlohmann::json Fact(const char* kind, size_t process, size_t thread, const char* name,
                    const nlohmann::json& value) {
  return {
      {"name", kind}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{name, value}}}};
}

nlohmann::json ToJson(const predict::Interval<Duration>& interval) {
  return {SecondsOf(interval.low), SecondsOf(interval.high)};
}

nlohmann::json FileToJson(const predict::Workflow& workflow,
                          const predict::Configuration& configuration,
                          const predict::PredictedFile& file) {
  // Node i + 1 is on machine i, counted after the machines that only run tasks.
  const uint32_t before = configuration.storage_hosts == 0 ? 0 : configuration.hosts;
  nlohmann::json segments = nlohmann::json::array();
  for (const Segment& segment : file.layout.segments) {
    std::vector<std::string> nodes;
    for (const NodeId node : segment.nodes)
      nodes.push_back(fmt::format("h{}", before + node.value));
    segments.push_back({{"begin", segment.begin}, {"width", segment.width}, {"nodes", nodes}});
  }
  nlohmann::json held = nlohmann::json::object();
  for (const auto& [machine, bytes] : file.held)
    held[fmt::format("h{}", machine.value + 1)] = bytes;
  return {{"path", workflow.at(file.file).path},
          {"inline", file.is_inline},
          {"chunk_size", file.layout.chunk_bytes},
          {"segments", std::move(segments)},
          {"nodes", std::move(held)}};
}

nlohmann::json StagesToJson(const predict::Prediction& prediction, const Forecast& forecast) {
  nlohmann::json stages = nlohmann::json::array();
  for (const predict::PredictedStage& stage : prediction.stages) {
    stages.push_back({{"name", stage.name},
                      {"tasks", stage.tasks},
                      {"start_s", SecondsOf(stage.start)},
                      {"end_s", SecondsOf(stage.end)},
                      {"mean_s", nullptr},
                      {"interval_s", nullptr}});
    const auto found = forecast.stages.find(stage.name);
    if (found == forecast.stages.end()) continue;
    const auto& [interval, mean] = found->second;
    if (mean) stages.back()["mean_s"] = SecondsOf(*mean);
    if (interval) stages.back()["interval_s"] = ToJson(*interval);
  }
  return stages;
}

nlohmann::json TasksToJson(const predict::Workflow& workflow,
                           const predict::Prediction& prediction) {
  nlohmann::json tasks = nlohmann::json::array();
  for (size_t i = 0; i < prediction.tasks.size(); ++i) {
    const PredictedTask& task = prediction.tasks[i];
    if (!task.ran) continue;
    tasks.push_back({{"id", workflow.tasks[i].id},
                     {"stage", workflow.tasks[i].stage},
                     {"host", prediction.machines[task.host.value].name},
                     {"placed", predict::ToText(task.reason)},
                     {"start_s", SecondsOf(task.start)},
                     {"end_s", SecondsOf(task.end)},
                     {"read_s", SecondsOf(task.reading)},
                     {"compute_s", SecondsOf(task.computing)},
                     {"write_s", SecondsOf(task.writing)},
                     {"bytes_read_local", task.read_local},
                     {"bytes_read_remote", task.read_remote},
                     {"bytes_read_cached", task.read_cached},
                     {"bytes_written", task.written}});
  }
  return tasks;
}

}  // namespace

void PrintPrediction(const predict::Workflow& workflow, const predict::Prediction& prediction,
                     const Forecast& forecast) {
  Table stages({"STAGE", "TASKS", "BEGINS S", "ENDS S", "SECONDS", "READ LOCALLY", "READ REMOTELY",
                "CACHED", "WRITTEN"});
  for (const predict::PredictedStage& stage : prediction.stages) {
    const StageSum sum = SumOf(workflow, prediction, stage.name);
    stages.Add({stage.name, fmt::format("{}", stage.tasks), ShowSeconds(stage.start),
                ShowSeconds(stage.end), ShowSeconds(stage.end - stage.start), ShowBytes(sum.local),
                ShowBytes(sum.remote), ShowBytes(sum.cached), ShowBytes(sum.written)});
  }
  stages.Print();
  Table machines({"HOST", "SENT", "RECEIVED", "PEAK STORED"});
  for (const predict::PredictedMachine& machine : prediction.machines)
    machines.Add({machine.name, ShowBytes(machine.link.sent_in_all()),
                  ShowBytes(machine.link.received_in_all()), ShowBytes(machine.store_bytes_max)});
  fmt::print("\n");
  machines.Print();
  if (prediction.failure)
    fmt::print("\nThe run fails at {} s; tasks that run at that time finish.",
               ShowSeconds(prediction.failed_at));
  fmt::print("\nTurnaround {} s", ShowSeconds(prediction.turnaround));
  if (const TimeForecast& whole = forecast.turnaround; whole.interval)
    fmt::print(" (90 % interval {} to {}, mean {})", ShowSeconds(whole.interval->low),
               ShowSeconds(whole.interval->high), ShowSeconds(*whole.mean));
  fmt::print(", {:.4f} node-hours", NodeHoursOf(prediction, prediction.turnaround));
  if (forecast.joules) fmt::print(", {:.3f} kJ", *forecast.joules / 1e3);
  if (forecast.joules_interval)
    fmt::print(" ({:.3f} to {:.3f})", forecast.joules_interval->low / 1e3,
               forecast.joules_interval->high / 1e3);
  fmt::print("\n");
}

nlohmann::json ToJson(const predict::Workflow& workflow,
                      const predict::Configuration& configuration,
                      const predict::Prediction& prediction, const Forecast& forecast) {
  nlohmann::json root = {{"workflow", workflow.name},
                         {"configuration", predict::ToText(configuration)},
                         {"turnaround_s", SecondsOf(prediction.turnaround)},
                         {"turnaround_interval_s", nullptr},
                         {"turnaround_mean_s", nullptr},
                         {"draws", forecast.draws},
                         {"draws_failed", forecast.draws_failed},
                         {"draw_failure", nullptr},
                         {"node_hours", NodeHoursOf(prediction, prediction.turnaround)},
                         {"node_hours_interval", nullptr},
                         {"energy_j", nullptr},
                         {"energy_interval_j", nullptr},
                         {"links_mean", nullptr},
                         {"failure", nullptr},
                         {"failed_at_s", nullptr},
                         {"full", nullptr},
                         {"manager_calls", prediction.manager_calls},
                         {"events", prediction.events},
                         {"digest", fmt::format("{:016x}", prediction.digest)},
                         {"hosts", nlohmann::json::array()}};
  if (forecast.draws_failed > 0) root["draw_failure"] = forecast.draw_failure;
  if (const auto& interval = forecast.turnaround.interval; interval) {
    root["turnaround_interval_s"] = ToJson(*interval);
    root["node_hours_interval"] = {NodeHoursOf(prediction, interval->low),
                                   NodeHoursOf(prediction, interval->high)};
  }
  if (const auto& mean = forecast.turnaround.mean; mean)
    root["turnaround_mean_s"] = SecondsOf(*mean);
  if (!forecast.sent_mean.empty())
    root["links_mean"] = {{"bytes_sent", forecast.sent_mean},
                          {"bytes_received", forecast.received_mean}};
  if (forecast.joules) root["energy_j"] = *forecast.joules;
  if (forecast.joules_interval)
    root["energy_interval_j"] = {forecast.joules_interval->low, forecast.joules_interval->high};
  if (prediction.failure) {
    root["failure"] = *prediction.failure;
    root["failed_at_s"] = SecondsOf(prediction.failed_at);
    if (prediction.full)
      root["full"] = {{"nodes", prediction.full->nodes}, {"file", prediction.full->file}};
  }
  for (const predict::PredictedFile& file : prediction.files)
    root["files"].push_back(FileToJson(workflow, configuration, file));
  if (!prediction.daemons.empty()) root["residence"] = ToJson(ResidenceOf(prediction));
  root["stages"] = StagesToJson(prediction, forecast);
  for (const predict::PredictedMachine& machine : prediction.machines)
    root["hosts"].push_back({{"name", machine.name},
                             {"cores", machine.cores},
                             {"bytes_sent", machine.link.sent_in_all()},
                             {"bytes_received", machine.link.received_in_all()},
                             {"bytes_inside", machine.link.inside},
                             {"application_core_s", machine.use.application_core_s},
                             {"store_core_s", machine.use.store_core_s},
                             {"sending_s", machine.use.sending_s},
                             {"receiving_s", machine.use.receiving_s},
                             {"store_bytes_max", machine.store_bytes_max}});
  root["tasks"] = TasksToJson(workflow, prediction);
  return root;
}

ClusterResidence ResidenceOf(const predict::Prediction& prediction) {
  ClusterResidence residence;
  residence.cluster = "predicted";
  for (const predict::PredictedDaemon& from : prediction.daemons) {
    DaemonResidence& daemon = residence.daemons.emplace_back();
    daemon.component = predict::ToText(from.daemon);
    daemon.host = from.daemon == predict::Daemon::kManager
                      ? "-"
                      : prediction.machines[from.machine.value].name;
    daemon.between = prediction.turnaround;
    daemon.snapshot.component = daemon.component;
    daemon.snapshot.taken.ns = prediction.turnaround.ns;
    daemon.snapshot.rows = from.rows;
  }
  return residence;
}

nlohmann::json TraceOf(const predict::Workflow& workflow, const predict::Prediction& prediction) {
  nlohmann::json events = nlohmann::json::array();
  for (size_t i = 0; i < prediction.machines.size(); ++i) {
    events.push_back(Fact("process_name", i + 1, 0, "name", prediction.machines[i].name));
    events.push_back(Fact("process_sort_index", i + 1, 0, "sort_index", i + 1));
  }
  // A task takes the first free slot of its host.
  std::vector<std::vector<Duration>> slots(prediction.machines.size());
  for (const size_t i : ByStart(prediction)) {
    const PredictedTask& task = prediction.tasks[i];
    std::vector<Duration>& of_host = slots[task.host.value];
    auto slot = std::find_if(of_host.begin(), of_host.end(),
                             [&task](Duration until) { return until <= task.start; });
    const bool is_new = slot == of_host.end();
    if (is_new) slot = of_host.insert(slot, Duration());
    *slot = task.end;
    const auto thread = static_cast<size_t>(slot - of_host.begin()) + 1;
    const size_t process = task.host.value + 1;
    if (is_new)
      events.push_back(
          Fact("thread_name", process, thread, "name", fmt::format("slot {}", thread)));
    const predict::Task& from = workflow.tasks[i];
    nlohmann::json slice =
        Slice(from.id, from.stage, process, thread, task.start, task.end - task.start);
    slice["args"] = {{"bytes_read_local", task.read_local},
                     {"bytes_read_remote", task.read_remote},
                     {"bytes_read_cached", task.read_cached},
                     {"bytes_written", task.written}};
    events.push_back(std::move(slice));
    const std::pair<const char*, Duration> parts[] = {{"launch", task.launching},
                                                      {"read", task.reading},
                                                      {"compute", task.computing},
                                                      {"write", task.writing}};
    Duration at = task.end - task.launching - task.reading - task.computing - task.writing;
    for (const auto& [name, duration] : parts) {
      if (duration.ns > 0) events.push_back(Slice(name, from.stage, process, thread, at, duration));
      at = at + duration;
    }
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

}  // namespace mosa::cli
