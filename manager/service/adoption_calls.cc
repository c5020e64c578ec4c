// The calls for objects that nodes have put aside.
#include <fmt/format.h>

#include <utility>

#include "manager/service/sessions.h"
#include "manager/service/stream.h"
#include "proto/convert/adoption.h"

namespace mosa::manager {
namespace {

Status AnswerAside(CoreDriver& driver, const v1::ListAsideRequest& request,
                   v1::ListAsideResponse* response) {
  if (request.files_max() < 1 || request.files_max() > kAdoptedFilesMax)
    return InvalidArgumentError(
        fmt::format("files_max is {}, but must be 1 to {}", request.files_max(), kAdoptedFilesMax));
  ToProto(driver.FlushedCore().ListAside(request.files_max(), FileId{request.after_id()}),
          response);
  return OkStatus();
}

Status AnswerAdopt(CoreDriver& driver, const v1::AdoptFilesRequest& request,
                   v1::AdoptFilesResponse* response) {
  MOSA_ASSIGN_OR_RETURN(std::vector<FileId> files, FromProto(request));
  const AdminReply reply =
      driver.Change(AdoptFiles{.files = std::move(files), .discard = request.discard()});
  ToProto(reply.adopted, response);
  return reply.status;
}

}  // namespace

void Services::ServeAdoption(grpc::ServerCompletionQueue& queue) {
  UnaryCall<v1::ListAsideRequest, v1::ListAsideResponse>::Serve(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestListAside(context, request, writer, &queue, &queue, asked);
      },
      [this](const v1::ListAsideRequest& request, v1::ListAsideResponse* response) {
        return AnswerAside(driver_, request, response);
      });
  UnaryCall<v1::AdoptFilesRequest, v1::AdoptFilesResponse>::Serve(
      calls_, Right::kAdminister,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestAdoptFiles(context, request, writer, &queue, &queue, asked);
      },
      [this](const v1::AdoptFilesRequest& request, v1::AdoptFilesResponse* response) {
        return AnswerAdopt(driver_, request, response);
      });
}

}  // namespace mosa::manager
