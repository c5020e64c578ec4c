// Which host copies which file. Pure.
#ifndef MOSA_TOOLS_STAGE_PLAN_H_
#define MOSA_TOOLS_STAGE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/model/staging.h"

namespace mosa::cli {

struct StageShare {
  uint64_t bytes = 0;
  std::vector<size_t>
      holders;  // Hosts that hold, or will hold, some of it; none: any host will do.
};

// For each file its host: of its holders the one with the least to copy, the largest files first.
std::vector<size_t> ShareOut(const std::vector<StageShare>& files, size_t hosts);

// Nothing, or how many of the store's files nobody asked to be kept: they end with it.
std::string WarningFor(const UnstagedFiles& unstaged);

// The refusal to end what holds these files; `stage_out` is the command that stages them out, and
// `override` what ends the store in spite of it (empty: nothing does).
std::string RefusalFor(const UnstagedFiles& unstaged, const std::string& what,
                       const std::string& stage_out, const std::string& override);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_STAGE_PLAN_H_
