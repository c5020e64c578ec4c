// ReadTrial: simulates how long one program takes to read files of one kind of layout, each alone,
// on an otherwise idle cluster, with the real manager core and the client's real rules.
//
// Pure: the same arguments give the same samples.
#ifndef MOSA_PREDICTOR_RUN_READ_TRIAL_H_
#define MOSA_PREDICTOR_RUN_READ_TRIAL_H_

#include <compare>
#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "predictor/model/platform.h"

namespace mosa::predict {

// The properties of a read other than its size. Node ids do not matter, since hosts are alike.
struct ReadShape {
  enum class Kind : uint8_t {
    kInline,  // The manager has the bytes, or there are none.
    kWhole,   // The host's node has the whole file. The kernel reads it if the platform has
              // passthrough.
    kMount,  // The node has all bytes, but not as one plain file, or without passthrough: the mount
             // reads it.
    kNodes,  // A stripe over `width` nodes; the host's node holds `local` of its positions.
  };
  Kind kind = Kind::kNodes;
  uint64_t chunk_bytes = 0;  // For kNodes, like the following fields.
  uint32_t width = 1;
  uint32_t local = 0;  // Below `width`.
  auto operator<=>(const ReadShape&) const = default;
};

struct ReadSample {
  uint64_t size_bytes = 0;
  Duration time;  // From before the lookup of the name until the last byte has arrived.
};

// Returns one sample per size, in order. The reader has not read the file before, but another one
// in its directory. Internal if the simulated cluster refuses the layout. Preconditions:
// Check(platform).ok(); sizes of kInline are at most kInlineBytesMax.
Result<std::vector<ReadSample>> SimulateReads(const ReadShape& shape, const Platform& platform,
                                              const std::vector<uint64_t>& sizes_bytes);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_READ_TRIAL_H_
