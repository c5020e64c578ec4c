// What an application asks of a store, read from files.
#ifndef MOSA_TOOLS_MOSA_ENVELOPE_PROFILE_H_
#define MOSA_TOOLS_MOSA_ENVELOPE_PROFILE_H_

#include <CLI/CLI.hpp>
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
// --workload, --operations and --stage.
void AddApplicationFiles(CLI::App& command, ApplicationFiles& files);

struct Application {
  predict::Workflow workflow;
  std::vector<predict::StageProfile> stages;  // That were asked for.
};
// Errors name the file. NotFound: it has no such stage.
Result<Application> ReadApplication(const ApplicationFiles& files);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_ENVELOPE_PROFILE_H_
