#include "client-sai/api/grpc_manager_api.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "client-sai/api/manager_clock.h"
#include "client-sai/api/manager_stream.h"
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

constexpr size_t kPendingMax = 65'536;
constexpr Duration kBackoffMin = Milliseconds(50);
constexpr Duration kBackoffMax = Seconds(1);
constexpr Duration kConnectWait = Seconds(1);
constexpr Duration kConnectSlice = Milliseconds(100);  // Bounds how late an end is noticed.
constexpr Duration kCloseWait = Seconds(1);
constexpr Duration kWatchEvery = Milliseconds(100);
// A request expires this long before its caller gives up, because the two clocks may drift.
constexpr Duration kExpiryMargin = Milliseconds(200);
// A manager that is silent this long is considered dead. Callers then wait only kSilentWait, so
// that programs which the kernel admits one after another do not each wait in full.
constexpr Duration kSilenceMax = WaitBudget::kAll;
constexpr Duration kSilentWait = Milliseconds(100);
// The watch runs every kWatchEvery. If it has not run for this long, the process was suspended.
constexpr Duration kPauseMin = Seconds(1);
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

// True of requests that change nothing, or repeat the same change.
bool MayRunTwice(const v1::Request& request) {
  switch (request.request_case()) {
    case v1::Request::kLookup:
    case v1::Request::kGetAttributes:
    case v1::Request::kListDirectory:
    case v1::Request::kReadSymlink:
    case v1::Request::kGetXattr:
    case v1::Request::kListXattrs:
    case v1::Request::kGetLock:
    case v1::Request::kSetLock:
    case v1::Request::kCancelLock:
    case v1::Request::kStatFilesystem:
    case v1::Request::kFileIdRange:
    case v1::Request::kForget:
    case v1::Request::kRecallDone:
    case v1::Request::kAwaitCopies:
      return true;
    default:
      return false;
  }
}

class GrpcManagerApi final : public ManagerApi {
 public:
  explicit GrpcManagerApi(const GrpcManagerOptions& options)
      : options_(options),
        channel_(MakeChannel(options.address, options.secret)),
        stub_(v1::ClientSessionService::NewStub(channel_)),
        stream_(*stub_, [this](const v1::ManagerMessage& message) { return Claim(message); }) {}
  ~GrpcManagerApi() override { MOSA_CHECK(!session_thread_.joinable()); }

  Status Start(SessionListener& listener) override;
  std::vector<Reply> Call(std::vector<Request> requests, Duration deadline) override;
  RequestId Send(std::vector<Request> requests, Callback done) override;
  void Stop() override;

 private:
  // An envelope without a reply so far.
  struct Pending {
    std::shared_ptr<v1::ClientMessage> message;  // Shared with the write in progress.
    Callback done;
    Time sent;
    bool is_call = false;  // `done` only hands the replies to a waiting thread.
    Time submitted;        // Time of the first sending.
    DurationTable::ClassId kind;
    Span span;                          // Set if it began while requests were logged.
    std::optional<Time> give_up_at{};   // Calls only.
    bool written = false;               // Was written to a stream, so it may have run.
    std::vector<uint64_t> abandoned{};  // Abandoned requests that it has reported.
  };
  // The state of a Call. Outlives the caller if the reply comes too late.
  struct Waiter {
    ManagerStream::Ticket ticket;
    std::vector<Reply> replies;  // Valid once the ticket is resolved.
  };
  // An envelope that was refused locally; the delivery thread answers it like any other.
  struct Refused {
    Callback done;
    Failure failure;
  };

  // `wait`: how long the caller waits; absent: until there is a reply.
  RequestId Submit(std::vector<Request> requests, Callback done, std::optional<Duration> wait);
  // How long the manager has been silent, not counting the time while this process was suspended.
  Duration SilentFor() {
    const SystemMutexLock lock(mutex_);
    return std::max(last_watched_ - last_heard_, Duration{0});
  }
  void NoteHeard(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    last_received_ = last_heard_ = now;
  }
  // True: the request will not be answered and will not run any more. False: its reply is being
  // handed over.
  bool GiveUp(RequestId id);
  // Fills in what each message carries when it is sent.
  void Complete(Pending& pending, v1::ClientMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<uint64_t> TellAbandoned(v1::ClientMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails requests that may have run in an earlier session and would run again.
  void RefuseRepetitions();
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
  void BeginRequests(Time now);
  // Delivers messages until the stream is over or must be left.
  void Serve();
  // Returns false if the stream must be left.
  bool Deliver(ManagerMessage message);
  void DeliverReplies(ReplyEnvelope envelope);
  void Count(const Pending& answered) const;
  void AnswerResidence(const ResidenceQuery& query);
  void DeliverRefused();
  void KeepAlive();
  void CutIfSilent();
  void SayGoodbye();
  // Waits until the channel is connected, the end comes, or an attempt would report the reason.
  void AwaitManager();
  // Sleeps before the next attempt; returns false if the end came.
  bool BackOff(Duration delay);
  std::optional<Failure> WhyNot(const v1::ClientMessage& message) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t AnsweredBelow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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

  ManagerStream stream_;  // Thread-safe.

  // Lock order: write_mutex_, then mutex_. The holder of write_mutex_ writes to the stream and
  // numbers requests, so that ids are sent in order.
  SystemMutex write_mutex_;
  bool in_session_ ABSL_GUARDED_BY(write_mutex_) = false;  // Requests may be written.
  uint64_t last_id_ ABSL_GUARDED_BY(write_mutex_) = 0;
  SystemMutex mutex_;
  SystemCondVar changed_;
  std::map<uint64_t, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  std::vector<Refused> refused_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;  // The open or opening stream.
  Time last_received_ ABSL_GUARDED_BY(mutex_);  // Or when the stream was opened.
  Time last_heard_ ABSL_GUARDED_BY(mutex_);     // Or when a pause of this process ended.
  Time last_watched_ ABSL_GUARDED_BY(mutex_);
  Time last_sent_ ABSL_GUARDED_BY(mutex_);
  std::optional<Time> keep_alive_sent_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> keep_alive_abandoned_ ABSL_GUARDED_BY(mutex_);  // Ids that it has reported.
  ManagerClock manager_clock_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> abandoned_ ABSL_GUARDED_BY(mutex_);   // Ids that the manager has not heard of.
  uint64_t last_id_seen_ ABSL_GUARDED_BY(mutex_) = 0;      // last_id_, for AnsweredBelow.
  std::optional<Status> started_ ABSL_GUARDED_BY(mutex_);  // The outcome of Start.
  std::optional<Failure> given_up_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // The session thread has finished.
  std::thread session_thread_;
  std::thread keep_alive_thread_;
};

Status GrpcManagerApi::Start(SessionListener& listener) {
  listener_ = &listener;
  {
    const SystemMutexLock lock(mutex_);
    last_heard_ = last_watched_ = clock_.Monotonic();
  }
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
    deadline = std::clamp(kSilenceMax - SilentFor(), std::min(kSilentWait, deadline), deadline);
  const auto waiter = std::make_shared<Waiter>();
  const auto answered = [this, waiter](std::vector<Reply> replies) {
    waiter->replies = std::move(replies);
    stream_.Resolve(waiter->ticket);
  };
  const RequestId id = Submit(std::move(requests), answered, deadline);
  if (!stream_.Await(waiter->ticket, deadline) &&
      (GiveUp(id) || !stream_.Await(waiter->ticket, kHandOverWait))) {
    return {
        Failure{.code = StatusCode::kDeadlineExceeded,
                .reason = ErrorReason::kTimedOut,
                .message = fmt::format(
                    "the manager at {} did not reply within {} ms and was last heard from {} s ago",
                    options_.address, deadline.ns / 1'000'000, SilentFor().ns / 1'000'000'000)}};
  }
  WaitBudget::NoteAnswer();
  return std::move(waiter->replies);
}

RequestId GrpcManagerApi::Send(std::vector<Request> requests, Callback done) {
  return Submit(std::move(requests), std::move(done), std::nullopt);
}

bool GrpcManagerApi::GiveUp(RequestId id) {
  const SystemMutexLock lock(mutex_);
  if (pending_.erase(id.value) == 0) return false;
  abandoned_.insert(id.value);
  // Older ones have expired long ago.
  if (abandoned_.size() > kAbandonedMax) abandoned_.erase(abandoned_.begin());
  return true;
}

void GrpcManagerApi::Complete(Pending& pending, v1::ClientMessage& message) {
  v1::RequestEnvelope& envelope = *message.mutable_requests();
  envelope.set_answered_below_id(AnsweredBelow());
  if (pending.give_up_at) {
    const Duration patience = *pending.give_up_at - pending.submitted;
    const Duration margin = std::min(kExpiryMargin, Duration{patience.ns / 2});
    envelope.set_expires_ns(manager_clock_.At(*pending.give_up_at - margin).ns);
  }
  pending.abandoned = TellAbandoned(message);
  pending.written = true;
}

std::vector<uint64_t> GrpcManagerApi::TellAbandoned(v1::ClientMessage& message) {
  message.mutable_requests()->clear_abandoned_ids();
  if (abandoned_.empty()) return {};
  // Lower ids are settled anyway.
  abandoned_.erase(abandoned_.begin(), abandoned_.lower_bound(AnsweredBelow()));
  for (const uint64_t id : abandoned_) message.mutable_requests()->add_abandoned_ids(id);
  return {abandoned_.begin(), abandoned_.end()};
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
  const RequestId id{++last_id_};
  message->mutable_requests()->set_id(id.value);
  const Time now = clock_.Monotonic();
  {
    const SystemMutexLock lock(mutex_);
    last_id_seen_ = last_id_;
    if (std::optional<Failure> failure = WhyNot(*message)) {
      if (is_call) {
        done({*std::move(failure)});
      } else {
        refused_.push_back({std::move(done), *std::move(failure)});
        stream_.Wake();  // The delivery thread answers.
      }
      return id;
    }
    Pending& pending =
        pending_.emplace(id.value, Pending{message, std::move(done), now, is_call, now, kind, span})
            .first->second;
    if (wait) pending.give_up_at = now + *wait;
    if (in_session_) Complete(pending, *message);
    last_sent_ = now;
  }
  if (in_session_) stream_.Write(message);
  return id;
}

std::optional<Failure> GrpcManagerApi::WhyNot(const v1::ClientMessage& message) const {
  if (message.ByteSizeLong() >= kClientMessageBytesMax ||
      static_cast<size_t>(message.requests().requests_size()) > kEnvelopeRequestsMax) {
    return Failure{
        .code = StatusCode::kInvalidArgument,
        .reason = ErrorReason::kArgumentTooBig,
        .message = fmt::format("{} requests of {} bytes exceed the envelope limit of {} requests "
                               "and {} bytes: send fewer at once",
                               message.requests().requests_size(), message.ByteSizeLong(),
                               kEnvelopeRequestsMax, kClientMessageBytesMax)};
  }
  if (given_up_) return given_up_;
  if (pending_.size() >= kPendingMax) {
    return Failure{.code = StatusCode::kResourceExhausted,
                   .reason = ErrorReason::kBusy,
                   .message = fmt::format("{} requests are already waiting for the manager at {}",
                                          pending_.size(), options_.address)};
  }
  return std::nullopt;
}

uint64_t GrpcManagerApi::AnsweredBelow() const {
  return pending_.empty() ? last_id_seen_ + 1 : pending_.begin()->first;
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
  std::map<uint64_t, Pending> unanswered;
  {
    const SystemMutexLock lock(mutex_);
    given_up_ = failure;
    unanswered.swap(pending_);
  }
  for (auto& [id, pending] : unanswered) pending.done({failure});
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
    context_ = &context;
    last_received_ = clock_.Monotonic();
    keep_alive_sent_.reset();
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
  {
    const SystemMutexLock lock(mutex_);
    manager_clock_.Begin(clock_.Monotonic(), ready->now);
  }
  listener_->OnSessionReady(*ready);
  listener_->OnLeaseRenewed(sent, ready->now);
  if (!ready->replies_kept) RefuseRepetitions();
  BeginRequests(clock_.Monotonic());
  {
    const SystemMutexLock lock(mutex_);
    NoteHeard(clock_.Monotonic());
    started_ = OkStatus();
  }
  changed_.notify_all();
  return OkStatus();
}

void GrpcManagerApi::RefuseRepetitions() {
  const SystemMutexLock lock(mutex_);
  for (auto item = pending_.begin(); item != pending_.end();) {
    Pending& pending = item->second;
    const auto& requests = pending.message->requests().requests();
    if (!pending.written || std::all_of(requests.begin(), requests.end(), MayRunTwice)) {
      ++item;
      continue;
    }
    refused_.push_back({std::move(pending.done),
                        Failure{.code = StatusCode::kDeadlineExceeded,
                                .reason = ErrorReason::kTimedOut,
                                .message = fmt::format(
                                    "the manager at {} no longer knows whether request {} of an "
                                    "earlier session was executed: check before you repeat it",
                                    options_.address, item->first)}});
    item = pending_.erase(item);
  }
}

void GrpcManagerApi::BeginRequests(Time now) {
  const SystemMutexLock write_lock(write_mutex_);
  in_session_ = true;
  const SystemMutexLock lock(mutex_);
  for (auto& [id, pending] : pending_) {
    pending.sent = now;
    // A write of the last stream may still read the message, so a copy is repeated. It is unchanged
    // except for what has been answered since.
    auto repeated = std::make_shared<v1::ClientMessage>(*pending.message);
    Complete(pending, *repeated);
    stream_.Write(repeated);
  }
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
  {
    const SystemMutexLock lock(mutex_);
    NoteHeard(clock_.Monotonic());
    if (!message.has_replies()) return false;
    const auto found = pending_.find(message.replies().id());
    if (found == pending_.end() || !found->second.is_call) return false;
  }
  Result<ManagerMessage> value = FromProto(message);
  if (!value.ok()) return false;
  DeliverReplies(std::get<ReplyEnvelope>(*std::move(value)));
  return true;
}

bool GrpcManagerApi::Deliver(ManagerMessage message) {
  {
    const SystemMutexLock lock(mutex_);
    NoteHeard(clock_.Monotonic());
  }
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
  Callback done;
  std::optional<Time> sent;
  {
    const SystemMutexLock lock(mutex_);
    manager_clock_.Learn(clock_.Monotonic(), envelope.now);
    if (envelope.id == RequestId{}) {
      sent = std::exchange(keep_alive_sent_, std::nullopt);
      for (const uint64_t id : std::exchange(keep_alive_abandoned_, {})) abandoned_.erase(id);
    } else if (const auto found = pending_.find(envelope.id.value); found != pending_.end()) {
      sent = found->second.sent;
      if (options_.residence != nullptr) Count(found->second);
      for (const uint64_t id : found->second.abandoned) abandoned_.erase(id);
      done = std::move(found->second.done);
      pending_.erase(found);
    }
  }
  if (sent) listener_->OnLeaseRenewed(*sent, envelope.now);
  if (done) done(std::move(envelope.replies));
}

void GrpcManagerApi::Count(const Pending& answered) const {
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
  std::vector<Refused> refused;
  {
    const SystemMutexLock lock(mutex_);
    refused.swap(refused_);
  }
  for (Refused& item : refused) item.done({std::move(item.failure)});
}

// ---- keep-alive

void GrpcManagerApi::RunKeepAlive() {
  SystemMutexLock lock(mutex_);
  while (!changed_.wait_for(lock, kWatchEvery,
                            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; })) {
    const Time now = clock_.Monotonic();
    if (now - last_watched_ >= kPauseMin) last_heard_ = now;
    last_watched_ = now;
    const bool is_due = now - last_sent_ >= kKeepAliveEvery;
    lock.unlock();
    if (is_due) KeepAlive();
    CutIfSilent();
    lock.lock();
  }
}

void GrpcManagerApi::KeepAlive() {
  // If another thread holds the lock, it is writing, which serves as well.
  if (!write_mutex_.try_lock()) return;
  const SystemMutexLock write_lock(write_mutex_, std::adopt_lock);
  if (!in_session_) return;
  const auto message = std::make_shared<v1::ClientMessage>();
  {
    const SystemMutexLock lock(mutex_);
    if (keep_alive_sent_) return;
    const Time now = clock_.Monotonic();
    keep_alive_sent_ = now;
    last_sent_ = now;
    message->mutable_requests()->set_answered_below_id(AnsweredBelow());
    keep_alive_abandoned_ = TellAbandoned(*message);
  }
  stream_.Write(message);
}

void GrpcManagerApi::CutIfSilent() {
  const std::optional<ManagerStream::SteadyTime> waiting = stream_.WaitingSince();
  const bool is_stuck = waiting && std::chrono::steady_clock::now() - *waiting >=
                                       std::chrono::nanoseconds(kSessionLease.ns);
  const SystemMutexLock lock(mutex_);
  if (context_ == nullptr) return;
  const bool is_silent = clock_.Monotonic() - last_received_ >= kSessionLease;
  if (is_silent || is_stuck) context_->TryCancel();
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
