// Residence times of the cluster's daemons: the relay, and the call that uses it.
#include <string>
#include <utility>
#include <variant>

#include "fmt/format.h"
#include "manager/service/residence_relay.h"
#include "manager/service/sessions.h"
#include "manager/service/stream.h"
#include "proto/convert/residence.h"

namespace mosa::manager {

template <typename Sink>
void ResidenceRelay::AskBy(Sink* sink, ResidenceQuery query, const Done& done) {
  if (sink == nullptr) return done(UnavailableError("it is not connected to the manager"));
  if (questions_.size() >= kQuestionsMax) {
    return done(ResourceExhaustedError(
        fmt::format("{} queries for residence times are already open: try again in a moment",
                    questions_.size())));
  }
  query.query = ++last_query_;
  questions_.emplace(query.query, Question{done, driver_.Now() + answer_max_});
  driver_.Flush();  // Earlier messages to the peer leave first.
  sink->Send(query);
}

void ResidenceRelay::Ask(NodeId node, ResidenceQuery query, const Done& done) {
  AskBy(driver_.SinkOf(node).get(), std::move(query), done);
}

void ResidenceRelay::Ask(ClientId client, ResidenceQuery query, const Done& done) {
  AskBy(driver_.SinkOf(client).get(), std::move(query), done);
}

void ResidenceRelay::Answered(ResidenceReport report) {
  const auto found = questions_.find(report.query);
  if (found == questions_.end()) return;  // Too late.
  const Done done = std::move(found->second.done);
  questions_.erase(found);
  done(std::move(report.snapshot));
}

void ResidenceRelay::EndOverdue(bool all) {
  const Time now = driver_.Now();
  while (!questions_.empty() && (all || questions_.begin()->second.deadline <= now)) {
    const Done done = std::move(questions_.begin()->second.done);
    questions_.erase(questions_.begin());
    done(DeadlineExceededError(
        fmt::format("it did not answer the manager within {} s", answer_max_.ns / Seconds(1).ns)));
  }
}

ResidenceSnapshot SnapshotOf(const ManagerResidence& residence) {
  ResidenceSnapshot snapshot{.component = "manager",
                             .started = residence.started,
                             .taken = SystemClock().Now(),
                             .rows = {},
                             .amounts = {}};
  for (const DurationTable* const table :
       {&residence.requests, &residence.decisions, &residence.loop})
    AppendRows(*table, snapshot);
  AppendProcessorUse(ReadProcessorUse(), snapshot);
  return snapshot;
}

void Services::ServeResidence(grpc::ServerCompletionQueue& queue) {
  using Call = UnaryCall<v1::GetResidenceRequest, v1::GetResidenceResponse>;
  Call::ServeLater(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestGetResidence(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity& caller, const v1::GetResidenceRequest& request,
             const Call::Done& done) {
        const auto pass_on = [done](const Result<std::string>& snapshot) {
          v1::GetResidenceResponse response;
          if (snapshot.ok()) response.set_snapshot(*snapshot);
          done(snapshot.status(), response);
        };
        const ResidenceSource source = FromProto(request);
        const Result<ResidenceQuery> query = QueryOf(request);
        if (!query.ok()) return pass_on(query.status());
        // Logging requests creates files on hosts.
        const bool asks_alone = query->log_order == RequestLogOrder::kNone;
        const Status may = CheckRight(caller, asks_alone ? Right::kAsk : Right::kAdminister);
        if (!may.ok()) return pass_on(may);
        if (const auto* const node = std::get_if<NodeId>(&source))
          return relay_.Ask(*node, *query, pass_on);
        if (const auto* const client = std::get_if<ClientId>(&source))
          return relay_.Ask(*client, *query, pass_on);
        ResidenceSnapshot snapshot = SnapshotOf(driver_.residence());
        ObeyQuery(*query, "", driver_.request_log(), snapshot);
        pass_on(ReportOf({}, snapshot).snapshot);
      });
}

}  // namespace mosa::manager
