// For tests of explorations: random workflows with all kinds of computing and sizes, and a function
// that simulates what an Explorer asks for.
#ifndef MOSA_PREDICTOR_EXPLORE_EXPLORE_FIXTURE_H_
#define MOSA_PREDICTOR_EXPLORE_EXPLORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "predictor/explore/explorer.h"
#include "predictor/run/class_placement.h"
#include "predictor/run/prediction_fixture.h"
#include "predictor/workflow/random_workflow_fixture.h"

namespace mosa::predict {

// Files from 0 to 40 MiB, some with hints; tasks from 0 to 1 s.
inline Workflow RandomWorkload(Rng& rng) {
  Workflow workflow = RandomWorkflow(rng, 25);
  for (WorkflowFile& file : workflow.files) {
    const uint64_t most[] = {1, 20'000, kMiB, 40 * kMiB};
    file.size_bytes = rng.Below(most[rng.Below(4)]);
    if (rng.Chance(200)) file.hints["placement"] = "local";
    if (rng.Chance(200)) file.hints["replicas"] = std::to_string(1 + rng.Below(4));
    if (rng.Chance(100)) file.hints["ack"] = "pessimistic";
  }
  for (Task& task : workflow.tasks)
    if (rng.Chance(700)) task.expected = Milliseconds(static_cast<int64_t>(rng.Below(1000)));
  return workflow;
}

inline Platform RandomPlatform(Rng& rng) {
  Platform platform = rng.Chance(500) ? BusyPlatform() : PlainPlatform();
  platform.host.cores = static_cast<uint32_t>(1 + rng.Below(4));
  platform.shared_cores = rng.Chance(200) ? static_cast<uint32_t>(1 + rng.Below(4)) : 0;
  platform.host.speed = 0.5 + static_cast<double>(rng.Below(100)) / 50;
  platform.host.in_bytes_per_second = 5'000'000 + rng.Below(2'000'000'000);
  platform.network.burst_bytes = rng.Below(2) * rng.Below(1 << 20);
  platform.host.out_bytes_per_second = 5'000'000 + rng.Below(2'000'000'000);
  platform.client.passthrough = rng.Chance(500);
  if (rng.Chance(300)) platform.client.page_cache_read = {0, 0.001, 0};
  if (rng.Chance(300)) platform.host.page_cache_bytes = rng.Chance(500) ? 0 : kMiB;
  if (rng.Chance(300)) platform.client.fuse_read_bytes = 3'000 + rng.Below(3'000'000);
  if (rng.Chance(300)) platform.client.fuse_write_bytes = 3'000 + rng.Below(3'000'000);
  return platform;
}

inline Configuration RandomConfiguration(Rng& rng) {
  Configuration c;
  c.hosts = static_cast<uint32_t>(1 + rng.Below(5));
  c.storage_hosts = rng.Chance(500) ? static_cast<uint32_t>(1 + rng.Below(3)) : 0;
  c.manager_apart = rng.Chance(300);
  c.slots = rng.Chance(500) ? static_cast<uint32_t>(rng.Below(4)) : 0;
  c.system = rng.Chance(500) ? System::kWass : System::kDss;
  const uint64_t chunks[] = {65536, 262144, kMiB, 4 * kMiB, 64 * kMiB};
  c.chunk_bytes = chunks[rng.Below(5)];
  c.stripe_width = static_cast<uint32_t>(rng.Below(NodesOf(c) + 1));
  c.replicas = static_cast<uint32_t>(1 + rng.Below(std::min<uint32_t>(4, NodesOf(c))));
  const char* placements[] = {"stripe", "near", "local"};
  c.placement = placements[rng.Below(3)];
  return c;
}

// Adds placements of no, one or two classes: those of first and second outputs.
inline void AddClassPlacements(Rng& rng, const Workflow& workflow, Configuration& configuration) {
  const char* values[] = {"default",     "local",     "near",   "stripe",
                          "collocate:g", "scatter:2", "node:h1"};
  for (const char* name : {":f*.1", ":f*.2"}) {
    Configuration more = configuration;
    more.class_placements[name] = values[rng.Below(7)];
    if (rng.Chance(500) && WithPlacements(workflow, more).ok()) configuration = more;
  }
}

// Simulates every job, the last of each batch first.
inline void SimulateAll(const Workflow& workflow, Explorer& explorer) {
  for (std::vector<Job> jobs = explorer.NextBatch(); !jobs.empty(); jobs = explorer.NextBatch()) {
    for (size_t i = jobs.size(); i > 0; --i) {
      const Job& job = jobs[i - 1];
      const auto prediction =
          Predict(workflow, explorer.PlatformOf(job), explorer.ConfigurationOf(job));
      ASSERT_TRUE(prediction.ok()) << prediction.status();
      explorer.Take(job, OutcomeOf(*prediction));
    }
  }
}

inline std::vector<Point> PointsOf(const std::vector<std::string>& texts,
                                   const Configuration& base = {}) {
  std::vector<Dimension> dimensions;
  for (const std::string& text : texts) {
    const auto dimension = ParseDimension(text);
    EXPECT_TRUE(dimension.ok()) << dimension.status();
    dimensions.push_back(*dimension);
  }
  auto space = Enumerate(dimensions, base);
  EXPECT_TRUE(space.ok()) << space.status();
  return std::move(space->points);
}

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_EXPLORE_EXPLORE_FIXTURE_H_
