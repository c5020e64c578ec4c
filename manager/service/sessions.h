// Services: the manager's gRPC services. Passes incoming messages to the core's driver and writes
// what the driver sends.
//
// One thread polls the completion queue and serves all calls. The driver must outlive the services.
#ifndef MOSA_MANAGER_SERVICE_SESSIONS_H_
#define MOSA_MANAGER_SERVICE_SESSIONS_H_

#include <grpcpp/server_builder.h>

#include <vector>

#include "manager/forecast/read_costs.h"
#include "manager/service/access.h"
#include "manager/service/connection_door.h"
#include "manager/service/core_driver.h"
#include "manager/service/file_scans.h"
#include "manager/service/residence_relay.h"
#include "manager/service/stream.h"
#include "mosa/v1/manager_service.grpc.pb.h"
#include "mosa/v1/node.grpc.pb.h"
#include "mosa/v1/session.grpc.pb.h"

namespace mosa::manager {

class Services {
 public:
  struct Limits {
    size_t streams_max = 0;
    uint64_t memory_bytes_max = 0;  // The process should stay below this.
    bool secured = false;           // As for Access.
  };
  // `read_costs` may be null: then calls for costs are refused. Else it must outlive the services.
  Services(CoreDriver& driver, const ConnectionDoor& door, const ReadCosts* read_costs,
           Duration residence_wait, const Limits& limits)
      : driver_(driver),
        door_(door),
        read_costs_(read_costs),
        relay_(driver, residence_wait),
        memory_bytes_max_(limits.memory_bytes_max),
        streams_(limits.streams_max),
        calls_{.live = 0, .access = Access(limits.secured)} {}

  void Register(grpc::ServerBuilder& builder);
  // Starts to wait for calls on `queue`, whose tags are Events (stream.h). Call once, when the
  // server has been built.
  //
  // Clients: an unreadable envelope is answered with a Failure; any other unreadable message ends
  // the stream with InvalidArgument. Storage nodes: any unreadable message ends the stream so.
  void Serve(grpc::ServerCompletionQueue& queue);
  // True if no call is served or awaited. After the server's shutdown the queue may then be shut
  // down.
  bool idle() const { return calls_.live == 0; }
  // Call in each round of the loop. Answers calls that have waited too long for another peer, and
  // cuts off peers that do not read, or do not identify themselves. `stopping`: ends all waits.
  void EndOverdue(bool stopping) {
    relay_.EndOverdue(stopping);
    if (stopping) scans_.EndAll();
    streams_.CutOverdue();
    calls_.unary.CutOverdue();
  }
  // Call in each round of the loop. Continues long scans; returns true if work is left.
  bool ContinueScans() {
    if (scans_.is_busy()) scans_.Continue(driver_.FlushedCore());
    return scans_.is_busy();
  }
  // Includes the limits of the service besides those of the core.
  ClusterStatus DescribeCluster();

 private:
  void AcceptClient(grpc::ServerCompletionQueue& queue);
  void AcceptNode(grpc::ServerCompletionQueue& queue);
  void ServeStatus(grpc::ServerCompletionQueue& queue);
  void ServeHints(grpc::ServerCompletionQueue& queue);
  void ServeWorkflows(grpc::ServerCompletionQueue& queue);
  void ServeStaging(grpc::ServerCompletionQueue& queue);
  void ServeAdoption(grpc::ServerCompletionQueue& queue);
  void ServeResidence(grpc::ServerCompletionQueue& queue);
  void ServeForecasts(grpc::ServerCompletionQueue& queue);

  CoreDriver& driver_;
  const ConnectionDoor& door_;
  const ReadCosts* const read_costs_;
  ResidenceRelay relay_;
  const uint64_t memory_bytes_max_;
  FileScans scans_;
  OpenStreams streams_;
  Calls calls_;
  v1::ClientSessionService::AsyncService clients_;
  v1::NodeSessionService::AsyncService nodes_;
  v1::ManagerService::AsyncService status_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_SESSIONS_H_
