// Evidence: what a platform's figures rest on, for people. It is part of the platform file; no
// prediction reads it.
#ifndef MOSA_PREDICTOR_MODEL_EVIDENCE_H_
#define MOSA_PREDICTOR_MODEL_EVIDENCE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace mosa::predict {

struct Evidence {
  struct Figure {
    std::string name;  // As in the file.
    double value = 0;
    double low = 0, high = 0;  // 95 % interval.
    bool measured = true;      // False: a guess that no measurement determines.
  };
  struct Measurement {
    std::string what;
    std::string unit;
    double mean = 0;
    double half_width = 0;  // Half of the 95 % interval.
    size_t samples = 0;
    size_t dropped = 0;              // Outliers.
    bool settled = true;             // The 95 % interval is within 5 % of the mean.
    std::optional<double> modelled;  // What the fitted figures predict.
  };
  std::vector<std::string> notes;  // What fell short, and what could not be measured.
  std::vector<Figure> figures;
  std::vector<Measurement> measurements;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_EVIDENCE_H_
