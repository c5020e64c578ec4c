// The gRPC services of the manager: what arrives on each call is told to the core's driver, and
// what the driver gives out is written.
//
// All calls are served by the thread that polls the completion queue. The driver outlives them.
#ifndef MOSA_MANAGER_SERVICE_SESSIONS_H_
#define MOSA_MANAGER_SERVICE_SESSIONS_H_

#include <grpcpp/server_builder.h>

#include <vector>

#include "manager/service/access.h"
#include "manager/service/connection_door.h"
#include "manager/service/core_driver.h"
#include "manager/service/file_scans.h"
#include "manager/service/forecasts.h"
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
    uint64_t memory_bytes_max = 0;  // What the process is to stay below.
    bool secured = false;           // As of Access.
  };
  // Without `forecasts` nothing can be said of costs.
  Services(CoreDriver& driver, const ConnectionDoor& door, Forecasts* forecasts,
           Duration residence_wait, const Limits& limits)
      : driver_(driver),
        door_(door),
        forecasts_(forecasts),
        relay_(driver, residence_wait),
        memory_bytes_max_(limits.memory_bytes_max),
        streams_(limits.streams_max),
        calls_{.live = 0, .access = Access(limits.secured)} {}

  void Register(grpc::ServerBuilder& builder);
  // Begins to wait for calls on `queue`, whose tags are Events (stream.h). Call it once, when the
  // server has been built.
  //
  // Clients: an envelope that cannot be read is answered with a Failure; anything else that cannot
  // be read ends the stream with InvalidArgument. Storage nodes: a message that cannot be read ends
  // the stream so.
  void Serve(grpc::ServerCompletionQueue& queue);
  // True if no call is served or waited for: after the server's shutdown, the queue may follow.
  bool idle() const { return calls_.live == 0; }
  // Called in each round of the loop: answers what waits for a peer in vain, and cuts off streams
  // and calls whose peers do not read or do not begin. `stopping`: nobody is waited for any more.
  void EndOverdue(bool stopping) {
    relay_.EndOverdue(stopping);
    if (stopping) scans_.EndAll();
    streams_.CutOverdue();
    calls_.unary.CutOverdue();
  }
  // Called in each round of the loop: goes on with what takes long. True: there is more to do.
  bool ContinueScans() {
    if (scans_.is_busy()) scans_.Continue(driver_.FlushedCore());
    return scans_.is_busy();
  }
  // With the limits of the service beside those of the core.
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
  Forecasts* const forecasts_;
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
