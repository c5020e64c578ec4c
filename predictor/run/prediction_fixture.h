// For tests of predictions: a platform with round figures, and small workflows.
#ifndef MOSA_PREDICTOR_RUN_PREDICTION_FIXTURE_H_
#define MOSA_PREDICTOR_RUN_PREDICTION_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/units.h"
#include "predictor/run/prediction.h"

namespace mosa::predict {

// Only bytes cost: 1 ns to write one, half of that to read it locally, 10 ns on a link.
inline Platform PlainPlatform() {
  Platform platform;
  platform.host.cores = 4;
  platform.host.in_bytes_per_second = platform.host.out_bytes_per_second = 100'000'000;
  platform.host.store_bytes = uint64_t{64} << 30;
  platform.network.latency_ns = platform.network.loopback_latency_ns = 0;
  platform.client.passthrough_write.ns_per_byte = platform.client.local_write.ns_per_byte = 1;
  platform.client.passthrough_read.ns_per_byte = platform.client.local_read.ns_per_byte = 0.5;
  platform.runner.notice_ns = 0;
  return platform;
}

// Roughly what a current platform costs.
inline Platform BusyPlatform() {
  Platform platform = PlainPlatform();
  platform.network.latency_ns = 30'000;
  platform.network.loopback_latency_ns = 10'000;
  ManagerPlatform& manager = platform.manager;
  for (Cost* cost : {&manager.lookup, &manager.make, &manager.open, &manager.bind, &manager.commit,
                     &manager.grant, &manager.attribute, &manager.other})
    *cost = {12'000, 0, 0.1};
  manager.persist = {9'000, 1, 0.1};
  platform.client.call = {30'000, 0, 0.05};
  platform.client.fuse_read = platform.client.fuse_write = {30'000, 0.4, 0.05};
  platform.client.send = {10'000, 0.15, 0.05};
  platform.client.receive = {10'000, 0.25, 0.05};
  platform.client.page_cache_read = {0, 0.2, 0.05};
  platform.node.read = {20'000, 0.2, 0.05};
  platform.node.write = {20'000, 0.6, 0.05};
  platform.runner.dispatch = {300'000, 0, 0.1};
  platform.runner.launch = {3'000'000, 0, 0.1};
  platform.runner.look = {20'000, 0, 0.1};
  platform.runner.notice_ns = 500'000;
  return platform;
}

// Hosts keep no pages of what they write or read.
inline Platform Forgetful(Platform platform) {
  platform.host.page_cache_bytes = 0;
  return platform;
}

class WorkflowMaker {
 public:
  WorkflowMaker& File(const std::string& path, uint64_t size_bytes, const HintMap& hints = {}) {
    FileDraft file;
    file.path = path;
    file.size_bytes = size_bytes;
    file.hints = hints;
    draft_.files.push_back(file);
    return *this;
  }
  WorkflowMaker& Task(const std::string& id, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, Duration compute = {},
                      const std::vector<std::string>& after = {}) {
    TaskDraft task;
    task.id = id;
    task.command = {"true"};
    task.inputs = inputs;
    task.outputs = outputs;
    task.after = after;
    task.expected = compute;
    draft_.tasks.push_back(task);
    return *this;
  }
  Workflow Build() const {
    BuildResult built = BuildWorkflow(draft_);
    EXPECT_TRUE(built.faults.empty()) << built.faults.front();
    return std::move(built.workflow);
  }

 private:
  WorkflowDraft draft_;
};

// `count` chains of three tasks, each on its own file (Opportunity Study, pipeline).
inline Workflow Pipelines(uint32_t count, uint64_t bytes) {
  WorkflowMaker maker;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    maker.File("in." + n, bytes).File("a." + n, 2 * bytes).File("b." + n, bytes).File("c." + n, 1);
    maker.Task("first_" + n, {"in." + n}, {"a." + n}, Milliseconds(100));
    maker.Task("second_" + n, {"a." + n}, {"b." + n}, Milliseconds(100));
    maker.Task("third_" + n, {"b." + n}, {"c." + n}, Milliseconds(100));
  }
  return maker.Build();
}

// `count` writers, and one task that reads all they have written.
inline Workflow Reduce(uint32_t count, uint64_t bytes) {
  WorkflowMaker maker;
  std::vector<std::string> parts;
  for (uint32_t i = 0; i < count; ++i) {
    parts.push_back("part." + std::to_string(i));
    maker.File(parts.back(), bytes);
    maker.Task("map_" + std::to_string(i), {}, {parts.back()}, Milliseconds(50));
  }
  maker.File("sum", bytes);
  maker.Task("reduce", parts, {"sum"}, Milliseconds(50));
  return maker.Build();
}

// One file, read by `count` tasks.
inline Workflow Broadcast(uint32_t count, uint64_t bytes, const HintMap& hints = {}) {
  WorkflowMaker maker;
  maker.File("all", bytes, hints);
  maker.Task("write", {}, {"all"}, Milliseconds(50));
  for (uint32_t i = 0; i < count; ++i) {
    maker.File("out." + std::to_string(i), 1000);
    maker.Task("read_" + std::to_string(i), {"all"}, {"out." + std::to_string(i)});
  }
  return maker.Build();
}

inline Prediction MustPredict(const Workflow& workflow, const Platform& platform,
                              const std::string& configuration,
                              const PredictOptions& options = {}) {
  const auto parsed = ParseConfiguration(configuration);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  auto prediction = Predict(workflow, platform, *parsed, options);
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return *std::move(prediction);
}

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_PREDICTION_FIXTURE_H_
