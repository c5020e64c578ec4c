// ManagerApi over one gRPC stream.
//
// A thread that waits for a reply reads the stream itself (manager_stream.h). One thread delivers
// everything else and reopens the stream when it breaks (after 50 ms, doubling to 1 s). Callers
// write for themselves, one at a time. A second thread sends keep-alives and cuts a stream on which
// nothing has arrived, or a write has hung, for the length of a lease.
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
  // Where envelopes are counted by EnvelopeKindOf, from their sending to their answer's arrival;
  // null: nowhere. Outlives the api.
  DurationTable* residence = nullptr;
  // What this client answers when the manager asks for its residence times, and does before with
  // its log of requests. Called on the delivery
  // thread. Empty: an empty snapshot.
  std::function<ResidenceSnapshot(const ResidenceQuery& query)> snapshot = nullptr;
};

// An envelope that is too long to send, or one of more than 65,536 that wait, is answered with one
// Failure kArgumentTooBig or kBusy. Stop must have been called before the destructor if Start was.
std::unique_ptr<ManagerApi> NewGrpcManagerApi(const GrpcManagerOptions& options);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_GRPC_MANAGER_API_H_
