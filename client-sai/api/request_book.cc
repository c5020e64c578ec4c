#include "client-sai/api/request_book.h"

#include <algorithm>

#include "fmt/format.h"
#include "proto/convert/session.h"

namespace mosa::sai {

namespace {

constexpr size_t kPendingMax = 65'536;
// A request expires this long before its caller gives up, because the two clocks may drift.
constexpr Duration kExpiryMargin = Milliseconds(200);

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

}  // namespace

std::optional<Failure> RequestBook::Add(Pending& pending, bool is_written) {
  const SystemMutexLock lock(mutex_);
  const uint64_t id = ++last_id_;
  pending.message->mutable_requests()->set_id(id);
  if (std::optional<Failure> failure = WhyNot(*pending.message)) {
    if (!pending.give_up_at) refused_.push_back({std::move(pending.done), *failure});
    return failure;
  }
  Pending& added = pending_.emplace(id, std::move(pending)).first->second;
  if (is_written) Complete(added, *added.message);
  return std::nullopt;
}

std::optional<Failure> RequestBook::WhyNot(const v1::ClientMessage& message) const {
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
                                          pending_.size(), address_)};
  }
  return std::nullopt;
}

uint64_t RequestBook::AnsweredBelow() const {
  return pending_.empty() ? last_id_ + 1 : pending_.begin()->first;
}

bool RequestBook::Abandon(RequestId id) {
  const SystemMutexLock lock(mutex_);
  if (pending_.erase(id.value) == 0) return false;
  abandoned_.insert(id.value);
  // Older ones have expired long ago.
  if (abandoned_.size() > kAbandonedMax) abandoned_.erase(abandoned_.begin());
  return true;
}

bool RequestBook::IsCall(RequestId id) {
  const SystemMutexLock lock(mutex_);
  const auto found = pending_.find(id.value);
  return found != pending_.end() && found->second.give_up_at;
}

std::optional<RequestBook::Pending> RequestBook::Answer(const ReplyEnvelope& envelope, Time now) {
  const SystemMutexLock lock(mutex_);
  manager_clock_.Learn(now, envelope.now);
  std::optional<Pending> answered;
  if (envelope.id == RequestId{}) {
    answered.swap(keep_alive_);
  } else if (auto found = pending_.extract(envelope.id.value)) {
    answered = std::move(found.mapped());
  }
  if (answered)
    for (const uint64_t id : answered->abandoned) abandoned_.erase(id);
  return answered;
}

std::vector<RequestBook::Refused> RequestBook::TakeRefused() {
  const SystemMutexLock lock(mutex_);
  return std::exchange(refused_, {});
}

std::map<uint64_t, RequestBook::Pending> RequestBook::GiveUp(const Failure& why) {
  const SystemMutexLock lock(mutex_);
  given_up_ = why;
  return std::exchange(pending_, {});
}

// ---- a session

void RequestBook::BeginSession(Time now, Time manager_now) {
  const SystemMutexLock lock(mutex_);
  manager_clock_.Begin(now, manager_now);
  keep_alive_.reset();
}

void RequestBook::RefuseRepetitions() {
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
                                    address_, item->first)}});
    item = pending_.erase(item);
  }
}

std::vector<RequestBook::Message> RequestBook::Repeat(Time now) {
  const SystemMutexLock lock(mutex_);
  std::vector<Message> repeated;
  for (auto& [id, pending] : pending_) {
    pending.sent = now;
    // A write of the last stream may still read the message, so a copy is repeated. It is unchanged
    // except for what has been answered since.
    repeated.push_back(std::make_shared<v1::ClientMessage>(*pending.message));
    Complete(pending, *repeated.back());
  }
  return repeated;
}

RequestBook::Message RequestBook::KeepAlive(Time now) {
  const SystemMutexLock lock(mutex_);
  if (keep_alive_) return nullptr;
  auto message = std::make_shared<v1::ClientMessage>();
  message->mutable_requests()->set_answered_below_id(AnsweredBelow());
  keep_alive_ = Pending{.sent = now, .abandoned = TellAbandoned(*message)};
  return message;
}

void RequestBook::Complete(Pending& pending, v1::ClientMessage& message) {
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

std::vector<uint64_t> RequestBook::TellAbandoned(v1::ClientMessage& message) {
  message.mutable_requests()->clear_abandoned_ids();
  if (abandoned_.empty()) return {};
  // Lower ids are settled anyway.
  abandoned_.erase(abandoned_.begin(), abandoned_.lower_bound(AnsweredBelow()));
  for (const uint64_t id : abandoned_) message.mutable_requests()->add_abandoned_ids(id);
  return {abandoned_.begin(), abandoned_.end()};
}

}  // namespace mosa::sai
