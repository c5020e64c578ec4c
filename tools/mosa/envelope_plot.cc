// `mosa envelope plot`: draws several stores on one page.
#include <memory>
#include <string>
#include <vector>

#include "tools/console/output.h"
#include "tools/draw/envelope_drawing.h"
#include "tools/mosa/envelope.h"

namespace mosa::cli {
namespace {

struct PlotOptions {
  std::vector<std::string> results;
  std::string out = "envelope.svg";
};

Status PlotEnvelopes(const PlotOptions& options) {
  MOSA_ASSIGN_OR_RETURN(const std::string picture, DrawEnvelopeFiles(options.results));
  return WriteWhole(options.out, picture);
}

}  // namespace

void AddEnvelopePlot(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<PlotOptions>();
  CLI::App* command = noun.add_subcommand(
      "plot",
      "Draw curves, heat maps and Kiviat diagrams of one or more stores as one SVG\n\n"
      "  mosa envelope plot envelope.json\n"
      "  mosa envelope plot mosa.json nfs.json gluster.json --output beside.svg");
  command->add_option("results", options->results, "Results files of 'mosa envelope run'")
      ->required();
  command->add_option("-o,--output", options->out, "SVG file to write")->capture_default_str();
  command->callback(
      [options, &line] { line.action = [options] { return PlotEnvelopes(*options); }; });
}

}  // namespace mosa::cli
