// Answers what sets of files cost to read, from forecasts made beforehand.
#ifndef MOSA_MANAGER_SERVICE_READ_ANSWERS_H_
#define MOSA_MANAGER_SERVICE_READ_ANSWERS_H_

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/read_cost.h"
#include "manager/core/manager_core.h"
#include "manager/forecast/read_costs.h"

namespace mosa::manager {

// The core's loop waits for the answer; the limits of a query (read_cost.h) keep that to some
// 10 ms. InvalidArgument if the query exceeds kReadAnswersMax or kReadAddendsMax, or names
// a host without a storage node.
Result<ReadCostAnswer> AnswerReads(const ManagerCore& core, Time now, const ReadCosts& costs,
                                   const ReadCostQuery& query);

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_READ_ANSWERS_H_
