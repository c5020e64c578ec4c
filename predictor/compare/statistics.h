// The tests that decide whether a measured time differs from a predicted one.
#ifndef MOSA_PREDICTOR_COMPARE_STATISTICS_H_
#define MOSA_PREDICTOR_COMPARE_STATISTICS_H_

#include <cstddef>
#include <vector>

#include "predictor/model/draws.h"

namespace mosa::predict {

double MeanOf(const std::vector<double>& values);
// Precondition: at least two values.
double VarianceOf(const std::vector<double>& values);

// How far the measurement is from the prediction, on the scale of both.
struct Residual {
  double size = 0;     // Measured minus predicted.
  double error = 0;    // Its standard error,
  double degrees = 1;  // and the degrees of freedom of that.
  double p = 1;        // How likely it is to be this far away by chance, on either side.
};

// How much runs differ from each other; unknown if it has no degrees of freedom.
struct RunSpread {
  double variance = 0;
  double degrees = 0;
};

// Tests whether the median of `measured` is another draw from the distribution of `predicted`. Its
// variance is the sum of three: that of the prediction, s^2 (1 + 1/n) for n draws, which repeats do
// not reduce because they share its error; that of the median of runs that differ as `runs` says,
// pi/2 s^2/n (1 s^2/n for one and two runs); and `floor` squared, since no prediction is surer than
// that. Degrees of freedom after Welch (1947) and Satterthwaite. Preconditions: two draws, one
// measurement; floor > 0.
Residual ResidualOf(const std::vector<double>& predicted, const std::vector<double>& measured,
                    double floor, const RunSpread& runs);

// The 95 % interval.
Interval<double> IntervalOf(const Residual& residual);

// The number of possible choices. Runs were chosen because they show something: each choice was
// another test.
double WaysToChoose(size_t chosen, size_t all);

// Which of these p-values stand if at most a share `rate` of those that stand may be chance:
// Benjamini and Hochberg (1995), proved for independent tests. Classes of requests are not
// independent; that they are positively dependent, as Benjamini and Yekutieli (2001) require, is
// likely, not shown.
std::vector<bool> Standing(const std::vector<double>& p_values, double rate);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_STATISTICS_H_
