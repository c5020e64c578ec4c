// Student's t, for intervals of means and tests of differences.
#ifndef MOSA_PREDICTOR_MODEL_STUDENT_T_H_
#define MOSA_PREDICTOR_MODEL_STUDENT_T_H_

#include <cstddef>

namespace mosa::predict {

// The t that 95 % of the distribution with so many degrees of freedom lie within. Precondition:
// degrees > 0.
double StudentT95(size_t degrees);

// How likely a t at least that far from 0, on either side, is by chance: 1 of 0, towards 0 of large
// ones. Degrees of freedom need not be whole. Precondition: degrees > 0.
double StudentTail(double t, double degrees);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_STUDENT_T_H_
