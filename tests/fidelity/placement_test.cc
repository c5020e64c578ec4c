// What is predicted is what happens: for each pattern of use, the layouts that a simulated cluster
// arrives at are those of real mounts on a real manager, which run the same tasks on the same hosts
// in the same order. (Ample space; what depends on the order of arrivals is given that order.)
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "predictor/run/prediction_fixture.h"
#include "predictor/workflow/patterns.h"
#include "tests/support/local_mount.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kNodeBytes = uint64_t{8} << 30;

// "64K: h1 h2 | h3": chunk size, segments, nodes.
std::string Show(bool is_inline, const Layout& layout, const std::map<NodeId, std::string>& names) {
  if (is_inline) return "inline";
  std::string text = fmt::format("{}:", layout.chunk_bytes);
  for (const Segment& segment : layout.segments) {
    text += fmt::format(" [{} from {}]", segment.width, segment.begin);
    for (const NodeId node : segment.nodes) text += " " + names.at(node);
  }
  return text;
}

// A cluster of real parts in this process.
class RealCluster {
 public:
  explicit RealCluster(const Configuration& configuration)
      : manager_(std::make_unique<testing::LocalManager>(Options(configuration), clock_)),
        nodes_(*manager_) {
    for (uint32_t i = 0; i < configuration.hosts; ++i) {
      const std::string name = fmt::format("h{}", i + 1);
      names_[nodes_.Add(name, kNodeBytes)] = name;
    }
    for (uint32_t i = 0; i < configuration.hosts; ++i)
      mounts_.push_back(std::make_unique<testing::LocalMount>(*manager_, nodes_,
                                                              fmt::format("h{}", i + 1), clock_));
  }

  // It asks nodes for heartbeats until it ends.
  ~RealCluster() {
    mounts_.clear();
    manager_.reset();
  }
  RealCluster(const RealCluster&) = delete;
  RealCluster& operator=(const RealCluster&) = delete;

  void Write(HostIndex host, const WorkflowFile& file, const HintMap& hints) {
    testing::LocalMount& mount = *mounts_[host.value];
    const std::string path = "/" + file.path;
    if (!hints.empty()) {
      const auto made = mount.Open(path, O_WRONLY | O_CREAT | O_EXCL);
      ASSERT_TRUE(made.ok()) << made.failure().message;
      ASSERT_TRUE(mount.Close(made->handle).ok());
    }
    for (const auto& [name, value] : hints) {
      const auto set = mount.SetXattr(path, "user.mosa." + name, value);
      ASSERT_TRUE(set.ok()) << set.failure().message;
    }
    const auto opened = mount.Open(path, O_WRONLY | O_CREAT | O_TRUNC);
    ASSERT_TRUE(opened.ok()) << opened.failure().message;
    const std::string bytes(kMiB, 'x');
    for (uint64_t at = 0; at < *file.size_bytes; at += kMiB) {
      const size_t size = std::min<uint64_t>(kMiB, *file.size_bytes - at);
      const auto written = mount.Write(opened->handle, at, std::string_view(bytes).substr(0, size));
      ASSERT_TRUE(written.ok()) << written.failure().message;
    }
    const auto closed = mount.Close(opened->handle);
    ASSERT_TRUE(closed.ok()) << closed.failure().message;
  }
  std::string LayoutOf(const WorkflowFile& file) {
    const auto status = manager_->StatusOf("/" + file.path);
    if (!status.ok()) return MessageOf(status.status());
    return Show(status->is_inline, status->layout, names_);
  }
  const std::map<NodeId, std::string>& names() const { return names_; }

 private:
  static manager::ManagerOptions Options(const Configuration& configuration) {
    manager::ManagerOptions options;
    options.cluster_seed = configuration.seed;
    options.chunk_bytes = configuration.chunk_bytes;
    options.stripe_width = configuration.stripe_width;
    options.default_placement = configuration.placement;
    return options;
  }
  const SystemClock clock_;
  std::unique_ptr<testing::LocalManager> manager_;
  testing::LocalNodes nodes_;
  std::vector<std::unique_ptr<testing::LocalMount>> mounts_;
  std::map<NodeId, std::string> names_;
};

void Compare(const Workflow& workflow, const std::string& text) {
  const Configuration configuration = *ParseConfiguration(text);
  Platform platform = BusyPlatform();
  platform.client.passthrough = false;  // The mounts of this test have no kernel.
  platform.host.store_bytes = kNodeBytes;
  const Prediction prediction = MustPredict(workflow, platform, text, {.with_layouts = true});
  ASSERT_FALSE(prediction.failure) << *prediction.failure;

  std::map<PathIndex, HintMap> hints;
  if (configuration.system == System::kWass)
    for (FileHints& plan : PlanHints(workflow, {.hosts = configuration.hosts}))
      hints[plan.file] = std::move(plan.hints);
  RealCluster real(configuration);
  for (const PathIndex input : OutsideInputs(workflow))
    real.Write(HostIndex{0}, workflow.at(input), workflow.at(input).hints);
  std::vector<size_t> order(workflow.tasks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  // By when their outputs were written.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return prediction.tasks[a].end - prediction.tasks[a].writing <
           prediction.tasks[b].end - prediction.tasks[b].writing;
  });
  for (const size_t i : order)
    for (const PathIndex output : workflow.tasks[i].outputs)
      real.Write(prediction.tasks[i].host, workflow.at(output), hints[output]);

  ASSERT_EQ(prediction.files.size(), workflow.files.size());
  for (const PredictedFile& file : prediction.files)
    EXPECT_EQ(Show(file.is_inline, file.layout, real.names()),
              real.LayoutOf(workflow.at(file.file)))
        << workflow.at(file.file).path << " with " << text;
}

struct Row {
  const char* what;
  Workflow workflow;
};

TEST(Placement, IsPredictedFileByFile) {
  WorkflowMaker mixed;
  mixed.File("tiny", 100)
      .File("small", 20'000)
      .File("odd", 700'001)
      .File("local", 300'000, {{"placement", "local"}});
  mixed.File("together.1", 300'000, {{"placement", "collocate:g"}});
  mixed.File("together.2", 300'000, {{"placement", "collocate:g"}});
  mixed.File("pieces", 900'000, {{"pattern", "scatter:128K"}});
  mixed.Task("one", {}, {"tiny", "small", "odd"}).Task("two", {"odd"}, {"local", "together.1"});
  mixed.Task("three", {"together.1"}, {"together.2", "pieces"});
  mixed.Task("four", {"pieces", "local", "tiny", "together.2", "small"}, {});
  const Row rows[] = {
      {"pipeline", Pipelines(6, 400'000)},
      {"reduce", Reduce(6, 300'000)},
      // The nodes of this test make no copies, so that no close may wait for them.
      {"broadcast", Broadcast(6, 1'500'000, {{"ack", "optimistic"}})},
      {"mixed", mixed.Build()},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Compare(row.workflow, "hosts=4,slots=1,chunk=64K");
    Compare(row.workflow, "hosts=4,slots=1,chunk=64K,system=dss");
    Compare(row.workflow, "hosts=5,slots=2,chunk=256K,stripe=3,seed=9");
    Compare(row.workflow, "hosts=3,slots=1,chunk=128K,placement=local,system=dss");
  }
}

// What the simulated client takes to be a mount's limits.
TEST(Client, HasTheLimitsOfARealMount) {
  const sai::FilesystemOptions real;
  const ClientPlatform simulated;
  EXPECT_EQ(simulated.write_behind_bytes_max, real.write_behind_bytes_max);
  EXPECT_EQ(simulated.write_behind_file_bytes_max, real.write_behind_file_bytes_max);
  EXPECT_EQ(simulated.read_ahead_bytes_max, real.read_ahead_bytes_max);
  EXPECT_EQ(simulated.io_threads, real.io_threads);
  EXPECT_EQ(simulated.fetch_threads, real.fetch_threads);
}

}  // namespace
}  // namespace mosa::predict
