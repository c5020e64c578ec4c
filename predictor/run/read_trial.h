// ReadTrial: how long one program takes to read files of one kind of layout, each alone, on a
// cluster that does nothing else: a simulation with the real manager and the client's real rules.
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

// What a read has to do besides its size. Node ids do not matter: hosts are alike.
struct ReadShape {
  enum class Kind : uint8_t {
    kInline,  // The manager has the bytes, or there are none.
    kWhole,   // The host's node has the whole file: by the kernel, where the platform does that.
    kMount,   // It has all bytes, but not as one plain file, or the kernel may not: by the mount.
    kNodes,   // A stripe over `width` nodes, of whose positions the host's node has `local`.
  };
  Kind kind = Kind::kNodes;
  uint64_t chunk_bytes = 0;  // For kNodes, as are the others. A power of two.
  uint32_t width = 1;
  uint32_t local = 0;  // Less than `width`.
  auto operator<=>(const ReadShape&) const = default;
};

struct ReadSample {
  uint64_t size_bytes = 0;
  Duration time;  // From before the name is looked up until the last byte has come.
};

// One sample for each size, in order: whoever reads has not read the file before, but another one
// of its directory. Internal: the simulated cluster refuses the layout.
// Preconditions: Check(platform).ok(), sizes of kInline are at most kInlineBytesMax.
Result<std::vector<ReadSample>> SimulateReads(const ReadShape& shape, const Platform& platform,
                                              const std::vector<uint64_t>& sizes_bytes);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_READ_TRIAL_H_
