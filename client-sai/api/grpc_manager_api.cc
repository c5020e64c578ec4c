#include "client-sai/api/grpc_manager_api.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "client-sai/api/manager_stream.h"
#include "client-sai/api/request_book.h"
#include "client-sai/api/wait_budget.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/model/request_kinds.h"
#include "fmt/format.h"
#include "mosa/v1/session.grpc.pb.h"
#include "proto/convert/protocol_version.h"
#include "proto/convert/residence.h"
#include "proto/convert/session.h"
#include "proto/convert/status.h"

namespace mosa::sai {

namespace {

constexpr Duration kBackoffMin = Milliseconds(50);
constexpr Duration kBackoffMax = Seconds(1);
constexpr Duration kConnectWait = Seconds(1);
constexpr Duration kConnectSlice = Milliseconds(100);  // Bounds how late an end is noticed.
constexpr Duration kCloseWait = Seconds(1);
constexpr Duration kWatchEvery = Milliseconds(100);
// A manager that is silent this long is considered dead. Callers then wait only kSilentWait, so
// that programs which the kernel admits one after another do not each wait in full.
constexpr Duration kSilenceMax = WaitBudget::kAll;
constexpr Duration kSilentWait = Milliseconds(100);
// A reply that another thread has taken off the stream is handed over within this time.
constexpr Duration kHandOverWait = Seconds(1);

// True if another attempt cannot help.
bool IsFinal(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnauthenticated:
    case StatusCode::kPermissionDenied:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

// When a client last heard from the manager, and last sent something. Thread-safe; takes no other
// lock under its own.
class ContactTimes {
 public:
  void Start(Time now) {
    const SystemMutexLock lock(mutex_);
    last_heard_ = last_watched_ = now;
  }
  void NoteStream(Time now) {
    const SystemMutexLock lock(mutex_);
    last_received_ = now;
  }
  void NoteHeard(Time now) {
    const SystemMutexLock lock(mutex_);
    last_received_ = last_heard_ = now;
  }
  void NoteSent(Time now) {
    const SystemMutexLock lock(mutex_);
    last_sent_ = now;
  }
  // Call it much more often than every kPauseMin: if it has not run for so long, the process was
  // suspended. Returns true if a keep-alive is due.
  bool Watch(Time now) {
    const SystemMutexLock lock(mutex_);
    if (now - last_watched_ >= kPauseMin) last_heard_ = now;
    last_watched_ = now;
    return now - last_sent_ >= kKeepAliveEvery;
  }
  // How long the manager has been silent, not counting the time while this process was suspended.
  Duration SilentFor() {
    const SystemMutexLock lock(mutex_);
    return std::max(last_watched_ - last_heard_, Duration{0});
  }
  // True if nothing has arrived on the stream for the length of a lease.
  bool IsStreamSilent(Time now) {
    const SystemMutexLock lock(mutex_);
    return now - last_received_ >= kSessionLease;
  }

 private:
  static constexpr Duration kPauseMin = Seconds(1);

  SystemMutex mutex_;
  Time last_received_ ABSL_GUARDED_BY(mutex_);  // Or when the stream was opened.
  Time last_heard_ ABSL_GUARDED_BY(mutex_);     // Or when a pause of this process ended.
  Time last_watched_ ABSL_GUARDED_BY(mutex_);
  Time last_sent_ ABSL_GUARDED_BY(mutex_);
};

class GrpcManagerApi final : public ManagerApi {
 public:
  explicit GrpcManagerApi(const GrpcManagerOptions& options)
      : options_(options),
        channel_(MakeChannel(options.address, options.secret)),
        stub_(v1::ClientSessionService::NewStub(channel_)),
        stream_(*stub_, [this](const v1::ManagerMessage& message) { return Claim(message); }),
        requests_(options.address) {}
  ~GrpcManagerApi() override { MOSA_CHECK(!session_thread_.joinable()); }

  Status Start(SessionListener& listener) override;
  std::vector<Reply> Call(std::vector<Request> requests, Duration deadline) override;
  RequestId Send(std::vector<Request> requests, Callback done) override;
  void Stop() override;

 private:
  // The state of a Call. Outlives the caller if the reply comes too late.
  struct Waiter {
    ManagerStream::Ticket ticket;
    std::vector<Reply> replies;  // Valid once the ticket is resolved.
  };

  // `wait`: how long the caller waits; absent: until there is a reply.
  RequestId Submit(std::vector<Request> requests, Callback done, std::optional<Duration> wait);
  // Hands a reply to the thread that waits for it. Runs on the polling thread; all other messages
  // are left to the delivery thread.
  bool Claim(const v1::ManagerMessage& message);
  void RunSession();
  void RunKeepAlive();
  // Runs one stream from beginning to end. `was_ready`: the session began.
  Status RunStream(bool& was_ready);
  Status OpenSession(const grpc::ClientContext& context, Time sent, bool& was_ready);
  // Gives up for good: pending requests fail at once, and so do later ones.
  void GiveUp(const Status& why);
  // Repeats unanswered requests, and allows new ones.
  void BeginRequests();
  // Delivers messages until the stream is over or must be left.
  void Serve();
  // Returns false if the stream must be left.
  bool Deliver(ManagerMessage message);
  void DeliverReplies(ReplyEnvelope envelope);
  void Count(const RequestBook::Pending& answered) const;
  void AnswerResidence(const ResidenceQuery& query);
  void DeliverRefused();
  void KeepAlive();
  void CutIfSilent();
  void SayGoodbye();
  // Waits until the channel is connected, the end comes, or an attempt would report the reason.
  void AwaitManager();
  // Sleeps; returns false if the end came.
  bool BackOff(Duration delay);
  bool StoppingNow() {
    const SystemMutexLock lock(mutex_);
    return stopping_;
  }

  // Constant.
  const GrpcManagerOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::ClientSessionService::Stub> stub_;
  const SystemClock clock_;
  SessionListener* listener_ = nullptr;  // Set by Start.

  // Thread-safe.
  ManagerStream stream_;
  RequestBook requests_;
  ContactTimes contact_;

  // Lock order: write_mutex_, then mutex_, then the lock of one of the members above. The holder of
  // write_mutex_ lets requests_ number and complete messages and writes them to the stream, so that
  // they are sent in that order.
  SystemMutex write_mutex_;
  bool in_session_ ABSL_GUARDED_BY(write_mutex_) = false;  // Requests may be written.
  SystemMutex mutex_;
  SystemCondVar changed_;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;  // The open or opening stream.
  std::optional<Status> started_ ABSL_GUARDED_BY(mutex_);           // The outcome of Start.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // The session thread has finished.
  std::thread session_thread_;
  std::thread keep_alive_thread_;
};

Status GrpcManagerApi::Start(SessionListener& listener) {
  listener_ = &listener;
  contact_.Start(clock_.Monotonic());
  session_thread_ = std::thread([this] { RunSession(); });
  keep_alive_thread_ = std::thread([this] { RunKeepAlive(); });
  Status status = UnavailableError(fmt::format(
      "no manager answered at {} within {} s; is it running there, with the same cluster secret?",
      options_.address, options_.start_wait.ns / 1'000'000'000));
  {
    SystemMutexLock lock(mutex_);
    changed_.wait_for(lock, options_.start_wait, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return started_ && (started_->ok() || IsFinal(*started_));
    });
    if (started_) {
      status =
          started_->ok() || IsFinal(*started_)
              ? *started_
              : UnavailableError(fmt::format("{}: {}", MessageOf(status), MessageOf(*started_)));
    }
  }
  if (!status.ok()) Stop();
  return status;
}

// ---- requests

std::vector<Reply> GrpcManagerApi::Call(std::vector<Request> requests, Duration deadline) {
  if (WaitBudget::ProgramWaits())
    deadline =
        std::clamp(kSilenceMax - contact_.SilentFor(), std::min(kSilentWait, deadline), deadline);
  const auto waiter = std::make_shared<Waiter>();
  const auto answered = [this, waiter](std::vector<Reply> replies) {
    waiter->replies = std::move(replies);
    stream_.Resolve(waiter->ticket);
  };
  const RequestId id = Submit(std::move(requests), answered, deadline);
  if (!stream_.Await(waiter->ticket, deadline) &&
      (requests_.Abandon(id) || !stream_.Await(waiter->ticket, kHandOverWait))) {
    return {Failure{
        .code = StatusCode::kDeadlineExceeded,
        .reason = ErrorReason::kTimedOut,
        .message = fmt::format(
            "the manager at {} did not reply within {} ms and was last heard from {} s ago",
            options_.address, deadline.ns / 1'000'000, contact_.SilentFor().ns / 1'000'000'000)}};
  }
  WaitBudget::NoteAnswer();
  return std::move(waiter->replies);
}

RequestId GrpcManagerApi::Send(std::vector<Request> requests, Callback done) {
  return Submit(std::move(requests), std::move(done), std::nullopt);
}

RequestId GrpcManagerApi::Submit(std::vector<Request> requests, Callback done,
                                 std::optional<Duration> wait) {
  const bool is_call = wait.has_value();
  const DurationTable::ClassId kind{requests.empty() ? 0 : EnvelopeKindOf(requests)};
  const auto message = std::make_shared<v1::ClientMessage>();
  ToProto(
      RequestEnvelope{
          .id = RequestId{}, .answered_below = RequestId{}, .requests = std::move(requests)},
      message.get());
  Span span;
  if (options_.residence != nullptr && options_.residence->is_logged()) {
    span = BeginSpan(CurrentSpan());
    SetSpan(span.own, message.get());
  }
  const SystemMutexLock write_lock(write_mutex_);
  const Time now = clock_.Monotonic();
  RequestBook::Pending pending{.message = message,
                               .done = std::move(done),
                               .sent = now,
                               .submitted = now,
                               .kind = kind,
                               .span = span};
  if (wait) pending.give_up_at = now + *wait;
  if (std::optional<Failure> failure = requests_.Add(pending, in_session_)) {
    if (is_call) {
      pending.done({*std::move(failure)});
    } else {
      stream_.Wake();  // The delivery thread answers.
    }
  } else {
    contact_.NoteSent(now);
    if (in_session_) stream_.Write(message);
  }
  return RequestId{message->requests().id()};
}

// ---- the stream

void GrpcManagerApi::RunSession() {
  Duration backoff = kBackoffMin;
  while (!StoppingNow()) {
    bool was_ready = false;
    const Status status = RunStream(was_ready);
    if (was_ready) backoff = kBackoffMin;
    {
      const SystemMutexLock lock(mutex_);
      if (!started_ || !started_->ok()) started_ = status;
    }
    changed_.notify_all();
    DeliverRefused();
    if (status.code() == StatusCode::kUnimplemented) {
      GiveUp(status);
      while (BackOff(kWatchEvery)) DeliverRefused();
      break;
    }
    if (!BackOff(backoff)) break;
    backoff = std::min(backoff * 2, kBackoffMax);
  }
  const SystemMutexLock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void GrpcManagerApi::GiveUp(const Status& why) {
  LogError("giving up on a session with the manager at {}: {}", options_.address, MessageOf(why));
  const Failure failure{StatusCode::kUnimplemented, ErrorReason::kNone, MessageOf(why)};
  for (auto& [id, pending] : requests_.GiveUp(failure)) pending.done({failure});
}

Status GrpcManagerApi::RunStream(bool& was_ready) {
  AwaitManager();
  // Called before anything is sent: the listener drops its caches.
  const SessionStart held = listener_->SessionHeld();
  grpc::ClientContext context;
  // A waiting call drives the connection attempt. A call that failed at once would leave nobody to
  // poll the socket.
  context.set_wait_for_ready(true);
  {
    const SystemMutexLock lock(mutex_);
    if (stopping_) return OkStatus();
    contact_.NoteStream(clock_.Monotonic());
    context_ = &context;
  }
  Status status = OkStatus();
  if (stream_.Open(context)) {
    const auto start = std::make_shared<v1::ClientMessage>();
    ToProto(held, start.get());
    const Time sent = clock_.Monotonic();
    stream_.Write(start);
    status = OpenSession(context, sent, was_ready);
    if (was_ready) Serve();
  }
  {
    const SystemMutexLock write_lock(write_mutex_);
    in_session_ = false;
  }
  // If the manager ended the stream, a cancellation would hide its reason.
  if (was_ready || !status.ok()) context.TryCancel();
  const Status finished = FromGrpc(stream_.Finish());
  {
    const SystemMutexLock lock(mutex_);
    context_ = nullptr;
  }
  if (!status.ok()) return status;
  return was_ready || !finished.ok()
             ? finished
             : UnavailableError("the manager closed the stream before the session began");
}

Status GrpcManagerApi::OpenSession(const grpc::ClientContext& context, Time sent, bool& was_ready) {
  std::optional<v1::ManagerMessage> in;
  while (!in && !stream_.broken()) in = stream_.Next();
  if (!in) return OkStatus();  // Finish returns the reason.
  MOSA_RETURN_IF_ERROR(CheckManagerOf(context, "mount"));
  MOSA_ASSIGN_OR_RETURN(const ManagerMessage message, FromProto(*in));
  if (const auto* const failure = std::get_if<Failure>(&message)) return StatusOf(*failure);
  const auto* const ready = std::get_if<SessionReady>(&message);
  if (ready == nullptr) return UnavailableError("the manager's first message is not SessionReady");
  was_ready = true;
  requests_.BeginSession(clock_.Monotonic(), ready->now);
  listener_->OnSessionReady(*ready);
  listener_->OnLeaseRenewed(sent, ready->now);
  if (!ready->replies_kept) requests_.RefuseRepetitions();
  BeginRequests();
  contact_.NoteHeard(clock_.Monotonic());
  {
    const SystemMutexLock lock(mutex_);
    started_ = OkStatus();
  }
  changed_.notify_all();
  return OkStatus();
}

void GrpcManagerApi::BeginRequests() {
  const SystemMutexLock write_lock(write_mutex_);
  in_session_ = true;
  for (const auto& message : requests_.Repeat(clock_.Monotonic())) stream_.Write(message);
}

void GrpcManagerApi::Serve() {
  while (true) {
    std::optional<v1::ManagerMessage> in = stream_.Next();
    DeliverRefused();
    if (in) {
      Result<ManagerMessage> message = FromProto(*in);
      if (!message.ok() || !Deliver(*std::move(message))) return;
    } else if (stream_.broken()) {
      return;
    }
  }
}

bool GrpcManagerApi::Claim(const v1::ManagerMessage& message) {
  contact_.NoteHeard(clock_.Monotonic());
  if (!message.has_replies() || !requests_.IsCall(RequestId{message.replies().id()})) return false;
  Result<ManagerMessage> value = FromProto(message);
  if (!value.ok()) return false;
  DeliverReplies(std::get<ReplyEnvelope>(*std::move(value)));
  return true;
}

bool GrpcManagerApi::Deliver(ManagerMessage message) {
  contact_.NoteHeard(clock_.Monotonic());
  if (auto* const envelope = std::get_if<ReplyEnvelope>(&message)) {
    DeliverReplies(std::move(*envelope));
    return true;
  }
  if (const auto* const query = std::get_if<ResidenceQuery>(&message)) {
    AnswerResidence(*query);
    return true;
  }
  const auto* const push = std::get_if<Push>(&message);
  if (push == nullptr) return false;  // Other messages come only at the start of a stream.
  listener_->OnPush(*push);
  return !std::holds_alternative<SessionEndPush>(*push);
}

void GrpcManagerApi::DeliverReplies(ReplyEnvelope envelope) {
  const std::optional<RequestBook::Pending> answered =
      requests_.Answer(envelope, clock_.Monotonic());
  if (!answered) return;
  if (answered->message && options_.residence != nullptr) Count(*answered);
  listener_->OnLeaseRenewed(answered->sent, envelope.now);
  if (answered->done) answered->done(std::move(envelope.replies));
}

void GrpcManagerApi::Count(const RequestBook::Pending& answered) const {
  const Duration duration = clock_.Monotonic() - answered.submitted;
  options_.residence->Add(answered.kind, DurationTable::kNoPeer, duration);
  if (answered.span.own.trace == 0) return;
  options_.residence->Log(
      answered.kind, DurationTable::kNoPeer,
      {.span = answered.span, .begin = answered.submitted, .duration = duration});
}

void GrpcManagerApi::AnswerResidence(const ResidenceQuery& query) {
  const auto message = std::make_shared<v1::ClientMessage>();
  ToProto(ClientMessage(
              ReportOf(query, options_.snapshot ? options_.snapshot(query) : ResidenceSnapshot())),
          message.get());
  const SystemMutexLock write_lock(write_mutex_);
  if (in_session_) stream_.Write(message);
}

void GrpcManagerApi::DeliverRefused() {
  for (RequestBook::Refused& item : requests_.TakeRefused()) item.done({std::move(item.failure)});
}

// ---- keep-alive

void GrpcManagerApi::RunKeepAlive() {
  while (BackOff(kWatchEvery)) {
    if (contact_.Watch(clock_.Monotonic())) KeepAlive();
    CutIfSilent();
  }
}

void GrpcManagerApi::KeepAlive() {
  // If another thread holds the lock, it is writing, which serves as well.
  if (!write_mutex_.try_lock()) return;
  const SystemMutexLock write_lock(write_mutex_, std::adopt_lock);
  if (!in_session_) return;
  const Time now = clock_.Monotonic();
  const RequestBook::Message message = requests_.KeepAlive(now);
  if (message == nullptr) return;
  contact_.NoteSent(now);
  stream_.Write(message);
}

void GrpcManagerApi::CutIfSilent() {
  const std::optional<ManagerStream::SteadyTime> waiting = stream_.WaitingSince();
  const bool is_stuck = waiting && std::chrono::steady_clock::now() - *waiting >=
                                       std::chrono::nanoseconds(kSessionLease.ns);
  const SystemMutexLock lock(mutex_);
  if (context_ == nullptr) return;
  if (is_stuck || contact_.IsStreamSilent(clock_.Monotonic())) context_->TryCancel();
}

void GrpcManagerApi::AwaitManager() {
  const Time limit = clock_.Monotonic() + kConnectWait;
  while (!StoppingNow() && clock_.Monotonic() < limit) {
    if (AwaitConnection(*channel_, kConnectSlice)) return;
  }
}

bool GrpcManagerApi::BackOff(Duration delay) {
  SystemMutexLock lock(mutex_);
  return !changed_.wait_for(lock, delay,
                            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
}

void GrpcManagerApi::SayGoodbye() {
  const SystemMutexLock write_lock(write_mutex_);
  if (!in_session_) return;
  const auto close = std::make_shared<v1::ClientMessage>();
  close->mutable_close();
  stream_.Write(close);
  stream_.WritesDone();
}

void GrpcManagerApi::Stop() {
  if (!session_thread_.joinable()) return;
  {
    const SystemMutexLock write_lock(write_mutex_);
    const SystemMutexLock lock(mutex_);
    stopping_ = true;
    if (!in_session_ && context_ != nullptr) context_->TryCancel();
  }
  SayGoodbye();
  changed_.notify_all();
  {
    // The manager ends the stream once it has noted the end; otherwise the stream is cut.
    SystemMutexLock lock(mutex_);
    if (!changed_.wait_for(lock, kCloseWait,
                           [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; }) &&
        context_ != nullptr) {
      context_->TryCancel();
    }
  }
  keep_alive_thread_.join();
  session_thread_.join();
}

}  // namespace

std::unique_ptr<ManagerApi> NewGrpcManagerApi(const GrpcManagerOptions& options) {
  return std::make_unique<GrpcManagerApi>(options);
}

}  // namespace mosa::sai
