// What a mount reports about its files and itself, as extended attributes.
#ifndef MOSA_TOOLS_CONSOLE_XATTR_H_
#define MOSA_TOOLS_CONSOLE_XATTR_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace mosa::cli {

// The attribute `user.mosa.NAME` of `path`. NotFound if there is no such file, FailedPrecondition
// if it is not on a Mosa mount, DataLoss or Unavailable as the mount answers.
Result<std::string> MosaAttribute(const std::string& path, const std::string& name);

// The same, for attributes that are JSON. Internal if it is not.
Result<nlohmann::json> MosaJsonAttribute(const std::string& path, const std::string& name);

// The mount that holds `path`, and the path of the file below it ("/" for the mount itself).
struct MountedPath {
  std::string mount_point;
  std::string path;
};
Result<MountedPath> FindMount(const std::string& path);
// The same for a path that need not exist: by its nearest existing directory.
Result<MountedPath> FindMountOfNew(const std::string& path);

// Sets `user.mosa.NAME`. Errors as for MosaAttribute; InvalidArgument if the mount refuses the
// value.
Status SetMosaAttribute(const std::string& path, const std::string& name, const std::string& value);

// Says what is wrong when a call on a path of a mount ends with this error.
const char* WhyMountFails(int error);

// "h1,h2" as names.
std::vector<std::string> SplitNames(const std::string& location);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_CONSOLE_XATTR_H_
