// The calls that the predictor answers.
#include <utility>

#include "manager/service/sessions.h"
#include "manager/service/stream.h"
#include "proto/convert/read_cost.h"

namespace mosa::manager {

namespace {

using PredictReadsCall = UnaryCall<v1::PredictReadsRequest, v1::PredictReadsResponse>;

// Looks up at once what the core knows; the forecast thread computes the answer.
Status BeginPredictReads(const ManagerCore& core, Time now, Forecasts* forecasts,
                         const v1::PredictReadsRequest& request,
                         const PredictReadsCall::Done& done) {
  if (forecasts == nullptr)
    return FailedPreconditionError(
        "the manager has no platform to predict with: measure one with 'mosa identify -o FILE', "
        "and start mosa-manager with --platform FILE");
  MOSA_ASSIGN_OR_RETURN(const ReadCostQuery query, FromProto(request));
  MOSA_ASSIGN_OR_RETURN(ReadCostTask task, TaskOf(core, now, query));
  forecasts->PredictReads(std::move(task),
                          [done](const Status& status, const ReadCostAnswer& answer) {
                            v1::PredictReadsResponse response;
                            if (status.ok()) ToProto(answer, &response);
                            done(status, response);
                          });
  return OkStatus();
}

}  // namespace

void Services::ServeForecasts(grpc::ServerCompletionQueue& queue) {
  PredictReadsCall::ServeLater(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestPredictReads(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity&, const v1::PredictReadsRequest& request,
             const PredictReadsCall::Done& done) {
        const Status begun =
            BeginPredictReads(driver_.FlushedCore(), driver_.Now(), forecasts_, request, done);
        if (!begun.ok()) done(begun, {});
      });
}

}  // namespace mosa::manager
