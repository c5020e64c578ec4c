#include "manager/service/sessions.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "manager/service/stream.h"
#include "proto/convert/admin.h"
#include "proto/convert/status.h"

namespace mosa::manager {

namespace {

// How many messages of one stream may wait for the loop; the stream is not read on meanwhile.
constexpr int kWaitingMessagesMax = 256;

// Counts what a stream has waiting in the loop's queue.
class Waiting {
 public:
  // True if one more may be read at once; if not, Take will say when.
  bool Add() { return count_.fetch_add(1) + 1 < kWaitingMessagesMax; }
  // True if reading had stopped and is to go on.
  bool Take() { return count_.fetch_sub(1) == kWaitingMessagesMax; }

 private:
  std::atomic<int> count_ = 0;
};

Status Stopping() { return UnavailableError("the manager is stopping; try again"); }

// ---- clients

class ClientStream final : public Stream<v1::ClientMessage, v1::ManagerMessage>,
                           public ClientSink,
                           public std::enable_shared_from_this<ClientStream> {
 public:
  ClientStream(grpc::CallbackServerContext& context, CoreLoop& loop)
      : Stream(context), loop_(loop) {}

  void Send(const ManagerMessage& message) override {
    v1::ManagerMessage out;
    ToProto(message, &out);
    Stream::Send(std::move(out));
  }
  void End(const Status& status) override { Stream::End(status); }
  void Taken() override {
    if (waiting_.Take()) ReadOn();
  }

 private:
  bool OnMessage(const v1::ClientMessage& message) override {
    Result<ClientMessage> value = FromProto(message);
    if (!value.ok()) return Unreadable(message, value.status());
    if (auto* const envelope = std::get_if<RequestEnvelope>(&*value)) {
      if (client_ == ClientId{}) return Refuse("requests came before the session was started");
      return Submit(ClientAsked{shared_from_this(), client_, std::move(*envelope)});
    }
    if (auto* const start = std::get_if<SessionStart>(&*value)) {
      if (client_ != ClientId{}) return Refuse("the session was started twice on one stream");
      client_ = start->client;
      return Submit(ClientStarted{shared_from_this(), std::move(*start)});
    }
    closed_cleanly_ = true;
    OnClosed();
    return false;
  }

  void OnClosed() override {
    if (client_ == ClientId{} || std::exchange(gone_, true)) return;
    loop_.Submit(ClientGone{shared_from_this(), client_, closed_cleanly_});
  }

  bool Submit(Arrival arrival) {
    const bool read_on = waiting_.Add();
    if (loop_.Submit(std::move(arrival))) return read_on;
    End(Stopping());
    return false;
  }

  // A request that says something impossible is its sender's to hear of; the session goes on.
  bool Unreadable(const v1::ClientMessage& message, const Status& why) {
    if (!message.has_requests() || message.requests().id() == 0) {
      End(why);
      return false;
    }
    Send(ReplyEnvelope{
        .id = RequestId{message.requests().id()}, .replies = {FailureOf(why)}, .now = loop_.Now()});
    return true;
  }

  bool Refuse(std::string_view why) {
    End(InvalidArgumentError(fmt::format("client stream: {}", why)));
    return false;
  }

  CoreLoop& loop_;
  Waiting waiting_;
  // Touched only by the stream's own callbacks, which come one at a time.
  ClientId client_;
  bool closed_cleanly_ = false;
  bool gone_ = false;
};

// ---- storage nodes

class NodeStream final : public Stream<v1::NodeMessage, v1::ManagerToNode>,
                         public NodeSink,
                         public std::enable_shared_from_this<NodeStream> {
 public:
  NodeStream(grpc::CallbackServerContext& context, CoreLoop& loop) : Stream(context), loop_(loop) {}

  void Send(const ManagerToNode& message) override {
    for (v1::ManagerToNode& page : ToProto(message)) Stream::Send(std::move(page));
  }
  void End(const Status& status) override { Stream::End(status); }
  void Taken() override {
    if (waiting_.Take()) ReadOn();
  }

 private:
  bool OnMessage(const v1::NodeMessage& message) override {
    Result<NodeMessage> value = FromProto(message);
    if (!value.ok()) {
      End(value.status());
      return false;
    }
    if (auto* const heartbeat = std::get_if<NodeHeartbeat>(&*value)) {
      if (!registered_) return Refuse("a heartbeat came before the registration was whole");
      return Submit(NodeHeard{shared_from_this(), std::move(*heartbeat)});
    }
    if (auto* const registration = std::get_if<NodeRegistration>(&*value)) {
      if (registered_ || registration_) return Refuse("the node registered twice on one stream");
      registration_ = std::move(*registration);
      return true;
    }
    return AddPage(std::get<NodeObjectsPage>(*value));
  }

  void OnClosed() override {
    if (registered_) loop_.Submit(NodeGone{shared_from_this()});
  }

  bool AddPage(const NodeObjectsPage& page) {
    if (!registration_) return Refuse("objects came outside of a registration");
    if (const Status added = AppendPage(page, *registration_); !added.ok()) {
      End(added);
      return false;
    }
    if (!page.last) return true;
    registered_ = true;
    NodeStarted started{shared_from_this(), *std::move(registration_)};
    registration_.reset();
    return Submit(std::move(started));
  }

  bool Submit(Arrival arrival) {
    const bool read_on = waiting_.Add();
    if (loop_.Submit(std::move(arrival))) return read_on;
    End(Stopping());
    return false;
  }

  bool Refuse(std::string_view why) {
    End(InvalidArgumentError(fmt::format("storage node stream: {}", why)));
    return false;
  }

  CoreLoop& loop_;
  Waiting waiting_;
  // Touched only by the stream's own callbacks, which come one at a time.
  std::optional<NodeRegistration> registration_;
  bool registered_ = false;
};

// Answers one unary call from the loop's thread. `answer` fills the response.
template <typename Answer>
grpc::ServerUnaryReactor* AnswerOnLoop(CoreLoop& loop, grpc::CallbackServerContext* context,
                                       Answer answer) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const bool taken =
      loop.Query([reactor, answer = std::move(answer)](const ManagerCore& core, Time now) {
        reactor->Finish(ToGrpc(answer(core, now)));
      });
  if (!taken) reactor->Finish(ToGrpc(UnavailableError("the manager is busy; try again")));
  return reactor;
}

}  // namespace

grpc::ServerBidiReactor<v1::ClientMessage, v1::ManagerMessage>* ClientSessions::Session(
    grpc::CallbackServerContext* context) {
  const auto stream = std::make_shared<ClientStream>(*context, loop_);
  stream->Begin(stream);
  return stream.get();
}

grpc::ServerBidiReactor<v1::NodeMessage, v1::ManagerToNode>* NodeSessions::Session(
    grpc::CallbackServerContext* context) {
  const auto stream = std::make_shared<NodeStream>(*context, loop_);
  stream->Begin(stream);
  return stream.get();
}

grpc::ServerUnaryReactor* StatusService::GetClusterStatus(grpc::CallbackServerContext* context,
                                                          const v1::GetClusterStatusRequest*,
                                                          v1::GetClusterStatusResponse* response) {
  return AnswerOnLoop(loop_, context, [response](const ManagerCore& core, Time now) {
    ToProto(core.GetClusterStatus(now), response);
    return OkStatus();
  });
}

grpc::ServerUnaryReactor* StatusService::GetFileStatus(grpc::CallbackServerContext* context,
                                                       const v1::GetFileStatusRequest* request,
                                                       v1::GetFileStatusResponse* response) {
  return AnswerOnLoop(loop_, context, [request, response](const ManagerCore& core, Time) -> Status {
    MOSA_ASSIGN_OR_RETURN(const FileStatus status, core.GetFileStatus(request->path()));
    ToProto(status, response->mutable_file());
    return OkStatus();
  });
}

grpc::ServerUnaryReactor* StatusService::ListLostFiles(grpc::CallbackServerContext* context,
                                                       const v1::ListLostFilesRequest* request,
                                                       v1::ListLostFilesResponse* response) {
  return AnswerOnLoop(loop_, context, [request, response](const ManagerCore& core, Time) -> Status {
    if (request->files_max() < 1 || request->files_max() > kLostFilesMax) {
      return InvalidArgumentError(
          fmt::format("files_max is {}, it must be 1 to {}", request->files_max(), kLostFilesMax));
    }
    for (const FileStatus& status : core.ListLostFiles(request->files_max())) {
      ToProto(status, response->add_files());
    }
    return OkStatus();
  });
}

}  // namespace mosa::manager
