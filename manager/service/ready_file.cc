#include "manager/service/ready_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace mosa::manager {

Status WriteReadyFile(const std::string& path, const std::string& address) {
  const std::string fresh = path + ".new";
  const nlohmann::json text = {{"address", address}, {"pid", ::getpid()}};
  std::ofstream out(fresh, std::ios::trunc);
  out << text.dump() << '\n';
  out.close();
  if (out.fail() || std::rename(fresh.c_str(), path.c_str()) != 0) {
    return FailedPreconditionError(fmt::format("cannot write the ready file {}: {}", path,
                                               std::generic_category().message(errno)));
  }
  return OkStatus();
}

}  // namespace mosa::manager
