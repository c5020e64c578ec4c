#include "client-sai/api/admin_client.h"

#include <fmt/format.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "common/model/session.h"
#include "mosa/v1/manager_service.grpc.pb.h"
#include "proto/convert/admin.h"
#include "proto/convert/adoption.h"
#include "proto/convert/hints.h"
#include "proto/convert/read_cost.h"
#include "proto/convert/residence.h"
#include "proto/convert/staging.h"
#include "proto/convert/status.h"

namespace mosa::sai {

namespace {

using ManagerStub = v1::ManagerService::Stub;
using Clock = std::chrono::steady_clock;

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(kWaitMax.ns));
}

// For how long a question is repeated while the manager is not available.
constexpr std::chrono::seconds kAvailableWithin{3};
constexpr std::chrono::milliseconds kAskAgainDelay{5}, kAskAgainDelayMax{200};

}  // namespace

struct AdminClient::Stub {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<ManagerStub> manager;

  // Makes a call that changes nothing. Repeats it if the manager is restarting, or has ended a
  // handshake for which this host was too busy.
  template <typename Request, typename Response>
  Status Ask(grpc::Status (ManagerStub::*call)(grpc::ClientContext*, const Request&, Response*),
             const Request& request, Response* response) {
    const auto deadline = std::chrono::system_clock::now() + std::chrono::nanoseconds(kWaitMax.ns);
    const auto begun = Clock::now();
    for (;;) {
      grpc::ClientContext context;
      context.set_deadline(deadline);
      response->Clear();
      Status status = FromGrpc((manager.get()->*call)(&context, request, response));
      const std::chrono::nanoseconds left = begun + kAvailableWithin - Clock::now();
      if (status.code() != StatusCode::kUnavailable || left <= left.zero() ||
          !AwaitConnection(*channel, Nanoseconds(left.count())))
        return status;
      std::this_thread::sleep_for(kAskAgainDelayMax);
    }
  }
};

namespace {

// Limit on the path bytes in one call; a manager accepts messages of at most 16 MiB.
constexpr size_t kPathBytesPerCallMax = size_t{8} << 20;
// A mount does not close an open file because it is asked to.
constexpr std::chrono::seconds kFilesCloseMax{2};
// Longer than a lease: after it, an unresponsive mount cannot change the files.
constexpr std::chrono::seconds kFilesSettleMax{7};

// Calls `ask` until it returns anything but Aborted.
Status AskUntilSettled(const std::function<Status()>& ask) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kWaitMax.ns);
  for (auto delay = kAskAgainDelay;; delay = std::min(2 * delay, kAskAgainDelayMax)) {
    Status status = ask();
    if (status.code() != StatusCode::kAborted || std::chrono::steady_clock::now() >= deadline)
      return status;
    std::this_thread::sleep_for(delay);
  }
}

// As AskUntilSettled, for calls that may be repeated: survives a restart of the manager. gRPC
// connects only while a call waits for it.
Status AskOverRestart(const std::function<Status(grpc::ClientContext&)>& ask) {
  Status unavailable;
  return AskUntilSettled([&]() -> Status {
    grpc::ClientContext context;
    SetDeadline(context);
    context.set_wait_for_ready(!unavailable.ok());
    const Status status = ask(context);
    if (status.code() == StatusCode::kDeadlineExceeded && !unavailable.ok()) return unavailable;
    if (status.code() != StatusCode::kUnavailable) return status;
    unavailable = status;
    return AbortedError(MessageOf(status));
  });
}

// Asks about at most kStagedFilesMax files until they are settled.
Result<std::vector<StageOutcome>> MarkBatch(v1::ManagerService::Stub& manager,
                                            std::span<const StagedFile> files) {
  std::vector<StageOutcome> outcomes(files.size(), StageOutcome::kBusy);
  std::vector<size_t> open(files.size());
  std::iota(open.begin(), open.end(), size_t{0});
  std::optional<std::chrono::steady_clock::time_point> deadline;  // Set by the first answer.
  for (auto delay = kAskAgainDelay;; delay = std::min(2 * delay, kAskAgainDelayMax)) {
    std::vector<StagedFile> asked;
    for (const size_t i : open) asked.push_back(files[i]);
    v1::MarkStagedRequest request;
    ToProto(asked, &request);
    v1::MarkStagedResponse response;
    MOSA_RETURN_IF_ERROR(AskOverRestart([&](grpc::ClientContext& context) {
      response.Clear();
      return FromGrpc(manager.MarkStaged(&context, request, &response));
    }));
    MOSA_ASSIGN_OR_RETURN(const std::vector<StageOutcome> answers, FromProto(response));
    if (answers.size() != asked.size())
      return InternalError("the manager's reply does not cover every file");
    for (size_t k = 0; k < open.size(); ++k) outcomes[open[k]] = answers[k];
    std::erase_if(open, [&](size_t i) { return outcomes[i] != StageOutcome::kBusy; });
    const auto now = std::chrono::steady_clock::now();
    if (!deadline) deadline = now + kFilesSettleMax;
    if (open.empty() || now >= *deadline) return outcomes;
    std::this_thread::sleep_for(delay);
  }
}

}  // namespace

AdminClient::AdminClient(const std::string& address, const std::optional<ClusterSecret>& secret)
    : stub_(std::make_unique<Stub>()) {
  stub_->channel = MakeChannel(address, secret);
  stub_->manager = v1::ManagerService::NewStub(stub_->channel);
}

AdminClient::~AdminClient() = default;

Result<ClusterStatus> AdminClient::GetClusterStatus() {
  v1::GetClusterStatusResponse response;
  MOSA_RETURN_IF_ERROR(
      stub_->Ask(&ManagerStub::GetClusterStatus, v1::GetClusterStatusRequest(), &response));
  return FromProto(response);
}

Result<FileStatus> AdminClient::GetFileStatus(const std::string& path) {
  v1::GetFileStatusRequest request;
  request.set_path(path);
  v1::GetFileStatusResponse response;
  MOSA_RETURN_IF_ERROR(stub_->Ask(&ManagerStub::GetFileStatus, request, &response));
  return FromProto(response.file());
}

Result<std::vector<FileStatus>> AdminClient::ListLostFiles(uint32_t files_max) {
  v1::ListLostFilesRequest request;
  request.set_files_max(files_max);
  v1::ListLostFilesResponse response;
  MOSA_RETURN_IF_ERROR(stub_->Ask(&ManagerStub::ListLostFiles, request, &response));
  std::vector<FileStatus> files;
  files.reserve(static_cast<size_t>(response.files_size()));
  for (const v1::FileStatus& item : response.files()) {
    MOSA_ASSIGN_OR_RETURN(FileStatus file, FromProto(item));
    files.push_back(std::move(file));
  }
  return files;
}

Result<std::vector<FileLocation>> AdminClient::ListLocations(const std::vector<std::string>& paths,
                                                             bool with_chunks) {
  std::vector<FileLocation> locations;
  locations.reserve(paths.size());
  while (locations.size() < paths.size()) {
    LocationQuery query{.paths = {}, .chunks = with_chunks};
    size_t path_bytes = 0;
    for (size_t i = locations.size(); i < paths.size() && query.paths.size() < kLocationPathsMax;
         ++i) {
      path_bytes += paths[i].size();
      if (path_bytes > kPathBytesPerCallMax && !query.paths.empty()) break;
      query.paths.push_back(paths[i]);
    }
    v1::ListLocationsRequest request;
    ToProto(query, &request);
    v1::ListLocationsResponse response;
    MOSA_RETURN_IF_ERROR(stub_->Ask(&ManagerStub::ListLocations, request, &response));
    MOSA_ASSIGN_OR_RETURN(std::vector<FileLocation> answers, FromProto(response));
    if (answers.size() != query.paths.size())
      return InternalError("the manager's reply does not cover every path");
    std::move(answers.begin(), answers.end(), std::back_inserter(locations));
  }
  return locations;
}

Result<ReadCostAnswer> AdminClient::PredictReads(const ReadCostQuery& query) {
  ReadCostAnswer all;
  for (const std::string& host : query.hosts)
    if (std::find(all.hosts.begin(), all.hosts.end(), host) == all.hosts.end())
      all.hosts.push_back(host);
  // All calls use the same hosts, even if nodes come and go meanwhile.
  if (query.hosts.empty()) {
    MOSA_ASSIGN_OR_RETURN(const ClusterStatus status, GetClusterStatus());
    for (const NodeStatus& node : status.nodes)
      if (node.address.state == NodeState::kLive || node.address.state == NodeState::kDraining)
        all.hosts.push_back(node.address.name);
    if (all.hosts.empty())
      return FailedPreconditionError("no storage node responds, so there is no host to read on");
  }
  const size_t sets_max = std::min(kReadSetsMax, kReadAnswersMax / all.hosts.size());
  const size_t paths_max = std::min(kReadPathsMax, kReadAddendsMax / all.hosts.size());
  while (all.sets.size() < query.sets.size()) {
    ReadCostQuery batch{{}, all.hosts};
    size_t paths = 0, path_bytes = 0;
    for (size_t i = all.sets.size(); i < query.sets.size() && batch.sets.size() < sets_max; ++i) {
      paths += query.sets[i].size();
      for (const std::string& path : query.sets[i]) path_bytes += path.size();
      if (!batch.sets.empty() && (paths > paths_max || path_bytes > kPathBytesPerCallMax)) break;
      batch.sets.push_back(query.sets[i]);
    }
    v1::PredictReadsRequest request;
    ToProto(batch, &request);
    v1::PredictReadsResponse response;
    MOSA_RETURN_IF_ERROR(stub_->Ask(&ManagerStub::PredictReads, request, &response));
    MOSA_ASSIGN_OR_RETURN(ReadCostAnswer answer, FromProto(response));
    if (answer.sets.size() != batch.sets.size() || answer.hosts != all.hosts)
      return InternalError("the manager's reply does not cover every set and host");
    // Sets that exceeded one call are asked again in the next.
    const auto again =
        std::find_if(answer.sets.begin() + 1, answer.sets.end(), [](const auto& set) {
          return set.failure && set.failure->reason == ErrorReason::kArgumentTooBig;
        });
    std::move(answer.sets.begin(), again, std::back_inserter(all.sets));
  }
  return all;
}

Result<HintExplanation> AdminClient::ExplainHints(const std::string& path) {
  v1::ExplainHintsRequest request;
  request.set_path(path);
  v1::ExplainHintsResponse response;
  MOSA_RETURN_IF_ERROR(stub_->Ask(&ManagerStub::ExplainHints, request, &response));
  return FromProto(response);
}

Status AdminClient::SetHint(const std::string& path, const HintValue& hint) {
  v1::SetHintRequest request;
  request.set_path(path);
  request.mutable_hint()->set_name(hint.name);
  request.mutable_hint()->set_value(hint.value);
  return AskUntilSettled([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::SetHintResponse response;
    return FromGrpc(stub_->manager->SetHint(&context, request, &response));
  });
}

Status AdminClient::DrainNode(const std::string& name, bool drain) {
  v1::DrainNodeRequest request;
  request.set_name(name);
  request.set_drain(drain);
  return AskUntilSettled([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::DrainNodeResponse response;
    return FromGrpc(stub_->manager->DrainNode(&context, request, &response));
  });
}

Result<std::vector<AsideFile>> AdminClient::ListAside(uint32_t files_max, FileId after) {
  v1::ListAsideRequest request;
  request.set_files_max(files_max);
  request.set_after_id(after.value);
  v1::ListAsideResponse response;
  MOSA_RETURN_IF_ERROR(stub_->Ask(&ManagerStub::ListAside, request, &response));
  return FromProto(response);
}

Result<std::vector<AdoptOutcome>> AdminClient::AdoptFiles(const std::vector<FileId>& files,
                                                          bool discard) {
  v1::AdoptFilesRequest request;
  for (const FileId file : files) request.add_file_ids(file.value);
  request.set_discard(discard);
  v1::AdoptFilesResponse response;
  MOSA_RETURN_IF_ERROR(AskUntilSettled([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    response.Clear();
    return FromGrpc(stub_->manager->AdoptFiles(&context, request, &response));
  }));
  MOSA_ASSIGN_OR_RETURN(std::vector<AdoptOutcome> outcomes, FromProto(response));
  if (outcomes.size() != files.size())
    return InternalError(fmt::format("the manager's reply has {} outcomes for {} files",
                                     outcomes.size(), files.size()));
  return outcomes;
}

Result<uint64_t> AdminClient::AddHintRule(const std::string& glob,
                                          const std::vector<HintValue>& hints) {
  v1::HintRule rule;
  ToProto(HintRule{0, glob, hints}, &rule);
  v1::AddHintRuleRequest request;
  request.set_glob(glob);
  *request.mutable_hints() = rule.hints();
  v1::AddHintRuleResponse response;
  const Status added = AskUntilSettled([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    response.Clear();
    const Status answered = FromGrpc(stub_->manager->AddHintRule(&context, request, &response));
    if (!answered.ok() || response.settled()) return answered;
    return Status(
        AbortedError("the rule is stored, but a mount has not acknowledged it yet: files it "
                     "creates right now may lack the rule's hints"));
  });
  if (!added.ok()) return added;
  return response.rule_id();
}

Result<std::vector<HintRule>> AdminClient::ListHintRules() {
  std::vector<HintRule> rules;
  for (bool more = true; more;) {
    v1::ListHintRulesRequest request;
    request.set_after_id(rules.empty() ? 0 : rules.back().id);
    v1::ListHintRulesResponse response;
    MOSA_RETURN_IF_ERROR(stub_->Ask(&ManagerStub::ListHintRules, request, &response));
    for (const v1::HintRule& item : response.rules()) {
      MOSA_ASSIGN_OR_RETURN(HintRule rule, FromProto(item));
      rules.push_back(std::move(rule));
    }
    more = response.more() && response.rules_size() > 0;
  }
  return rules;
}

Status AdminClient::RemoveHintRule(uint64_t rule) {
  v1::RemoveHintRuleRequest request;
  request.set_rule_id(rule);
  return AskUntilSettled([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::RemoveHintRuleResponse response;
    return FromGrpc(stub_->manager->RemoveHintRule(&context, request, &response));
  });
}

Status AdminClient::BeginWorkflow(const std::string& run) {
  v1::BeginWorkflowRequest request;
  request.set_run(run);
  return AskUntilSettled([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::BeginWorkflowResponse response;
    return FromGrpc(stub_->manager->BeginWorkflow(&context, request, &response));
  });
}

Status AdminClient::EndTask(const std::string& task, bool succeeded) {
  v1::EndTaskRequest request;
  request.set_task(task);
  request.set_succeeded(succeeded);
  return AskUntilSettled([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::EndTaskResponse response;
    return FromGrpc(stub_->manager->EndTask(&context, request, &response));
  });
}

Result<uint64_t> AdminClient::EndWorkflow(const std::string& run) {
  v1::EndWorkflowRequest request;
  request.set_run(run);
  const auto deadline = std::chrono::steady_clock::now() + kFilesCloseMax;
  for (auto delay = kAskAgainDelay;; delay = std::min(2 * delay, kAskAgainDelayMax)) {
    v1::EndWorkflowResponse response;
    MOSA_RETURN_IF_ERROR(AskUntilSettled([&] {
      grpc::ClientContext context;
      SetDeadline(context);
      response.Clear();
      return FromGrpc(stub_->manager->EndWorkflow(&context, request, &response));
    }));
    if (response.more()) continue;
    if (response.files_left() == 0 || std::chrono::steady_clock::now() >= deadline)
      return response.files_left();
    std::this_thread::sleep_for(delay);
  }
}

Result<std::vector<StageOutcome>> AdminClient::MarkStaged(const std::vector<StagedFile>& files) {
  std::vector<StageOutcome> outcomes;
  outcomes.reserve(files.size());
  while (outcomes.size() < files.size()) {
    const auto rest = std::span(files).subspan(outcomes.size());
    MOSA_ASSIGN_OR_RETURN(
        const std::vector<StageOutcome> settled,
        MarkBatch(*stub_->manager, rest.first(std::min(rest.size(), kStagedFilesMax))));
    outcomes.insert(outcomes.end(), settled.begin(), settled.end());
  }
  return outcomes;
}

Result<UnstagedFiles> AdminClient::ListUnstaged(uint32_t files_max, FileId after) {
  v1::ListUnstagedRequest request;
  request.set_files_max(files_max);
  request.set_after_id(after.value);
  v1::ListUnstagedResponse response;
  MOSA_RETURN_IF_ERROR(AskOverRestart([&](grpc::ClientContext& context) {
    response.Clear();
    return FromGrpc(stub_->manager->ListUnstaged(&context, request, &response));
  }));
  return FromProto(response);
}

Result<ResidenceSnapshot> AdminClient::GetResidence(const ResidenceSource& source,
                                                    const ResidenceQuery& query) {
  v1::GetResidenceRequest request;
  ToProto(source, &request);
  ToProto(query, &request);
  v1::GetResidenceResponse response;
  MOSA_RETURN_IF_ERROR(stub_->Ask(&ManagerStub::GetResidence, request, &response));
  v1::ResidenceSnapshot snapshot;
  if (!snapshot.ParseFromString(response.snapshot()))
    return DataLossError(
        "its reply is not a residence snapshot: check that it runs the same version of Mosa");
  return FromProto(snapshot);
}

}  // namespace mosa::sai
