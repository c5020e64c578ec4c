// `mosa explore`: simulates a space of configurations and shows those worth choosing.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/text_file.h"
#include "predictor/explore/explorer.h"
#include "tools/console/output.h"
#include "tools/draw/explore_drawing.h"
#include "tools/forecast/explore_output.h"
#include "tools/forecast/explore_results.h"
#include "tools/forecast/explore_simulator.h"
#include "tools/forecast/predict_inputs.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

constexpr uintmax_t kSpaceBytesMax = 1 << 20;
constexpr uint32_t kExploreRepeatsMax = 1000;
constexpr uint32_t kExploreJobsMax = 1024;

struct ExploreWords {
  std::string platform;
  std::string workload;
  std::string power;
  std::string space;
  std::vector<std::string> vary;
  std::string base;
  std::string results;
  std::string plot;
  uint32_t repeats = 20;
  uint32_t jobs = 0;
  bool no_prune = false;
};

Result<std::vector<predict::Dimension>> DimensionsOf(const ExploreWords& options) {
  std::vector<predict::Dimension> dimensions;
  if (!options.space.empty()) {
    MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(options.space, kSpaceBytesMax));
    auto read = predict::ReadSpace(text);
    if (!read.ok())
      return InvalidArgumentError(fmt::format("{}: {}", options.space, MessageOf(read.status())));
    dimensions = *std::move(read);
  }
  for (const std::string& text : options.vary) {
    MOSA_ASSIGN_OR_RETURN(predict::Dimension dimension, predict::ParseDimension(text));
    // The command line overrides the file.
    std::erase_if(dimensions, [&](const auto& other) { return other.name == dimension.name; });
    dimensions.push_back(std::move(dimension));
  }
  if (dimensions.empty())
    return InvalidArgumentError(
        "nothing to explore: give --space FILE, or --vary as in --vary hosts=1..8");
  return dimensions;
}

std::vector<std::string> VariedNames(const std::vector<predict::Dimension>& dimensions) {
  std::vector<std::string> names;
  for (const predict::Dimension& dimension : dimensions) {
    const bool is_nodes = dimension.name == "nodes";
    if (is_nodes || dimension.values.size() > 1)
      names.push_back(is_nodes ? "hosts" : dimension.name);
    if (dimension.name == "storage") names.emplace_back("hosts");
  }
  return names;
}

constexpr const char* kFrontPage = "front.svg";
constexpr const char* kCurvesPage = "curves.svg";

// Ensures that pages can be written to the directory later, and removes those of an earlier
// exploration.
Status PrepareForPlots(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return FailedPreconditionError(
        fmt::format("cannot create {} for the plots: {}", directory.string(), error.message()));
  for (const char* page : {kFrontPage, kCurvesPage}) {
    MOSA_RETURN_IF_ERROR(WriteWhole(directory / page, ""));
    std::filesystem::remove(directory / page, error);
    if (error)
      return FailedPreconditionError(
          fmt::format("cannot remove {}: {}", (directory / page).string(), error.message()));
  }
  return OkStatus();
}

Status PlotExploration(const Exploration& exploration, const std::string& directory) {
  if (!exploration.best) {
    fmt::print(stderr, "mosa explore: nothing to plot: every configuration would fail\n");
    return OkStatus();
  }
  const std::filesystem::path path = directory;
  if (!exploration.dimensions.empty())
    MOSA_RETURN_IF_ERROR(WriteWhole(path / kCurvesPage, DrawCurves(exploration)));
  return WriteWhole(path / kFrontPage, DrawFront(exploration));
}

bool HasSpread(const predict::Platform& platform, const predict::PowerProfile* power) {
  return predict::HasSpread(platform) ||
         (power != nullptr &&
          std::any_of(power->levels.begin(), power->levels.end(),
                      [](const predict::PowerLevel& level) { return level.spread > 0; }));
}

Status Explore(const ExploreWords& options, const CommandLine& line) {
  MOSA_RETURN_IF_ERROR(CheckRepeats(options.repeats));
  MOSA_ASSIGN_OR_RETURN(const Inputs inputs, ReadFiles(options.platform, options.workload));
  std::optional<predict::PowerProfile> power;
  if (!options.power.empty()) {
    MOSA_ASSIGN_OR_RETURN(power, ReadPowerFile(options.power));
  }
  MOSA_ASSIGN_OR_RETURN(const auto dimensions, DimensionsOf(options));
  predict::Configuration base;
  MOSA_RETURN_IF_ERROR(predict::SetFields(options.base, base));
  Exploration exploration;
  MOSA_ASSIGN_OR_RETURN(exploration.space, predict::Enumerate(dimensions, base));
  const predict::PowerProfile* const profile = power ? &*power : nullptr;
  predict::ExploreOptions how;
  how.draws = HasSpread(inputs.platform, profile) ? options.repeats : 0;
  how.prune = !options.no_prune;
  MOSA_RETURN_IF_ERROR(predict::CheckSizes(inputs.workflow));
  MOSA_ASSIGN_OR_RETURN(auto explorer,
                        predict::Explorer::Make(inputs.workflow, inputs.platform, profile,
                                                exploration.space.points, how));
  ExploreResults results;
  if (!options.results.empty()) {
    MOSA_ASSIGN_OR_RETURN(results, ExploreResults::Open(options.results));
  }
  // Reports an unwritable directory before simulating anything.
  if (!options.plot.empty()) MOSA_RETURN_IF_ERROR(PrepareForPlots(options.plot));
  ExploreSimulator simulator(inputs.workflow, inputs.platform, explorer, results, options.jobs);
  MOSA_RETURN_IF_ERROR(simulator.Run(exploration.space.points));
  exploration.workflow = inputs.workflow.name;
  exploration.varied = VariedNames(dimensions);
  for (const predict::Dimension& dimension : dimensions)
    if (dimension.values.size() > 1) exploration.dimensions.push_back(dimension.name);
  exploration.explored = explorer.explored();
  exploration.best = explorer.best();
  exploration.with_energy = power.has_value();
  exploration.draws = how.draws;
  exploration.simulations = explorer.jobs_asked();
  exploration.remembered = simulator.remembered();
  exploration.seconds = simulator.seconds();
  if (line.json)
    PrintJson(ToJson(exploration));
  else
    PrintExploration(exploration);
  return options.plot.empty() ? OkStatus() : PlotExploration(exploration, options.plot);
}

}  // namespace

void AddExplore(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<ExploreWords>();
  CLI::App* command = app.add_subcommand(
      "explore",
      "Find the configurations that are worth choosing for a workflow\n\n"
      "  mosa explore --platform lab.json --workload blast.yaml --config manager=apart \\\n"
      "    --vary nodes=11,17,20 --vary storage=0..19 --vary chunk=64K..4M\n"
      "  mosa explore --platform lab.json --workload blast.yaml --space space.yaml \\\n"
      "    --power power.yaml --results blast.results --plot plots\n"
      "  mosa explore --platform lab.json --workload montage.yaml --vary hosts=2..8 \\\n"
      "    --vary 'placement:projected/*.fits=default,local,stripe' --vary placement@mAdd=local\n\n"
      "Prints the Pareto front of time, cost and (with --power) energy, and the configurations\n"
      "that cannot be told apart from the fastest. A space file has one line per dimension,\n"
      "such as 'chunk: [64K..1M, 4M]'; --vary replaces a dimension of the same name.\n\n"
      "A dimension is one of the following.\n"
      "  nodes            all hosts; those that 'storage' and manager=apart leave run tasks\n"
      "  frequency        MHz, a level of the power file\n"
      "  placement:GLOB   placement of outputs that match; default: as workflow and graph say\n"
      "  placement@STAGE  the same for the outputs of a stage; neither has an effect with "
      "system=dss\n"
      "  other names      those of --config (see 'mosa predict --help'), except single hosts");
  command->add_option("--platform", options->platform, "Platform file written by 'mosa identify'")
      ->required();
  command
      ->add_option("--workload", options->workload,
                   "Workflow file with sizes: WfFormat 1.3 to 1.6, or Mosa's own form")
      ->required();
  command->add_option("--space", options->space,
                      "Space file with the dimensions and their values, YAML or JSON");
  command
      ->add_option("--vary", options->vary,
                   "Dimension, NAME=VALUES, such as hosts=1..8 or chunk=64K,1M; repeatable")
      ->allow_extra_args(false);
  command->add_option(
      "--config", options->base,
      "Settings common to all configurations, NAME=VALUE,... (see 'mosa predict --help')");
  command->add_option("--power", options->power,
                      "Power file of the hosts, YAML or JSON; adds energy to the objectives");
  command->add_option("--results", options->results,
                      "File to append simulations to, and to reuse them from");
  command->add_option("--plot", options->plot,
                      "Directory for SVG plots of the front and of curves over each dimension");
  command
      ->add_option(
          "--repeats", options->repeats,
          "Number of draws (simulations with varied figures): at least 19; 0: no intervals")
      ->check(CLI::Range(0U, kExploreRepeatsMax))
      ->capture_default_str();
  command
      ->add_option("--jobs", options->jobs,
                   "Number of simulations to run in parallel; 0: one per core")
      ->check(CLI::Range(0U, kExploreJobsMax))
      ->capture_default_str();
  command->add_flag("--no-prune", options->no_prune,
                    "Also simulate configurations that a lower bound shows to be worse");
  command->callback(
      [options, &line] { line.action = [options, &line] { return Explore(*options, line); }; });
}

}  // namespace mosa::cli
