// Files that are copied out of the store, as they are told of <-> values of the model
// (common/model/staging.h).
//
// Precondition of ToProto: `out` is fresh. FromProto as in messages.h: InvalidArgument names the
// field. Pure functions, safe from any thread.
#ifndef MOSA_PROTO_CONVERT_STAGING_H_
#define MOSA_PROTO_CONVERT_STAGING_H_

#include <cstddef>
#include <vector>

#include "common/base/status.h"
#include "common/model/staging.h"
#include "mosa/v1/manager_service.pb.h"

namespace mosa {

// In one message.
inline constexpr size_t kStagedFilesMax = 10'000;

void ToProto(const std::vector<StagedFile>& files, v1::MarkStagedRequest* out);
Result<std::vector<StagedFile>> FromProto(const v1::MarkStagedRequest& message);

void ToProto(const std::vector<StageOutcome>& outcomes, v1::MarkStagedResponse* out);
Result<std::vector<StageOutcome>> FromProto(const v1::MarkStagedResponse& message);

void ToProto(const UnstagedFiles& files, v1::ListUnstagedResponse* out);
Result<UnstagedFiles> FromProto(const v1::ListUnstagedResponse& message);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_STAGING_H_
