// The version of this build. The values live in a generated file, so a commit recompiles only that.
#ifndef MOSA_COMMON_BASE_VERSION_H_
#define MOSA_COMMON_BASE_VERSION_H_

#include <string>

namespace mosa {

// The version in the top CMakeLists.txt, such as "0.2.0".
std::string Version();

// The abbreviated commit that was checked out when the build was configured, or "unknown" without a
// git checkout.
std::string VersionCommit();

// The line that `--version` of every program prints: "mosa 0.2.0 (4f2a9c0d81e3)".
std::string VersionLine();

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_VERSION_H_
