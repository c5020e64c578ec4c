// `mosa predict`: a workflow, a platform and a configuration in, how long it would take out.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "predictor/model/platform_json.h"
#include "predictor/run/prediction.h"
#include "predictor/workflow/read.h"
#include "tools/mosa/command.h"
#include "tools/mosa/predict_output.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kPlatformBytesMax = 1 << 20;
constexpr size_t kFaultsShownMax = 20;
constexpr uint32_t kRepeatsMax = 10'000;
// Below, an interval of 90 % would be its extremes.
constexpr size_t kRepeatsForInterval = 10;

struct Options {
  std::string platform;
  std::string workload;
  std::string configuration;
  std::string trace;
  uint32_t repeats = 20;
};

Result<std::string> ReadText(const std::string& path, uintmax_t bytes_max) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFoundError(fmt::format("cannot read {}: {}", path, strerror(errno)));
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size > bytes_max)
    return InvalidArgumentError(
        fmt::format("cannot use {}: {}", path, error ? error.message() : "it is too long"));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<predict::Workflow> ReadWorkload(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, predict::kDocumentBytesMax));
  predict::BuildResult read = predict::ReadWorkflow(text, fs::path(path).stem().string());
  if (read.faults.empty()) return std::move(read.workflow);
  std::string all;
  for (size_t i = 0; i < std::min(read.faults.size(), kFaultsShownMax); ++i)
    all += fmt::format("{}{}: {}", i == 0 ? "" : "\nmosa: ", path, read.faults[i]);
  if (read.faults.size() > kFaultsShownMax)
    all += fmt::format("\nmosa: {}: and {} more", path, read.faults.size() - kFaultsShownMax);
  return InvalidArgumentError(all);
}

bool HasSpread(const predict::Platform& platform) {
  return predict::Perturbed(platform, 1) != platform;
}

// The 5th to the 95th of 100 predictions whose platforms are off as much as was measured.
Result<std::optional<Interval>> IntervalOf(const predict::Workflow& workflow,
                                           const predict::Platform& platform,
                                           const predict::Configuration& configuration,
                                           uint32_t repeats) {
  std::vector<Duration> turnarounds;
  for (uint32_t seed = 1; HasSpread(platform) && seed <= repeats; ++seed) {
    MOSA_ASSIGN_OR_RETURN(
        const predict::Prediction drawn,
        predict::Predict(workflow, predict::Perturbed(platform, seed), configuration));
    if (!drawn.failure) turnarounds.push_back(drawn.turnaround);
  }
  if (turnarounds.size() < kRepeatsForInterval) return std::optional<Interval>();
  std::sort(turnarounds.begin(), turnarounds.end());
  const size_t last = turnarounds.size() - 1;
  return std::optional<Interval>(Interval{turnarounds[last / 20], turnarounds[last - last / 20]});
}

Status WriteTrace(const std::string& path, const predict::Workflow& workflow,
                  const predict::Prediction& prediction) {
  std::ofstream file(path, std::ios::binary);
  file << TraceOf(workflow, prediction)
              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  file.close();
  if (!file) return FailedPreconditionError(fmt::format("cannot write {}", path));
  return OkStatus();
}

Status PredictRun(const Options& options, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(options.platform, kPlatformBytesMax));
  const auto platform = predict::ReadPlatform(text);
  if (!platform.ok())
    return InvalidArgumentError(
        fmt::format("{}: {}", options.platform, MessageOf(platform.status())));
  MOSA_ASSIGN_OR_RETURN(const auto configuration,
                        predict::ParseConfiguration(options.configuration));
  MOSA_ASSIGN_OR_RETURN(const predict::Workflow workflow, ReadWorkload(options.workload));
  MOSA_ASSIGN_OR_RETURN(const predict::Prediction prediction,
                        predict::Predict(workflow, *platform, configuration));
  std::optional<Interval> interval;
  if (!prediction.failure) {
    MOSA_ASSIGN_OR_RETURN(interval,
                          IntervalOf(workflow, *platform, configuration, options.repeats));
  }
  if (!options.trace.empty()) MOSA_RETURN_IF_ERROR(WriteTrace(options.trace, workflow, prediction));
  if (line.json)
    PrintJson(ToJson(workflow, configuration, prediction, interval));
  else
    PrintPrediction(workflow, prediction, interval);
  // A store that would run full is an answer, not an error; but nobody should take the times for
  // those of a whole run.
  if (prediction.failure)
    fmt::print(stderr, "mosa predict: the run would fail: {}\n", *prediction.failure);
  return OkStatus();
}

}  // namespace

void AddPredict(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "predict",
      "How long a workflow would take on a platform in a configuration\n\n"
      "  mosa predict --platform lab.json --workload montage.json --config hosts=19\n"
      "  mosa predict --platform lab.json --workload blast.yaml \\\n"
      "    --config hosts=14,storage=5,chunk=256K,system=dss --trace run.trace.json\n\n"
      "Every file of the workload needs a size. The trace opens in ui.perfetto.dev.");
  command->add_option("--platform", options->platform, "The measured service times, JSON")
      ->required();
  command
      ->add_option("--workload", options->workload,
                   "WfFormat 1.3 to 1.6, or the small form in YAML or JSON")
      ->required();
  command->add_option("--config", options->configuration,
                      "hosts=4,storage=0,manager=shared,slots=0,system=wass,chunk=1M,stripe=0,"
                      "replicas=1,placement=stripe,store=0,seed=1: what differs from this");
  command->add_option("--trace", options->trace, "Write the simulated run as a Chrome trace");
  command
      ->add_option("--repeats", options->repeats,
                   "Predictions with figures drawn from their spread, for the interval")
      ->check(CLI::Range(0U, kRepeatsMax))
      ->capture_default_str();
  command->callback(
      [options, &line] { line.action = [options, &line] { return PredictRun(*options, line); }; });
}

}  // namespace mosa::cli
