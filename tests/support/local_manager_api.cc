#include "tests/support/local_manager_api.h"

#include <chrono>
#include <memory>
#include <utility>

#include "common/base/mutex.h"

namespace mosa::testing {

LocalManagerApi::LocalManagerApi(LocalManager& manager, ClientId client, std::string node_name)
    : manager_(manager), client_(client), node_name_(std::move(node_name)) {}

LocalManagerApi::~LocalManagerApi() {
  if (delivery_.joinable()) Stop();
  const SystemMutexLock lock(manager_.mutex_);
  manager_.clients_.erase(client_);
}

Status LocalManagerApi::Start(sai::SessionListener& listener) {
  listener_ = &listener;
  session_sent_ = manager_.clock_.Monotonic();
  delivery_ = std::thread([this] { DeliverLoop(); });
  OpenSession();
  SystemMutexLock lock(mutex_);
  while (!ready_ && start_status_.ok()) wake_.wait(lock);
  return start_status_;
}

void LocalManagerApi::OpenSession() {
  SessionStart start = listener_->SessionHeld();
  start.client = client_;
  start.node_name = node_name_;
  manager_.Step(manager::StartSession{std::move(start)});
}

void LocalManagerApi::Freeze(bool frozen) {
  const SystemMutexLock lock(mutex_);
  frozen_ = frozen;
  wake_.notify_all();
}

void LocalManagerApi::SetUnheard(bool unheard) {
  const SystemMutexLock lock(mutex_);
  unheard_ = unheard;
  wake_.notify_all();
}

void LocalManagerApi::Receive(Message message) {
  const SystemMutexLock lock(mutex_);
  inbox_.push_back(std::move(message));
  wake_.notify_all();
}

std::vector<Reply> LocalManagerApi::Call(std::vector<Request> requests, Duration deadline) {
  struct State {
    SystemMutex mutex;
    SystemCondVar answered;
    std::vector<Reply> replies;
    bool done = false;
  };
  const auto state = std::make_shared<State>();
  std::vector<Request> asked;
  if (on_answer_) asked = requests;
  Send(std::move(requests), [state](std::vector<Reply> replies) {
    const SystemMutexLock lock(state->mutex);
    state->replies = std::move(replies);
    state->done = true;
    state->answered.notify_all();
  });
  SystemMutexLock lock(state->mutex);
  if (!state->answered.wait_for(lock, std::chrono::nanoseconds(deadline.ns),
                                [&] { return state->done; }))
    return {Failure{StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
                    "the manager did not answer in time"}};
  lock.unlock();
  if (on_answer_) on_answer_(asked);
  return std::move(state->replies);
}

RequestId LocalManagerApi::Send(std::vector<Request> requests, Callback done) {
  RequestEnvelope envelope;
  {
    const SystemMutexLock lock(mutex_);
    if (on_send_) on_send_(requests);
    envelope.id = RequestId{next_request_++};
    if (unheard_) {
      expired_.push_back(std::move(done));
      return envelope.id;
    }
    envelope.answered_below = waiting_.empty() ? envelope.id : waiting_.begin()->first;
    envelope.requests = std::move(requests);
    waiting_[envelope.id] = {envelope, std::move(done), manager_.clock_.Monotonic()};
    ++manager_.envelopes_;
    outbox_.push_back(envelope);
  }
  SendOutbox();
  return envelope.id;
}

// The stream is ordered: envelopes enter the core in the order of their ids.
void LocalManagerApi::SendOutbox() {
  const SystemMutexLock sending(send_mutex_);
  for (;;) {
    RequestEnvelope next;
    {
      const SystemMutexLock lock(mutex_);
      if (outbox_.empty()) return;
      next = std::move(outbox_.front());
      outbox_.pop_front();
    }
    manager_.Step(manager::SessionRequest{client_, std::move(next)});
  }
}

void LocalManagerApi::DeliverLoop() {
  SystemMutexLock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, std::chrono::milliseconds(100),
                   [this] { return stopping_ || (!frozen_ && !inbox_.empty()); });
    if (stopping_) return;
    if (frozen_) continue;
    if (!unheard_ && !expired_.empty()) {
      const Callback done = std::move(expired_.front());
      expired_.pop_front();
      lock.unlock();
      done({Failure{StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut, "it came too late"}});
      lock.lock();
      continue;
    }
    if (!inbox_.empty()) {
      Message message = std::move(inbox_.front());
      inbox_.pop_front();
      lock.unlock();
      Handle(message);
      lock.lock();
      continue;
    }
    const Time now = manager_.clock_.Monotonic();
    if (!ready_ || now - keep_alive_sent_ < kKeepAliveEvery) continue;
    keep_alive_sent_ = now;
    RequestEnvelope keep_alive;
    keep_alive.answered_below =
        waiting_.empty() ? RequestId{next_request_} : waiting_.begin()->first;
    lock.unlock();
    manager_.Step(manager::SessionRequest{client_, keep_alive});
    lock.lock();
  }
}

void LocalManagerApi::Handle(Message& message) {
  if (auto* ready = std::get_if<SessionReady>(&message)) {
    listener_->OnSessionReady(*ready);
    std::vector<RequestEnvelope> again;
    {
      const SystemMutexLock lock(mutex_);
      keep_alive_sent_ = manager_.clock_.Monotonic();
      if (std::exchange(started_, true))
        for (const auto& [id, waiting] : waiting_) again.push_back(waiting.envelope);
    }
    listener_->OnLeaseRenewed(session_sent_, ready->now);
    {
      const SystemMutexLock lock(mutex_);
      ready_ = true;
      wake_.notify_all();
    }
    for (RequestEnvelope& envelope : again)
      manager_.Step(manager::SessionRequest{client_, std::move(envelope)});
  } else if (auto* envelope = std::get_if<ReplyEnvelope>(&message)) {
    Callback done;
    Time sent;
    {
      const SystemMutexLock lock(mutex_);
      sent = keep_alive_sent_;
      const auto it = waiting_.find(envelope->id);
      if (it != waiting_.end()) {
        done = std::move(it->second.done);
        sent = it->second.sent;
        waiting_.erase(it);
      } else if (envelope->id.value != 0) {
        return;
      }
    }
    listener_->OnLeaseRenewed(sent, envelope->now);
    if (done) done(std::move(envelope->replies));
  } else if (auto* push = std::get_if<Push>(&message)) {
    listener_->OnPush(*push);
    if (!std::holds_alternative<SessionEndPush>(*push)) return;
    {
      const SystemMutexLock lock(mutex_);
      if (!std::exchange(ready_, false)) return;
      session_sent_ = manager_.clock_.Monotonic();
    }
    OpenSession();
  } else {
    const SystemMutexLock lock(mutex_);
    start_status_ = FailedPreconditionError(std::get<Failure>(message).message);
    wake_.notify_all();
  }
}

void LocalManagerApi::Stop() {
  if (!delivery_.joinable()) return;
  {
    const SystemMutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  delivery_.join();
  manager_.Step(manager::SessionClosed{client_});
}

}  // namespace mosa::testing
