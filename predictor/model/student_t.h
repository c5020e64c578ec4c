// Student's t, for intervals of means and tests of differences.
#ifndef MOSA_PREDICTOR_MODEL_STUDENT_T_H_
#define MOSA_PREDICTOR_MODEL_STUDENT_T_H_

namespace mosa::predict {

// Degrees of freedom need not be whole; Welch's are not. Precondition of both: degrees > 0.

// Two-sided tail: the probability that chance alone gives a t at least this far from 0. It is 1 at
// t = 0 and approaches 0 for large |t|.
double StudentTail(double t, double degrees);

// Returns the t within which 95 % of the distribution lie: StudentTail(StudentT95(d), d) == 0.05.
double StudentT95(double degrees);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_STUDENT_T_H_
