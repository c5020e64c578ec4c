// Hints and locations as people and schedulers ask for them <-> values of the model
// (common/model/hints.h).
//
// Precondition of ToProto: `out` is fresh. FromProto as in messages.h: InvalidArgument names the
// field. Pure functions, safe from any thread.
#ifndef MOSA_PROTO_CONVERT_HINTS_H_
#define MOSA_PROTO_CONVERT_HINTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/hints.h"
#include "mosa/v1/manager_service.pb.h"

namespace mosa {

inline constexpr size_t kLocationPathsMax = 10'000;
inline constexpr size_t kRulesPerPage = 10'000;

struct LocationQuery {
  std::vector<std::string> paths;
  bool chunks = false;
  bool operator==(const LocationQuery&) const = default;
};
void ToProto(const LocationQuery& query, v1::ListLocationsRequest* out);
Result<LocationQuery> FromProto(const v1::ListLocationsRequest& message);

void ToProto(const std::vector<FileLocation>& locations, v1::ListLocationsResponse* out);
Result<std::vector<FileLocation>> FromProto(const v1::ListLocationsResponse& message);

void ToProto(const HintExplanation& explanation, v1::ExplainHintsResponse* out);
Result<HintExplanation> FromProto(const v1::ExplainHintsResponse& message);

// `hints` may be anything here: whether they make sense is the manager's to say.
void ToProto(const HintRule& rule, v1::HintRule* out);
Result<HintRule> FromProto(const v1::HintRule& message);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_HINTS_H_
