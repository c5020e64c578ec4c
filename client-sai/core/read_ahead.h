// ReadAhead: what to fetch of one open file before it is asked for.
//
// The kernel asks for a sequential stream in pieces that several threads deliver out of order, so
// "sequential" means near where the stream was expected to go on. The window doubles with each
// fetch that the stream has used, and is closed by a jump. If a stream does not begin where the
// file does, it grows only with what was read: others may want the rest.
// One owner, one thread.
#ifndef MOSA_CLIENT_SAI_CORE_READ_AHEAD_H_
#define MOSA_CLIENT_SAI_CORE_READ_AHEAD_H_

#include <cstdint>

#include "common/model/ranges.h"

namespace mosa::sai {

class ReadAhead {
 public:
  // A read of `range` has come. Returns what to fetch now, beginning no later than the read while
  // the window opens; empty for random reads and while enough is on its way.
  ByteRange OnRead(ByteRange range, uint64_t file_bytes, uint64_t window_bytes_max);

 private:
  uint64_t begin_ = 0;        // Where the stream began.
  uint64_t read_bytes_ = 0;   // And what it has read since.
  uint64_t expected_ = 0;     // Where the stream goes on.
  uint64_t fetched_end_ = 0;  // How far fetches have been asked for.
  uint64_t window_ = 0;       // 0: not a stream (yet).
  uint32_t in_order_ = 0;     // Reads in a row that were near `expected_`.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_READ_AHEAD_H_
