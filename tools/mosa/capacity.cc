// `mosa capacity` with `show`, `predict` and `plot`.
#include "tools/mosa/capacity.h"

#include <fmt/format.h>

#include <memory>

#include "predictor/capacity/capacity.h"
#include "tools/console/output.h"
#include "tools/draw/capacity_drawing.h"
#include "tools/measure/capacity_results.h"

namespace mosa::cli {
namespace {

using predict::CapacityLoad;
using predict::Estimate;

struct AskedOptions {
  std::string file;
  std::string size;
  uint32_t read_percent = 100;
  std::vector<std::string> mixes;
  bool resampled = false;
};

Result<std::vector<CapacityLoad>> LoadsAskedFor(const AskedOptions& options) {
  std::vector<std::string> texts = options.mixes;
  if (!options.size.empty())
    texts.insert(texts.begin(), fmt::format("{}:{}%r", options.size, options.read_percent));
  if (texts.empty()) return InvalidArgumentError("give --size with --read, or --mix");
  std::vector<CapacityLoad> loads;
  for (const std::string& text : texts) {
    MOSA_ASSIGN_OR_RETURN(CapacityLoad load, predict::ParseLoad(text));
    loads.push_back(std::move(load));
  }
  return loads;
}

Status PredictLoads(const AskedOptions& options, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<CapacityLoad> loads, LoadsAskedFor(options));
  MOSA_ASSIGN_OR_RETURN(const predict::Capacity capacity, ReadCapacityFile(options.file));
  const predict::CapacityModel model = ModelOf(capacity, options.resampled);
  Table table({"LOAD", "OPERATIONS /S", "READS /S", "WRITES /S", "MB/S"});
  nlohmann::json all = nlohmann::json::array();
  for (const CapacityLoad& load : loads) {
    MOSA_ASSIGN_OR_RETURN(const Estimate operations, model.Operations(load));
    const predict::OperationRates rates = EstimateRates(model.median, load);
    const double bytes = BytesPerSecond(load, model.median);
    table.Add({TextOf(load), RateText(operations), fmt::format("{:.4g}", rates.reads),
               fmt::format("{:.4g}", rates.writes), fmt::format("{:.1f}", bytes / 1e6)});
    all.push_back({{"load", TextOf(load)},
                   {"share_of", NameOf(load.share_of)},
                   {"operations_per_second", operations.median},
                   {"low", operations.low},
                   {"high", operations.high},
                   {"reads_per_second", rates.reads},
                   {"writes_per_second", rates.writes},
                   {"bytes_per_second", bytes}});
  }
  if (line.json)
    PrintJson(all);
  else
    table.Print();
  return OkStatus();
}

Status ShowCapacity(const std::string& file, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const predict::Capacity capacity, ReadCapacityFile(file));
  if (line.json)
    PrintJson(ToJson(capacity));
  else
    PrintCapacity(capacity);
  return OkStatus();
}

}  // namespace

void AddCapacity(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand(
      "capacity",
      "Measure a store, and predict its throughput for any mix of reads, writes and sizes");
  noun->require_subcommand(1);
  AddCapacityRun(*noun, line);
  AddCapacityShow(*noun, line);
  AddCapacityPredict(*noun, line);
  AddCapacityPlot(*noun, line);
}

void AddCapacityShow(CLI::App& noun, CommandLine& line) {
  auto file = std::make_shared<std::string>();
  CLI::App* command = noun.add_subcommand(
      "show",
      "Show the seeds, the estimates next to the measurements, and whether the model holds\n\n"
      "  mosa capacity show capacity.json");
  command->add_option("file", *file, "Results file of 'mosa capacity run'")->required();
  command->callback(
      [file, &line] { line.action = [file, &line] { return ShowCapacity(*file, line); }; });
}

void AddCapacityPredict(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<AskedOptions>();
  CLI::App* command = noun.add_subcommand(
      "predict",
      "Predict operations per second for any share of reads and any mix of measured sizes\n\n"
      "  mosa capacity predict capacity.json --size 32K --read 70\n"
      "  mosa capacity predict capacity.json --mix 4K:70%r:0.5,1M:100%r:0.5 \\\n"
      "    --mix operations=4K:70%r:0.9,1M:70%r:0.1\n\n"
      "SHARE is a share of the clients, each of which uses one size. After 'operations=', it is\n"
      "a share of the operations, which all clients perform in turn.");
  command->add_option("file", options->file, "Results file of 'mosa capacity run'")->required();
  CLI::Option* size = command->add_option("--size", options->size, "I/O size, such as 32K");
  command->add_option("--read", options->read_percent, "Percentage of reads")
      ->check(CLI::Range(0, 100))
      ->needs(size)
      ->capture_default_str();
  command->add_option("--mix", options->mixes, "Mix to predict, SIZE:READ%r:SHARE,...; repeatable")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--resampled", options->resampled,
                    "Use all measured ratios, not only the seeds");
  command->callback([options, &line] {
    line.action = [options, &line] { return PredictLoads(*options, line); };
  });
}

void AddCapacityPlot(CLI::App& noun, CommandLine& line) {
  auto words = std::make_shared<std::pair<std::string, std::string>>();
  CLI::App* command = noun.add_subcommand(
      "plot",
      "Draw the results as SVG, as in the paper Fighting with Unknowns\n\n"
      "Draws C and errors over the share of reads (ratios.svg), f_rw (factors.svg), and mixes\n"
      "with their errors (mixes.svg). What was not checked is left out.\n\n"
      "  mosa capacity plot capacity.json figures");
  command->add_option("file", words->first, "Results file of 'mosa capacity run'")->required();
  command->add_option("directory", words->second, "Directory for the SVG files; created if absent")
      ->required();
  command->callback([words, &line] {
    line.action = [words] { return PlotCapacity(words->first, words->second); };
  });
}

}  // namespace mosa::cli
