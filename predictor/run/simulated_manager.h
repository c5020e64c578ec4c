// SimulatedManager: the real ManagerCore in virtual time. It gets the commands that the manager's
// service would give it, one after the other. What the service does around them (receiving,
// persisting, sending) costs what the platform says.
//
// It also stands for the storage nodes as the manager sees them: their objects and heartbeats.
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

#include "common/model/ranges.h"
#include "manager/core/manager_core.h"
#include "predictor/des/activity.h"
#include "predictor/des/event_loop.h"
#include "predictor/des/waiting.h"
#include "predictor/run/machines.h"
#include "predictor/run/observer.h"
#include "predictor/run/simulated_copies.h"

namespace mosa::predict {

// The options with which a deployment of this configuration runs its manager.
manager::ManagerOptions ManagerOptionsOf(const Configuration& configuration);

class SimulatedManager {
 public:
  // All arguments must outlive this.
  SimulatedManager(des::EventLoop& loop, const Platform& platform, Machines& machines,
                   manager::ManagerOptions options);

  // Call before the run begins; takes no time.
  NodeId AddNode(MachineIndex on, uint64_t limit_bytes);
  // Gives every file this many copies, unless its own hints say otherwise.
  void AddReplicasRule(uint32_t replicas);
  // `on_push` receives the manager's unsolicited messages.
  SessionReady AddClient(ClientId client, MachineIndex on,
                         std::function<void(const Push&)> on_push);
  // Starts heartbeats and keep-alives.
  void Begin();
  // `observer` must outlive this; null: none.
  void Observe(Observer* observer) { observer_ = observer; }
  Observer* observer() const { return observer_; }

  // Sends one envelope and returns its replies; the last may be a Failure.
  des::Activity<std::vector<Reply>> Call(ClientId client, std::vector<Request> requests);
  // Sends one envelope without waiting for the reply.
  void Send(ClientId client, std::vector<Request> requests);

  // What `mosa run` tells the manager (tools/runner/task_reports.h): a run begins, before anything
  // else happens; a task of it has succeeded. The real one tells of several tasks at once.
  void BeginRun(const std::string& run);
  des::Activity<void> TellSucceeded(MachineIndex from, std::string task);

  // Stores further bytes of a file that a client writes. Returns false, and stores nothing, if the
  // node has no room.
  bool Store(NodeId node, FileId file, uint64_t bytes);
  // The file was cut to nothing: all nodes have emptied their objects.
  void Cut(FileId file);
  // Like Store() for a copy that the node makes.
  bool StoreCopy(NodeId node, FileId file, uint64_t bytes);
  void ReportCopy(NodeId node, const CopyReport& report);
  // How many bytes of `range` no client has stored yet: from now on they count as stored.
  uint64_t TakeFresh(FileId file, ByteRange range);
  // What clients have stored of a file so far.
  uint64_t WrittenOf(FileId file) const;
  uint64_t StoredOn(NodeId node, FileId file) const;
  MachineIndex MachineOf(NodeId node) const { return nodes_[node.value - 1].machine; }
  const std::string& NameOf(NodeId node) const { return nodes_[node.value - 1].name; }
  // Returns nothing if no storage node has the name.
  std::optional<MachineIndex> MachineNamed(const std::string& node) const;
  uint64_t node_bytes_max(NodeId node) const { return nodes_[node.value - 1].used_bytes_max; }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }

  const manager::ManagerCore& core() const { return core_; }
  // Envelopes with requests so far.
  uint64_t calls() const { return calls_; }
  // A digest of all changes that the core has decided, in order.
  uint64_t decisions() const { return decisions_; }

 private:
  // A pending reply and its caller.
  struct Answer {
    std::coroutine_handle<> waiter;
    bool come = false;
    std::vector<Reply> replies;
    std::string_view name;  // Class of the manager's residence time.
    Time taken;             // When the manager's loop took the request.
  };
  struct Client {
    MachineIndex machine;
    std::function<void(const Push&)> on_push;
    uint64_t last_request = 0;
    Time last_heard;    // When the manager last heard from it.
    Time last_arrival;  // Messages from and to one client stay in order.
    Time last_delivery;
    std::map<uint64_t, Answer*> waiting;
    std::vector<std::variant<ReplyEnvelope, Push>> inbox;  // In flight, in order.
    size_t delivered = 0;                                  // How many of `inbox` have arrived.
  };
  struct Node {
    NodeId id;
    std::string name;
    MachineIndex machine;
    uint64_t limit_bytes = 0;
    uint64_t used_bytes = 0;
    uint64_t used_bytes_max = 0;
    uint32_t news = 0;  // How many further heartbeats carry news.
    uint64_t measurements = 0;
    uint64_t drops_done = 0;  // The number of the last order.
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
  des::Slots turn_;  // Admits one command at a time, like the core's loop.
  std::map<ClientId, Client> clients_;
  std::vector<Node> nodes_;  // Node i has id i + 1.
  std::map<std::string, MachineIndex> machines_by_name_;
  std::map<FileId, uint64_t> written_;
  std::map<FileId, IntervalSet> stored_;  // By clients, on whichever nodes.
  SimulatedCopies copies_;
  std::optional<SessionReady> ready_;
  std::optional<Time> tick_at_;
  Observer* observer_ = nullptr;
  uint64_t calls_ = 0;
  uint64_t decisions_ = 0;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_MANAGER_H_
