#include "tools/forecast/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "predictor/compare/suspect.h"
#include "predictor/workflow/synthetic.h"
#include "tools/console/output.h"
#include "tools/forecast/compare_made.h"
#include "tools/forecast/predict_inputs.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::Pattern;

// Compute time of a `head` or `cat` task. The platform file has the cost of starting it.
constexpr double kRuntimeSeconds = 0.01;
// Tasks per stage and host.
constexpr uint32_t kTasksPerHost = 2;

// ---- workflows

class GateWorkflow {
 public:
  explicit GateWorkflow(uint64_t file_bytes) : file_bytes_(file_bytes) {}

  void Write(const std::string& id, const std::string& output) {
    Add(id, fmt::format("head -c {} /dev/zero > {}", file_bytes_, output), {}, {output});
    files_[output] = {{"size", file_bytes_}};
  }
  // Concatenates the inputs into one output.
  void Copy(const std::string& id, const std::vector<std::string>& inputs,
            const std::string& output) {
    Add(id, fmt::format("cat {} > {}", fmt::join(inputs, " "), output), inputs, {output});
    files_[output] = {{"size", file_bytes_ * inputs.size()}};
  }
  std::string Text(const std::string& name) const {
    return json({{"name", name}, {"tasks", tasks_}, {"files", files_}}).dump(1) + "\n";
  }

 private:
  void Add(const std::string& id, const std::string& command,
           const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
    tasks_.push_back({{"id", id},
                      {"command", command},
                      {"inputs", inputs},
                      {"outputs", outputs},
                      {"stage", id.substr(0, id.find('-'))},
                      {"runtime", kRuntimeSeconds}});
  }

  const uint64_t file_bytes_;
  json tasks_ = json::array();
  json files_ = json::object();
};

std::string TextOf(Pattern pattern, uint32_t width, uint64_t file_bytes) {
  GateWorkflow workflow(file_bytes);
  std::vector<std::string> parts;
  if (pattern == Pattern::kBroadcast) workflow.Write("write-0", "shared");
  for (uint32_t i = 0; i < width; ++i) {
    const auto named = [i](const char* what) { return fmt::format("{}-{}", what, i); };
    if (pattern == Pattern::kBroadcast) {
      workflow.Copy(named("read"), {"shared"}, named("out"));
      continue;
    }
    workflow.Write(named("write"), named("first"));
    parts.push_back(named("first"));
    if (pattern != Pattern::kPipeline) continue;
    workflow.Copy(named("middle"), {named("first")}, named("second"));
    workflow.Copy(named("last"), {named("second")}, named("third"));
  }
  if (pattern == Pattern::kReduce) workflow.Copy("gather-0", parts, "all");
  return workflow.Text(fmt::format("gate {}", predict::ToText(pattern)));
}

// ---- verdicts

struct Verdict {
  std::string pattern;
  bool passes = true;
  double measured_s = 0;
  double predicted_s = 0;
  double slower_share = 0;
  std::string component;  // The part that explains the failure. Empty: none does.
  std::string sentence;
};

// A pattern fails if it is slower than 19 of 20 predicted runs (nine of ten lie in the interval,
// half of the rest above it) and slower than predicted by more than the margin.
Verdict Judge(const std::string& pattern, const predict::Comparison& comparison, double margin) {
  Verdict verdict;
  verdict.pattern = pattern;
  const auto whole = std::ranges::find_if(comparison.cells, [](const auto& cell) {
    return cell.cell.level == predict::Level::kWorkflow;
  });
  if (whole == comparison.cells.end() || whole->runs == 0) {
    verdict.passes = false;
    verdict.sentence = fmt::format(
        "{}: no run succeeded, so there is nothing to judge: see the errors above", pattern);
    return verdict;
  }
  verdict.measured_s = whole->measured_s;
  verdict.predicted_s = whole->predicted_s;
  verdict.slower_share = whole->measured_s / whole->predicted_s - 1;
  const double high_s =
      whole->predicted_interval_s ? whole->predicted_interval_s->high : whole->predicted_s;
  verdict.passes = verdict.slower_share <= margin || whole->measured_s <= high_s;
  verdict.sentence = fmt::format(
      "{} took {:.3f} s, predicted {:.3f} s (19 of 20 runs within {:.3f} s): {:+.0f} %, {} {:.0f} "
      "%",
      pattern, whole->measured_s, whole->predicted_s, high_s, 100 * verdict.slower_share,
      verdict.passes ? "margin" : "above the margin of", 100 * margin);
  if (verdict.passes) return verdict;
  const std::vector<predict::Cause>& causes = comparison.finding.causes;
  if (causes.empty()) {
    if (comparison.finding.is_replayed)
      verdict.sentence += "; no single part explains a quarter of the delay";
    return verdict;
  }
  std::vector<std::string> components;
  for (const predict::Suspect& suspect : causes.front().suspects)
    components.push_back(predict::Describe(suspect));
  verdict.component = fmt::format("{}", fmt::join(components, " and "));
  verdict.sentence += fmt::format("; most likely {} Open first: {}", causes.front().sentence,
                                  causes.front().open_first);
  return verdict;
}

json ToJson(const Verdict& verdict) {
  return {{"pattern", verdict.pattern},           {"passes", verdict.passes},
          {"measured_s", verdict.measured_s},     {"predicted_s", verdict.predicted_s},
          {"slower_share", verdict.slower_share}, {"component", verdict.component},
          {"sentence", verdict.sentence}};
}

Result<Verdict> RunOne(const GateRequest& options, const std::string& pattern, uint32_t hosts,
                       uint64_t file_bytes) {
  const auto known = predict::ParsePattern(pattern);
  const std::string directory = options.directory + "/" + pattern;
  const std::string path = directory + "/workflow.json";
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return FailedPreconditionError(fmt::format("cannot create {}: {}", directory, error.message()));
  MOSA_RETURN_IF_ERROR(WriteWhole(path, TextOf(*known, kTasksPerHost * hosts, file_bytes)));
  RunsToMake runs{.words = options.words,
                  .command = {"run", path, "--cluster", options.cluster.name, "--dir",
                              options.cluster.directory, "--workdir", "gate-" + pattern},
                  .repeats = options.repeats,
                  .directory = directory};
  runs.words.workload = path;
  MOSA_ASSIGN_OR_RETURN(const MadeComparison made, CompareMade(runs));
  Verdict verdict = Judge(pattern, made.compared.comparison, options.margin);
  if (made.exit_code != 0) {
    verdict.passes = false;
    verdict.sentence += fmt::format("; a run failed with {}", made.exit_code);
  }
  return verdict;
}

}  // namespace

Result<bool> RunGate(const GateRequest& options, bool as_json) {
  MOSA_RETURN_IF_ERROR(CheckWords(options.words));
  MOSA_ASSIGN_OR_RETURN(const int64_t file_bytes, ParseBytes(options.file_bytes));
  if (file_bytes <= 0)
    return InvalidArgumentError(
        fmt::format("--file-size {}: give at least 1 byte", options.file_bytes));
  for (const std::string& pattern : options.patterns) {
    const auto known = predict::ParsePattern(pattern);
    if (!known || *known == Pattern::kScatter || *known == Pattern::kGather)
      return InvalidArgumentError(
          fmt::format("--patterns {}: choose from pipeline, reduce and broadcast", pattern));
  }
  MOSA_ASSIGN_OR_RETURN(const predict::Configuration configuration,
                        predict::ParseConfiguration(options.words.configuration, {}));
  json all = json::array();
  Status ended = OkStatus();
  bool passes = true;
  for (const std::string& pattern : options.patterns) {
    const Result<Verdict> verdict =
        RunOne(options, pattern, configuration.hosts, static_cast<uint64_t>(file_bytes));
    ended = verdict.status();
    if (!ended.ok()) break;
    all.push_back(ToJson(*verdict));
    passes = passes && verdict->passes;
    if (as_json) continue;
    fmt::print("{}: {}\n", verdict->passes ? "passes" : "FAILS", verdict->sentence);
    std::fflush(stdout);
  }
  if (as_json && !all.empty())
    PrintJson({{"passes", ended.ok() && passes}, {"margin", options.margin}, {"patterns", all}});
  if (!ended.ok()) return ended;
  return passes;
}

}  // namespace mosa::cli
