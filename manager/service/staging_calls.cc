// The calls about files that are copied out of the store.
#include <algorithm>
#include <utility>

#include "manager/service/sessions.h"
#include "manager/service/stream.h"
#include "proto/convert/staging.h"

namespace mosa::manager {

namespace {

Status AnswerStaged(CoreDriver& driver, const Identity& caller,
                    const v1::MarkStagedRequest& request, v1::MarkStagedResponse* response) {
  MOSA_ASSIGN_OR_RETURN(std::vector<StagedFile> files, FromProto(request));
  const AdminReply reply = driver.Change(MarkStaged{std::move(files), AskerFor(caller)});
  ToProto(reply.staged, response);
  return reply.status;
}

Status AnswerUnstaged(CoreDriver& driver, const Identity& caller,
                      const v1::ListUnstagedRequest& request, v1::ListUnstagedResponse* response) {
  MOSA_RETURN_IF_ERROR(driver.Change(RecallMakers{AskerFor(caller)}).status);
  const size_t files_max = std::min<size_t>(request.files_max(), kStagedFilesMax);
  ToProto(driver.FlushedCore().ListUnstaged(files_max, FileId{request.after_id()}), response);
  return OkStatus();
}

}  // namespace

void Services::ServeStaging(grpc::ServerCompletionQueue& queue) {
  UnaryCall<v1::MarkStagedRequest, v1::MarkStagedResponse>::ServeTo(
      calls_, Right::kChangeOwn,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestMarkStaged(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity& caller, const v1::MarkStagedRequest& request,
             v1::MarkStagedResponse* response) {
        return AnswerStaged(driver_, caller, request, response);
      });
  UnaryCall<v1::ListUnstagedRequest, v1::ListUnstagedResponse>::ServeTo(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestListUnstaged(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity& caller, const v1::ListUnstagedRequest& request,
             v1::ListUnstagedResponse* response) {
        return AnswerUnstaged(driver_, caller, request, response);
      });
}

}  // namespace mosa::manager
