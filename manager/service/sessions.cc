#include "manager/service/sessions.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "manager/service/default_limits.h"
#include "manager/service/stream.h"
#include "proto/convert/admin.h"
#include "proto/convert/status.h"

namespace mosa::manager {

namespace {

// ---- clients

class ClientStream final : public Stream<v1::ClientMessage, v1::ManagerMessage>,
                           public ClientSink,
                           public std::enable_shared_from_this<ClientStream> {
 public:
  ClientStream(Calls& calls, OpenStreams& open, CoreDriver& driver, ResidenceRelay& relay)
      : Stream(calls, Right::kOpenSession, open, "mount"), driver_(driver), relay_(relay) {}

  void Send(const ManagerMessage& message) override {
    v1::ManagerMessage out;
    ToProto(message, &out);
    Stream::Send(std::move(out));
  }
  void End(const Status& status) override { Stream::End(status); }

 private:
  void OnMessage(const v1::ClientMessage& message) override {
    Result<ClientMessage> value = FromProto(message);
    if (!value.ok()) return Unreadable(message, value.status());
    if (auto* const envelope = std::get_if<RequestEnvelope>(&*value)) {
      if (client_ == ClientId{}) return Refuse("requests came before the session was started");
      driver_.ClientAsked(shared_from_this(), client_, std::move(*envelope), SpanOf(message));
    } else if (auto* const start = std::get_if<SessionStart>(&*value)) {
      if (client_ != ClientId{}) return Refuse("the session was started twice on one stream");
      client_ = start->client;
      driver_.ClientStarted(shared_from_this(), std::move(*start));
    } else if (auto* const report = std::get_if<ResidenceReport>(&*value)) {
      relay_.Answered(std::move(*report));
    } else {
      Gone(/*closed=*/true);
    }
  }

  void OnClosed() override { Gone(/*closed=*/false); }
  bool is_started() const override { return client_ != ClientId{}; }

  void Gone(bool closed) {
    if (client_ == ClientId{} || std::exchange(gone_, true)) return;
    driver_.ClientGone(shared_from_this(), client_, closed);
  }

  // An invalid request is reported to its sender; the session continues.
  void Unreadable(const v1::ClientMessage& message, const Status& why) {
    if (!message.has_requests() || message.requests().id() == 0 || client_ == ClientId{}) {
      return End(why);
    }
    Send(ReplyEnvelope{.id = RequestId{message.requests().id()},
                       .replies = {FailureOf(why)},
                       .now = driver_.Now()});
  }

  void Refuse(std::string_view why) {
    End(InvalidArgumentError(fmt::format("client stream: {}", why)));
  }

  CoreDriver& driver_;
  ResidenceRelay& relay_;
  ClientId client_;
  bool gone_ = false;
};

// ---- storage nodes

class NodeStream final : public Stream<v1::NodeMessage, v1::ManagerToNode>,
                         public NodeSink,
                         public std::enable_shared_from_this<NodeStream> {
 public:
  NodeStream(Calls& calls, OpenStreams& open, CoreDriver& driver, ResidenceRelay& relay)
      : Stream(calls, Right::kRegisterNode, open, "storage node"), driver_(driver), relay_(relay) {}

  void Send(const ManagerToNode& message) override {
    for (v1::ManagerToNode& page : ToProto(message)) Stream::Send(std::move(page));
  }
  void End(const Status& status) override { Stream::End(status); }

 private:
  void OnMessage(const v1::NodeMessage& message) override {
    Result<NodeMessage> value = FromProto(message);
    if (!value.ok()) return End(value.status());
    if (auto* const heartbeat = std::get_if<NodeHeartbeat>(&*value)) {
      if (!registered_) return Refuse("a heartbeat came before the registration was complete");
      driver_.NodeHeard(shared_from_this(), std::move(*heartbeat));
    } else if (auto* const report = std::get_if<CopyReport>(&*value)) {
      if (!registered_) return Refuse("a report came before the registration was complete");
      driver_.NodeReported(shared_from_this(), std::move(*report));
    } else if (auto* const registration = std::get_if<NodeRegistration>(&*value)) {
      if (registered_ || registration_) return Refuse("the node registered twice on one stream");
      if (const Status named = CheckNodeName(caller(), registration->name); !named.ok())
        return End(named);
      registration_ = std::move(*registration);
    } else if (auto* const residence = std::get_if<ResidenceReport>(&*value)) {
      relay_.Answered(std::move(*residence));
    } else if (auto* const aside = std::get_if<NodeAsidePage>(&*value)) {
      AddPage(std::move(*aside));
    } else {
      AddPage(std::get<NodeObjectsPage>(*value));
    }
  }

  void OnClosed() override {
    if (registered_) driver_.NodeGone(shared_from_this());
  }
  bool is_started() const override { return registered_ || registration_; }

  void AddPage(const NodeObjectsPage& page) {
    if (!registration_) return Refuse("objects came outside a registration");
    if (const Status added = AppendPage(page, *registration_); !added.ok()) return End(added);
    if (!page.last) return;
    registered_ = true;
    driver_.NodeStarted(shared_from_this(), *std::exchange(registration_, std::nullopt));
  }

  void AddPage(NodeAsidePage page) {
    if (!registered_ && !registration_)
      return Refuse("a list of objects put aside came before the node's registration");
    const bool last = page.last;
    if (const Status added = AppendPage(std::move(page), aside_); !added.ok()) return End(added);
    if (!last) return;
    if (registered_) {
      driver_.NodeReportedAside(shared_from_this(), {std::exchange(aside_, {})});
    } else {
      registration_->aside = std::exchange(aside_, {});
    }
  }

  void Refuse(std::string_view why) {
    End(InvalidArgumentError(fmt::format("storage node stream: {}", why)));
  }

  CoreDriver& driver_;
  ResidenceRelay& relay_;
  std::optional<NodeRegistration> registration_;  // While its objects are still arriving.
  std::vector<AsideObject> aside_;                // Pages that came before the last one.
  bool registered_ = false;
};

using LostFilesCall = UnaryCall<v1::ListLostFilesRequest, v1::ListLostFilesResponse>;

void BeginLostFiles(FileScans& scans, const Identity& caller, uint32_t files_max,
                    const LostFilesCall::Done& done) {
  if (files_max < 1 || files_max > kLostFilesMax) {
    return done(InvalidArgumentError(
                    fmt::format("files_max is {}, but must be 1 to {}", files_max, kLostFilesMax)),
                {});
  }
  scans.Ask({.kind = FileScanQuestion::Kind::kLost, .files_max = files_max}, Describe(caller),
            [done](const Status& status, const FileScan& scan) {
              v1::ListLostFilesResponse response;
              for (const FileStatus& file : scan.lost) ToProto(file, response.add_files());
              done(status, response);
            });
}

}  // namespace

void Services::Register(grpc::ServerBuilder& builder) {
  builder.RegisterService(&clients_);
  builder.RegisterService(&nodes_);
  builder.RegisterService(&status_);
}

void Services::Serve(grpc::ServerCompletionQueue& queue) {
  AcceptClient(queue);
  AcceptNode(queue);
  ServeStatus(queue);
  ServeHints(queue);
  ServeWorkflows(queue);
  ServeStaging(queue);
  ServeAdoption(queue);
  ServeForecasts(queue);
  ServeResidence(queue);
}

void Services::AcceptClient(grpc::ServerCompletionQueue& queue) {
  const auto stream = std::make_shared<ClientStream>(calls_, streams_, driver_, relay_);
  stream->Accept(
      stream,
      [this, &queue](auto* context, auto* io, Event* accepted) {
        clients_.RequestSession(context, io, &queue, &queue, accepted);
      },
      [this, &queue] { AcceptClient(queue); });
}

void Services::AcceptNode(grpc::ServerCompletionQueue& queue) {
  const auto stream = std::make_shared<NodeStream>(calls_, streams_, driver_, relay_);
  stream->Accept(
      stream,
      [this, &queue](auto* context, auto* io, Event* accepted) {
        nodes_.RequestSession(context, io, &queue, &queue, accepted);
      },
      [this, &queue] { AcceptNode(queue); });
}

ClusterStatus Services::DescribeCluster() {
  ClusterStatus status = driver_.FlushedCore().GetClusterStatus(driver_.Now());
  status.limits.push_back(
      {.name = "streams", .used = streams_.count(), .limit = streams_.streams_max()});
  status.limits.push_back(
      {.name = "questions about all files", .used = scans_.calls(), .limit = FileScans::kCallsMax});
  status.limits.push_back({.name = "connections",
                           .used = door_.connections(),
                           .limit = door_.limits().connections_max});
  status.limits.push_back({.name = "connections of one address",
                           .used = door_.most_of_one_address(),
                           .limit = door_.limits().per_address_max});
  status.limits.push_back({.name = "connections turned away", .used = door_.turned_away()});
  status.limits.push_back({.name = "bytes queued to peers",
                           .used = calls_.answers.bytes(),
                           .limit = kQueuedBytesMax,
                           .is_bytes = true});
  status.limits.push_back(
      {.name = "memory", .used = ResidentBytes(), .limit = memory_bytes_max_, .is_bytes = true});
  return status;
}

void Services::ServeStatus(grpc::ServerCompletionQueue& queue) {
  UnaryCall<v1::GetClusterStatusRequest, v1::GetClusterStatusResponse>::Serve(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestGetClusterStatus(context, request, writer, &queue, &queue, asked);
      },
      [this](const v1::GetClusterStatusRequest&, v1::GetClusterStatusResponse* response) {
        ToProto(DescribeCluster(), response);
        return OkStatus();
      });
  UnaryCall<v1::GetFileStatusRequest, v1::GetFileStatusResponse>::Serve(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestGetFileStatus(context, request, writer, &queue, &queue, asked);
      },
      [this](const v1::GetFileStatusRequest& request,
             v1::GetFileStatusResponse* response) -> Status {
        MOSA_ASSIGN_OR_RETURN(const FileStatus status,
                              driver_.FlushedCore().GetFileStatus(request.path()));
        ToProto(status, response->mutable_file());
        return OkStatus();
      });
  LostFilesCall::ServeLater(
      calls_, Right::kAsk,
      [this, &queue](auto* context, auto* request, auto* writer, Event* asked) {
        status_.RequestListLostFiles(context, request, writer, &queue, &queue, asked);
      },
      [this](const Identity& caller, const v1::ListLostFilesRequest& request,
             const LostFilesCall::Done& done) {
        BeginLostFiles(scans_, caller, request.files_max(), done);
      });
}

}  // namespace mosa::manager
