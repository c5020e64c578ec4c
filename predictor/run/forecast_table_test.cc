#include "predictor/run/forecast_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>

#include "client-sai/core/name_epoch.h"
#include "common/base/rng.h"
#include "predictor/run/prediction_fixture.h"
#include "predictor/run/read_trial.h"
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
    // Names that another host has just made are looked up at each use.
    co_await loop_.Sleep(sai::NameEpoch::kQuietMin);
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

ReadCost CostAt(const manager::FileCosts& costs, NodeId host) {
  for (const auto& [node, cost] : costs.holders)
    if (node == host) return cost;
  return costs.elsewhere;
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
  const ForecastGrid grid{{64 * 1024, 256 * 1024, kMiB}, {1, 2, 3, 6}, {1}};
  const auto forecasts = MakeForecasts(platform, grid);
  ASSERT_TRUE(forecasts.ok()) << forecasts.status();
  double error_sum = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const manager::FileCosts found = CostsOf(forecasts->reads, cluster.FileOf(i));
    std::vector<ReadCost> costs;
    for (uint32_t h = 1; h <= kHosts; ++h) costs.push_back(CostAt(found, NodeId{h}));
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

// ---- all stripes

struct Drawn {
  ReadShape shape;
  uint64_t bytes = 0;
};

// Up to 32 nodes, chunks up to 64 MiB, files up to 200 MB.
Drawn Draw(Rng& rng, bool any_chunk_size) {
  const auto by_ratio = [&rng](double least, double most) {
    const double share = static_cast<double>(rng.Below(1'000'001)) / 1e6;
    return static_cast<uint64_t>(std::llround(least * std::pow(most / least, share)));
  };
  Drawn drawn;
  const uint64_t pages = any_chunk_size ? by_ratio(1, 16384) : uint64_t{1} << rng.Below(15);
  drawn.shape.chunk_bytes = 4096 * pages;
  drawn.shape.width = static_cast<uint32_t>(by_ratio(1, 32));
  if (rng.Below(2) == 0) drawn.shape.local = static_cast<uint32_t>(rng.Below(drawn.shape.width));
  drawn.bytes = by_ratio(1000, 200e6);
  return drawn;
}

// As in the simulated trial: the reader is on the node with the last positions of the stripe.
ReadCost CostOf(const manager::ReadCosts& costs, const Drawn& drawn) {
  const auto& [kind, chunk_bytes, width, local] = drawn.shape;
  ReadableFile file{.size_bytes = drawn.bytes};
  file.layout.chunk_bytes = chunk_bytes;
  Segment segment{.width = width};
  for (uint32_t copy = 0; copy < std::max(local, 1U); ++copy)
    for (uint32_t position = 0; position < width; ++position)
      segment.nodes.push_back(NodeId{(position + copy) % width + 1});
  file.layout.segments = {segment};
  return CostAt(CostsOf(costs, file), NodeId{local > 0 ? width : width + 1});
}

// Compares 200 drawn reads with simulations of each.
void ExpectClose(const manager::ReadCosts& costs, bool any_chunk_size, double error_median,
                 double error_worst) {
  constexpr uint64_t kSeed = 1;
  Rng rng(kSeed);
  std::vector<double> errors;
  while (errors.size() < 200) {
    const Drawn drawn = Draw(rng, any_chunk_size);
    const ReadCost cost = CostOf(costs, drawn);
    if (cost.remote_bytes == 0) continue;  // A short file that the reader's node has whole.
    const auto samples = SimulateReads(drawn.shape, BusyPlatform(), {drawn.bytes});
    ASSERT_TRUE(samples.ok()) << samples.status();
    const auto simulated = static_cast<double>(samples->front().time.ns);
    errors.push_back(std::abs(static_cast<double>(cost.time.ns) / simulated - 1));
    EXPECT_LT(errors.back(), error_worst)
        << drawn.bytes << " B on " << drawn.shape.width << " nodes in chunks of "
        << drawn.shape.chunk_bytes << " B, " << drawn.shape.local << " positions are local";
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], error_median);
}

TEST(ForecastTable, IsCloseToSimulationsOfAnyStripe) {
  ForecastGrid grid = DefaultForecastGrid();
  grid.nodes = {1};
  const auto forecasts = MakeForecasts(BusyPlatform(), grid);
  ASSERT_TRUE(forecasts.ok()) << forecasts.status();
  ExpectClose(forecasts->reads, /*any_chunk_size=*/false, 0.005, 0.3);
  ExpectClose(forecasts->reads, /*any_chunk_size=*/true, 0.005, 0.5);
  EXPECT_LT(WriteForecasts(*forecasts, "").size(), manager::kForecastsBytesMax / 10);
}

}  // namespace
}  // namespace mosa::predict
