// How advice is shown: tables for people, rules that can be pasted, JSON for programs.
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
  predict::Configuration configuration;  // The deployment as it is.
  std::vector<predict::HintClass> classes;
  predict::HintAdvice hints;
  std::vector<std::vector<predict::HintRuleText>> rules;  // By class.
  predict::DeploymentAdvice deployments;
  size_t points = 0;  // In the space of deployments.
  uint32_t draws = 0;
  double share_min = 0;  // Share of the run: less is not worth telling apart.
  size_t simulations = 0;
  double seconds = 0;
};

void PrintAdvice(const Advice& advice);
nlohmann::json ToJson(const Advice& advice);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_ADVISE_OUTPUT_H_
