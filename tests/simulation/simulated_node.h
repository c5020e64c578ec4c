// A storage node in virtual time: the real engine and the real gate over objects in memory, a link
// to the manager, and calls that arrive over the network.
#ifndef MOSA_TESTS_SIMULATION_SIMULATED_NODE_H_
#define MOSA_TESTS_SIMULATION_SIMULATED_NODE_H_

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client-sai/api/node_api.h"
#include "storage-node/service/access_gate.h"
#include "storage-node/service/object_engine.h"
#include "tests/simulation/simulated_manager.h"

namespace mosa::simulation {

class SimulatedNode {
 public:
  SimulatedNode(Network& network, SimulatedManager& manager, HostId host, uint64_t limit_bytes);

  // Ends the process; its objects are lost with it.
  void Wipe();
  // Begins a process. It registers by itself.
  void Begin();
  void Stop() { stopping_ = true; }

  HostId host() const { return host_; }
  std::string name() const { return "h" + std::to_string(host_); }
  bool is_up() const { return engine_ != nullptr; }
  node::ObjectEngine& engine() { return *engine_; }
  node::AccessGate& gate() { return *gate_; }
  std::span<std::byte> scratch() { return scratch_; }

 private:
  // One connection to the manager, from its beginning to its end.
  void RunConnection();
  void Obey(const NodeOrder& order);

  Network& network_;
  SimulatedManager& manager_;
  const HostId host_;
  const uint64_t limit_bytes_;
  const VirtualClock clock_;
  uint64_t process_ = 0;
  NodeId id_;
  std::unique_ptr<node::AccessGate> gate_;
  std::unique_ptr<node::ObjectEngine> engine_;
  std::vector<std::byte> scratch_;
  bool stopping_ = false;
};

// The nodes of a store.
using SimulatedNodes = std::map<HostId, std::unique_ptr<SimulatedNode>>;

// The nodes as a mount on `host` sees them.
std::unique_ptr<sai::NodeApi> NewSimulatedNodeApi(Network& network, SimulatedNodes& nodes,
                                                  HostId host);

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_SIMULATED_NODE_H_
