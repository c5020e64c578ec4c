// ManagerStream: one gRPC stream to the manager, polled by whoever waits for it.
//
// A thread that waits for its own answer polls the socket itself, so that a round trip costs no
// change of thread; if several wait, one polls for all and hands over when its answer has come
// (Schmidt et al., "Leader/Followers", PLoP 2000). What nobody claims is kept in order for one
// reader, which polls when nobody else has lately.
//
// Thread-safe, but Open, Next and Finish are the reader's alone. Streams come one after another on
// the same object; the context of one lives from Open to Finish.
#ifndef MOSA_CLIENT_SAI_API_MANAGER_STREAM_H_
#define MOSA_CLIENT_SAI_API_MANAGER_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "mosa/v1/session.grpc.pb.h"

namespace mosa::sai {

class ManagerStream {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  // Is shown a message by the thread that polls, unless an earlier one is not dealt with yet; true
  // if that was all that it needs. Must not block.
  using Claim = std::function<bool(const v1::ManagerMessage& message)>;
  // What a thread waits for; guarded by the stream.
  struct Ticket {
    bool resolved = false;
    std::condition_variable changed;
  };

  ManagerStream(v1::ClientSessionService::Stub& stub, Claim claim);
  ManagerStream(const ManagerStream&) = delete;
  ManagerStream& operator=(const ManagerStream&) = delete;
  ~ManagerStream();  // No stream may be open.

  // Begins a stream; false if none came about. Finish follows in either case.
  bool Open(grpc::ClientContext& context);
  // The next message that was not claimed; nothing when the stream is over, or after Wake. The one
  // before is dealt with by then.
  std::optional<v1::ManagerMessage> Next();
  bool broken() const { return broken_; }
  // Gives up the stream, which is over or cancelled, and says why it ended.
  grpc::Status Finish();

  // Queues a message; never waits for the peer. Dropped if no stream is open.
  void Write(std::shared_ptr<const v1::ClientMessage> message);
  // Ends the writing after what was queued.
  void WritesDone();
  // Since when the oldest message has been waiting to leave.
  std::optional<SteadyTime> WaitingSince();
  // Makes Next return.
  void Wake();

  // Waits until the ticket is resolved, by a claim or by anybody else; false at the deadline.
  bool Await(Ticket& ticket, std::chrono::nanoseconds limit);
  void Resolve(Ticket& ticket);

 private:
  using Io = grpc::ClientAsyncReaderWriter<v1::ClientMessage, v1::ManagerMessage>;

  // Waits for one event at most until the deadline, a message among them if it `reads`. Only the
  // thread that has set polling_ may, and reads only if the stream was not broken then.
  void Poll(std::chrono::system_clock::time_point deadline, bool reads);
  void Received(bool ok);
  void Sent(bool ok);
  void WriteFirst();
  // Lets the first waiter poll; mutex_ is held.
  void HandOver();

  v1::ClientSessionService::Stub& stub_;
  const Claim claim_;
  grpc::CompletionQueue queue_;

  // Used only by the thread that polls.
  v1::ManagerMessage incoming_;
  bool reading_ = false;
  bool opened_ = false;

  std::unique_ptr<Io> io_;           // Changed by the reader, while nobody polls or writes.
  std::atomic<bool> broken_ = true;  // No stream is open, or nothing more comes from it.
  std::atomic<int> under_way_ = 0;   // Operations that gRPC has not given back.

  std::mutex write_mutex_;
  std::deque<std::shared_ptr<const v1::ClientMessage>> outbox_;  // The first is being written.
  SteadyTime write_began_;
  bool may_write_ = false;
  bool ends_writing_ = false;

  std::mutex mutex_;
  std::condition_variable reader_;
  std::list<Ticket*> waiting_;
  std::deque<v1::ManagerMessage> inbox_;
  bool delivering_ = false;     // The reader deals with what Next returned last.
  SteadyTime last_turn_;        // When a caller last began or ended its wait.
  bool reader_sleeps_ = false;  // Until it is told.
  bool polling_ = false;
  bool woken_ = false;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_MANAGER_STREAM_H_
