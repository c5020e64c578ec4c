#include "client-sai/api/manager_stream.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace mosa::sai {

namespace {

using SystemTime = std::chrono::system_clock::time_point;

// How long after a caller's turn the reader leaves the socket to callers. A busy mount's calls
// follow each other faster. A push may be delayed this much.
constexpr std::chrono::microseconds kStandBack{300};
// While a caller waits longer, perhaps for a lock, the reader sleeps until notified.
constexpr std::chrono::milliseconds kLongTurn{4};

// The tags by which gRPC reports completed operations.
enum Operation : uintptr_t { kStart = 1, kRead, kWrite, kWritesDone, kFinish };

void* TagOf(Operation operation) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(operation));
}

}  // namespace

ManagerStream::ManagerStream(v1::ClientSessionService::Stub& stub, Claim claim)
    : stub_(stub), claim_(std::move(claim)) {}

ManagerStream::~ManagerStream() {
  MOSA_CHECK(io_ == nullptr);
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
}

// ---- the reader's side

bool ManagerStream::Open(grpc::ClientContext& context) {
  MOSA_CHECK(io_ == nullptr && broken_);
  io_ = stub_.PrepareAsyncSession(&context, &queue_);
  opened_ = false;
  ++under_way_;
  io_->StartCall(TagOf(kStart));
  while (under_way_ > 0) Poll(SystemTime::max(), /*reads=*/false);
  if (!opened_) return false;
  {
    const SystemMutexLock write_lock(write_mutex_);
    may_write_ = true;
    ends_writing_ = false;
  }
  const SystemMutexLock lock(mutex_);
  inbox_.clear();
  delivering_ = false;
  broken_ = false;
  HandOver();
  return true;
}

std::optional<v1::ManagerMessage> ManagerStream::Next() {
  SystemMutexLock lock(mutex_);
  delivering_ = false;
  if (inbox_.empty()) HandOver();
  while (true) {
    if (!inbox_.empty()) {
      v1::ManagerMessage message = std::move(inbox_.front());
      inbox_.pop_front();
      delivering_ = true;
      return message;
    }
    if (broken_ || std::exchange(woken_, false)) return std::nullopt;
    const auto quiet = std::chrono::steady_clock::now() - last_turn_;
    if ((polling_ || !waiting_.empty()) && quiet >= kLongTurn) {
      reader_sleeps_ = true;
      reader_.wait(lock);
      reader_sleeps_ = false;
      continue;
    }
    if (polling_ || !waiting_.empty() || quiet < kStandBack) {
      reader_.wait_for(lock, kStandBack);
      continue;
    }
    polling_ = true;
    lock.unlock();
    Poll(SystemTime::max(), /*reads=*/true);
    lock.lock();
    polling_ = false;
    HandOver();
  }
}

grpc::Status ManagerStream::Finish() {
  {
    const SystemMutexLock write_lock(write_mutex_);
    may_write_ = false;
  }
  {
    // The polling thread sees the end, or reports it.
    SystemMutexLock lock(mutex_);
    broken_ = true;
    while (polling_) reader_.wait_for(lock, kStandBack);
    polling_ = true;
  }
  while (under_way_ > 0) Poll(SystemTime::max(), /*reads=*/false);
  grpc::Status status;
  ++under_way_;
  io_->Finish(&status, TagOf(kFinish));
  while (under_way_ > 0) Poll(SystemTime::max(), /*reads=*/false);
  io_.reset();
  {
    const SystemMutexLock write_lock(write_mutex_);
    outbox_.clear();
  }
  const SystemMutexLock lock(mutex_);
  polling_ = false;
  return status;
}

// ---- writing

void ManagerStream::Write(std::shared_ptr<const v1::ClientMessage> message) {
  const SystemMutexLock write_lock(write_mutex_);
  if (!may_write_) return;
  outbox_.push_back(std::move(message));
  if (outbox_.size() == 1) WriteFirst();
}

void ManagerStream::WriteFirst() {
  write_began_ = std::chrono::steady_clock::now();
  ++under_way_;
  io_->Write(*outbox_.front(), TagOf(kWrite));
}

void ManagerStream::WritesDone() {
  const SystemMutexLock write_lock(write_mutex_);
  if (!may_write_) return;
  may_write_ = false;
  ends_writing_ = true;
  if (!outbox_.empty()) return;
  ++under_way_;
  io_->WritesDone(TagOf(kWritesDone));
}

void ManagerStream::Sent(bool ok) {
  const SystemMutexLock write_lock(write_mutex_);
  if (!ok) {
    // The peer is gone; the read in progress will report it.
    may_write_ = false;
    ends_writing_ = false;
    outbox_.clear();
    return;
  }
  outbox_.pop_front();
  if (!outbox_.empty()) {
    WriteFirst();
  } else if (ends_writing_) {
    ++under_way_;
    io_->WritesDone(TagOf(kWritesDone));
  }
}

std::optional<ManagerStream::SteadyTime> ManagerStream::WaitingSince() {
  const SystemMutexLock write_lock(write_mutex_);
  if (outbox_.empty()) return std::nullopt;
  return write_began_;
}

// ---- waiting

bool ManagerStream::Await(Ticket& ticket, Duration limit) {
  const SystemTime deadline = std::chrono::system_clock::now() + std::chrono::nanoseconds(limit.ns);
  SystemMutexLock lock(mutex_);
  last_turn_ = std::chrono::steady_clock::now();
  const auto place = waiting_.insert(waiting_.end(), &ticket);
  bool in_time = true;
  while (!ticket.resolved && in_time) {
    // The message that the reader still has to handle may be this reply, and no one would notify a
    // thread that polls.
    if (polling_ || broken_ || delivering_ || !inbox_.empty()) {
      in_time = ticket.changed.wait_for(lock, deadline - std::chrono::system_clock::now());
      continue;
    }
    polling_ = true;
    lock.unlock();
    Poll(deadline, /*reads=*/true);
    in_time = std::chrono::system_clock::now() < deadline;
    lock.lock();
    polling_ = false;
  }
  waiting_.erase(place);
  last_turn_ = std::chrono::steady_clock::now();
  if (reader_sleeps_ && waiting_.empty()) reader_.notify_one();
  HandOver();
  return ticket.resolved;
}

void ManagerStream::Resolve(Ticket& ticket) {
  const SystemMutexLock lock(mutex_);
  ticket.resolved = true;
  ticket.changed.notify_one();
}

void ManagerStream::Wake() {
  const SystemMutexLock lock(mutex_);
  woken_ = true;
  reader_.notify_one();
}

void ManagerStream::HandOver() {
  if (polling_) return;
  if (broken_) {
    reader_.notify_one();
  } else if (!waiting_.empty()) {
    waiting_.front()->changed.notify_one();
  }
}

// ---- polling

void ManagerStream::Poll(SystemTime deadline, bool reads) {
  // Asked for only now, while the peer works, and not before the last reply was handed on.
  if (reads && !std::exchange(reading_, true)) {
    ++under_way_;
    io_->Read(&incoming_, TagOf(kRead));
  }
  void* tag = nullptr;
  bool ok = false;
  if (queue_.AsyncNext(&tag, &ok, deadline) != grpc::CompletionQueue::GOT_EVENT) return;
  switch (static_cast<Operation>(reinterpret_cast<uintptr_t>(tag))) {
    case kStart:
      opened_ = ok;
      break;
    case kRead:
      reading_ = false;
      Received(ok);
      break;
    case kWrite:
      Sent(ok);
      break;
    case kWritesDone:
    case kFinish:
      break;
  }
  --under_way_;
}

void ManagerStream::Received(bool ok) {
  SystemMutexLock lock(mutex_);
  // A caller must not continue with a reply before earlier messages have been handled.
  const bool is_next = !delivering_ && inbox_.empty();
  lock.unlock();
  if (ok && is_next && claim_(incoming_)) return;
  lock.lock();
  if (ok) {
    inbox_.push_back(std::move(incoming_));
  } else {
    broken_ = true;
  }
  reader_.notify_one();
}

}  // namespace mosa::sai
