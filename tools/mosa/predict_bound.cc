#include "tools/mosa/predict_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/base/text_file.h"
#include "predictor/model/cost.h"
#include "tools/mosa/capacity_results.h"
#include "tools/mosa/envelope_files.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::PredictedTask;
using predict::StageProfile;

constexpr uintmax_t kBytesMax = 64 << 20;

// Of all tasks of a stage together.
struct StageUse {
  double running_s = 0;
  double reading_s = 0;
  double writing_s = 0;
  double read_bytes = 0;
  double own_bytes = 0;  // Of `read_bytes`.
};

std::map<std::string, StageUse> UseOf(const predict::Workflow& workflow,
                                      const predict::Prediction& prediction) {
  std::map<std::string, StageUse> uses;
  for (size_t i = 0; i < prediction.tasks.size(); ++i) {
    const PredictedTask& task = prediction.tasks[i];
    StageUse& use = uses[workflow.tasks[i].stage];
    use.running_s += predict::SecondsOf(task.end - task.start);
    use.reading_s += predict::SecondsOf(task.reading);
    use.writing_s += predict::SecondsOf(task.writing);
    use.own_bytes += static_cast<double>(task.read_local + task.read_cached);
    use.read_bytes += static_cast<double>(task.read_local + task.read_cached + task.read_remote);
  }
  return uses;
}

Result<std::vector<predict::RateLimit>> LimitsBy(const Bound& bound, const StageProfile& stage,
                                                 uint32_t clients) {
  if (const auto* capacity = std::get_if<predict::Capacity>(&bound.measured))
    return LimitsOf(stage, *capacity);
  auto limits = LimitsOf(stage, std::get<predict::Envelope>(bound.measured), clients);
  if (limits.ok()) return limits;
  return Status(limits.status().code(), fmt::format("--bound {}: stage '{}': {}", bound.path,
                                                    stage.name, MessageOf(limits.status())));
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
      return InvalidArgumentError(
          fmt::format("--bound-system {}: {} is a capacity, which is of one store; leave it out",
                      system, path));
    MOSA_ASSIGN_OR_RETURN(predict::Capacity capacity, ReadCapacityFile(path));
    return Bound{path, std::move(capacity)};
  }
  MOSA_ASSIGN_OR_RETURN(predict::Envelope envelope, ReadEnvelopeOf(path, system, "--bound-system"));
  return Bound{path, std::move(envelope)};
}

Result<std::vector<AboveBound>> Above(const Bound& bound, const predict::Workflow& workflow,
                                      const predict::Prediction& prediction) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<StageProfile> stages, predict::ProfileOf(workflow));
  const std::map<std::string, StageUse> uses = UseOf(workflow, prediction);
  std::vector<AboveBound> all;
  for (const StageProfile& stage : stages) {
    const auto predicted =
        std::find_if(prediction.stages.begin(), prediction.stages.end(),
                     [&stage](const auto& each) { return each.name == stage.name; });
    const double seconds = predicted == prediction.stages.end()
                               ? 0
                               : predict::SecondsOf(predicted->end - predicted->start);
    if (seconds <= 0) continue;
    const StageUse& use = uses.at(stage.name);
    const double at_once = std::max(1.0, use.running_s / seconds);
    MOSA_ASSIGN_OR_RETURN(
        const std::vector<predict::RateLimit> limits,
        LimitsBy(bound, stage, static_cast<uint32_t>(std::max(1L, std::lround(at_once)))));
    for (const bool is_input : {true, false}) {
      std::vector<predict::Excess> excesses = predict::ExcessesOf(
          limits, is_input ? use.reading_s / at_once : 0, is_input ? 0 : use.writing_s / at_once);
      if (excesses.empty()) continue;
      const double own = use.read_bytes > 0 && is_input ? use.own_bytes / use.read_bytes : 0;
      all.push_back({stage.name, std::move(excesses.front()), at_once, own});
    }
  }
  return all;
}

std::string Describe(const AboveBound& above, const Bound& bound) {
  const predict::RateLimit& limit = above.excess.limit;
  std::string text = fmt::format(
      "stage '{}': its simulated {} is {}, of {:.3g} tasks at once; by {} '{}' does at most {}",
      above.stage, limit.name, RateText(above.excess.simulated, limit.is_bandwidth),
      above.tasks_at_once, bound.path, NameOfStore(bound),
      RateText(limit.most, limit.is_bandwidth));
  if (above.own_share > 0)
    text += fmt::format(
        " ({:.0f} % of what it reads lies on the task's own host or in its pages, which was not "
        "measured)",
        100 * above.own_share);
  return text;
}

json ToJson(const std::vector<AboveBound>& all, const Bound& bound) {
  json stages = json::array();
  for (const AboveBound& above : all) {
    const predict::RateLimit& limit = above.excess.limit;
    stages.push_back({{"stage", above.stage},
                      {"rate", limit.name},
                      {"unit", limit.is_bandwidth ? "bytes/s" : "files/s"},
                      {"simulated", above.excess.simulated},
                      {"bound", limit.most},
                      {"tasks_at_once", above.tasks_at_once},
                      {"own_share", above.own_share},
                      {"sentence", Describe(above, bound)}});
  }
  return {{"file", bound.path}, {"store", NameOfStore(bound)}, {"above", std::move(stages)}};
}

}  // namespace mosa::cli
