// What schedulers ask of reading <-> values of the model (common/model/read_cost.h).
//
// Precondition of ToProto: `out` is fresh. FromProto as in messages.h: InvalidArgument names the
// field. Pure functions, safe from any thread.
#ifndef MOSA_PROTO_CONVERT_READ_COST_H_
#define MOSA_PROTO_CONVERT_READ_COST_H_

#include "common/base/status.h"
#include "common/model/read_cost.h"
#include "mosa/v1/manager_service.pb.h"

namespace mosa {

void ToProto(const ReadCostQuery& query, v1::PredictReadsRequest* out);
// Also InvalidArgument if it asks for nothing, or for too many paths in all.
Result<ReadCostQuery> FromProto(const v1::PredictReadsRequest& message);

void ToProto(const ReadCostAnswer& answer, v1::PredictReadsResponse* out);
// Also InvalidArgument if a set names a host that is not there.
Result<ReadCostAnswer> FromProto(const v1::PredictReadsResponse& message);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_READ_COST_H_
