#include "predictor/run/read_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>

#include "predictor/run/prediction_fixture.h"
#include "predictor/run/simulated_client.h"

namespace mosa::predict {
namespace {

constexpr ClientId kWriter{500};
constexpr uint32_t kHosts = 6;

struct Row {
  HintMap hints;
  uint64_t bytes = 0;
};

// The reference: a cluster whose first host writes files that every host then reads.
class Cluster {
 public:
  explicit Cluster(const Platform& platform)
      : platform_(platform),
        machines_(loop_, platform_, Configuration_()),
        manager_(loop_, platform_, machines_, manager::ManagerOptions{}) {
    for (uint32_t i = 0; i < kHosts; ++i)
      manager_.AddNode(machines_.node(i), platform.host.store_bytes);
    writer_.emplace(loop_, platform_, machines_, manager_, kWriter, MachineIndex{0});
    for (uint32_t i = 0; i < kHosts; ++i)
      readers_.push_back(std::make_unique<SimulatedClient>(
          loop_, platform_, machines_, manager_, ClientId{kWriter.value + 1 + i}, MachineIndex{i}));
    manager_.Begin();
  }
  ~Cluster() { loop_.EndAll(); }

  // By row, then by host.
  std::vector<std::vector<Duration>> Read(const std::vector<Row>& rows) {
    std::vector<std::vector<Duration>> times(rows.size());
    des::Spawn(loop_, Everything(rows, times));
    loop_.Run();
    return times;
  }
  ReadableFile FileOf(size_t row) const {
    ReadableFile file = manager_.core().ListReadable({"/" + PathOf(row)}).front();
    EXPECT_FALSE(file.failure) << file.failure->message;
    return file;
  }

 private:
  static Configuration Configuration_() {
    Configuration configuration;
    configuration.hosts = kHosts;
    configuration.manager_apart = true;
    return configuration;
  }
  static std::string PathOf(size_t row) { return std::to_string(row) + "/file"; }

  des::Activity<void> Everything(const std::vector<Row>& rows,
                                 std::vector<std::vector<Duration>>& times) {
    const std::string task;
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string directory = std::to_string(i), path = PathOf(i), other = directory + "/a";
      auto done = co_await writer_->MakeDirectory(directory, rows[i].hints);
      EXPECT_TRUE(done.ok()) << done.failure().message;
      done = co_await writer_->WriteFile(other, 1, task);
      done = co_await writer_->WriteFile(path, rows[i].bytes, task);
      EXPECT_TRUE(done.ok()) << done.failure().message;
    }
    co_await writer_->AwaitSealed();
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string path = PathOf(i), other = std::to_string(i) + "/a";
      for (const auto& reader : readers_) static_cast<void>(co_await reader->ReadFile(other, task));
      for (const auto& reader : readers_) {
        const Time begin = loop_.now();
        const auto read = co_await reader->ReadFile(path, task);
        EXPECT_TRUE(read.ok());
        times[i].push_back(loop_.now() - begin);
      }
    }
    loop_.Stop();
  }

  const Platform platform_;
  des::EventLoop loop_{Time{1'700'000'000'000'000'000}};
  Machines machines_;
  SimulatedManager manager_;
  std::optional<SimulatedClient> writer_;
  std::vector<std::unique_ptr<SimulatedClient>> readers_;
};

std::vector<NodeId> AllHosts() {
  std::vector<NodeId> nodes;
  for (uint32_t i = 1; i <= kHosts; ++i) nodes.push_back(NodeId{i});
  return nodes;
}

std::vector<Row> Rows() {
  const std::vector<HintMap> layouts = {
      {{"placement", "local"}},
      {{"placement", "node:h3"}},
      {{"placement", "stripe"}},
      {{"placement", "stripe"}, {"stripe_width", "3"}, {"chunk_size", "256K"}},
      {{"placement", "stripe"}, {"stripe_width", "2"}, {"chunk_size", "64K"}},
      {{"placement", "scatter:3"}},
      {{"placement", "local"}, {"replicas", "3"}, {"ack", "pessimistic"}},
  };
  const std::vector<uint64_t> sizes = {1,        3000,      20'000,    700'000,    1'300'000,
                                       3 * kMiB, 5'555'555, 17 * kMiB, 60'000'000, 200 * kMiB};
  std::vector<Row> rows;
  for (const HintMap& hints : layouts)
    for (const uint64_t bytes : sizes) rows.push_back({hints, bytes});
  rows.push_back({{}, 9000});  // Kept by the manager.
  rows.push_back({{}, 0});
  return rows;
}

std::string Describe(const Row& row) {
  std::string text = std::to_string(row.bytes) + " B";
  for (const auto& [name, value] : row.hints) text += " " + name + "=" + value;
  return text;
}

struct Tolerance {
  double error_mean = 0;
  double error_worst = 0;
  double clearly_slower = 0;  // A factor.
};

void ExpectSimulated(const Platform& platform, const Tolerance& tolerance) {
  Cluster cluster(platform);
  const std::vector<Row> rows = Rows();
  const auto times = cluster.Read(rows);
  ReadCosts read_costs(platform);
  const std::vector<NodeId> hosts = AllHosts();
  double error_sum = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<ReadCost> costs(kHosts);
    ASSERT_TRUE(read_costs.Add(FileToRead(cluster.FileOf(i)), hosts, costs).ok());
    for (size_t h = 0; h < kHosts; ++h) {
      const double simulated = static_cast<double>(times[i][h].ns);
      const double error = static_cast<double>(costs[h].time.ns) / simulated - 1;
      error_sum += std::abs(error);
      EXPECT_LT(std::abs(error), tolerance.error_worst)
          << Describe(rows[i]) << " on host " << h + 1 << ", " << costs[h].local_bytes
          << " B of which are local: " << costs[h].time.ns << " ns for " << simulated;
      // A host that is clearly slower in the simulation must rank behind.
      for (size_t other = 0; other < kHosts; ++other) {
        if (simulated <= tolerance.clearly_slower * static_cast<double>(times[i][other].ns))
          continue;
        EXPECT_GT(costs[h].time, costs[other].time) << Describe(rows[i]);
      }
    }
  }
  EXPECT_LT(error_sum / static_cast<double>(rows.size() * kHosts), tolerance.error_mean);
}

TEST(ReadCosts, AreWhatTheSimulationOfEachReadSaysWhereLinksLimit) {
  ExpectSimulated(BusyPlatform(), {0.01, 0.1, 1.1});
}

TEST(ReadCosts, AreWhatTheSimulationOfEachReadSaysWhereSharedCoresLimit) {
  Platform platform = BusyPlatform();
  platform.shared_cores = 2;
  platform.host.in_bytes_per_second = platform.host.out_bytes_per_second = 10'000'000'000;
  ExpectSimulated(platform, {0.02, 0.4, 1.5});
}

TEST(ReadCosts, AreWhatTheSimulationOfEachReadSaysWithoutPassthrough) {
  Platform platform = BusyPlatform();
  platform.client.passthrough = false;
  platform.host.cores = 1;
  ExpectSimulated(platform, {0.01, 0.15, 1.15});
}

}  // namespace
}  // namespace mosa::predict
