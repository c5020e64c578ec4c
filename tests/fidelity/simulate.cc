// The simulated side: SimulatedClients on a SimulatedManager.
#include <memory>

#include "predictor/run/prediction_fixture.h"
#include "predictor/run/simulated_client.h"
#include "tests/fidelity/histories.h"

namespace mosa::fidelity {
namespace {

using predict::SimulatedClient;
using Kind = Operation::Kind;

// After an operation, until nothing that it caused is under way.
constexpr Duration kRest = Milliseconds(20);

class SimulatedSide final : public predict::Observer {
 public:
  explicit SimulatedSide(const History& history)
      : history_(history),
        platform_(PlatformWithoutWaits()),
        machines_(loop_, platform_, history.configuration),
        manager_(loop_, platform_, machines_, predict::ManagerOptionsOf(history.configuration)) {
    for (uint32_t i = 0; i < machines_.node_count(); ++i)
      manager_.AddNode(machines_.node(i), platform_.host.store_bytes);
    for (uint32_t i = 0; i < history.configuration.hosts; ++i)
      mounts_.push_back(std::make_unique<SimulatedClient>(
          loop_, platform_, machines_, manager_, ClientId{i + 1}, predict::MachineIndex{i}));
    manager_.Observe(this);
    manager_.Begin();
  }
  ~SimulatedSide() override { loop_.EndAll(); }
  SimulatedSide(const SimulatedSide&) = delete;
  SimulatedSide& operator=(const SimulatedSide&) = delete;

  std::vector<Actions> Run() {
    des::Spawn(loop_, Everything());
    loop_.Run();
    for (Actions& actions : actions_) Sort(actions);
    return std::move(actions_);
  }

  void OnKernel(ClientId, predict::Access access, ByteRange range) override {
    actions_.back().kernel.push_back({access, range});
  }
  void OnCall(ClientId mount, const std::vector<Request>& requests) override {
    if (!actions_.empty()) NoteCall(actions_.back(), history_.has_copies, mount, requests);
  }
  void OnNode(ClientId mount, predict::Access access, NodeId node, FileId file,
              ByteRange range) override {
    actions_.back().nodes.push_back(NodeText(mount, access, node, file, range));
  }

 private:
  // Links are fast, so that all is soon at rest. The kernel passes nothing through: the real mounts
  // of this test have none.
  static predict::Platform PlatformWithoutWaits() {
    predict::Platform platform = predict::PlainPlatform();
    platform.client.passthrough = false;
    platform.host.in_bytes_per_second = platform.host.out_bytes_per_second = 10'000'000'000;
    platform.host.store_bytes = uint64_t{8} << 30;
    return platform;
  }

  des::Activity<void> Everything() {
    for (const Operation& operation : history_.operations) {
      actions_.emplace_back();
      const Time begin = loop_.now();
      actions_.back().failed = !co_await Do(*mounts_[operation.mount], operation);
      co_await loop_.Sleep(kRest);
      actions_.back().took = loop_.now() - begin;
    }
    actions_.emplace_back();  // What comes behind the last operation.
    co_await loop_.Sleep(kRest);
    loop_.Stop();
  }

  des::Activity<bool> Do(SimulatedClient& mount, const Operation& operation) {
    switch (operation.kind) {
      case Kind::kMakeDirectory: {
        const auto made = co_await mount.MakeDirectory(operation.path, operation.hints);
        co_return made.ok();
      }
      case Kind::kPrepare: {
        const auto prepared = co_await mount.PrepareOutput(operation.path, operation.hints);
        co_return prepared.ok();
      }
      case Kind::kWrite: {
        const auto written = co_await mount.WriteFile(operation.path, operation.range.end, kTask);
        co_return written.ok();
      }
      case Kind::kUpdate: {
        const auto updated = co_await mount.UpdateFile(operation.path, operation.range, kTask);
        co_return updated.ok();
      }
      case Kind::kRemove: {
        const auto removed = co_await mount.Remove(operation.path);
        co_return removed.ok();
      }
      case Kind::kRead:
        break;
    }
    const auto opened = co_await mount.OpenToRead(operation.path, kTask);
    if (!opened.ok()) co_return false;
    for (const ByteRange& part : operation.parts) {
      co_await mount.ReadPart(**opened, part);
      co_await loop_.Sleep(kRest);
    }
    co_await mount.CloseRead(**opened);
    co_return true;
  }

  inline static const std::string kTask;
  const History& history_;
  const predict::Platform platform_;
  des::EventLoop loop_{predict::kSimulationBegin};
  predict::Machines machines_;
  predict::SimulatedManager manager_;
  std::vector<std::unique_ptr<SimulatedClient>> mounts_;
  std::vector<Actions> actions_;
};

}  // namespace

std::vector<Actions> Simulate(const History& history) { return SimulatedSide(history).Run(); }

}  // namespace mosa::fidelity
