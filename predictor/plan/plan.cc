#include "predictor/plan/plan.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "predictor/advise/candidates.h"
#include "predictor/workflow/streams.h"

namespace mosa::predict {
namespace {

using nlohmann::json;

constexpr std::string_view kOnNode = "node:";
constexpr double kSecondsMax = 1e8;

json ToJson(const std::optional<Interval<double>>& interval) {
  return interval ? json{interval->low, interval->high} : json();
}

std::optional<Interval<double>> IntervalOf(const json& value) {
  if (value.is_null()) return std::nullopt;
  return Interval<double>{value.at(0).get<double>(), value.at(1).get<double>()};
}

bool IsTime(double seconds) { return seconds >= 0 && seconds <= kSecondsMax; }

Status Check(const Plan& plan) {
  const std::set<std::string> hosts(plan.hosts.begin(), plan.hosts.end());
  if (hosts.size() != plan.hosts.size() || hosts.empty())
    return InvalidArgumentError("'hosts' must name at least one host, and none twice");
  std::set<std::string> ids;
  for (const PlannedTask& task : plan.tasks) {
    if (!ids.insert(task.id).second)
      return InvalidArgumentError(fmt::format("names task '{}' twice", task.id));
    if (!hosts.contains(task.host))
      return InvalidArgumentError(
          fmt::format("places task '{}' on '{}', which is not in 'hosts'", task.id, task.host));
    if (!IsTime(task.start_s) || !IsTime(task.end_s) || !IsTime(task.patience_s))
      return InvalidArgumentError(fmt::format(
          "has times of task '{}' that are not from 0 to {:.0f} seconds", task.id, kSecondsMax));
  }
  for (const auto& [path, hints] : plan.files) {
    for (const auto& [name, value] : hints) {
      if (!IsForSpeed(name))
        return InvalidArgumentError(
            fmt::format("gives '{}' the hint '{}', which is not about speed", path, name));
      if (name == "placement" && value.starts_with(kOnNode) &&
          !hosts.contains(value.substr(kOnNode.size())))
        return InvalidArgumentError(
            fmt::format("places '{}' by '{}', which is not in 'hosts'", path, value));
    }
  }
  return OkStatus();
}

Plan FromJson(const json& root) {
  Plan plan;
  root.at("workflow").get_to(plan.workflow);
  root.at("configuration").get_to(plan.configuration);
  root.at("hosts").get_to(plan.hosts);
  const json& predicted = root.at("predicted");
  predicted.at("seconds").get_to(plan.seconds);
  plan.seconds_interval = IntervalOf(predicted.at("seconds_interval"));
  predicted.at("unplanned_seconds").get_to(plan.unplanned_seconds);
  predicted.at("unplanned_failure").get_to(plan.unplanned_failure);
  predicted.at("gain_s").get_to(plan.gain_s);
  plan.gain_interval_s = IntervalOf(predicted.at("gain_interval_s"));
  predicted.at("link_bytes").get_to(plan.link_bytes);
  predicted.at("unplanned_link_bytes").get_to(plan.unplanned_link_bytes);
  predicted.at("store_bytes_max").get_to(plan.store_bytes_max);
  if (root.contains("reads_ahead")) root.at("reads_ahead").get_to(plan.reads_ahead);
  if (root.contains("streams")) root.at("streams").get_to(plan.streams);
  for (const json& each : root.at("tasks")) {
    PlannedTask task;
    each.at("id").get_to(task.id);
    each.at("host").get_to(task.host);
    each.at("start_s").get_to(task.start_s);
    each.at("end_s").get_to(task.end_s);
    each.at("patience_s").get_to(task.patience_s);
    plan.tasks.push_back(std::move(task));
  }
  root.at("files").get_to(plan.files);
  return plan;
}

}  // namespace

std::string ToJsonText(const Plan& plan) {
  json tasks = json::array();
  for (const PlannedTask& task : plan.tasks)
    tasks.push_back({{"id", task.id},
                     {"host", task.host},
                     {"start_s", task.start_s},
                     {"end_s", task.end_s},
                     {"patience_s", task.patience_s}});
  const json root = {{"mosa_plan", kPlanVersion},
                     {"workflow", plan.workflow},
                     {"configuration", plan.configuration},
                     {"hosts", plan.hosts},
                     {"predicted",
                      {{"seconds", plan.seconds},
                       {"seconds_interval", ToJson(plan.seconds_interval)},
                       {"unplanned_seconds", plan.unplanned_seconds},
                       {"unplanned_failure", plan.unplanned_failure},
                       {"gain_s", plan.gain_s},
                       {"gain_interval_s", ToJson(plan.gain_interval_s)},
                       {"link_bytes", plan.link_bytes},
                       {"unplanned_link_bytes", plan.unplanned_link_bytes},
                       {"store_bytes_max", plan.store_bytes_max}}},
                     {"tasks", std::move(tasks)},
                     {"reads_ahead", plan.reads_ahead},
                     {"streams", plan.streams},
                     {"files", plan.files}};
  return root.dump(1) + "\n";
}

Result<Plan> ReadPlan(std::string_view text) {
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return InvalidArgumentError("is not valid JSON: make the plan again");
  if (!root.is_object() || !root.contains("mosa_plan"))
    return InvalidArgumentError("is not a plan: 'mosa plan' writes one");
  if (root["mosa_plan"] != kPlanVersion)
    return InvalidArgumentError(fmt::format("has plan version {}, and this program reads {}",
                                            root["mosa_plan"].dump(), kPlanVersion));
  try {
    Plan plan = FromJson(root);
    MOSA_RETURN_IF_ERROR(Check(plan));
    return plan;
  } catch (const json::exception& fault) {
    return InvalidArgumentError(fmt::format("is damaged: {}", fault.what()));
  }
}

Result<std::vector<std::string>> ApplyPlan(const Plan& plan, const std::vector<std::string>& hosts,
                                           Workflow& workflow) {
  if (plan.hosts.size() > hosts.size())
    return FailedPreconditionError(
        fmt::format("is for {} hosts, and there are {}: make a plan for these", plan.hosts.size(),
                    hosts.size()));
  if (plan.tasks.empty()) return std::vector<std::string>();
  std::map<std::string_view, const PlannedTask*> tasks;
  for (const PlannedTask& task : plan.tasks) tasks.emplace(task.id, &task);
  std::map<std::string_view, uint32_t> places;
  for (uint32_t i = 0; i < plan.hosts.size(); ++i) places.emplace(plan.hosts[i], i);
  for (const Task& task : workflow.tasks)
    if (!tasks.contains(task.id))
      return FailedPreconditionError(
          fmt::format("does not fit this workflow: it has no {}", Describe(task)));
  if (tasks.size() != workflow.tasks.size())
    return FailedPreconditionError(
        fmt::format("does not fit this workflow: it has {} tasks, not {}", tasks.size(),
                    workflow.tasks.size()));
  for (Task& task : workflow.tasks) {
    const PlannedTask& planned = *tasks.at(task.id);
    task.planned = PlannedHost{HostIndex{places.at(planned.host)},
                               Duration{static_cast<int64_t>(planned.patience_s * 1e9)}};
  }
  workflow.hints_are_whole = true;
  workflow.reads_ahead = plan.reads_ahead;
  if (!plan.streams) workflow = WithoutStreams(std::move(workflow));
  std::map<std::string, HintMap> unused = plan.files;
  for (WorkflowFile& file : workflow.files) {
    if (!file.producer) continue;
    const auto found = unused.extract(file.path);
    if (!found || file.hints.contains("pattern") || file.hints.contains("placement")) continue;
    for (const auto& [name, value] : found.mapped()) {
      const bool on_node = name == "placement" && value.starts_with(kOnNode);
      file.hints.emplace(name, on_node ? fmt::format("{}{}", kOnNode,
                                                     hosts[places.at(value.substr(kOnNode.size()))])
                                       : value);
    }
  }
  std::vector<std::string> paths;
  for (const auto& [path, hints] : unused) paths.push_back(path);
  return paths;
}

}  // namespace mosa::predict
