// What lies between the streams and the core: it turns what streams say into commands, steps the
// core, gathers the effects, and lets them leave only when their writes are durable, in the order
// of the steps. A commit that finds no room is tried again until there is some, and nobody is
// answered meanwhile. One that fails otherwise ends the process: what it answered afterwards would
// not be true, and loading again makes it whole.
//
// One owner, one thread. Nothing leaves before Flush.
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

// Where the driver puts what a stream is to carry. Never blocks; after End nothing more comes.
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
  // Where the store is: how full it is is told to the core. Null: it is never full.
  DataDirectory* directory = nullptr;
  // Set when waiting for room is to end: what waits is not answered, and not done. May be null.
  const std::atomic<bool>* stopping = nullptr;
};

class CoreDriver {
 public:
  // `core` has been loaded from `store`; `store` outlives the driver.
  CoreDriver(std::unique_ptr<ManagerCore> core, MetadataStore& store, CoreDriverOptions options);

  // ---- what streams say. After EndAll nothing is taken any more: the stream is ended.
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

  // What people and schedulers change (AddHintRule, RemoveHintRule, SetFileHint): the answer, once
  // it is durable.
  AdminReply Change(const Command& command);

  // Commits what the steps since the last Flush wrote, and lets their effects leave.
  void Flush();
  // Steps a tick if the core asked for one by now. Called in each round of the loop, when what had
  // come was dealt with.
  void TickIfDue();
  // About what the replies take that Flush will let leave.
  size_t reply_bytes() const { return reply_bytes_; }
  // When TickIfDue is to be called at the latest, in the base of Now.
  std::optional<Time> wake_at() const { return wake_at_; }
  // Tells every client that its session ends, and ends all streams.
  void EndAll();

  // Where a client, or a storage node, hears what is not the core's to say; null without a stream.
  std::shared_ptr<ClientSink> SinkOf(ClientId client) const;
  std::shared_ptr<NodeSink> SinkOf(NodeId node) const;

  // How long requests have stayed here. Read by any thread.
  const ManagerResidence& residence() const { return residence_; }
  RequestLog& request_log() { return residence_.log; }

  // The state that is durable: flushes first.
  const ManagerCore& FlushedCore();
  // The manager's time base: wall time at the start, and from there on steady.
  Time Now() const { return clock_.Monotonic() + wall_minus_monotonic_; }

 private:
  // An envelope that has come: when, of which class, and the files that its requests give access
  // to, by position (empty if none does).
  struct Asked {
    Time arrived;  // Monotonic.
    DurationTable::ClassId kind;
    Span span = {};           // If it came while requests are logged.
    bool is_counted = false;  // Its answer has left.
    std::vector<FileId> access_files;
  };
  // A client that has, or lately had, a stream.
  struct Client {
    std::shared_ptr<ClientSink> sink;  // Null while there is no stream.
    Time lost_at;
    // Each is kept until the client says that it has the answer.
    std::map<RequestId, Asked> asked;
  };
  // What is counted when its answer leaves.
  struct Answered {
    Time arrived;  // Monotonic.
    DurationTable::ClassId kind;
    Span span;
  };
  // What leaves once the writes before it are durable.
  template <typename Sink, typename Message>
  struct Output {
    std::shared_ptr<Sink> sink;
    std::optional<Message> message;
    std::optional<Status> end;                       // The stream ends after this.
    std::optional<Answered> answers = std::nullopt;  // What `message` answers.
  };
  using ClientOutput = Output<ClientSink, ManagerMessage>;
  using NodeOutput = Output<NodeSink, ManagerToNode>;

  // Counts it as answered now, after a commit of its round if `commit` has one.
  struct Commit {
    Time begin;
    Duration duration;
  };
  void Count(const Answered& answered, const std::optional<Commit>& commit);
  // Steps the core and gathers its effects; `registering` is who RegisterNode speaks for.
  void Step(const Command& command, const std::shared_ptr<NodeSink>& registering = nullptr);
  Asked Describe(const RequestEnvelope& envelope) const;
  // Writes the batch, however long there is no room for it. False: it is to stop instead.
  bool CommitBatch();
  void LookAtRoomIfDue();
  std::optional<NodeId> NodeOf(const std::shared_ptr<NodeSink>& sink) const;
  void AdoptStream(ClientId id);
  void GatherClient(ToClient& effect);
  void GatherNode(ToNode& effect, const std::shared_ptr<NodeSink>& registering);

  // Fills what the core left to the shell: capabilities and inline bytes.
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
  std::shared_ptr<ClientSink> starting_;  // Whose start the step under way has not answered yet.
  std::map<NodeId, std::shared_ptr<NodeSink>> nodes_;
  KvBatch batch_;
  ManagerResidence residence_;
  std::vector<std::variant<ClientOutput, NodeOutput>> outputs_;
  std::optional<AdminReply> admin_reply_;  // From the last step that had one.
  std::optional<Time> wake_at_;
  Time round_began_;       // When TickIfDue was last called.
  Time counted_until_;     // The same, or when a stall was noted since.
  int stalls_in_row_ = 0;  // Without a quick round in between.
  bool ended_ = false;
  std::optional<Time> looked_at_room_;
  uint64_t written_since_bytes_ = 0;  // Since then.
  size_t reply_bytes_ = 0;
  bool freed_since_reclaim_ = false;
  std::optional<Time> reclaimed_, said_no_room_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_CORE_DRIVER_H_
