// What people ask of the manager <-> values of the model (common/model/status.h).
//
// Precondition of ToProto: `out` is fresh. FromProto as in messages.h: InvalidArgument names the
// field. Pure functions, safe from any thread.
#ifndef MOSA_PROTO_CONVERT_ADMIN_H_
#define MOSA_PROTO_CONVERT_ADMIN_H_

#include <vector>

#include "common/base/status.h"
#include "common/model/status.h"
#include "mosa/v1/manager_service.pb.h"

namespace mosa {

inline constexpr uint32_t kLostFilesMax = 10'000;
inline constexpr int kStatusMessageBytesMax = 256 << 20;

void ToProto(const ClusterStatus& status, v1::GetClusterStatusResponse* out);
void ToProto(const FileStatus& status, v1::FileStatus* out);

Result<ClusterStatus> FromProto(const v1::GetClusterStatusResponse& message);
Result<FileStatus> FromProto(const v1::FileStatus& message);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_ADMIN_H_
