// Stream: one bidirectional gRPC stream on the server's side. What is sent waits in a queue of its
// own and is written one message after another, so that senders never block; a peer that does not
// read is cut off when the queue is full or its oldest message has waited too long.
//
// Send, End and Cut may be called from any thread; the derived class's OnMessage and OnClosed come
// one at a time. A stream keeps itself alive until gRPC is done with it, and afterwards Send and
// End do nothing.
#ifndef MOSA_MANAGER_SERVICE_STREAM_H_
#define MOSA_MANAGER_SERVICE_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "proto/convert/status.h"

namespace mosa::manager {

inline constexpr size_t kStreamQueueMessagesMax = 65'536;
inline constexpr std::chrono::seconds kStreamWriteMax{10};

template <typename Incoming, typename Outgoing>
class Stream : public grpc::ServerBidiReactor<Incoming, Outgoing> {
 public:
  explicit Stream(grpc::CallbackServerContext& context) : context_(context) {}

  // Begins to read; `self` keeps the stream alive.
  void Begin(std::shared_ptr<Stream> self) {
    self_ = std::move(self);
    this->StartRead(&incoming_);
  }

  void Send(Outgoing message) {
    const std::lock_guard lock(mutex_);
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
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    ending_ = ToGrpc(status);
    if (queue_.empty()) FinishNow();
  }

 protected:
  // A message has come. The answer is whether to read on at once; if not, ReadOn does it later.
  virtual bool OnMessage(const Incoming& message) = 0;
  // No more messages will come. Called once.
  virtual void OnClosed() = 0;

  void ReadOn() {
    const std::lock_guard lock(mutex_);
    if (!finished_) this->StartRead(&incoming_);
  }

 private:
  void OnReadDone(bool ok) final {
    if (!ok) {
      Close();
      End(OkStatus());
    } else if (OnMessage(incoming_)) {
      ReadOn();
    }
  }

  void OnWriteDone(bool ok) final {
    const std::lock_guard lock(mutex_);
    if (!ok) {
      // The peer is gone: nothing more can be written, and the read that is under way will say so.
      broken_ = true;
      queue_.clear();
    } else {
      queue_.pop_front();
      if (!queue_.empty()) return WriteNext();
    }
    if (ending_ && !finished_) FinishNow();
  }

  void OnCancel() final { End(absl::CancelledError("the stream was cancelled")); }

  void OnDone() final {
    Close();  // If no read was under way that could say so.
    const std::shared_ptr<Stream> self = std::move(self_);
  }

  void Close() {
    if (!std::exchange(closed_, true)) OnClosed();
  }

  void WriteNext() {
    write_began_ = std::chrono::steady_clock::now();
    this->StartWrite(&queue_.front());
  }

  void FinishNow() {
    finished_ = true;
    this->Finish(*ending_);
  }

  grpc::CallbackServerContext& context_;
  std::shared_ptr<Stream> self_;
  Incoming incoming_;
  bool closed_ = false;

  // Guarded by mutex_.
  std::mutex mutex_;
  std::deque<Outgoing> queue_;  // The first is being written.
  std::chrono::steady_clock::time_point write_began_;
  std::optional<grpc::Status> ending_;
  bool finished_ = false;
  bool broken_ = false;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_STREAM_H_
