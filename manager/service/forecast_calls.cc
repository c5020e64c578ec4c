// The calls that are answered from forecasts.
#include "manager/service/read_answers.h"
#include "manager/service/sessions.h"
#include "manager/service/stream.h"
#include "proto/convert/read_cost.h"

namespace mosa::manager {

namespace {

Status PredictReads(const ManagerCore& core, Time now, const ReadCosts* costs,
                    const v1::PredictReadsRequest& request, v1::PredictReadsResponse* response) {
  if (costs == nullptr)
    return FailedPreconditionError(
        "the manager has no forecasts: make them with 'mosa forecast --platform FILE -o "
        "FORECASTS', and start mosa-manager with --forecasts FORECASTS");
  MOSA_ASSIGN_OR_RETURN(const ReadCostQuery query, FromProto(request));
  MOSA_ASSIGN_OR_RETURN(const ReadCostAnswer answer, AnswerReads(core, now, *costs, query));
  ToProto(answer, response);
  return OkStatus();
}

}  // namespace

void Services::ServeForecasts(grpc::ServerCompletionQueue& queue) {
  UnaryCall<v1::PredictReadsRequest, v1::PredictReadsResponse>::Serve(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestPredictReads(context, request, writer, &queue, &queue, asked);
      },
      [this](const v1::PredictReadsRequest& request, v1::PredictReadsResponse* response) {
        return PredictReads(driver_.FlushedCore(), driver_.Now(), read_costs_, request, response);
      });
}

}  // namespace mosa::manager
