#include "tools/observe/report_data.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "common/base/version.h"
#include "predictor/model/cost.h"
#include "tools/console/residence.h"
#include "tools/forecast/predict_output.h"
#include "tools/observe/report_tasks.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

// Daemons are asked within seconds of each other.
constexpr double kClocksApartSecondsMax = 10;
// With more silent daemons the answers may be minutes apart.
constexpr size_t kSilentMax = 16;
// The mean of fewer requests says too little to name a host.
constexpr uint64_t kRequestsMin = 5;

// ---- what it took

struct Ended {
  size_t tasks = 0, done = 0;
  bool well = false;
};

Ended EndOf(const RunFile& file, const TasksReport& tasks) {
  Ended end;
  for (const json& stage : tasks.stages) {
    end.tasks += stage.at("tasks").get<size_t>();
    end.done += stage.at("done").get<size_t>();
  }
  end.well = file.outcome == "done" && !file.is_cut && end.done == end.tasks;
  return end;
}

std::string MeasuredSentence(const RunFile& file, const Ended& end, const std::string& name) {
  const std::string took =
      file.turnaround_s ? fmt::format("{:.3f} s", *file.turnaround_s) : "an unknown time";
  const std::string hosts =
      fmt::format("{} host{}", file.hosts.size(), file.hosts.size() == 1 ? "" : "s");
  if (end.well) return fmt::format("{} took {} on {}", name, took, hosts);
  if (!file.is_cut && file.outcome == "running")
    return fmt::format("{} on {} is still running or was killed: {} of {} tasks done", name, hosts,
                       end.done, end.tasks);
  if (file.is_cut)
    return fmt::format("{} on {}: the record is cut short, {} tasks of it remain", name, hosts,
                       end.tasks);
  return fmt::format("{} ended as '{}' after {} on {}, {} of {} tasks done", name, file.outcome,
                     took, hosts, end.done, end.tasks);
}

std::string VerdictSentence(const ReportInputs& inputs, const Ended& end, const std::string& name) {
  std::string text = MeasuredSentence(inputs.files.back(), end, name);
  if (!inputs.finished) return text + ". Nothing is predicted.";
  const predict::Comparison& comparison = inputs.finished->compared.comparison;
  for (const predict::ComparedCell& cell : comparison.cells) {
    if (cell.cell.level != predict::Level::kWorkflow) continue;
    text += fmt::format(", predicted {:.3f} s", cell.predicted_s);
    if (cell.predicted_interval_s)
      text += fmt::format(" (nine of ten: {:.3f} to {:.3f} s)", cell.predicted_interval_s->low,
                          cell.predicted_interval_s->high);
    if (cell.runs == 0) text += ", which cannot be compared in all";
  }
  return fmt::format("{}. {}", text, VerdictOf(comparison));
}

// ---- what daemons say

// They were asked at the same time, each by its own clock; a silent one keeps others waiting.
void NoteClocks(const ClusterResidence& residence, std::vector<std::string>& notes) {
  std::vector<Time> times;
  for (const DaemonResidence& daemon : residence.daemons)
    if (daemon.failure.empty()) times.push_back(daemon.snapshot.taken);
  if (residence.daemons.size() - times.size() > kSilentMax) return;
  if (times.empty()) return;
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2),
                   times.end());
  const Time usual = times[times.size() / 2];
  std::vector<std::string> apart;
  for (const DaemonResidence& daemon : residence.daemons) {
    const double off_s =
        (static_cast<double>(daemon.snapshot.taken.ns) - static_cast<double>(usual.ns)) / 1e9;
    if (!daemon.failure.empty() || std::abs(off_s) <= kClocksApartSecondsMax) continue;
    apart.push_back(fmt::format("{} ({:+.0f} s)", Describe(daemon), off_s));
  }
  if (apart.empty()) return;
  notes.push_back(fmt::format(
      "clocks disagree: {} differ from most others. Task times come from the clock of 'mosa run' "
      "alone and residence times are differences, so both can be compared; time stamps of files "
      "and logs cannot",
      fmt::join(apart, ", ")));
}

// `predicted` by the run without draws, if there is a prediction.
json RequestsToJson(const ClusterResidence& residence, const ClusterResidence& predicted) {
  std::map<std::pair<std::string, std::string>, DurationCounts> foretold;
  for (const DaemonResidence& daemon : predicted.daemons)
    for (const ResidenceRow& row : daemon.snapshot.rows)
      foretold[{daemon.component, row.name}].Add(row.times);
  struct Class {
    DurationCounts all;
    std::map<std::string, DurationCounts> by_host;
  };
  std::map<std::pair<std::string, std::string>, Class> classes;
  for (const DaemonResidence& daemon : residence.daemons) {
    for (const ResidenceRow& row : daemon.snapshot.rows) {
      Class& one = classes[{daemon.component, row.name}];
      one.all.Add(row.times);
      one.by_host[daemon.host].Add(row.times);
    }
  }
  json rows = json::array();
  for (const auto& [name, one] : classes) {
    const auto microseconds = [](Duration time) { return static_cast<double>(time.ns) / 1e3; };
    json row = {{"component", name.first},
                {"class", name.second},
                {"count", one.all.Count()},
                {"sum_us", static_cast<double>(one.all.sum_ns) / 1e3},
                {"mean_us", microseconds(one.all.Mean())},
                {"p50_us", microseconds(one.all.Quantile(500))},
                {"p90_us", microseconds(one.all.Quantile(900))},
                {"p99_us", microseconds(one.all.Quantile(990))},
                {"max_us", static_cast<double>(one.all.max_ns) / 1e3}};
    if (const auto found = foretold.find(name); found != foretold.end()) {
      row["predicted_count"] = found->second.Count();
      row["predicted_mean_us"] = microseconds(found->second.Mean());
    }
    Duration worst;
    for (const auto& [host, times] : one.by_host) {
      if (one.by_host.size() < 2 || times.Count() < kRequestsMin || times.Mean() <= worst) continue;
      worst = times.Mean();
      row["slowest_host"] = host;
      row["slowest_mean_us"] = microseconds(worst);
    }
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const json& a, const json& b) {
    return a.at("sum_us").get<double>() > b.at("sum_us").get<double>();
  });
  return rows;
}

// What mounts and storage nodes counted, by component and host.
json CountersToJson(const ClusterResidence& residence) {
  json counters = {{"mount", json::object()}, {"storage", json::object()}};
  for (const DaemonResidence& daemon : residence.daemons) {
    if (!counters.contains(daemon.component) || !daemon.failure.empty()) continue;
    json& sums = counters[daemon.component].emplace(daemon.host, json::object()).first.value();
    for (const ResidenceAmount& amount : daemon.snapshot.amounts)
      if (amount.is_total)
        sums[amount.name] =
            (sums.contains(amount.name) ? sums[amount.name].get<uint64_t>() : 0) + amount.value;
  }
  return counters;
}

void AddResidence(const RunFile& file, const ClusterResidence& predicted, json& data,
                  std::vector<std::string>& notes) {
  data["requests"] = json::array();
  data["counters"] = json::object();
  if (file.residence.is_null()) {
    notes.push_back(fmt::format(
        "{} does not say which way bytes went or how long requests stayed in the daemons: the "
        "store was not Mosa, or the record is cut short or from an older version",
        file.path));
    return;
  }
  if (!file.residence_failure.empty()) {
    notes.push_back(
        fmt::format("{}: the daemons were not asked: {}", file.path, file.residence_failure));
    return;
  }
  const auto residence = ResidenceFromJson(file.residence);
  if (!residence.ok()) {
    notes.push_back(fmt::format("{}: 'residence': {}", file.path, MessageOf(residence.status())));
    return;
  }
  for (const DaemonResidence& daemon : residence->daemons) {
    if (!daemon.failure.empty())
      notes.push_back(fmt::format("{}: what {} counted is not known: {}", file.path,
                                  Describe(daemon), daemon.failure));
    if (daemon.snapshot.is_truncated)
      notes.push_back(
          fmt::format("{}: {} had more classes and peers of requests than it reported: the "
                      "smallest are not counted",
                      file.path, Describe(daemon)));
    if (daemon.since_start)
      notes.push_back(
          fmt::format("{}: {} started or restarted during the run: its counts begin there",
                      file.path, Describe(daemon)));
  }
  if (file.rows_left_out > 0)
    notes.push_back(fmt::format(
        "{}: the record has only the classes and peers of requests that took most time; the {} "
        "smaller ones are not in counts, times and quantiles",
        file.path, file.rows_left_out));
  NoteClocks(*residence, notes);
  data["cluster"] = residence->cluster;
  data["requests"] = RequestsToJson(*residence, predicted);
  data["counters"] = CountersToJson(*residence);
}

// ---- what was run, by what

json ConfigurationToJson(const ReportInputs& inputs) {
  const RunFile& file = inputs.files.back();
  json rows = json::array();
  const auto add = [&rows](const char* name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, value});
  };
  add("record", file.path);
  add("workflow", file.workflow.path);
  add("system", file.system == predict::System::kDss
                    ? "dss: neither hints nor locations"
                    : "wass: hints, and tasks go where their bytes are");
  add("rules", file.rules_path);
  add("plan", file.plan_path);
  add("cluster", file.cluster);
  for (size_t i = 0; i + 1 < inputs.files.size(); ++i) add("other run", inputs.files[i].path);
  if (!inputs.finished) return rows;
  const CompareReport& report = inputs.finished->compared.report;
  add("platform", report.platform);
  add("predicted", report.configuration);
  add("draws", fmt::format("{}", inputs.finished->compared.comparison.draws));
  return rows;
}

json VersionsToJson(const ReportInputs& inputs) {
  json rows = json::array();
  const auto& versions = inputs.files.back().versions;
  for (const auto& [name, value] : versions) rows.push_back({"run: " + name, value});
  if (versions.empty()) rows.push_back({"run: mosa", "not in the record"});
  rows.push_back({"report: mosa", Version()});
  if (!inputs.finished) return rows;
  const predict::Platform& platform = inputs.finished->asked.inputs.platform;
  for (const auto& [name, value] : {std::pair("platform: machine", &platform.machine),
                                    {"platform: measured", &platform.measured},
                                    {"platform: by", &platform.by}})
    if (!value->empty()) rows.push_back({name, *value});
  return rows;
}

json HostsToJson(const RunFile& file, const std::vector<std::string>& lost) {
  json hosts = json::array();
  for (const RunHost& host : file.hosts)
    hosts.push_back({{"name", host.name},
                     {"slots", host.slots},
                     {"link", host.link_bytes_per_second},
                     {"lost", std::find(lost.begin(), lost.end(), host.name) != lost.end()}});
  return hosts;
}

}  // namespace

ReportedRun MakeReport(const ReportInputs& inputs) {
  const RunFile& file = inputs.files.back();
  const FinishedRuns* const finished = inputs.finished ? &*inputs.finished : nullptr;
  TasksReport tasks = ReportTasks(file, finished);
  ReportedRun report;
  report.title = file.workflow.name;
  if (report.title.empty()) report.title = "A run";
  const Ended end = EndOf(file, tasks);
  report.verdict = VerdictSentence(inputs, end, report.title);
  report.notes = finished != nullptr ? finished->compared.report.notes : inputs.notes;
  report.notes.insert(report.notes.end(), tasks.notes.begin(), tasks.notes.end());
  if (const Status faults = CheckFaults(file); !faults.ok())
    report.notes.push_back(MessageOf(faults));
  if (file.is_cut)
    report.notes.push_back(fmt::format("{} ends in the middle: the {} tasks before that are shown",
                                       file.path, end.tasks));
  json& data = report.data;
  AddResidence(file,
               finished != nullptr ? ResidenceOf(finished->drawn.prediction) : ClusterResidence(),
               data, report.notes);
  const std::vector<std::string>& lost = file.hosts_lost;
  if (finished == nullptr && !lost.empty())
    report.notes.push_back(fmt::format("{}: the run lost {}", file.path, fmt::join(lost, ", ")));
  data["hosts"] = HostsToJson(file, lost);
  data["start_s"] = static_cast<double>(file.start.ns) / 1e9;
  data["turnaround_s"] = file.turnaround_s ? json(*file.turnaround_s) : json();
  if (finished != nullptr) {
    const predict::Comparison& comparison = finished->compared.comparison;
    report.is_slower = comparison.finding.is_slower;
    data["comparison"] = ShownToJson(finished->compared.report, comparison);
    data["predicted_s"] = predict::SecondsOf(finished->drawn.prediction.turnaround);
  }
  const bool is_judged = finished != nullptr &&
                         finished->compared.comparison.machine_busy.empty() &&
                         !finished->compared.comparison.finding.sentence.empty();
  data["tone"] = report.is_slower || !end.well || !lost.empty() ? "off"
                 : is_judged                                    ? "well"
                                                                : "plain";
  data["tasks"] = std::move(tasks.tasks);
  data["stages"] = std::move(tasks.stages);
  data["failed"] = std::move(tasks.failed);
  data["placement"] = std::move(tasks.placement);
  data["traffic"] = std::move(tasks.traffic);
  data["notes"] = report.notes;
  data["configuration"] = ConfigurationToJson(inputs);
  data["versions"] = VersionsToJson(inputs);
  if (!inputs.envelope.empty())
    data["envelope"] = "data:image/svg+xml;base64," + absl::Base64Escape(inputs.envelope);
  return report;
}

}  // namespace mosa::cli
