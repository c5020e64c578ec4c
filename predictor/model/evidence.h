// Evidence: what a platform's figures rest on, for people. It stands in the platform file, and
// no prediction reads it.
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
    double low = 0, high = 0;  // At 95 %.
    bool measured = true;      // False: nothing that was measured tells it, it is a guess.
  };
  struct Measurement {
    std::string what;
    std::string unit;
    double mean = 0;
    double half_width = 0;  // Half of the 95 % interval.
    size_t samples = 0;
    size_t dropped = 0;              // Outliers.
    bool settled = true;             // The interval is within 5 %.
    std::optional<double> modelled;  // What the figures make of it.
  };
  std::vector<std::string> notes;  // What fell short, and what could not be had.
  std::vector<Figure> figures;
  std::vector<Measurement> measurements;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_EVIDENCE_H_
