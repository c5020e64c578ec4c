// `mosa envelope run`: checks the whole request before the first effect; then goes round over all
// cells, with the stores of a cell in turn, until there are enough samples or the time is used up.
#ifndef MOSA_TOOLS_MEASURE_ENVELOPE_RUN_H_
#define MOSA_TOOLS_MEASURE_ENVELOPE_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/console/cluster_choice.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

struct EnvelopeRequest {
  ClusterChoice cluster;
  HostsRequest hosts;
  std::vector<std::string> paths;
  std::vector<uint32_t> clients;
  std::vector<std::string> sizes;
  double scale = 0.0625;
  std::string bytes_max = "64M";
  uint32_t repeats = 5;
  double budget_seconds = 540;
  std::string pages = "cold";
  uint64_t seed = 1;
  std::string out = "envelope.json";

  bool is_warm() const { return pages == "warm"; }
};

// Measures what `options.out` does not have yet, stores it there, and prints everything.
Status RunEnvelope(const EnvelopeRequest& options, bool as_json);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_ENVELOPE_RUN_H_
