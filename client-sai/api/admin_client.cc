#include "client-sai/api/admin_client.h"

#include <grpcpp/client_context.h>

#include <chrono>
#include <utility>

#include "common/model/session.h"
#include "mosa/v1/manager_service.grpc.pb.h"
#include "proto/convert/admin.h"
#include "proto/convert/status.h"

namespace mosa::sai {

struct AdminClient::Stub {
  std::unique_ptr<v1::ManagerService::Stub> manager;
};

namespace {

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(kWaitMax.ns));
}

}  // namespace

AdminClient::AdminClient(const std::string& address, const std::optional<ClusterSecret>& secret)
    : stub_(std::make_unique<Stub>()) {
  stub_->manager = v1::ManagerService::NewStub(MakeChannel(address, secret));
}

AdminClient::~AdminClient() = default;

Result<ClusterStatus> AdminClient::GetClusterStatus() {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetClusterStatusResponse response;
  MOSA_RETURN_IF_ERROR(FromGrpc(stub_->manager->GetClusterStatus(&context, {}, &response)));
  return FromProto(response);
}

Result<FileStatus> AdminClient::GetFileStatus(const std::string& path) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetFileStatusRequest request;
  request.set_path(path);
  v1::GetFileStatusResponse response;
  MOSA_RETURN_IF_ERROR(FromGrpc(stub_->manager->GetFileStatus(&context, request, &response)));
  return FromProto(response.file());
}

Result<std::vector<FileStatus>> AdminClient::ListLostFiles(uint32_t files_max) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListLostFilesRequest request;
  request.set_files_max(files_max);
  v1::ListLostFilesResponse response;
  MOSA_RETURN_IF_ERROR(FromGrpc(stub_->manager->ListLostFiles(&context, request, &response)));
  std::vector<FileStatus> files;
  files.reserve(static_cast<size_t>(response.files_size()));
  for (const v1::FileStatus& item : response.files()) {
    MOSA_ASSIGN_OR_RETURN(FileStatus file, FromProto(item));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace mosa::sai
