// Features: what a run shows of its deployment, as numbers that a measured and a simulated run have
// alike: how long the mean task of a stage took on each host and on its processor, how long tasks
// waited to start, how long mounts waited for each daemon, and what mounts fetched. All are
// logarithms, since parts that are slow make times longer by factors.
#ifndef MOSA_PREDICTOR_COMPARE_FEATURES_H_
#define MOSA_PREDICTOR_COMPARE_FEATURES_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "predictor/compare/requests.h"
#include "predictor/compare/seen_run.h"

namespace mosa::predict {

enum class FeatureOf : uint8_t {
  kWorkflow,  // Its turnaround.
  kTasks,     // The mean task of stage `name` on `host`.
  kOwn,       // The processor seconds of the mean task of stage `name`.
  kStart,  // The mean time from the end of its predecessors to the start of a task of stage `name`.
  kRequests,  // All requests of a kind together: what a mount asked of the manager, of a node
              // (`peer`) or of all nodes, what all mounts asked of a node, or what a daemon did by
              // itself.
  kFetched,   // Bytes that the mount of `host` fetched from other nodes.
};

struct Feature {
  FeatureOf of = FeatureOf::kWorkflow;
  RequestClass which;  // For tasks and starts, `name` is the stage; for fetched bytes only `host`.
  auto operator<=>(const Feature&) const = default;
};

// Logarithms of seconds or bytes, each with a small amount added below which nothing matters.
using Features = std::map<Feature, double>;
Features FeaturesOf(const Workflow& workflow, const SeenRun& run);
// Requests that a daemon did not make took nothing, if it has made others; what else is missing is
// not known.
std::optional<double> PlaceIn(const Features& features, const Feature& feature);

// How far a prediction of it may be off, in logarithms, however well its figures are known; and how
// much runs of one deployment usually differ.
double ModelErrorOf(const Feature& feature);
double UsualSpreadOf(const Feature& feature);

// Seconds or bytes from the logarithm.
double AmountOf(const Feature& feature, double place);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_COMPARE_FEATURES_H_
