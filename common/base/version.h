// Which Mosa this is. The values are in a generated file, so that a commit recompiles only that.
#ifndef MOSA_COMMON_BASE_VERSION_H_
#define MOSA_COMMON_BASE_VERSION_H_

#include <string>

namespace mosa {

// As in the top CMakeLists.txt: "0.2.0".
std::string Version();

// The commit that was checked out when the build was configured, abbreviated; "unknown" without a
// git checkout.
std::string VersionCommit();

// What `--version` of every program prints: "mosa 0.2.0 (4f2a9c0d81e3)".
std::string VersionLine();

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_VERSION_H_
