// The tests by which a measured time is told from a predicted one.
#ifndef MOSA_PREDICTOR_COMPARE_STATISTICS_H_
#define MOSA_PREDICTOR_COMPARE_STATISTICS_H_

#include <cstddef>
#include <vector>

#include "predictor/model/draws.h"

namespace mosa::predict {

double MeanOf(const std::vector<double>& values);
// Precondition: two values.
double VarianceOf(const std::vector<double>& values);

// How far measured is from predicted, on the scale of both.
struct Residual {
  double size = 0;     // Measured less predicted.
  double error = 0;    // Its standard error,
  double degrees = 1;  // and that one's degrees of freedom.
  double p = 1;        // How likely it is to be that far off by chance, on either side.
};

// How far runs differ among each other; without degrees of freedom: not known.
struct RunSpread {
  double variance = 0;
  double degrees = 0;
};

// Whether the median of `measured` is another draw of what `predicted` are draws of. Its variance
// is that of the prediction, s^2 (1 + 1/n) of n draws, which repeats do not make less, as they are
// off alike; and that of the median of runs that differ as `runs` says, pi/2 s^2/n (1 s^2/n of one
// and two); and `floor` squared, as no prediction is surer than that. Degrees of freedom after
// Welch (1947) and Satterthwaite. Preconditions: two draws, one measurement; floor > 0.
Residual ResidualOf(const std::vector<double>& predicted, const std::vector<double>& measured,
                    double floor, const RunSpread& runs);

// The interval of 95 %.
Interval<double> IntervalOf(const Residual& residual);

// How many choices there are. Runs that show something were chosen for that: each choice was
// another test.
double WaysToChoose(size_t chosen, size_t all);

// Which of these p-values stand if at most the `rate`-th part of what stands is to be chance:
// Benjamini and Hochberg (1995), who have it for independent tests. Those of a stage and of its
// tasks are not; that these go up and down together, as Benjamini and Yekutieli (2001) want, is
// likely, not shown.
std::vector<bool> Standing(const std::vector<double>& p_values, double rate);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_STATISTICS_H_
