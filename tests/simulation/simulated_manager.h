// A manager in virtual time: the real core over an image in memory, with a shell that keeps
// connections, seals capabilities and can be killed and started again. What was acknowledged is in
// the image.
#ifndef MOSA_TESTS_SIMULATION_SIMULATED_MANAGER_H_
#define MOSA_TESTS_SIMULATION_SIMULATED_MANAGER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "manager/core/manager_core.h"
#include "manager/store/metadata_store.h"
#include "tests/simulation/network.h"

namespace mosa::simulation {

using ToClientMessage = std::variant<SessionReady, ReplyEnvelope, Push, Failure>;
using ToNodeMessage = std::variant<NodeRegistered, NodeOrder, Failure>;

// Messages on their way to the reader of one connection, in order.
template <typename Message>
class Connection {
 public:
  void Put(Message message) {
    messages_.push_back({std::move(message), Scheduler::Current()->now()});
    changed_.WakeAll();
  }
  void Break() {
    broken_ = true;
    changed_.WakeAll();
  }
  bool broken() const { return broken_; }
  // Nothing if the connection is broken, or `end` has come.
  std::optional<Message> Take(Time end) {
    while (messages_.empty()) {
      if (broken_ || !changed_.Wait(end)) return std::nullopt;
    }
    Message message = std::move(messages_.front().message);
    sent_ = messages_.front().sent;
    messages_.pop_front();
    return message;
  }
  // When the message was put that was taken last.
  Time sent() const { return sent_; }

 private:
  struct Sent {
    Message message;
    Time sent;
  };

  std::deque<Sent> messages_;
  Time sent_;
  bool broken_ = false;
  WaitList changed_;
};
using ClientConnection = std::shared_ptr<Connection<ToClientMessage>>;
using NodeConnection = std::shared_ptr<Connection<ToNodeMessage>>;

class SimulatedManager {
 public:
  static constexpr HostId kHost = 1;

  explicit SimulatedManager(manager::ManagerOptions options);
  // Ends the manager's thread.
  void Stop();

  bool is_up() const { return core_ != nullptr; }
  // Returns how many valid copies a file has; nothing if it has no objects.
  std::optional<uint32_t> CopiesOf(const std::string& path) const;
  // Files that are left on a node that is drained; nothing if that is not known.
  std::optional<uint64_t> FilesLeft(const std::string& node) const;
  // False if it is refused, or the manager is down.
  bool Drain(const std::string& node, bool drain);
  // What was not answered is lost, and every connection breaks.
  void Kill();
  void Start();

  // ---- called by threads whose messages have arrived. The manager's own thread takes them, in
  // their order, unless its host is paused.
  void OpenSession(ClientId client, const ClientConnection& connection, const SessionStart& start);
  void Receive(ClientId client, const ClientConnection& connection,
               const RequestEnvelope& envelope);
  void Close(ClientId client, const ClientConnection& connection);
  void RegisterNode(const NodeConnection& connection, const NodeRegistration& registration);
  void Report(NodeId node, const NodeConnection& connection, const NodeHeartbeat& heartbeat);
  void ReportCopy(NodeId node, const NodeConnection& connection, const CopyReport& report);
  void Break(NodeId node, const NodeConnection& connection);

 private:
  void Take(std::function<void()> message);
  void Run();
  bool IsCurrent(ClientId client, const ClientConnection& connection) const;
  bool IsCurrent(NodeId node, const NodeConnection& connection) const;
  // Returns the answer to an administrator's command.
  std::optional<manager::AdminReply> Step(const manager::Command& command);
  void Fill(ClientId client, ReplyEnvelope& envelope);

  const manager::ManagerOptions options_;
  const std::string key_ = std::string(32, 'k');
  const VirtualClock clock_;
  const std::unique_ptr<manager::MetadataStore> image_;
  std::unique_ptr<manager::ManagerCore> core_;
  std::map<ClientId, ClientConnection> clients_;
  std::map<NodeId, NodeConnection> nodes_;
  NodeConnection registering_;
  std::map<std::pair<ClientId, RequestId>, std::vector<FileId>> files_of_requests_;
  std::deque<std::function<void()>> inbox_;
  WaitList filled_;
  Time counted_until_;
  bool stopping_ = false;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_SIMULATED_MANAGER_H_
