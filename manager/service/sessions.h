// The gRPC services of the manager: each call becomes arrivals or a query of the core loop.
//
// Thread-safe, as gRPC calls them. The loop outlives the services, and these the server.
#ifndef MOSA_MANAGER_SERVICE_SESSIONS_H_
#define MOSA_MANAGER_SERVICE_SESSIONS_H_

#include "manager/service/core_loop.h"
#include "mosa/v1/manager_service.grpc.pb.h"
#include "mosa/v1/node.grpc.pb.h"
#include "mosa/v1/session.grpc.pb.h"

namespace mosa::manager {

// Clients. An envelope that cannot be read is answered with a Failure; anything else that cannot be
// read ends the stream with InvalidArgument.
class ClientSessions final : public v1::ClientSessionService::CallbackService {
 public:
  explicit ClientSessions(CoreLoop& loop) : loop_(loop) {}
  grpc::ServerBidiReactor<v1::ClientMessage, v1::ManagerMessage>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  CoreLoop& loop_;
};

// Storage nodes. A message that cannot be read ends the stream with InvalidArgument.
class NodeSessions final : public v1::NodeSessionService::CallbackService {
 public:
  explicit NodeSessions(CoreLoop& loop) : loop_(loop) {}
  grpc::ServerBidiReactor<v1::NodeMessage, v1::ManagerToNode>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  CoreLoop& loop_;
};

// People and schedulers.
class StatusService final : public v1::ManagerService::CallbackService {
 public:
  explicit StatusService(CoreLoop& loop) : loop_(loop) {}
  grpc::ServerUnaryReactor* GetClusterStatus(grpc::CallbackServerContext* context,
                                             const v1::GetClusterStatusRequest* request,
                                             v1::GetClusterStatusResponse* response) override;
  grpc::ServerUnaryReactor* GetFileStatus(grpc::CallbackServerContext* context,
                                          const v1::GetFileStatusRequest* request,
                                          v1::GetFileStatusResponse* response) override;
  grpc::ServerUnaryReactor* ListLostFiles(grpc::CallbackServerContext* context,
                                          const v1::ListLostFilesRequest* request,
                                          v1::ListLostFilesResponse* response) override;

 private:
  CoreLoop& loop_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_SESSIONS_H_
