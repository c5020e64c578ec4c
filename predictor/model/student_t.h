// Student's t, for intervals of means.
#ifndef MOSA_PREDICTOR_MODEL_STUDENT_T_H_
#define MOSA_PREDICTOR_MODEL_STUDENT_T_H_

#include <cstddef>

namespace mosa::predict {

// The t that 95 % of the distribution with so many degrees of freedom lie within. Precondition:
// degrees > 0.
double StudentT95(size_t degrees);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_STUDENT_T_H_
