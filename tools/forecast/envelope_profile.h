// Reads from files how an application uses a store.
#ifndef MOSA_TOOLS_FORECAST_ENVELOPE_PROFILE_H_
#define MOSA_TOOLS_FORECAST_ENVELOPE_PROFILE_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/envelope/profile.h"
#include "predictor/workflow/workflow.h"

namespace mosa::cli {

struct ApplicationFiles {
  std::string workload;
  std::string operations;           // Empty: none.
  std::vector<std::string> stages;  // Empty: all.
};

struct Application {
  predict::Workflow workflow;
  std::vector<predict::StageProfile> stages;  // The requested ones.
};
// Errors name the file. NotFound: it does not have one of the stages.
Result<Application> ReadApplication(const ApplicationFiles& files);

// Prints the application's Tables 1 to 3 of the MTC Envelope paper.
Status ShowProfile(const ApplicationFiles& files, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_ENVELOPE_PROFILE_H_
