#include "predictor/run/read_trial.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "predictor/des/activity.h"
#include "predictor/run/prediction.h"
#include "predictor/run/simulated_client.h"

namespace mosa::predict {
namespace {

constexpr ClientId kWriter{1000};
// So large that nothing is refused for lack of room.
constexpr uint64_t kStoreBytes = uint64_t{1} << 50;

Platform ForShape(const ReadShape& shape, Platform platform) {
  if (shape.kind == ReadShape::Kind::kMount) platform.client.passthrough = false;
  return platform;
}

// Readers have hosts of their own if nothing is to be local, else they are with the nodes.
Configuration ClusterFor(const ReadShape& shape) {
  Configuration cluster;
  cluster.manager_apart = true;
  const bool apart = shape.kind == ReadShape::Kind::kNodes && shape.local == 0;
  cluster.hosts = apart ? 1 : shape.width;
  cluster.storage_hosts = apart ? shape.width : 0;
  return cluster;
}

HintMap HintsFor(const ReadShape& shape) {
  if (shape.kind == ReadShape::Kind::kInline) return {};
  if (shape.kind != ReadShape::Kind::kNodes) return {{"placement", "local"}};
  HintMap hints = {{"placement", "stripe"},
                   {"stripe_width", fmt::format("{}", shape.width)},
                   {"chunk_size", fmt::format("{}", shape.chunk_bytes)}};
  // Copies of a stripe stay within it, so each node holds this many positions.
  if (shape.local > 1) {
    hints["replicas"] = fmt::format("{}", shape.local);
    hints["ack"] = "pessimistic";
  }
  return hints;
}

class Trial {
 public:
  Trial(const ReadShape& shape, const Platform& platform, const std::vector<uint64_t>& sizes)
      : shape_(shape),
        sizes_(sizes),
        platform_(ForShape(shape, platform)),
        machines_(loop_, platform_, ClusterFor(shape)),
        manager_(loop_, platform_, machines_, manager::ManagerOptions{}) {
    for (uint32_t i = 0; i < machines_.node_count(); ++i)
      manager_.AddNode(machines_.node(i), kStoreBytes);
    writer_.emplace(loop_, platform_, machines_, manager_, kWriter, machines_.node(0));
    const Configuration cluster = ClusterFor(shape);
    for (uint32_t i = 0; i < cluster.hosts; ++i)
      readers_.push_back(std::make_unique<SimulatedClient>(
          loop_, platform_, machines_, manager_, ClientId{kWriter.value + 1 + i}, MachineIndex{i}));
    manager_.Begin();
  }
  ~Trial() { loop_.EndAll(); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  Result<std::vector<ReadSample>> Run() {
    des::Spawn(loop_, Everything());
    loop_.Run();
    if (failure_) return InternalError(fmt::format("simulated reading fails: {}", *failure_));
    return std::move(samples_);
  }

 private:
  template <typename T>
  bool Good(const sai::Outcome<T>& outcome) {
    if (!outcome.ok() && !failure_) failure_ = outcome.failure().message;
    return outcome.ok();
  }

  des::Activity<void> Everything() {
    const std::string directory = "d", first = "d/first", task;
    const HintMap hints = HintsFor(shape_);
    Good(co_await writer_->MakeDirectory(directory, hints));
    Good(co_await writer_->WriteFile(first, 1, task));
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const std::string path = PathOf(i);
      Good(co_await writer_->WriteFile(path, sizes_[i], task));
    }
    co_await writer_->AwaitSealed();
    for (const auto& reader : readers_) Good(co_await reader->ReadFile(first, task));
    for (size_t i = 0; i < sizes_.size() && !failure_; ++i) {
      const std::string path = PathOf(i);
      SimulatedClient& reader = *readers_[ReaderOf(path)];
      const Time begin = loop_.now();
      const auto read = co_await reader.ReadFile(path, task);
      if (Good(read)) samples_.push_back({sizes_[i], loop_.now() - begin});
    }
    loop_.Stop();
  }

  static std::string PathOf(size_t index) { return fmt::format("d/{}", index); }

  // The reader's node holds the last positions of the stripe, so that short files lie on other
  // nodes only.
  size_t ReaderOf(const std::string& path) const {
    if (shape_.kind != ReadShape::Kind::kNodes || shape_.local == 0) return 0;
    const auto status = manager_.core().GetFileStatus("/" + path);
    if (!status.ok() || !status->layout.bound()) return 0;
    const Segment& segment = status->layout.segments.front();
    return manager_.MachineOf(segment.nodes[segment.width - 1]).value;
  }

  const ReadShape shape_;
  const std::vector<uint64_t>& sizes_;
  const Platform platform_;
  des::EventLoop loop_{kSimulationBegin};
  Machines machines_;
  SimulatedManager manager_;
  std::optional<SimulatedClient> writer_;
  std::vector<std::unique_ptr<SimulatedClient>> readers_;
  std::vector<ReadSample> samples_;
  std::optional<std::string> failure_;
};

}  // namespace

Result<std::vector<ReadSample>> SimulateReads(const ReadShape& shape, const Platform& platform,
                                              const std::vector<uint64_t>& sizes_bytes) {
  Trial trial(shape, platform, sizes_bytes);
  return trial.Run();
}

}  // namespace mosa::predict
