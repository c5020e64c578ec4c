// Formats advice: tables for people, rules to paste, JSON for programs.
#ifndef MOSA_TOOLS_FORECAST_ADVISE_OUTPUT_H_
#define MOSA_TOOLS_FORECAST_ADVISE_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "predictor/advise/deployments.h"
#include "predictor/advise/rules.h"
#include "predictor/advise/search.h"

namespace mosa::cli {

struct Advice {
  std::string workflow;
  predict::Configuration configuration;  // The present deployment.
  std::vector<predict::HintClass> classes;
  predict::HintAdvice hints;
  std::vector<std::vector<predict::HintRuleText>> rules;  // By class.
  predict::DeploymentAdvice deployments;
  size_t points = 0;  // Configurations in the space of deployments.
  uint32_t draws = 0;
  double share_min = 0;  // Differences below this share of the run are ignored.
  size_t simulations = 0;
  double seconds = 0;
};

void PrintAdvice(const Advice& advice);
nlohmann::json ToJson(const Advice& advice);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_ADVISE_OUTPUT_H_
