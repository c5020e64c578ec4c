#include "tools/forecast/explore_simulator.h"

#include <algorithm>

#include "common/base/hash.h"
#include "common/base/mutex.h"
#include "predictor/model/platform_json.h"
#include "tools/console/parallel.h"

namespace mosa::cli {

using predict::Job;
using predict::Outcome;

ExploreSimulator::ExploreSimulator(const predict::Workflow& workflow,
                                   const predict::Platform& platform, predict::Explorer& explorer,
                                   ExploreResults& results, uint32_t threads)
    : workflow_(workflow),
      canonical_(workflow, platform),
      explorer_(explorer),
      results_(results),
      threads_(threads),
      workflow_digest_(DigestOf(workflow)) {}

Status ExploreSimulator::Run(const std::vector<predict::Point>& points) {
  for (std::vector<Job> jobs = explorer_.NextBatch(); !jobs.empty(); jobs = explorer_.NextBatch()) {
    std::vector<uint64_t> keys;
    for (const Job& job : jobs) keys.push_back(KeyOf(points[job.point], job));
    std::vector<Outcome> outcomes(jobs.size());
    MOSA_RETURN_IF_ERROR(InParallel(jobs.size(), threads_, [&](size_t i) {
      return RunOne(points[jobs[i].point], jobs[i], keys[i], outcomes[i]);
    }));
    for (size_t i = 0; i < jobs.size(); ++i) explorer_.Take(jobs[i], std::move(outcomes[i]));
  }
  return OkStatus();
}

// Equivalent points have the same key.
uint64_t ExploreSimulator::KeyOf(const predict::Point& point, const Job& job) {
  uint64_t& digest = platform_digests_[{point.frequency_mhz, job.draw}];
  if (digest == 0) digest = Hash64(predict::WritePlatform(explorer_.PlatformOf(job)));
  uint64_t key = HashCombine(results_.program(), workflow_digest_);
  key = HashCombine(key, digest);
  return HashCombine(key, Hash64(ToText(canonical_.Of(point).configuration)));
}

Status ExploreSimulator::RunOne(const predict::Point& point, const Job& job, uint64_t key,
                                Outcome& outcome) {
  {
    const SystemMutexLock lock(mutex_);
    if (const auto known = results_.Find(key); known) {
      outcome = *known;
      ++remembered_;
      ++done_;
      return OkStatus();
    }
  }
  MOSA_ASSIGN_OR_RETURN(
      const predict::Prediction prediction,
      predict::Predict(workflow_, explorer_.PlatformOf(job), explorer_.ConfigurationOf(job)));
  outcome = OutcomeOf(prediction);
  const SystemMutexLock lock(mutex_);
  ++done_;
  ++simulated_;
  const size_t known = std::max(explorer_.jobs_known(), done_);
  const double each = seconds() / static_cast<double>(simulated_);
  bar_.Show(done_, known, each * static_cast<double>(known - done_), "simulations");
  return results_.Add(key, ToText(point), outcome);
}

}  // namespace mosa::cli
