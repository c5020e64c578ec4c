// The calls for files that are copied out of the store.
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

using UnstagedCall = UnaryCall<v1::ListUnstagedRequest, v1::ListUnstagedResponse>;

void BeginUnstaged(CoreDriver& driver, FileScans& scans, const Identity& caller,
                   const v1::ListUnstagedRequest& request, const UnstagedCall::Done& done) {
  const Status recalled = driver.Change(RecallMakers{AskerFor(caller)}).status;
  if (!recalled.ok()) return done(recalled, {});
  scans.Ask({.kind = FileScanQuestion::Kind::kUnstaged,
             .files_max = std::min<size_t>(request.files_max(), kStagedFilesMax),
             .after = FileId{request.after_id()}},
            Describe(caller), [done](const Status& status, const FileScan& scan) {
              v1::ListUnstagedResponse response;
              if (status.ok()) ToProto(scan.unstaged, &response);
              done(status, response);
            });
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
  UnstagedCall::ServeLater(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestListUnstaged(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity& caller, const v1::ListUnstagedRequest& request,
             const UnstagedCall::Done& done) {
        BeginUnstaged(driver_, scans_, caller, request, done);
      });
}

}  // namespace mosa::manager
