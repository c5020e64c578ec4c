// What is put aside, and what becomes of it, as it is told of <-> values of the model
// (common/model/adoption.h).
//
// Precondition of ToProto: `out` is fresh. FromProto as in messages.h: InvalidArgument names the
// field. Pure functions, safe from any thread.
#ifndef MOSA_PROTO_CONVERT_ADOPTION_H_
#define MOSA_PROTO_CONVERT_ADOPTION_H_

#include <vector>

#include "common/base/status.h"
#include "common/model/adoption.h"
#include "mosa/v1/manager_service.pb.h"

namespace mosa {

void ToProto(const std::vector<AsideFile>& files, v1::ListAsideResponse* out);
Result<std::vector<AsideFile>> FromProto(const v1::ListAsideResponse& message);

// The ids of a request.
Result<std::vector<FileId>> FromProto(const v1::AdoptFilesRequest& message);

void ToProto(const std::vector<AdoptOutcome>& outcomes, v1::AdoptFilesResponse* out);
Result<std::vector<AdoptOutcome>> FromProto(const v1::AdoptFilesResponse& message);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_ADOPTION_H_
