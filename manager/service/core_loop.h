// The loop that owns the manager's core: one thread takes what has arrived, steps the core through
// it, commits all of its writes at once, and only then lets answers leave, in the order of the
// steps. A commit that fails ends the process: what it answers afterwards would not be true, and
// loading again makes it whole.
//
// Submit, Query and Now may be called from any thread; Start and Stop once each, by the owner.
#ifndef MOSA_MANAGER_SERVICE_CORE_LOOP_H_
#define MOSA_MANAGER_SERVICE_CORE_LOOP_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/model/session.h"
#include "common/model/storage.h"
#include "manager/core/manager_core.h"
#include "manager/service/inline_cache.h"
#include "manager/store/metadata_store.h"
#include "proto/convert/node.h"
#include "proto/convert/session.h"

namespace mosa::manager {

// Where the loop puts what a stream is to carry. Called from the loop's thread; never blocks. After
// End nothing more comes.
class ClientSink {
 public:
  virtual ~ClientSink() = default;
  virtual void Send(const ManagerMessage& message) = 0;
  virtual void End(const Status& status) = 0;
  // One message that this stream submitted has been taken from the queue.
  virtual void Taken() = 0;
};
class NodeSink {
 public:
  virtual ~NodeSink() = default;
  virtual void Send(const ManagerToNode& message) = 0;
  virtual void End(const Status& status) = 0;
  virtual void Taken() = 0;
};

// What streams submit. A stream bounds its own messages in the queue (see Taken).
struct ClientStarted {
  std::shared_ptr<ClientSink> sink;
  SessionStart start;
};
struct ClientAsked {
  std::shared_ptr<ClientSink> sink;
  ClientId client;
  RequestEnvelope envelope;
};
struct ClientGone {
  std::shared_ptr<ClientSink> sink;
  ClientId client;
  bool closed = false;  // A clean unmount, not a broken stream.
};
struct NodeStarted {
  std::shared_ptr<NodeSink> sink;
  NodeRegistration registration;
};
struct NodeHeard {
  std::shared_ptr<NodeSink> sink;
  NodeHeartbeat heartbeat;
};
struct NodeGone {
  std::shared_ptr<NodeSink> sink;
};
using Arrival =
    std::variant<ClientStarted, ClientAsked, ClientGone, NodeStarted, NodeHeard, NodeGone>;

struct CoreLoopOptions {
  std::string capability_key;
  size_t inline_cache_bytes = size_t{64} << 20;
  size_t queries_max = 64;
};

class CoreLoop {
 public:
  // Runs on the loop's thread between batches: everything that it sees is durable.
  using QueryFunction = std::function<void(const ManagerCore& core, Time now)>;

  // `core` has been loaded from `store`; `store` outlives the loop.
  CoreLoop(std::unique_ptr<ManagerCore> core, MetadataStore& store, CoreLoopOptions options);
  ~CoreLoop();

  void Start();
  // Finishes what is queued, tells every client that its session ends, ends all streams, and stops
  // the thread.
  void Stop();

  // False once the loop is stopping: the stream is to end.
  bool Submit(Arrival arrival);
  // False when the loop is stopping or too many queries wait.
  bool Query(QueryFunction query);

  // The manager's time base: wall time at the start, and from there on steady.
  Time Now() const;

 private:
  // A client that has, or lately had, a stream.
  struct Client {
    std::shared_ptr<ClientSink> sink;  // Null while there is no stream.
    Time lost_at;
    // The files that the requests of an envelope give access to, by position; kept until the client
    // says that it has the answer.
    std::map<RequestId, std::vector<FileId>> access_files;
  };
  // What leaves once the writes before it are durable.
  template <typename Sink, typename Message>
  struct Output {
    std::shared_ptr<Sink> sink;
    std::optional<Message> message;
    std::optional<Status> end;  // The stream ends after this.
  };
  using ClientOutput = Output<ClientSink, ManagerMessage>;
  using NodeOutput = Output<NodeSink, ManagerToNode>;

  void Run();
  // Waits for arrivals, queries, the core's next deadline, or the end; false at the end.
  bool Take(std::vector<Arrival>& arrivals, std::vector<QueryFunction>& queries);
  void RunBatch(std::vector<Arrival>& arrivals);
  void Handle(ClientStarted& arrival);
  void Handle(ClientAsked& arrival);
  void Handle(ClientGone& arrival);
  void Handle(NodeStarted& arrival);
  void Handle(NodeHeard& arrival);
  void Handle(NodeGone& arrival);
  // Steps the core and gathers its effects; `registering` is who RegisterNode speaks for.
  void Step(const Command& command, const std::shared_ptr<NodeSink>& registering = nullptr);
  void GatherClient(ToClient& effect);
  void GatherNode(ToNode& effect, const std::shared_ptr<NodeSink>& registering);
  void CommitAndRelease();
  void EndAll();
  void ForgetLostClients(Time now);

  // Fills what the core left to the shell: capabilities and inline bytes.
  void FillAccess(ClientId client, ReplyEnvelope& envelope);
  Status FillAccess(ClientId client, FileId file, DataAccess& access);
  Result<std::string> InlineBytes(FileId file);

  // Constant.
  MetadataStore& store_;
  const CoreLoopOptions options_;
  const SystemClock clock_;
  const Duration wall_minus_monotonic_;

  // Only the loop's thread, once it runs.
  const std::unique_ptr<ManagerCore> core_;
  InlineCache inline_cache_;
  std::unordered_map<uint64_t, Client> clients_;  // By ClientId.
  std::map<NodeId, std::shared_ptr<NodeSink>> nodes_;
  KvBatch batch_;
  std::vector<std::variant<ClientOutput, NodeOutput>> outputs_;
  std::optional<Time> wake_at_;

  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Arrival> arrivals_;
  std::vector<QueryFunction> queries_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_CORE_LOOP_H_
