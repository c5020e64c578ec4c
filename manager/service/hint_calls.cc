// The calls for hints, locations and workflows, and for other changes.
#include <algorithm>
#include <utility>

#include "manager/service/sessions.h"
#include "manager/service/stream.h"
#include "proto/convert/hints.h"

namespace mosa::manager {

namespace {

Status AnswerLocations(const ManagerCore& core, const v1::ListLocationsRequest& request,
                       v1::ListLocationsResponse* response) {
  MOSA_ASSIGN_OR_RETURN(const LocationQuery query, FromProto(request));
  ToProto(core.ListLocations(query.paths, query.chunks), response);
  return OkStatus();
}

Status AnswerRule(CoreDriver& driver, const Identity& caller, const v1::AddHintRuleRequest& request,
                  v1::AddHintRuleResponse* response) {
  v1::HintRule message;
  message.set_glob(request.glob());
  *message.mutable_hints() = request.hints();
  MOSA_ASSIGN_OR_RETURN(HintRule rule, FromProto(message));
  const AdminReply reply =
      driver.Change(AddHintRule{std::move(rule.glob), std::move(rule.hints), AskerFor(caller)});
  response->set_rule_id(reply.rule);
  response->set_settled(reply.settled);
  return reply.status;
}

void AnswerRules(const ManagerCore& core, uint64_t after_id, v1::ListHintRulesResponse* response) {
  for (const HintRule& rule : core.ListHintRules()) {
    if (rule.id <= after_id) continue;
    if (static_cast<size_t>(response->rules_size()) == kRulesPerPage) {
      response->set_more(true);
      return;
    }
    ToProto(rule, response->add_rules());
  }
}

Status AnswerWorkflowEnd(CoreDriver& driver, const Identity& caller,
                         const v1::EndWorkflowRequest& request, v1::EndWorkflowResponse* response) {
  const AdminReply reply = driver.Change(EndWorkflow{request.run(), AskerFor(caller)});
  response->set_files_left(reply.files_left);
  response->set_more(reply.more);
  return reply.status;
}

}  // namespace

void Services::ServeWorkflows(grpc::ServerCompletionQueue& queue) {
  UnaryCall<v1::BeginWorkflowRequest, v1::BeginWorkflowResponse>::ServeTo(
      calls_, Right::kChangeOwn,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestBeginWorkflow(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity& caller, const v1::BeginWorkflowRequest& request,
             v1::BeginWorkflowResponse*) {
        return driver_.Change(BeginWorkflow{request.run(), AskerFor(caller)}).status;
      });
  UnaryCall<v1::EndTaskRequest, v1::EndTaskResponse>::ServeTo(
      calls_, Right::kChangeOwn,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestEndTask(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity& caller, const v1::EndTaskRequest& request, v1::EndTaskResponse*) {
        return driver_.Change(EndTask{request.task(), request.succeeded(), AskerFor(caller)})
            .status;
      });
  UnaryCall<v1::EndWorkflowRequest, v1::EndWorkflowResponse>::ServeTo(
      calls_, Right::kChangeOwn,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestEndWorkflow(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity& caller, const v1::EndWorkflowRequest& request,
             v1::EndWorkflowResponse* response) {
        return AnswerWorkflowEnd(driver_, caller, request, response);
      });
}

void Services::ServeHints(grpc::ServerCompletionQueue& queue) {
  UnaryCall<v1::ListLocationsRequest, v1::ListLocationsResponse>::Serve(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestListLocations(context, request, writer, &queue, &queue, asked);
      },
      [this](const v1::ListLocationsRequest& request, v1::ListLocationsResponse* response) {
        return AnswerLocations(driver_.FlushedCore(), request, response);
      });
  UnaryCall<v1::ExplainHintsRequest, v1::ExplainHintsResponse>::Serve(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestExplainHints(context, request, writer, &queue, &queue, asked);
      },
      [this](const v1::ExplainHintsRequest& request, v1::ExplainHintsResponse* response) -> Status {
        MOSA_ASSIGN_OR_RETURN(const HintExplanation explanation,
                              driver_.FlushedCore().ExplainHints(request.path()));
        ToProto(explanation, response);
        return OkStatus();
      });
  UnaryCall<v1::SetHintRequest, v1::SetHintResponse>::ServeTo(
      calls_, Right::kChangeOwn,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestSetHint(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity& caller, const v1::SetHintRequest& request, v1::SetHintResponse*) {
        return driver_
            .Change(SetFileHint{request.path(), request.hint().name(), request.hint().value(),
                                AskerFor(caller)})
            .status;
      });
  UnaryCall<v1::AddHintRuleRequest, v1::AddHintRuleResponse>::ServeTo(
      calls_, Right::kChangeOwn,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestAddHintRule(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity& caller, const v1::AddHintRuleRequest& request,
             v1::AddHintRuleResponse* response) {
        return AnswerRule(driver_, caller, request, response);
      });
  UnaryCall<v1::ListHintRulesRequest, v1::ListHintRulesResponse>::Serve(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestListHintRules(context, request, writer, &queue, &queue, asked);
      },
      [this](const v1::ListHintRulesRequest& request, v1::ListHintRulesResponse* response) {
        AnswerRules(driver_.FlushedCore(), request.after_id(), response);
        return OkStatus();
      });
  UnaryCall<v1::RemoveHintRuleRequest, v1::RemoveHintRuleResponse>::ServeTo(
      calls_, Right::kChangeOwn,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestRemoveHintRule(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity& caller, const v1::RemoveHintRuleRequest& request,
             v1::RemoveHintRuleResponse*) {
        return driver_.Change(RemoveHintRule{request.rule_id(), AskerFor(caller)}).status;
      });
  UnaryCall<v1::DrainNodeRequest, v1::DrainNodeResponse>::Serve(
      calls_, Right::kAdminister,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestDrainNode(context, request, writer, &queue, &queue, asked);
      },
      [this](const v1::DrainNodeRequest& request, v1::DrainNodeResponse*) {
        return driver_.Change(DrainNode{request.name(), request.drain()}).status;
      });
}

}  // namespace mosa::manager
