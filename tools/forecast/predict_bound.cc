#include "tools/forecast/predict_bound.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/text_file.h"
#include "tools/measure/capacity_results.h"
#include "tools/measure/envelope_files.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::PredictedTask;
using predict::StageProfile;

constexpr uintmax_t kBytesMax = 64 << 20;

// Sums over all tasks of a stage.
struct StageUse {
  std::vector<std::vector<predict::OpenSpan>> reads, writes;  // By task.
  double read_bytes = 0;
  double own_bytes = 0;  // The part of `read_bytes` that is on the task's own host.
};

std::vector<predict::OpenSpan> OpenSpansOf(const std::vector<predict::TaskSpan>& spans) {
  std::vector<predict::OpenSpan> open;
  for (const predict::TaskSpan& span : spans) open.push_back({span.begin, span.end});
  return open;
}

std::map<std::string, StageUse> UseOf(const predict::Workflow& workflow,
                                      const predict::Prediction& prediction) {
  std::map<std::string, StageUse> uses;
  for (size_t i = 0; i < prediction.tasks.size(); ++i) {
    const PredictedTask& task = prediction.tasks[i];
    StageUse& use = uses[workflow.tasks[i].stage];
    use.reads.push_back(OpenSpansOf(task.reads));
    use.writes.push_back(OpenSpansOf(task.writes));
    use.own_bytes += static_cast<double>(task.read_local + task.read_cached);
    use.read_bytes += static_cast<double>(task.read_local + task.read_cached + task.read_remote);
  }
  return uses;
}

Result<std::vector<predict::RateLimit>> LimitsBy(const Bound& bound, const StageProfile& stage,
                                                 uint32_t clients) {
  if (const auto* capacity = std::get_if<predict::Capacity>(&bound.measured))
    return LimitsOf(stage, *capacity, clients);
  return LimitsOf(stage, std::get<predict::Envelope>(bound.measured), clients);
}

// Compares the input or the output of a stage.
Status CompareTransfer(const Bound& bound, const StageProfile& stage, const StageUse& use,
                       bool is_input, BoundComparison& comparison) {
  const predict::OpenTime open = predict::OpenTimeOf(is_input ? use.reads : use.writes);
  if (open.tasks_max == 0 || (is_input ? stage.files_read : stage.files_written) == 0)
    return OkStatus();
  if (open.seconds < predict::kOpenSecondsMin)
    return FailedPreconditionError(
        fmt::format("{:.3g} ms is too short to measure a rate: at least {} ms are needed",
                    open.seconds * 1e3, predict::kOpenSecondsMin * 1e3));
  MOSA_ASSIGN_OR_RETURN(const std::vector<predict::RateLimit> limits,
                        LimitsBy(bound, stage, open.tasks_max));
  std::vector<predict::Excess> excesses =
      predict::ExcessesOf(limits, {is_input, open.seconds, is_input ? use.own_bytes : 0});
  if (excesses.empty()) return OkStatus();
  const double own = use.read_bytes > 0 && is_input ? use.own_bytes / use.read_bytes : 0;
  comparison.above.push_back({stage.name, std::move(excesses.front()), open.tasks_max, own});
  return OkStatus();
}

std::string NameOfStore(const Bound& bound) {
  return std::visit([](const auto& measured) { return measured.name; }, bound.measured);
}

std::string RateText(double rate, bool is_bandwidth) {
  return is_bandwidth ? fmt::format("{:.4g} MB/s", rate / 1e6)
                      : fmt::format("{:.4g} files/s", rate);
}

}  // namespace

Result<Bound> ReadBound(const std::string& path, const std::string& system) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, kBytesMax));
  const json root = json::parse(text, nullptr, false);
  if (root.is_object() && root.contains("mosa_capacity")) {
    if (!system.empty())
      return InvalidArgumentError(fmt::format(
          "--bound-system {}: {} is a capacity file, which describes only one store; leave it out",
          system, path));
    MOSA_ASSIGN_OR_RETURN(predict::Capacity capacity, ReadCapacityFile(path));
    return Bound{path, std::move(capacity)};
  }
  MOSA_ASSIGN_OR_RETURN(predict::Envelope envelope, ReadEnvelopeOf(path, system, "--bound-system"));
  return Bound{path, std::move(envelope)};
}

Result<BoundComparison> Compare(const Bound& bound, const predict::Workflow& workflow,
                                const predict::Prediction& prediction) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<StageProfile> stages, predict::ProfileOf(workflow));
  const std::map<std::string, StageUse> uses = UseOf(workflow, prediction);
  BoundComparison comparison;
  for (const StageProfile& stage : stages) {
    for (const bool is_input : {true, false}) {
      const Status compared =
          CompareTransfer(bound, stage, uses.at(stage.name), is_input, comparison);
      if (!compared.ok())
        comparison.not_compared.push_back({stage.name, is_input, MessageOf(compared)});
    }
  }
  return comparison;
}

std::string Describe(const AboveBound& above, const Bound& bound) {
  const predict::RateLimit& limit = above.excess.limit;
  std::string text = fmt::format(
      "stage '{}': its simulated {} is {} with up to {} tasks at once; according to {}, '{}' does "
      "at most {}",
      above.stage, limit.name, RateText(above.excess.simulated, limit.is_bandwidth),
      above.tasks_max, bound.path, NameOfStore(bound), RateText(limit.most, limit.is_bandwidth));
  if (above.own_share > 0 && limit.is_bandwidth)
    text += fmt::format(
        " (excluding the {:.0f} % of its reads that are served by the task's own host or page "
        "cache)",
        100 * above.own_share);
  if (!limit.is_input && !limit.is_only_named)
    text += " (which may include writes to the task's own host)";
  return text;
}

std::string Describe(const NotCompared& each, const Bound& bound) {
  return fmt::format("stage '{}': its {} is not compared with {}: {}", each.stage,
                     each.is_input ? "input" : "output", bound.path, each.why);
}

json ToJson(const BoundComparison& comparison, const Bound& bound) {
  json above_bound = json::array(), not_compared = json::array();
  for (const AboveBound& above : comparison.above) {
    const predict::RateLimit& limit = above.excess.limit;
    above_bound.push_back({{"stage", above.stage},
                           {"rate", limit.name},
                           {"unit", limit.is_bandwidth ? "bytes/s" : "files/s"},
                           {"simulated", above.excess.simulated},
                           {"bound", limit.most},
                           {"tasks_at_once", above.tasks_max},
                           {"own_share", above.own_share},
                           {"sentence", Describe(above, bound)}});
  }
  for (const NotCompared& each : comparison.not_compared)
    not_compared.push_back({{"stage", each.stage},
                            {"phase", each.is_input ? "input" : "output"},
                            {"sentence", Describe(each, bound)}});
  return {{"file", bound.path},
          {"store", NameOfStore(bound)},
          {"above", std::move(above_bound)},
          {"not_compared", std::move(not_compared)}};
}

}  // namespace mosa::cli
