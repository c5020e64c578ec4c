// What the verbs of `mosa hint` share.
#ifndef MOSA_TOOLS_MOSA_HINT_H_
#define MOSA_TOOLS_MOSA_HINT_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/hints.h"

namespace mosa::cli {

// Parses words such as "placement=local". InvalidArgument quotes a word that is not a hint.
Result<std::vector<HintValue>> ParseAssignments(const std::vector<std::string>& words);

// For help texts: every hint with its values.
inline constexpr const char* kHintHelp =
    "pattern      pipeline, reduce[:GROUP], broadcast[:N], scatter[:SIZE], gather[:SIZE], default\n"
    "placement    stripe, near, local, collocate:GROUP, scatter:CHUNKS, node:NAME\n"
    "replicas     1 to 64, or auto\n"
    "replicate    eager, lazy\n"
    "ack          optimistic, pessimistic, or 1 to 64\n"
    "chunk_size   4K to 1G, a multiple of 4K\n"
    "stripe_width 1 to 1024\n"
    "lifetime     keep, temporary, readers:N\n"
    "strict       0, 1";

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_HINT_H_
