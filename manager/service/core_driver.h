// CoreDriver: connects the streams with the core. It turns messages into commands, steps the core,
// collects the effects, and releases them in the order of the steps once their writes are durable.
// A commit that fails for lack of room is retried until it succeeds; no reply leaves meanwhile. Any
// other failed commit ends the process: later answers would not be true, and loading again restores
// a consistent state.
//
// Not thread-safe. Nothing leaves before Flush.
#ifndef MOSA_MANAGER_SERVICE_CORE_DRIVER_H_
#define MOSA_MANAGER_SERVICE_CORE_DRIVER_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rare_log.h"
#include "common/model/session.h"
#include "common/model/storage.h"
#include "manager/core/manager_core.h"
#include "manager/service/inline_cache.h"
#include "manager/service/manager_residence.h"
#include "manager/store/data_directory.h"
#include "manager/store/metadata_store.h"
#include "proto/convert/node.h"
#include "proto/convert/session.h"

namespace mosa::manager {

// Receives what the driver sends on one stream. Must never block. Nothing follows End.
class ClientSink {
 public:
  virtual ~ClientSink() = default;
  virtual void Send(const ManagerMessage& message) = 0;
  virtual void End(const Status& status) = 0;
};
class NodeSink {
 public:
  virtual ~NodeSink() = default;
  virtual void Send(const ManagerToNode& message) = 0;
  virtual void End(const Status& status) = 0;
};

struct CoreDriverOptions {
  std::string capability_key;
  bool bulk_tls = false;
  size_t inline_cache_bytes = size_t{64} << 20;
  // The store's directory, whose fill level the driver reports to the core. Null: never full.
  DataDirectory* directory = nullptr;
  // Set to end waits for disk room: what waits is then neither answered nor done. May be null.
  const std::atomic<bool>* stopping = nullptr;
};

class CoreDriver {
 public:
  // Precondition: `core` was loaded from `store`, which must outlive the driver.
  CoreDriver(std::unique_ptr<ManagerCore> core, MetadataStore& store, CoreDriverOptions options);

  // ---- messages from streams. After EndAll the driver takes none and ends the stream
  void ClientStarted(const std::shared_ptr<ClientSink>& sink, SessionStart start);
  void ClientAsked(const std::shared_ptr<ClientSink>& sink, ClientId client,
                   RequestEnvelope envelope, SpanContext asked = {});
  // `closed`: a clean unmount, not a broken stream.
  void ClientGone(const std::shared_ptr<ClientSink>& sink, ClientId client, bool closed);
  void NodeStarted(const std::shared_ptr<NodeSink>& sink, NodeRegistration registration);
  void NodeHeard(const std::shared_ptr<NodeSink>& sink, NodeHeartbeat heartbeat);
  void NodeReported(const std::shared_ptr<NodeSink>& sink, CopyReport report);
  void NodeReportedAside(const std::shared_ptr<NodeSink>& sink, NodeAside aside);
  void NodeGone(const std::shared_ptr<NodeSink>& sink);

  // Executes a command of a user, an administrator or a scheduler. Returns once the change is
  // durable.
  AdminReply Change(const Command& command);

  // Commits the writes of all steps since the last Flush, then releases their effects.
  void Flush();
  // Steps a tick if one is due. Call in each round of the loop, after the round's messages were
  // handled.
  void TickIfDue();
  // Approximate size of the replies that Flush will release.
  size_t reply_bytes() const { return reply_bytes_; }
  // When TickIfDue must be called at the latest, on the clock of Now.
  std::optional<Time> wake_at() const { return wake_at_; }
  // Tells every client that its session ends, and ends all streams.
  void EndAll();

  // Returns the stream's sink, for messages that do not come from the core. Null without a stream.
  std::shared_ptr<ClientSink> SinkOf(ClientId client) const;
  std::shared_ptr<NodeSink> SinkOf(NodeId node) const;

  // Residence times of requests. Thread-safe.
  const ManagerResidence& residence() const { return residence_; }
  RequestLog& request_log() { return residence_.log; }

  // Flushes, then returns the core: the returned state is durable.
  const ManagerCore& FlushedCore();
  // The manager's time: wall time at the start, advanced by the monotonic clock.
  Time Now() const { return clock_.Monotonic() + wall_minus_monotonic_; }

 private:
  // A received envelope: its arrival, its class, and the files that its requests give access to, by
  // position (empty if none does).
  struct Asked {
    Time arrived;  // Monotonic.
    DurationTable::ClassId kind;
    Span span = {};           // Set if it arrived while requests were being logged.
    bool is_counted = false;  // The answer has left.
    std::vector<FileId> access_files;
  };
  // A client that has a stream or had one recently.
  struct Client {
    std::shared_ptr<ClientSink> sink;  // Null while there is no stream.
    Time lost_at;
    // Each entry stays until the client confirms the answer.
    std::map<RequestId, Asked> asked;
  };
  // What to record when the answer leaves.
  struct Answered {
    Time arrived;  // Monotonic.
    DurationTable::ClassId kind;
    Span span;
  };
  // A message that leaves once the writes before it are durable.
  template <typename Sink, typename Message>
  struct Output {
    std::shared_ptr<Sink> sink;
    std::optional<Message> message;
    std::optional<Status> end;                       // If set, the stream ends after `message`.
    std::optional<Answered> answers = std::nullopt;  // What `message` answers.
  };
  using ClientOutput = Output<ClientSink, ManagerMessage>;
  using NodeOutput = Output<NodeSink, ManagerToNode>;

  // Records a request as answered now, after its round's commit if there was one.
  struct Commit {
    Time begin;
    Duration duration;
  };
  void Count(const Answered& answered, const std::optional<Commit>& commit);
  // Steps the core and collects its effects. `registering`: the stream of a RegisterNode command.
  void Step(const Command& command, const std::shared_ptr<NodeSink>& registering = nullptr);
  Asked Describe(const RequestEnvelope& envelope) const;
  // Writes the batch, retrying for as long as there is no room. Returns false if told to stop.
  bool CommitBatch();
  void LookAtRoomIfDue();
  std::optional<NodeId> NodeOf(const std::shared_ptr<NodeSink>& sink) const;
  void AdoptStream(ClientId id);
  void GatherClient(ToClient& effect);
  void GatherNode(ToNode& effect, const std::shared_ptr<NodeSink>& registering);

  // Adds what the core leaves to the shell: capabilities and inline bytes.
  void FillAccess(ClientId client, const Asked& asked, ReplyEnvelope& envelope);
  Status FillAccess(ClientId client, FileId file, DataAccess& access);
  Result<std::string> InlineBytes(FileId file);

  // Constant.
  MetadataStore& store_;
  const CoreDriverOptions options_;
  const SystemClock clock_;
  const Duration wall_minus_monotonic_;

  const std::unique_ptr<ManagerCore> core_;
  InlineCache inline_cache_;
  std::unordered_map<uint64_t, Client> clients_;  // By ClientId.
  // The stream whose start the current step has not answered yet.
  std::shared_ptr<ClientSink> starting_;
  std::map<NodeId, std::shared_ptr<NodeSink>> nodes_;
  KvBatch batch_;
  ManagerResidence residence_;
  std::vector<std::variant<ClientOutput, NodeOutput>> outputs_;
  std::optional<AdminReply> admin_reply_;  // From the latest step that had one.
  std::optional<Time> wake_at_;
  Time round_began_;       // When TickIfDue was last called.
  Time counted_until_;     // The same, or the latest stall noted since.
  int stalls_in_row_ = 0;  // Without a fast round in between.
  bool ended_ = false;
  std::optional<Time> looked_at_room_;
  uint64_t written_since_bytes_ = 0;  // Since `looked_at_room_`.
  size_t reply_bytes_ = 0;
  bool freed_since_reclaim_ = false;
  std::optional<Time> reclaimed_;
  RareLog no_room_;
  RareLog frequent_lines_{1000};
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_CORE_DRIVER_H_
