// Student's t, for intervals of means and tests of differences.
#ifndef MOSA_PREDICTOR_MODEL_STUDENT_T_H_
#define MOSA_PREDICTOR_MODEL_STUDENT_T_H_

namespace mosa::predict {

// Degrees of freedom need not be whole: Welch's are not. Precondition of both: degrees > 0.

// How likely a t at least that far from 0, on either side, is by chance: 1 of 0, towards 0 of large
// ones.
double StudentTail(double t, double degrees);

// The t that 95 % of the distribution lie within: StudentTail(StudentT95(d), d) is 0.05.
double StudentT95(double degrees);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_STUDENT_T_H_
