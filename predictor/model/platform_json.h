// The platform file: JSON that a person can read, write and correct.
//
//   {"mosa_platform": 4, "machine": "...", "measured": "...", "by": "...", "shared_cores": 0,
//    "host": {"cores": 2, ...}, "manager": {"open": {"ns_per_call": 9000, "ns_per_byte": 0,
//    "spread": 0.05}, ...}, ...}
//
// Every field has its name from platform.h, which ends in its unit. All fields must be present, and
// no others. Keys that begin with "comment" are allowed anywhere. "notes", "figures" and
// "measurements" are the evidence (evidence.h), which readers ignore.
#ifndef MOSA_PREDICTOR_MODEL_PLATFORM_JSON_H_
#define MOSA_PREDICTOR_MODEL_PLATFORM_JSON_H_

#include <string>
#include <string_view>

#include "common/base/status.h"
#include "predictor/model/evidence.h"
#include "predictor/model/platform.h"

namespace mosa::predict {

// InvalidArgument is one sentence that names the line where the text is not JSON, the version, or
// the field.
Result<Platform> ReadPlatform(std::string_view text);
// Includes `evidence` unless it is null.
std::string WritePlatform(const Platform& platform, const Evidence* evidence = nullptr);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_PLATFORM_JSON_H_
