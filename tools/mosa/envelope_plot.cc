// `mosa envelope plot`: several stores on one page.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "tools/mosa/envelope.h"
#include "tools/mosa/envelope_drawing.h"
#include "tools/mosa/envelope_files.h"
#include "tools/mosa/predict_inputs.h"

namespace mosa::cli {
namespace {

constexpr size_t kSystemsMax = 12;

struct PlotOptions {
  std::vector<std::string> results;
  std::string out = "envelope.svg";
};

Status Plot(const PlotOptions& options) {
  MOSA_ASSIGN_OR_RETURN(const std::string picture, DrawEnvelopeFiles(options.results));
  return WriteWhole(options.out, picture);
}

}  // namespace

Result<predict::Envelope> ReadEnvelopeOf(const std::string& path, const std::string& system,
                                         std::string_view option) {
  MOSA_ASSIGN_OR_RETURN(std::vector<predict::Envelope> read, ReadEnvelopeFile(path));
  std::string names;
  for (predict::Envelope& envelope : read) {
    if (envelope.name == system || (system.empty() && read.size() == 1)) return std::move(envelope);
    names += (names.empty() ? "" : ", ") + envelope.name;
  }
  return InvalidArgumentError(
      system.empty()
          ? fmt::format("{} has several systems: give {}, one of {}", path, option, names)
          : fmt::format("{} has no system '{}': it has {}", path, system, names));
}

Result<std::string> DrawEnvelopeFiles(const std::vector<std::string>& paths) {
  std::vector<predict::Envelope> all;
  std::set<std::string> names;
  for (const std::string& path : paths) {
    MOSA_ASSIGN_OR_RETURN(std::vector<predict::Envelope> read, ReadEnvelopeFile(path));
    for (predict::Envelope& envelope : read) {
      // Stores of several files may have one name.
      if (!names.insert(envelope.name).second)
        envelope.name += fmt::format(" ({})", std::filesystem::path(path).stem().string());
      names.insert(envelope.name);
      all.push_back(std::move(envelope));
    }
  }
  if (all.size() > kSystemsMax)
    return InvalidArgumentError(
        fmt::format("{} stores on one page: give at most {}", all.size(), kSystemsMax));
  return DrawEnvelopes(all);
}

void AddEnvelopePlot(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<PlotOptions>();
  CLI::App* command = noun.add_subcommand(
      "plot",
      "Draw curves, heat maps and Kiviat diagrams of one or more stores as one SVG\n\n"
      "  mosa envelope plot envelope.json\n"
      "  mosa envelope plot mosa.json nfs.json gluster.json --out beside.svg");
  command->add_option("results", options->results, "Results files of 'mosa envelope run'")
      ->required();
  command->add_option("--out", options->out, "SVG file to write")->capture_default_str();
  command->callback([options, &line] { line.action = [options] { return Plot(*options); }; });
}

}  // namespace mosa::cli
