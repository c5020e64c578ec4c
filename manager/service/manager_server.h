// ManagerServer: the whole manager: the store, the core loaded from it, the loop, and the gRPC
// server. `mosa-manager` runs it; tests start it in their own process.
//
// Not thread-safe, except where noted.
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
#include "manager/forecast/forecasts.h"
#include "manager/service/default_limits.h"
#include "proto/convert/credentials.h"

namespace mosa::manager {

struct ServerOptions {
  std::string listen = "127.0.0.1:7400";  // Port 0: any free port.
  std::string data_directory;
  std::optional<ClusterSecret> secret;
  bool fsync = false;
  bool bulk_tls = false;  // Nodes and mounts encrypt the bulk plane.
  // The database is a restored backup: changes made after the backup are forgotten.
  bool restored = false;
  // A database keeps its own seed. Quotas come from `limits`.
  ManagerOptions core;
  // Limits that are not set follow from the machine's memory and the data directory's file system.
  ChosenLimits limits;
  uint32_t user_share_percent = 75;  // One user's share of each limit.
  // Default: what the process has descriptors for.
  std::optional<DoorLimits> connections;
  // Without them calls for costs are refused, and copies follow the rule (copies.h).
  std::optional<Forecasts> forecasts;
  // How long to wait for a storage node or mount that was asked for its residence times.
  Duration residence_wait = kNodeDeadAfter;
};

class ManagerServer {
 public:
  // Returns once it is serving. InvalidArgument: a bad address (CheckListenAddress).
  // FailedPrecondition: the port is taken, or the database is another cluster's or of a newer
  // version. DataLoss: the database is damaged. Other codes come from the store.
  static Result<std::unique_ptr<ManagerServer>> Start(const ServerOptions& options);
  ~ManagerServer();

  // Answers what has arrived, tells every client that its session ends, and shuts down.
  void Stop();

  // Residence times of requests. Thread-safe until Stop.
  ResidenceSnapshot Residence() const;

  // Limits and usage, at most two seconds old. Thread-safe until Stop.
  std::vector<LimitStatus> Limits() const;

  // The bound address, host:port.
  const std::string& address() const;

 private:
  struct Parts;
  explicit ManagerServer(std::unique_ptr<Parts> parts);
  // Starts gRPC behind the door, then opens the door.
  static Status StartServer(const ServerOptions& options, Parts& parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_MANAGER_SERVER_H_
