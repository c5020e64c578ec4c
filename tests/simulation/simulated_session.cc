#include "tests/simulation/simulated_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "client-sai/api/wait_budget.h"

namespace mosa::simulation {
namespace {

// As in GrpcManagerApi.
constexpr Duration kExpiryMargin = Milliseconds(200);
constexpr Duration kSilenceMax = sai::WaitBudget::kAll;
constexpr Duration kSilentWait = Milliseconds(100);
constexpr Duration kWatchEvery = Milliseconds(100);
constexpr Duration kPauseMin = Seconds(1);
constexpr Duration kBackoffMin = Milliseconds(50);
constexpr Duration kBackoffMax = Seconds(1);

// Requests that change nothing, or repeat the same change.
bool MayRunTwice(const Request& request) {
  return std::visit(
      []<typename R>(const R&) {
        return std::is_same_v<R, LookupRequest> || std::is_same_v<R, GetAttributesRequest> ||
               std::is_same_v<R, ListDirectoryRequest> || std::is_same_v<R, ReadSymlinkRequest> ||
               std::is_same_v<R, GetXattrRequest> || std::is_same_v<R, ListXattrsRequest> ||
               std::is_same_v<R, GetLockRequest> || std::is_same_v<R, SetLockRequest> ||
               std::is_same_v<R, CancelLockRequest> || std::is_same_v<R, StatFilesystemRequest> ||
               std::is_same_v<R, FileIdRangeRequest> || std::is_same_v<R, ForgetRequest> ||
               std::is_same_v<R, RecallDoneRequest> || std::is_same_v<R, AwaitCopiesRequest>;
      },
      request);
}

}  // namespace

::mosa::Status SimulatedSession::Start(sai::SessionListener& listener) {
  listener_ = &listener;
  last_heard_ = last_watched_ = clock_.Monotonic();
  sender_ = Thread([this] { RunSender(); });
  session_ = Thread([this] { RunSession(); });
  keep_alive_ = Thread([this] { RunKeepAlive(); });
  const Time end = Scheduler::Current()->now() + kWaitMax;
  while (!has_started_)
    if (!started_.Wait(end)) return UnavailableError("no manager answered");
  return OkStatus();
}

Duration SimulatedSession::SilentFor() const {
  return std::max(last_watched_ - last_heard_, Duration{0});
}

std::vector<Reply> SimulatedSession::Call(std::vector<Request> requests, Duration deadline) {
  if (sai::WaitBudget::ProgramWaits())
    deadline = std::clamp(kSilenceMax - SilentFor(), std::min(kSilentWait, deadline), deadline);
  const auto waiter = std::make_shared<Waiter>();
  const auto answered = [waiter](std::vector<Reply> replies) {
    waiter->replies = std::move(replies);
    waiter->answered.WakeAll();
  };
  const Time end = Scheduler::Current()->now() + deadline;
  const RequestId id = Submit(std::move(requests), answered, deadline);
  while (!waiter->replies) {
    if (waiter->answered.Wait(end) || waiter->replies) continue;
    if (pending_.erase(id) == 0) continue;
    abandoned_.insert(id);
    network_.Note(
        fmt::format("h{} has not heard of the manager for {} ms", host_, deadline.ns / 1'000'000));
    return {Failure{StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
                    "the manager did not reply in time"}};
  }
  sai::WaitBudget::NoteAnswer();
  return *std::move(waiter->replies);
}

RequestId SimulatedSession::Send(std::vector<Request> requests, Callback done) {
  return Submit(std::move(requests), std::move(done), std::nullopt);
}

RequestId SimulatedSession::Submit(std::vector<Request> requests, Callback done,
                                   std::optional<Duration> wait) {
  const RequestId id{++last_id_};
  const Time now = clock_.Monotonic();
  Pending& pending = pending_[id];
  pending.envelope.id = id;
  pending.envelope.requests = std::move(requests);
  pending.done = std::move(done);
  pending.submitted = pending.sent = now;
  if (wait) pending.give_up_at = now + *wait;
  last_sent_ = now;
  if (in_session_) Write(pending);
  return id;
}

RequestId SimulatedSession::AnsweredBelow() const {
  return pending_.empty() ? RequestId{last_id_ + 1} : pending_.begin()->first;
}

void SimulatedSession::TellAbandoned(RequestEnvelope& envelope) {
  abandoned_.erase(abandoned_.begin(), abandoned_.lower_bound(AnsweredBelow()));
  envelope.abandoned.assign(abandoned_.begin(), abandoned_.end());
}

void SimulatedSession::Write(Pending& pending) {
  RequestEnvelope& envelope = pending.envelope;
  envelope.answered_below = AnsweredBelow();
  if (pending.give_up_at) {
    const Duration patience = *pending.give_up_at - pending.submitted;
    envelope.expires =
        manager_clock_.At(*pending.give_up_at - std::min(kExpiryMargin, Duration{patience.ns / 2}));
  }
  TellAbandoned(envelope);
  pending.written = true;
  SendLater(envelope);
}

void SimulatedSession::SendLater(RequestEnvelope envelope) {
  outbox_.push_back({connection_, std::move(envelope), Scheduler::Current()->now()});
  outbox_filled_.WakeAll();
}

void SimulatedSession::RunSender() {
  while (!stopping_) {
    if (outbox_.empty()) {
      outbox_filled_.Wait(kNever);
      continue;
    }
    const Outgoing next = std::move(outbox_.front());
    outbox_.pop_front();
    if (next.connection->broken()) continue;
    network_.Travel(host_, SimulatedManager::kHost, next.sent);
    if (!next.connection->broken() || killed_)
      manager_.Receive(client_, next.connection, next.envelope);
  }
}

void SimulatedSession::RunSession() {
  Duration backoff = kBackoffMin;
  while (!stopping_) {
    if (!killed_) RunStream();
    if (std::exchange(in_session_, false)) backoff = kBackoffMin;
    if (connection_) connection_->Break();
    if (stopping_) return;
    SleepFor(backoff);
    backoff = std::min(backoff * 2, kBackoffMax);
  }
}

void SimulatedSession::RunStream() {
  SessionStart start = listener_->SessionHeld();
  start.client = client_;
  connection_ = std::make_shared<Connection<ToClientMessage>>();
  keep_alive_sent_.reset();
  const Time sent = clock_.Monotonic();
  // The handshake of a connection whose link is down is given up like a silent session.
  const auto arrive = [this, connection = connection_, start] {
    network_.Travel(host_, SimulatedManager::kHost);
    if (!connection->broken()) manager_.OpenSession(client_, connection, start);
  };
  Scheduler::Current()->Start(arrive, host_);
  const auto first = connection_->Take(Scheduler::Current()->now() + kSessionLease);
  if (!first) return;
  network_.Travel(SimulatedManager::kHost, host_, connection_->sent());
  const auto* const ready = std::get_if<SessionReady>(&*first);
  if (ready != nullptr && Begin(*ready, sent)) Serve();
}

bool SimulatedSession::Begin(const SessionReady& ready, Time sent) {
  manager_clock_.Begin(clock_.Monotonic(), ready.now);
  listener_->OnSessionReady(ready);
  listener_->OnLeaseRenewed(sent, ready.now);
  if (!ready.replies_kept) {
    std::vector<Callback> refused;
    for (auto item = pending_.begin(); item != pending_.end();) {
      if (item->second.written &&
          !std::ranges::all_of(item->second.envelope.requests, MayRunTwice)) {
        refused.push_back(std::move(item->second.done));
        item = pending_.erase(item);
      } else {
        ++item;
      }
    }
    for (const Callback& done : refused)
      done({Failure{StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
                    "the manager no longer knows whether the request was executed"}});
  }
  in_session_ = true;
  last_heard_ = clock_.Monotonic();
  for (auto& [id, pending] : pending_) {
    pending.sent = last_heard_;
    Write(pending);
  }
  has_started_ = true;
  started_.WakeAll();
  return true;
}

void SimulatedSession::Serve() {
  while (!stopping_) {
    auto message = connection_->Take(Scheduler::Current()->now() + kSessionLease);
    if (!message) return;
    network_.Travel(SimulatedManager::kHost, host_, connection_->sent());
    if (connection_->broken()) return;
    last_heard_ = clock_.Monotonic();
    if (auto* envelope = std::get_if<ReplyEnvelope>(&*message)) {
      Deliver(std::move(*envelope));
    } else if (const auto* push = std::get_if<Push>(&*message)) {
      listener_->OnPush(*push);
      if (std::holds_alternative<SessionEndPush>(*push)) return;
    } else {
      return;
    }
  }
}

void SimulatedSession::Deliver(ReplyEnvelope envelope) {
  manager_clock_.Learn(clock_.Monotonic(), envelope.now);
  Callback done;
  std::optional<Time> sent;
  if (envelope.id == RequestId{}) {
    sent = std::exchange(keep_alive_sent_, std::nullopt);
  } else if (const auto found = pending_.find(envelope.id); found != pending_.end()) {
    sent = found->second.sent;
    for (const RequestId id : found->second.envelope.abandoned) abandoned_.erase(id);
    done = std::move(found->second.done);
    pending_.erase(found);
  }
  if (sent) listener_->OnLeaseRenewed(*sent, envelope.now);
  if (done) done(std::move(envelope.replies));
}

void SimulatedSession::RunKeepAlive() {
  while (!stopping_) {
    SleepFor(kWatchEvery);
    const Time now = clock_.Monotonic();
    if (now - last_watched_ >= kPauseMin) last_heard_ = now;
    last_watched_ = now;
    if (!in_session_ || keep_alive_sent_ || now - last_sent_ < kKeepAliveEvery) continue;
    keep_alive_sent_ = last_sent_ = now;
    RequestEnvelope keep_alive;
    keep_alive.answered_below = AnsweredBelow();
    TellAbandoned(keep_alive);
    SendLater(std::move(keep_alive));
  }
}

void SimulatedSession::Kill() {
  killed_ = true;
  outbox_.clear();
  if (connection_) connection_->Break();
}

void SimulatedSession::Stop() {
  if (!session_.joinable()) return;
  stopping_ = true;
  network_.Travel(host_, SimulatedManager::kHost);
  if (in_session_ && !killed_) manager_.Close(client_, connection_);
  connection_->Break();
  outbox_filled_.WakeAll();
  sender_.join();
  keep_alive_.join();
  session_.join();
}

}  // namespace mosa::simulation
