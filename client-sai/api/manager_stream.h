// ManagerStream: one gRPC stream to the manager, polled by the threads that wait for it.
//
// A thread that waits for its own reply polls the socket itself, so a round trip needs no thread
// switch. If several wait, one polls for all and hands over when its reply has come (Schmidt et
// al., "Leader/Followers", PLoP 2000). Unclaimed messages are queued in order for one reader, which
// polls only when no caller has done so lately.
//
// Thread-safe, except that only the reader may call Open, Next and Finish. Streams follow one
// another on one object; each one's context must live from Open to Finish.
#ifndef MOSA_CLIENT_SAI_API_MANAGER_STREAM_H_
#define MOSA_CLIENT_SAI_API_MANAGER_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "common/base/mutex.h"
#include "mosa/v1/session.grpc.pb.h"

namespace mosa::sai {

class ManagerStream {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  // The polling thread offers each message to the claim, unless an earlier one has not been handled
  // yet. Returns true if the message is fully handled. Must not block.
  using Claim = std::function<bool(const v1::ManagerMessage& message)>;
  // The condition for which a thread waits. Guarded by the stream.
  struct Ticket {
    bool resolved = false;
    SystemCondVar changed;
  };

  ManagerStream(v1::ClientSessionService::Stub& stub, Claim claim);
  ManagerStream(const ManagerStream&) = delete;
  ManagerStream& operator=(const ManagerStream&) = delete;
  ~ManagerStream();  // Precondition: no stream is open.

  // Opens a stream; returns false on failure. Call Finish in either case.
  bool Open(grpc::ClientContext& context);
  // Blocks for the next unclaimed message; nothing when the stream is over or after Wake. By
  // calling it, the reader declares the previous message handled.
  std::optional<v1::ManagerMessage> Next();
  bool broken() const { return broken_; }
  // Closes a stream that is over or cancelled, and returns why it ended.
  grpc::Status Finish();

  // Queues a message and returns at once. Dropped if no stream is open.
  void Write(std::shared_ptr<const v1::ClientMessage> message);
  // Half-closes the stream after the queued messages.
  void WritesDone();
  // Returns when the write of the oldest unsent message began; nothing if none waits.
  std::optional<SteadyTime> WaitingSince();
  // Makes Next return.
  void Wake();

  // Blocks until the ticket is resolved, by a claim or by Resolve. Returns false at the deadline.
  bool Await(Ticket& ticket, Duration limit);
  void Resolve(Ticket& ticket);

 private:
  using Io = grpc::ClientAsyncReaderWriter<v1::ClientMessage, v1::ManagerMessage>;

  // Handles at most one event, waiting for it until the deadline; `reads` also asks for a message.
  // Only the thread that has set polling_ may call it, with `reads` only if the stream was not
  // broken at that time.
  void Poll(std::chrono::system_clock::time_point deadline, bool reads);
  void Received(bool ok);
  void Sent(bool ok);
  void WriteFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Wakes the first waiter to poll.
  void HandOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  v1::ClientSessionService::Stub& stub_;
  const Claim claim_;
  grpc::CompletionQueue queue_;

  // Used only by the thread that polls.
  v1::ManagerMessage incoming_;
  bool reading_ = false;
  bool opened_ = false;

  std::unique_ptr<Io> io_;           // Changed by the reader, while no thread polls or writes.
  std::atomic<bool> broken_ = true;  // No stream is open, or it will deliver nothing more.
  std::atomic<int> under_way_ = 0;   // Operations that gRPC has not returned.

  SystemMutex write_mutex_;
  // The first is being written.
  std::deque<std::shared_ptr<const v1::ClientMessage>> outbox_ ABSL_GUARDED_BY(write_mutex_);
  SteadyTime write_began_ ABSL_GUARDED_BY(write_mutex_);
  bool may_write_ ABSL_GUARDED_BY(write_mutex_) = false;
  bool ends_writing_ ABSL_GUARDED_BY(write_mutex_) = false;

  SystemMutex mutex_;
  SystemCondVar reader_;
  std::list<Ticket*> waiting_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::ManagerMessage> inbox_ ABSL_GUARDED_BY(mutex_);
  // The reader is handling the message that Next returned last.
  bool delivering_ ABSL_GUARDED_BY(mutex_) = false;
  SteadyTime last_turn_ ABSL_GUARDED_BY(mutex_);        // When a caller last began or ended a wait.
  bool reader_sleeps_ ABSL_GUARDED_BY(mutex_) = false;  // Until it is notified.
  bool polling_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_MANAGER_STREAM_H_
