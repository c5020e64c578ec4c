// A mount in virtual time: the whole client, its session, and its way to the nodes.
#ifndef MOSA_TESTS_SIMULATION_SIMULATED_MOUNT_H_
#define MOSA_TESTS_SIMULATION_SIMULATED_MOUNT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "client-sai/sai/filesystem.h"
#include "tests/simulation/simulated_kernel.h"
#include "tests/simulation/simulated_node.h"
#include "tests/simulation/simulated_session.h"

namespace mosa::simulation {

// Make and start it in a thread of its host, where its own threads then are.
class SimulatedMount {
 public:
  SimulatedMount(Network& network, SimulatedManager& manager, SimulatedNodes& nodes, HostId host,
                 ClientId client);
  ~SimulatedMount();

  ::mosa::Status Start();
  // Ends the process: from now on nothing of it reaches the manager or a node, except what is on
  // its way. What its threads still do has no effect. Call Stop() once no call is under way.
  void Kill();
  bool is_killed() const { return killed_; }
  // Unmounts, or ends the threads of a process that was killed.
  ::mosa::Status Stop();

  SimulatedKernel& kernel() { return *kernel_; }
  // For requests of which the kernel keeps nothing here.
  sai::Filesystem& fs() { return *fs_; }

  uint32_t users = 0;  // Programs that are calling it; kept by them.

 private:
  bool killed_ = false;
  SimulatedSession session_;
  const std::unique_ptr<sai::NodeApi> nodes_;
  const std::unique_ptr<SimulatedKernel> kernel_;
  const VirtualClock clock_;
  std::unique_ptr<sai::Filesystem> fs_;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_SIMULATED_MOUNT_H_
