#include "tests/simulation/simulated_mount.h"

#include <utility>

namespace mosa::simulation {

SimulatedMount::SimulatedMount(Network& network, SimulatedManager& manager, SimulatedNodes& nodes,
                               HostId host, ClientId client)
    : session_(network, manager, host, client),
      nodes_(NewSimulatedNodeApi(network, nodes, host, {}, &killed_)),
      kernel_(std::make_unique<SimulatedKernel>()) {
  sai::FilesystemOptions options;
  options.node_name = options.host_identity = "h" + std::to_string(host);
  options.mount_point = "/mnt";
  options.client = client;
  options.passthrough = false;
  fs_ = std::make_unique<sai::Filesystem>(std::move(options), session_, *nodes_, *kernel_, clock_);
  kernel_->Mount(*fs_);
}

SimulatedMount::~SimulatedMount() = default;

::mosa::Status SimulatedMount::Start() { return fs_->Start(); }

void SimulatedMount::Kill() {
  killed_ = true;
  session_.Kill();
}

::mosa::Status SimulatedMount::Stop() {
  ::mosa::Status stopped = fs_->Stop();
  fs_ = nullptr;
  session_.Stop();
  return stopped;
}

}  // namespace mosa::simulation
