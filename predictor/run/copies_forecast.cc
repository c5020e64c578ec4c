#include "predictor/run/copies_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/base/check.h"
#include "predictor/run/prediction.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kSmallest = uint64_t{64} << 10, kLargest = uint64_t{32} << 20;
constexpr uint64_t kStep = 8;
// Random places where stripes begin.
constexpr uint64_t kSeeds = 3;
// Times within this factor of the best count as equal.
constexpr double kSlowerMax = 1.02;

Workflow BroadcastOf(uint64_t bytes, uint32_t readers, uint32_t copies) {
  WorkflowDraft draft;
  FileDraft file;
  file.path = "shared";
  file.size_bytes = bytes;
  file.hints = {{"pattern", fmt::format("broadcast:{}", copies)}};
  draft.files.push_back(file);
  TaskDraft writer;
  writer.id = "write";
  writer.outputs = {file.path};
  draft.tasks.push_back(writer);
  for (uint32_t i = 0; i < readers; ++i) {
    TaskDraft reader;
    reader.id = fmt::format("read_{}", i);
    reader.inputs = {file.path};
    draft.tasks.push_back(reader);
  }
  for (TaskDraft& task : draft.tasks) {
    task.command = {"true"};
    task.expected = Duration{};
  }
  BuildResult built = BuildWorkflow(draft);
  MOSA_CHECK(built.faults.empty());
  return std::move(built.workflow);
}

// Roughly geometric, to keep them few.
std::vector<uint32_t> Candidates(uint32_t hosts) {
  std::vector<uint32_t> counts;
  for (uint32_t count = 1; count < hosts; count = std::max(count + 1, count * 3 / 2))
    counts.push_back(count);
  counts.push_back(hosts);
  return counts;
}

}  // namespace

Result<std::vector<manager::CopiesForBytes>> ForecastCopies(const Platform& platform,
                                                            uint32_t hosts) {
  MOSA_CHECK(hosts > 0);
  Configuration cluster;
  cluster.hosts = std::min(hosts, kForecastHostsMax);
  cluster.manager_apart = true;
  cluster.slots = 1;
  std::vector<manager::CopiesForBytes> best;
  for (uint64_t bytes = kSmallest; bytes <= kLargest; bytes *= kStep) {
    struct Outcome {
      uint32_t copies;
      double ns;
    };
    std::vector<Outcome> outcomes;
    for (const uint32_t copies : Candidates(cluster.hosts)) {
      const Workflow workflow = BroadcastOf(bytes, cluster.hosts, copies);
      Outcome outcome{copies, 0};
      bool fits = true;
      for (cluster.seed = 1; fits && cluster.seed <= kSeeds; ++cluster.seed) {
        MOSA_ASSIGN_OR_RETURN(const Prediction prediction, Predict(workflow, platform, cluster));
        fits = !prediction.failure;
        outcome.ns += static_cast<double>(prediction.turnaround.ns);
      }
      if (fits) outcomes.push_back(outcome);
    }
    if (outcomes.empty()) break;
    const double least =
        std::min_element(outcomes.begin(), outcomes.end(), [](const auto& a, const auto& b) {
          return a.ns < b.ns;
        })->ns;
    const auto chosen = std::find_if(outcomes.begin(), outcomes.end(), [least](const auto& each) {
      return each.ns <= kSlowerMax * least;
    });
    best.push_back({bytes, chosen->copies});
  }
  if (best.empty())
    return ResourceExhaustedError(fmt::format(
        "the platform's nodes hold {} B each, which is too little to broadcast even a file of {} B",
        platform.host.store_bytes, kSmallest));
  return best;
}

}  // namespace mosa::predict
