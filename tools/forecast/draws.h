// Draws of a prediction: the same run with its figures varied within what their measurement leaves
// open, and files placed anew (Perturbed and OfDraw in predictor/model).
#ifndef MOSA_TOOLS_FORECAST_DRAWS_H_
#define MOSA_TOOLS_FORECAST_DRAWS_H_

#include <cstdint>
#include <functional>

#include "common/base/status.h"
#include "tools/forecast/predict_inputs.h"

namespace mosa::cli {

struct Draw {
  uint32_t number = 0;  // From 1.
  predict::Platform platform;
  predict::Configuration configuration;
  double factor = 1;  // predict::ModelFactor().
  predict::Prediction prediction;
};

// Predicts draws 1 to `draws` on all cores, and shows progress on standard error. `take` gets each
// of them, in any order, one at a time. Returns the first error of a prediction.
Status ForEachDraw(const Inputs& inputs, const predict::Configuration& configuration,
                   uint32_t draws, const predict::PredictOptions& options,
                   const std::function<void(const Draw& draw)>& take);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_FORECAST_DRAWS_H_
