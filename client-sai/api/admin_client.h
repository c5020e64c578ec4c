// What people and schedulers ask of the manager, one call each. Thread-safe; a call waits at most
// kWaitMax. Unavailable when the manager cannot be reached, else as the manager says.
#ifndef MOSA_CLIENT_SAI_API_ADMIN_CLIENT_H_
#define MOSA_CLIENT_SAI_API_ADMIN_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/status.h"
#include "proto/convert/credentials.h"

namespace mosa::sai {

class AdminClient {
 public:
  // `address` is host:port of the manager. Connects with the first call.
  AdminClient(const std::string& address, const std::optional<ClusterSecret>& secret);
  ~AdminClient();

  Result<ClusterStatus> GetClusterStatus();
  // By absolute path in the store; NotFound names the first missing component.
  Result<FileStatus> GetFileStatus(const std::string& path);
  // At most `files_max` (1 to 10,000), ascending by id.
  Result<std::vector<FileStatus>> ListLostFiles(uint32_t files_max);

 private:
  struct Stub;
  std::unique_ptr<Stub> stub_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_ADMIN_CLIENT_H_
