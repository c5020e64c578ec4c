// What the page of a report says and draws. Pure.
#ifndef MOSA_TOOLS_OBSERVE_REPORT_DATA_H_
#define MOSA_TOOLS_OBSERVE_REPORT_DATA_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/forecast/compare_record.h"
#include "tools/forecast/compare_runs.h"

namespace mosa::cli {

struct ReportInputs {
  std::vector<RunFile> files;            // In their order in time; the last is drawn.
  std::optional<FinishedRuns> finished;  // None: nothing is predicted.
  std::vector<std::string> notes;        // Why, and what else is left out; if there are `finished`,
                                         // they have these too.
  std::string envelope;                  // A picture, SVG; empty: none.
};

struct ReportedRun {
  std::string title;
  std::string verdict;             // In a few sentences.
  bool is_slower = false;          // As far as anything is predicted.
  std::vector<std::string> notes;  // Sentences: what cannot be compared or shown, and why.
  nlohmann::json data;             // All that, and what is drawn.
};

// Precondition: there is a file.
ReportedRun MakeReport(const ReportInputs& inputs);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_REPORT_DATA_H_
