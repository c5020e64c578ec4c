// The manager as a whole: the store, the core loaded from it, the loop, and the gRPC server in
// front. What `mosa-manager` runs, and tests start in their own process.
//
// One owner, one thread.
#ifndef MOSA_MANAGER_SERVICE_MANAGER_SERVER_H_
#define MOSA_MANAGER_SERVICE_MANAGER_SERVER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/residence.h"
#include "common/model/session.h"
#include "manager/core/manager_core.h"
#include "manager/service/default_limits.h"
#include "predictor/model/platform.h"
#include "proto/convert/credentials.h"

namespace mosa::manager {

struct ServerOptions {
  std::string listen = "127.0.0.1:7400";  // Port 0: any that is free.
  std::string data_directory;
  std::optional<ClusterSecret> secret;
  bool fsync = false;
  bool bulk_tls = false;  // Nodes and mounts encrypt what they send one another.
  // The database is an older copy of one that was used since: it has forgotten what came after.
  bool restored = false;
  // The seed is that of the database, if it has one. Its quotas are those of `limits`.
  ManagerOptions core;
  // What is not set follows from this machine's memory and the data directory's file system.
  ChosenLimits limits;
  uint32_t user_share_percent = 75;  // One user's share of each limit.
  // What is not chosen is what the process has descriptors for.
  std::optional<DoorLimits> connections;
  // What the deployment can do: without it nothing is predicted. Checked.
  std::optional<predict::Platform> platform;
  // How long a storage node or a mount is waited for that was asked for its residence times.
  Duration residence_wait = kNodeDeadAfter;
};

class ManagerServer {
 public:
  // Serves when it returns. InvalidArgument: the address (CheckListenAddress); FailedPrecondition:
  // the port is taken, or the database is another cluster's or a newer version's; DataLoss: the
  // database is damaged; other codes as the store says.
  static Result<std::unique_ptr<ManagerServer>> Start(const ServerOptions& options);
  ~ManagerServer();

  // Answers what has arrived, tells every client that its session ends, and closes.
  void Stop();

  // How long requests have stayed here. Safe from any thread, until Stop.
  ResidenceSnapshot Residence() const;

  // What clients can make grow, as of the last second or two. Safe from any thread, until Stop.
  std::vector<LimitStatus> Limits() const;

  // host:port as it was bound.
  const std::string& address() const;

 private:
  struct Parts;
  explicit ManagerServer(std::unique_ptr<Parts> parts);
  // gRPC behind the door, which then lets connections in.
  static Status StartServer(const ServerOptions& options, Parts& parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_MANAGER_SERVER_H_
