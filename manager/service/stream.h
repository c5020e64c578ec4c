// Calls of gRPC clients as state machines on one completion queue. Everything runs on the thread
// that polls the queue, so that between a request's arrival and its answer's departure there is no
// change of thread, but for answers that somebody else finds (UnaryCall::Done); nothing here locks
// or blocks.
#ifndef MOSA_MANAGER_SERVICE_STREAM_H_
#define MOSA_MANAGER_SERVICE_STREAM_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "proto/convert/protocol_version.h"
#include "proto/convert/status.h"

namespace mosa::manager {

// Unimplemented if the caller, a `peer`, speaks no version that this manager speaks.
inline Status CheckVersions(const grpc::ServerContext& context, std::string_view peer) {
  const auto& sent = context.client_metadata();
  const auto agent = sent.find("user-agent");
  std::optional<ProtocolVersions> versions;
  if (agent != sent.end())
    versions = VersionsOfUserAgent({agent->second.data(), agent->second.size()});
  return CheckProtocol({.own = "manager", .peer = peer}, kProtocolVersions, versions);
}

// What a completion queue's tag points to.
class Event {
 public:
  using Action = std::function<void(bool ok)>;
  explicit Event(Action action) : action_(std::move(action)) {}
  void Happen(bool ok) { action_(ok); }

 private:
  const Action action_;
};

inline constexpr size_t kStreamQueueMessagesMax = 65'536;
inline constexpr std::chrono::seconds kStreamWriteMax{10};

// Stream: one bidirectional call. What is sent waits in a queue of its own and is written one
// message after another; a peer that does not read is cut off when the queue is full or its oldest
// message has waited too long. A stream keeps itself alive until gRPC is done with it; afterwards
// Send and End do nothing.
template <typename Incoming, typename Outgoing>
class Stream {
 public:
  using Io = grpc::ServerAsyncReaderWriter<Outgoing, Incoming>;

  // `live` counts the calls that are not over; the queue may be shut down when there are none.
  // `peer`, a literal, is what calls: "mount".
  Stream(int& live, std::string_view peer) : live_(live), peer_(peer) { ++live_; }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() { --live_; }

  // Waits for a client. `request` is given what the service's RequestSession takes; `accepted` runs
  // when a client has come, to wait for the next one.
  template <typename Request>
  void Accept(std::shared_ptr<Stream> self, const Request& request,
              std::function<void()> accepted) {
    self_ = std::move(self);
    accepted_ = std::move(accepted);
    ++under_way_;
    context_.AddInitialMetadata(kProtocolKey, ToText(kProtocolVersions));
    request(&context_, &io_, &on_accepted_);
  }

  void Send(Outgoing message) {
    if (ending_ || broken_) return;
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) {
      WriteNext();
    } else if (queue_.size() > kStreamQueueMessagesMax ||
               std::chrono::steady_clock::now() - write_began_ > kStreamWriteMax) {
      context_.TryCancel();
    }
  }

  // Ends the stream after what was sent before.
  void End(const Status& status) {
    if (ending_) return;
    ending_ = ToGrpc(status);
    if (queue_.empty()) FinishNow();
  }

 protected:
  // A message has come; not after End.
  virtual void OnMessage(const Incoming& message) = 0;
  // No more messages will come. Called once, of a stream that a client has opened.
  virtual void OnClosed() = 0;

 private:
  void Accepted(bool ok) {
    if (ok) {
      // The order matters: `accepted_` may not see this stream as still waiting.
      std::exchange(accepted_, nullptr)();
      const Status understood = CheckVersions(context_, peer_);
      if (understood.ok()) {
        Read();
      } else {
        End(understood);
      }
    }
    Returned();
  }

  void Read() {
    ++under_way_;
    io_.Read(&incoming_, &on_read_);
  }

  void ReadDone(bool ok) {
    if (ok && !ending_) OnMessage(incoming_);
    if (ok && !ending_) {
      Read();
    } else {
      OnClosed();
      End(OkStatus());
    }
    Returned();
  }

  void WriteNext() {
    write_began_ = std::chrono::steady_clock::now();
    ++under_way_;
    io_.Write(queue_.front(), &on_written_);
  }

  void WriteDone(bool ok) {
    if (ok) {
      queue_.pop_front();
      if (!queue_.empty()) WriteNext();
    } else {
      // The peer is gone: nothing more can be written, and the read that is under way will say so.
      broken_ = true;
      queue_.clear();
    }
    if (queue_.empty() && ending_) FinishNow();
    Returned();
  }

  void FinishNow() {
    ++under_way_;
    io_.Finish(*ending_, &on_finished_);
  }

  // One operation has come back; after the last the stream is gone.
  void Returned() {
    if (--under_way_ == 0) const std::shared_ptr<Stream> self = std::move(self_);
  }

  int& live_;
  const std::string_view peer_;
  grpc::ServerContext context_;
  Io io_{&context_};
  std::shared_ptr<Stream> self_;
  std::function<void()> accepted_;
  Event on_accepted_{[this](bool ok) { Accepted(ok); }};
  Event on_read_{[this](bool ok) { ReadDone(ok); }};
  Event on_written_{[this](bool ok) { WriteDone(ok); }};
  Event on_finished_{[this](bool) { Returned(); }};

  Incoming incoming_;
  std::deque<Outgoing> queue_;  // The first is being written.
  std::chrono::steady_clock::time_point write_began_;
  std::optional<grpc::Status> ending_;
  bool broken_ = false;
  int under_way_ = 0;  // Operations whose event has not happened yet.
};

// UnaryCall: one call with one answer, computed at once or by somebody else later. It waits for the
// next call as soon as one has come, and owns itself.
template <typename Request, typename Response>
class UnaryCall {
 public:
  using Answer = std::function<Status(const Request& request, Response* response)>;
  // Ends the call: once, from any thread.
  using Done = std::function<void(const Status& status, const Response& response)>;
  // Sees to it that `done` is called.
  using Begin = std::function<void(const Request& request, const Done& done)>;
  // Waits for a call: the service's RequestNAME, bound to all but these.
  using Ask = std::function<void(grpc::ServerContext*, Request*,
                                 grpc::ServerAsyncResponseWriter<Response>*, Event*)>;

  // `live` as of a Stream.
  static void Serve(int& live, const Ask& ask, const Answer& answer) {
    ServeLater(live, ask, [answer](const Request& request, const Done& done) {
      Response response;
      const Status status = answer(request, &response);
      done(status, response);
    });
  }
  static void ServeLater(int& live, const Ask& ask, const Begin& begin) {
    new UnaryCall(live, ask, begin);
  }

 private:
  UnaryCall(int& live, const Ask& ask, const Begin& begin) : live_(live), ask_(ask), begin_(begin) {
    ++live_;
    ask_(&context_, &request_, &writer_, &on_asked_);
  }

  ~UnaryCall() { --live_; }

  void Asked(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    ServeLater(live_, ask_, begin_);
    if (const Status understood = CheckVersions(context_, "program"); !understood.ok()) {
      writer_.FinishWithError(ToGrpc(understood), &on_finished_);
      return;
    }
    begin_(request_, [this](const Status& status, const Response& response) {
      if (status.ok()) {
        writer_.Finish(response, grpc::Status::OK, &on_finished_);
      } else {
        writer_.FinishWithError(ToGrpc(status), &on_finished_);
      }
    });
  }

  int& live_;
  const Ask ask_;
  const Begin begin_;
  grpc::ServerContext context_;
  grpc::ServerAsyncResponseWriter<Response> writer_{&context_};
  Request request_;
  Event on_asked_{[this](bool ok) { Asked(ok); }};
  Event on_finished_{[this](bool) { delete this; }};
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_STREAM_H_
