// ManagerApi over one gRPC stream.
//
// A thread that waits for a reply reads the stream itself (manager_stream.h). The delivery thread
// handles everything else, and reopens the stream when it breaks (after 50 ms, doubling to 1 s).
// Callers write their own requests, one at a time. A second thread sends keep-alives. It also cuts
// a stream on which nothing has arrived, or a write has hung, for the length of a lease.
#ifndef MOSA_CLIENT_SAI_API_GRPC_MANAGER_API_H_
#define MOSA_CLIENT_SAI_API_GRPC_MANAGER_API_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client-sai/api/manager_api.h"
#include "common/model/residence.h"
#include "common/observe/duration_table.h"
#include "proto/convert/credentials.h"

namespace mosa::sai {

struct GrpcManagerOptions {
  std::string address;  // host:port of the manager.
  std::optional<ClusterSecret> secret;
  // How long Start waits for the manager.
  Duration start_wait = kWaitMax;
  // Counts envelopes by EnvelopeKindOf, from sending to the arrival of the reply. May be null; must
  // outlive the api.
  DurationTable* residence = nullptr;
  // Returns this client's residence times when the manager asks for them, after carrying out the
  // query's request-log order. Called on the delivery thread. If empty, an empty snapshot is sent.
  std::function<ResidenceSnapshot(const ResidenceQuery& query)> snapshot = nullptr;
};

// An envelope that is too long fails with kArgumentTooBig, and one beyond 65,536 waiting envelopes
// with kBusy. After Start, call Stop before the destructor.
std::unique_ptr<ManagerApi> NewGrpcManagerApi(const GrpcManagerOptions& options);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_GRPC_MANAGER_API_H_
