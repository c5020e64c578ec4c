// SimulatedManager: the real ManagerCore in virtual time. It gets the commands that the manager's
// service would give it, one after the other; what the service does around them (receiving,
// persisting, sending) costs what the platform says.
//
// Also the storage nodes, as far as the manager sees them: what they hold and their heartbeats.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_MANAGER_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_MANAGER_H_

#include <coroutine>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "manager/core/manager_core.h"
#include "predictor/des/activity.h"
#include "predictor/des/event_loop.h"
#include "predictor/des/waiting.h"
#include "predictor/run/machines.h"
#include "predictor/run/simulated_copies.h"

namespace mosa::predict {

// As which a deployment runs its manager.
manager::ManagerOptions ManagerOptionsOf(const Configuration& configuration);

class SimulatedManager {
 public:
  // All outlive this.
  SimulatedManager(des::EventLoop& loop, const Platform& platform, Machines& machines,
                   manager::ManagerOptions options);

  // Before the run begins, in no time.
  NodeId AddNode(MachineIndex on, uint64_t limit_bytes);
  // Every file has so many copies, unless its own hints say otherwise.
  void AddReplicasRule(uint32_t replicas);
  // `on_push` hears what the manager says unasked.
  SessionReady AddClient(ClientId client, MachineIndex on,
                         std::function<void(const Push&)> on_push);
  // Heartbeats, keep-alives and the core's own ticks begin.
  void Begin();

  // One envelope, and the answer to it; the last reply may be a Failure.
  des::Activity<std::vector<Reply>> Call(ClientId client, std::vector<Request> requests);
  // The same, awaited by nobody.
  void Send(ClientId client, std::vector<Request> requests);

  // A node stores so many more bytes of a file that a client writes. False: it has no room, and
  // stores nothing.
  bool Store(NodeId node, FileId file, uint64_t bytes);
  // The same for a copy that the node makes.
  bool StoreCopy(NodeId node, FileId file, uint64_t bytes);
  void ReportCopy(NodeId node, const CopyReport& report);
  // What clients have stored of a file so far; what a node holds of it.
  uint64_t WrittenOf(FileId file) const;
  uint64_t StoredOn(NodeId node, FileId file) const;
  MachineIndex MachineOf(NodeId node) const { return nodes_[node.value - 1].machine; }
  const std::string& NameOf(NodeId node) const { return nodes_[node.value - 1].name; }
  // Nothing if no storage node has the name.
  std::optional<MachineIndex> MachineNamed(const std::string& node) const;
  uint64_t node_bytes_max(NodeId node) const { return nodes_[node.value - 1].used_bytes_max; }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }

  const manager::ManagerCore& core() const { return core_; }
  // How many envelopes with requests have come.
  uint64_t calls() const { return calls_; }
  // A digest of all changes that the core has decided, in order.
  uint64_t decisions() const { return decisions_; }

 private:
  // A caller that waits for the answer to a request.
  struct Answer {
    std::coroutine_handle<> waiter;
    bool come = false;
    std::vector<Reply> replies;
    std::string_view name;  // Names what the manager measures,
    Time taken;             // from when its loop took it.
  };
  struct Client {
    MachineIndex machine;
    std::function<void(const Push&)> on_push;
    uint64_t last_request = 0;
    Time last_heard;    // By the manager.
    Time last_arrival;  // Messages from one client, and to it, keep their order.
    Time last_delivery;
    std::map<uint64_t, Answer*> waiting;
    std::vector<std::variant<ReplyEnvelope, Push>> inbox;  // On their way, in order.
    size_t delivered = 0;                                  // How many from the inbox.
  };
  struct Node {
    NodeId id;
    std::string name;
    MachineIndex machine;
    uint64_t limit_bytes = 0;
    uint64_t used_bytes = 0;
    uint64_t used_bytes_max = 0;
    uint32_t news = 0;  // How many heartbeats are not only signs of life.
    uint64_t measurements = 0;
    Time last_report;
    std::map<FileId, uint64_t> objects;
  };

  des::Activity<void> SendActivity(ClientId client, std::vector<Request> requests);
  des::Activity<void> Upkeep();
  void Step(const manager::Command& command);
  void NoteConsumed(const Request& request);
  void Deliver(manager::Effects&& effects);
  void NoteAnswered(ClientId client, RequestId id);
  void DeliverTo(ClientId client, std::variant<ReplyEnvelope, Push> message);
  void Receive(ClientId client);
  void Obey(NodeId node, const NodeOrder& order);
  void ScheduleTick(std::optional<Time> at);
  Duration CostOf(const std::vector<Request>& requests) const;

  des::EventLoop& loop_;
  const Platform& platform_;
  Machines& machines_;
  manager::ManagerCore core_;
  des::Slots turn_;  // The core's one loop.
  std::map<ClientId, Client> clients_;
  std::vector<Node> nodes_;  // Node i has id i + 1.
  std::map<std::string, MachineIndex> machines_by_name_;
  std::map<FileId, uint64_t> written_;
  SimulatedCopies copies_;
  std::optional<SessionReady> ready_;
  std::optional<Time> tick_at_;
  uint64_t calls_ = 0;
  uint64_t decisions_ = 0;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_MANAGER_H_
