// ReadAhead: decides what to prefetch for one open file.
//
// The kernel delivers a sequential stream in pieces from several threads, out of order, so
// "sequential" means close to where the stream was expected to continue. The window doubles with
// each prefetch that the stream has used; a jump closes it. For a stream that starts inside the
// file, the window grows only with what was read, because others may want the rest.
//
// One owner, one thread.
#ifndef MOSA_CLIENT_SAI_CORE_READ_AHEAD_H_
#define MOSA_CLIENT_SAI_CORE_READ_AHEAD_H_

#include <cstdint>

#include "common/model/ranges.h"

namespace mosa::sai {

class ReadAhead {
 public:
  // Records a read of `range` and returns what to fetch now. When the window opens, the result
  // begins no later than the read. Empty for random reads, and while enough is being fetched.
  ByteRange OnRead(ByteRange range, uint64_t file_bytes, uint64_t window_bytes_max);

 private:
  uint64_t begin_ = 0;        // Where the stream began.
  uint64_t read_bytes_ = 0;   // What it has read since then.
  uint64_t expected_ = 0;     // Where the stream should continue.
  uint64_t fetched_end_ = 0;  // End of the fetches so far.
  uint64_t window_ = 0;       // 0: not a stream (yet).
  uint32_t in_order_ = 0;     // Consecutive reads near `expected_`.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_READ_AHEAD_H_
