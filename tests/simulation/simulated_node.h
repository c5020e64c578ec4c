// A storage node in virtual time: the real engine, gate and copier over objects in memory, a link
// to the manager, and calls that arrive over the network.
#ifndef MOSA_TESTS_SIMULATION_SIMULATED_NODE_H_
#define MOSA_TESTS_SIMULATION_SIMULATED_NODE_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client-sai/api/node_api.h"
#include "storage-node/engine/access_gate.h"
#include "storage-node/engine/object_engine.h"
#include "storage-node/service/copier.h"
#include "storage-node/store/faulty_object_store.h"
#include "tests/simulation/simulated_manager.h"

namespace mosa::simulation {

class SimulatedNode;
using SimulatedNodes = std::map<HostId, std::unique_ptr<SimulatedNode>>;

class SimulatedNode {
 public:
  // One life of the node, and its objects. Threads that it has started keep it, as messages on
  // their way do.
  struct Process {
    node::AccessGate gate;
    // The engine's objects; nothing reaches them after the end of the process.
    node::FaultyObjectStore* objects = nullptr;
    std::unique_ptr<node::ObjectEngine> engine;
    std::unique_ptr<node::Copier> copier;
    std::vector<std::byte> scratch;
    // To the manager, in order, and when it was sent.
    std::deque<std::pair<std::function<void()>, Time>> outbox;
    WaitList outbox_filled;
    NodeConnection connection;  // Null until the manager has registered it.
    NodeId id;

    explicit Process(const Clock& clock) : gate(clock), scratch(1 << 20) {}
  };

  // `nodes` are all nodes of the store, from which it copies.
  SimulatedNode(Network& network, SimulatedManager& manager, SimulatedNodes& nodes, HostId host,
                uint64_t limit_bytes);

  // Ends the process, if there is one. Its threads end within some seconds.
  void Stop();
  // The same, and its objects are lost.
  void Wipe();
  // Begins a process with the objects that there are. It registers by itself.
  void Begin();

  HostId host() const { return host_; }
  std::string name() const { return "h" + std::to_string(host_); }
  // Null if it is down.
  const std::shared_ptr<Process>& process() const { return process_; }

 private:
  // One connection to the manager, from its beginning to its end.
  void RunConnection(const std::shared_ptr<Process>& process);
  void RunSender(const std::shared_ptr<Process>& process);
  void Obey(Process& process, NodeOrder order);
  // Lets `report` travel to the manager, in the registration that holds then.
  void Tell(Process& process,
            std::function<void(NodeId node, const NodeConnection& connection)> report);

  Network& network_;
  SimulatedManager& manager_;
  SimulatedNodes& nodes_;
  const HostId host_;
  const uint64_t limit_bytes_;
  const VirtualClock clock_;
  std::shared_ptr<node::ObjectStore> objects_;
  std::shared_ptr<Process> process_;
};

// The nodes as a mount on `host` sees them, or a node that copies. A call ends within `call_wait`,
// or as the calling thread's budget says. Once `*killed` is true, calls reach nobody.
std::unique_ptr<sai::NodeApi> NewSimulatedNodeApi(Network& network, SimulatedNodes& nodes,
                                                  HostId host, std::optional<Duration> call_wait,
                                                  const bool* killed = nullptr);

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_SIMULATED_NODE_H_
