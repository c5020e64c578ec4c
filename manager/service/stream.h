// gRPC calls as state machines on one completion queue. Everything runs on the thread that polls
// the queue, so a request is answered without a change of thread, except where another thread
// computes the answer (UnaryCall::Done). Nothing here blocks.
#ifndef MOSA_MANAGER_SERVICE_STREAM_H_
#define MOSA_MANAGER_SERVICE_STREAM_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "manager/service/access.h"
#include "manager/service/answer_account.h"
#include "proto/convert/protocol_version.h"
#include "proto/convert/status.h"

namespace mosa::manager {

// Unimplemented if the caller, named `peer` in the message, speaks no protocol version of this
// manager.
inline Status CheckVersions(const grpc::ServerContext& context, std::string_view peer) {
  const auto& sent = context.client_metadata();
  const auto agent = sent.find("user-agent");
  std::optional<ProtocolVersions> versions;
  if (agent != sent.end())
    versions = VersionsOfUserAgent({agent->second.data(), agent->second.size()});
  return CheckProtocol({.own = "manager", .peer = peer}, kProtocolVersions, versions);
}

// The target of a completion queue's tag.
class Event {
 public:
  using Action = std::function<void(bool ok)>;
  explicit Event(Action action) : action_(std::move(action)) {}
  void Happen(bool ok) { action_(ok); }

 private:
  const Action action_;
};

inline constexpr size_t kStreamQueueMessagesMax = 65'536;
// Reading from a peer pauses while it has this much unread. If all peers together have more than
// kQueuedBytesMax, it pauses for every peer that has anything unread.
inline constexpr uint64_t kStreamPauseBytes = uint64_t{8} << 20;
// A peer with this much unread is cut off. Larger than what one round of the loop can add.
inline constexpr uint64_t kStreamQueueBytesMax = uint64_t{64} << 20;
inline constexpr std::chrono::seconds kStreamWriteMax{10};
// Limit for the wait of a unary call's answer.
inline constexpr std::chrono::seconds kUnaryWriteMax{10};
// The memory of a larger message is not kept for the next one.
inline constexpr size_t kStreamMessageKeptBytesMax = size_t{4} << 10;
// A client must identify itself within this time after it opened a stream.
inline constexpr std::chrono::seconds kStreamStartMax{5};

// All open streams. Used only by the thread that polls the queue.
class OpenStreams {
 public:
  using Clock = std::chrono::steady_clock;
  class Member {
   public:
    virtual ~Member() = default;
    // Cuts the stream off if its peer does not read, or has not identified itself in time.
    virtual void CutIfOverdue(Clock::time_point now) = 0;
  };

  explicit OpenStreams(size_t streams_max) : streams_max_(streams_max) {}

  void Add(Member* stream) { members_.insert(stream); }
  void Remove(Member* stream) { members_.erase(stream); }
  bool are_too_many() const { return members_.size() > streams_max_; }
  size_t count() const { return members_.size(); }
  size_t streams_max() const { return streams_max_; }
  // Call often; it checks every kLookEvery only.
  void CutOverdue() {
    const Clock::time_point now = Clock::now();
    if (now - looked_at_ < kLookEvery) return;
    looked_at_ = now;
    for (Member* const stream : members_) stream->CutIfOverdue(now);
  }

 private:
  static constexpr std::chrono::milliseconds kLookEvery{100};

  const size_t streams_max_;
  std::set<Member*> members_;
  Clock::time_point looked_at_;
};

// Calls in progress, their memory, and access control. Used only by the thread that polls the
// queue, except `answers`, which is thread-safe.
struct Calls {
  int live = 0;  // The queue may be shut down when this is 0.
  Access access;
  AnswerAccount answers{};
  OpenStreams unary{SIZE_MAX};  // Unary calls that have arrived.
};

// Stream: one bidirectional call. Outgoing messages wait in a queue and are written one after
// another. Reading slows down for a peer that reads slowly; a peer that does not read is cut off
// when its queue is full or its oldest message has waited too long. A stream keeps itself alive
// until gRPC is done with it; afterwards Send and End do nothing.
template <typename Incoming, typename Outgoing>
class Stream : private OpenStreams::Member {
 public:
  using Io = grpc::ServerAsyncReaderWriter<Outgoing, Incoming>;

  // Serves callers with the right. `calls` and `open` must outlive it. `peer` is a literal that
  // names the kind of caller: "mount".
  Stream(Calls& calls, Right right, OpenStreams& open, std::string_view peer)
      : calls_(calls), right_(right), open_(open), peer_(peer) {
    ++calls_.live;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() override {
    ForgetQueue(0);
    open_.Remove(this);
    --calls_.live;
  }

  // Waits for a client. `request` gets the arguments of the service's RequestSession. `accepted`
  // runs when a client has arrived, to wait for the next one.
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
    const uint64_t bytes = message.ByteSizeLong();
    queue_.push_back({std::move(message), bytes});
    queued_bytes_ += bytes;
    calls_.answers.Add(bytes);
    if (queue_.size() == 1) {
      WriteNext();
    } else if (queue_.size() > kStreamQueueMessagesMax || queued_bytes_ > kStreamQueueBytesMax ||
               OpenStreams::Clock::now() - write_began_ > kStreamWriteMax) {
      CutOff();
    }
  }

  // Ends the stream after the messages sent so far.
  void End(const Status& status) {
    if (ending_) return;
    ending_ = ToGrpc(status);
    if (queue_.empty()) FinishNow();
  }

 protected:
  // A message has arrived. Not called after End.
  virtual void OnMessage(const Incoming& message) = 0;
  // No more messages will arrive. Called once for each stream that a client with the right opened.
  virtual void OnClosed() = 0;
  // True once the peer has identified itself.
  virtual bool is_started() const = 0;
  // The identity that opened the stream. Valid once a message has arrived.
  const Identity& caller() const { return caller_; }

 private:
  struct Queued {
    Outgoing message;
    uint64_t bytes = 0;
  };

  void CutIfOverdue(OpenStreams::Clock::time_point now) override {
    const bool is_stuck = !queue_.empty() && now - write_began_ > kStreamWriteMax;
    const bool is_silent = !is_started() && now - accepted_at_ > kStreamStartMax;
    if (!broken_ && (is_stuck || is_silent)) CutOff();
  }

  // Stops sending. The pending read or write fails and ends the stream.
  void CutOff() {
    broken_ = true;
    ForgetQueue(1);
    context_.TryCancel();
  }

  // Drops all but the first `kept` messages.
  void ForgetQueue(size_t kept) {
    while (queue_.size() > kept) {
      queued_bytes_ -= queue_.back().bytes;
      calls_.answers.Subtract(queue_.back().bytes);
      queue_.pop_back();
    }
  }

  bool MustPause() const {
    return !queue_.empty() &&
           (queued_bytes_ > kStreamPauseBytes || calls_.answers.bytes() > kQueuedBytesMax);
  }

  void Accepted(bool ok) {
    if (ok) {
      // The order matters: `accepted_` must not find this stream still waiting.
      std::exchange(accepted_, nullptr)();
      accepted_at_ = OpenStreams::Clock::now();
      open_.Add(this);
      if (const Status understood = CheckVersions(context_, peer_); !understood.ok()) {
        End(understood);
      } else if (auto caller = calls_.access.Admit(context_, right_); !caller.ok()) {
        End(caller.status());
      } else {
        caller_ = *std::move(caller);
        if (open_.are_too_many())
          End(ResourceExhaustedError(
              "the manager has reached its limit of open streams: try again"));
        Read();
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
    // The next message may be long in coming.
    if (incoming_.ByteSizeLong() > kStreamMessageKeptBytesMax) incoming_ = Incoming();
    if (ok && !ending_) {
      is_paused_ = MustPause();
      if (!is_paused_) Read();
    } else {
      OnClosed();
      End(OkStatus());
    }
    Returned();
  }

  void WriteNext() {
    write_began_ = OpenStreams::Clock::now();
    ++under_way_;
    io_.Write(queue_.front().message, &on_written_);
  }

  void WriteDone(bool ok) {
    queued_bytes_ -= queue_.front().bytes;
    calls_.answers.Subtract(queue_.front().bytes);
    queue_.pop_front();
    if (ok) {
      if (!queue_.empty()) WriteNext();
    } else {
      // The peer is gone: nothing more can be written, and the next read will say so.
      broken_ = true;
      ForgetQueue(0);
    }
    if (is_paused_ && !MustPause()) {
      is_paused_ = false;
      Read();
    }
    if (queue_.empty() && ending_) FinishNow();
    Returned();
  }

  void FinishNow() {
    ++under_way_;
    io_.Finish(*ending_, &on_finished_);
  }

  // An operation has completed. After the last one the stream is deleted.
  void Returned() {
    if (--under_way_ == 0) const std::shared_ptr<Stream> self = std::move(self_);
  }

  Calls& calls_;
  const Right right_;
  OpenStreams& open_;
  const std::string_view peer_;
  Identity caller_;
  grpc::ServerContext context_;
  Io io_{&context_};
  std::shared_ptr<Stream> self_;
  std::function<void()> accepted_;
  Event on_accepted_{[this](bool ok) { Accepted(ok); }};
  Event on_read_{[this](bool ok) { ReadDone(ok); }};
  Event on_written_{[this](bool ok) { WriteDone(ok); }};
  Event on_finished_{[this](bool) { Returned(); }};

  Incoming incoming_;
  std::deque<Queued> queue_;  // The first is being written.
  uint64_t queued_bytes_ = 0;
  bool is_paused_ = false;  // A write is pending, but no read.
  OpenStreams::Clock::time_point accepted_at_, write_began_;
  std::optional<grpc::Status> ending_;
  bool broken_ = false;
  int under_way_ = 0;  // Operations whose event has not happened yet.
};

// UnaryCall: one call with one answer, computed at once or later by another thread. It owns itself,
// and starts to wait for the next call as soon as one has arrived. An answer is refused if its
// peer, or all peers together, have too much unread; it is dropped if the peer does not take it in
// time.
template <typename Request, typename Response>
class UnaryCall : private OpenStreams::Member {
 public:
  using Answer = std::function<Status(const Request& request, Response* response)>;
  using AnswerTo =
      std::function<Status(const Identity& caller, const Request& request, Response* response)>;
  // Ends the call. Must be called once, from any thread.
  using Done = std::function<void(const Status& status, const Response& response)>;
  // Must ensure that `done` is called.
  using Begin =
      std::function<void(const Identity& caller, const Request& request, const Done& done)>;
  // Waits for a call: the service's RequestNAME, with all other arguments bound.
  using Ask = std::function<void(grpc::ServerContext*, Request*,
                                 grpc::ServerAsyncResponseWriter<Response>*, Event*)>;

  // `calls` and `right` as for Stream; a caller without the right is refused.
  static void Serve(Calls& calls, Right right, const Ask& ask, const Answer& answer) {
    ServeTo(calls, right, ask,
            [answer](const Identity&, const Request& request, Response* response) {
              return answer(request, response);
            });
  }
  // The same, for an answer that depends on the caller.
  static void ServeTo(Calls& calls, Right right, const Ask& ask, const AnswerTo& answer) {
    ServeLater(calls, right, ask,
               [answer](const Identity& caller, const Request& request, const Done& done) {
                 Response response;
                 const Status status = answer(caller, request, &response);
                 done(status, response);
               });
  }
  static void ServeLater(Calls& calls, Right right, const Ask& ask, const Begin& begin) {
    new UnaryCall(calls, right, ask, begin);
  }

 private:
  UnaryCall(Calls& calls, Right right, const Ask& ask, const Begin& begin)
      : calls_(calls), right_(right), ask_(ask), begin_(begin) {
    ++calls_.live;
    ask_(&context_, &request_, &writer_, &on_asked_);
  }

  ~UnaryCall() override {
    calls_.unary.Remove(this);
    if (bytes_ > 0) calls_.answers.SubtractUnary(connection_, bytes_);
    --calls_.live;
  }

  void Asked(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    ServeLater(calls_, right_, ask_, begin_);
    calls_.unary.Add(this);
    connection_ = context_.peer();
    if (const Status understood = CheckVersions(context_, "program"); !understood.ok())
      return Refuse(understood);
    const Result<Identity> caller = calls_.access.Admit(context_, right_);
    if (!caller.ok()) return Refuse(caller.status());
    // Checked before the answer is computed, so that a peer that does not read causes no more work.
    if (const Status room = calls_.answers.CheckUnary(connection_, kUnaryOverheadBytes); !room.ok())
      return Refuse(room);
    begin_(*caller, request_, [this](const Status& status, const Response& response) {
      status.ok() ? Give(response) : Refuse(status);
    });
    // Frees the request, which may be large. The call itself lives until the queue reports its end.
    request_ = Request();
  }

  // Called from any thread, as Done.
  void Give(const Response& response) {
    const uint64_t bytes = response.ByteSizeLong() + kUnaryOverheadBytes;
    if (const Status room = calls_.answers.CheckUnary(connection_, bytes); !room.ok())
      return Refuse(room);
    Count(bytes);
    writer_.Finish(response, grpc::Status::OK, &on_finished_);
  }
  void Refuse(const Status& why) {
    const uint64_t bytes = MessageOf(why).size() + kUnaryOverheadBytes;
    const Status room = calls_.answers.CheckUnary(connection_, bytes);
    Count(room.ok() ? bytes : 0);
    writer_.FinishWithError(ToGrpc(room.ok() ? why : room), &on_finished_);
  }
  void Count(uint64_t bytes) {
    bytes_ = bytes;
    if (bytes > 0) calls_.answers.AddUnary(connection_, bytes);
    finish_began_ = OpenStreams::Clock::now();
  }

  void CutIfOverdue(OpenStreams::Clock::time_point now) override {
    const OpenStreams::Clock::time_point began = finish_began_;
    if (began != OpenStreams::Clock::time_point() && now - began > kUnaryWriteMax)
      context_.TryCancel();
  }

  Calls& calls_;
  const Right right_;
  const Ask ask_;
  const Begin begin_;
  grpc::ServerContext context_;
  grpc::ServerAsyncResponseWriter<Response> writer_{&context_};
  Request request_;
  std::string connection_;
  uint64_t bytes_ = 0;  // Size of the answer while it is outstanding.
  std::atomic<OpenStreams::Clock::time_point> finish_began_{OpenStreams::Clock::time_point()};
  Event on_asked_{[this](bool ok) { Asked(ok); }};
  Event on_finished_{[this](bool) { delete this; }};
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_STREAM_H_
