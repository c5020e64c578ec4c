// Replays of measured runs, on all cores: what `mosa compare` holds against its suspicions.
#ifndef MOSA_TOOLS_FORECAST_REPLAYS_H_
#define MOSA_TOOLS_FORECAST_REPLAYS_H_

#include <string>
#include <vector>

#include "predictor/compare/diagnosis.h"
#include "predictor/compare/finding.h"
#include "tools/forecast/compare_runs.h"

namespace mosa::cli {

// What the runs show: since when they are slower than predicted, and by which part. Nothing is
// found if the last of them is not whole.
struct Findings {
  predict::Detection detection;
  std::vector<predict::Diagnosis> diagnoses;
  predict::Finding finding;
  std::string note;  // Why no part was looked for; empty: it was.
};
Findings FindingsOf(const Asked& asked, const std::vector<predict::SeenRun>& draws,
                    const std::vector<predict::SeenRun>& runs);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_REPLAYS_H_
