// `mosa report`: shows a run as one HTML page.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "tools/console/output.h"
#include "tools/draw/envelope_drawing.h"
#include "tools/forecast/compare_runs.h"
#include "tools/forecast/predict_inputs.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"
#include "tools/observe/report_data.h"
#include "tools/observe/report_page.h"

namespace mosa::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> records;
  PredictionWords words;
  std::vector<std::string> envelopes;
  std::string out;
};

// Predicts and compares as far as possible; otherwise adds a note with the reason.
void PredictForReport(const ReportOptions& options, ReportInputs& inputs) {
  if (options.words.platform.empty()) {
    inputs.notes.push_back(
        "no prediction: give the platform file with --platform ('mosa identify' measures one)");
    return;
  }
  auto finished = CompareFinished(options.words, inputs.files, inputs.notes);
  if (finished.ok())
    inputs.finished = *std::move(finished);
  else
    inputs.notes.push_back(fmt::format("no prediction: {}", MessageOf(finished.status())));
}

Status RunReport(const ReportOptions& options, const CommandLine& line) {
  MOSA_RETURN_IF_ERROR(CheckWords(options.words));
  ReportInputs inputs;
  MOSA_ASSIGN_OR_RETURN(inputs.files,
                        ReadRunFiles(options.records, CutFiles::kReadAsFarAsTheyGo, inputs.notes));
  if (!options.envelopes.empty()) {
    MOSA_ASSIGN_OR_RETURN(inputs.envelope, DrawEnvelopeFiles(options.envelopes));
  }
  PredictForReport(options, inputs);
  const ReportedRun report = MakeReport(inputs);
  const std::string page = MakeReportPage(report.title, report.verdict, report.data);
  std::string out = options.out;
  if (out.empty())
    out = std::filesystem::path(inputs.files.back().path).replace_extension(".html").string();
  MOSA_RETURN_IF_ERROR(WriteWhole(out, page));
  if (line.json) {
    nlohmann::json answer = {{"bytes", page.size()},
                             {"verdict", report.verdict},
                             {"is_slower", report.is_slower},
                             {"notes", report.notes}};
    PutBytes(answer, "page", out);
    PrintJson(answer);
    return OkStatus();
  }
  for (const std::string& note : report.notes) fmt::print(stderr, "Note: {}\n", note);
  fmt::print("{}\n{}\n", report.verdict, out);
  return OkStatus();
}

}  // namespace

void AddReport(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand(
      "report",
      "Write one HTML page about a run: timeline, placement, prediction\n\n"
      "  mosa report words.run.json\n"
      "  mosa report mon.json tue.json wed.json --platform lab.json --config manager=apart\n\n"
      "The page shows the last of these runs; the others show how much runs vary. It needs no\n"
      "other file and no network. If something cannot be compared as by 'mosa compare', the\n"
      "page says so and shows the rest. The exit code is 0 if the page is written, whatever it\n"
      "shows.");
  command
      ->add_option("record", options->records,
                   "Records of 'mosa run', of one workflow on the same hosts")
      ->required();
  AddPredictionWords(*command, options->words);
  command->add_option("--envelope", options->envelopes,
                      "Results file of 'mosa envelope run', whose plots are added to the page");
  command->add_option("-o,--output", options->out,
                      "HTML file to write; default: next to the last record, with suffix .html");
  command->callback(
      [options, &line] { line.action = [options, &line] { return RunReport(*options, line); }; });
}

}  // namespace mosa::cli
