// KernelReadAhead: which pages of one open file Linux requests from a mount while a program reads
// it, and when. It follows page_cache_sync_ra() and page_cache_async_ra() in mm/readahead.c (Linux
// 6.9 to 6.18).
//
// A read of a missing page starts a window in three cases: at the file's beginning, where the last
// read ended, or if the read is larger than a window. If more pages than the read wants are present
// right before it, the kernel requests a window whose last page is marked. Otherwise it requests
// only the read itself. If the first window is larger than the read, the page behind the read is
// marked. Reaching a marked page requests the next window, marked at its first page and two or four
// times as large, up to the mount's maximum. So a program that reads a part from the middle of a
// file requests that part's first read alone, and the rest of two windows behind the part's end.
//
// Pages cached by other opens are ignored, and no page is ever evicted. Plain values; not
// thread-safe.
#ifndef MOSA_PREDICTOR_RUN_KERNEL_READ_AHEAD_H_
#define MOSA_PREDICTOR_RUN_KERNEL_READ_AHEAD_H_

#include <cstdint>

#include "common/model/ranges.h"

namespace mosa::predict {

class KernelReadAhead {
 public:
  // `window_bytes_max`: the mount's read_ahead_kb, in bytes. Precondition: at least 128 KiB.
  explicit KernelReadAhead(uint64_t window_bytes_max);

  // The program reaches the beginning of `rest`, the non-empty remainder of its read call. Returns
  // the pages to request now, possibly beyond the file's end; empty if none.
  ByteRange ComeTo(ByteRange rest);
  // Where ComeTo() must be called next: beyond `at`, which the program has reached.
  uint64_t NextQuestion(uint64_t at) const;
  // A read call has ended at `end`.
  void HasRead(uint64_t end) { read_end_ = end; }
  // Requests exactly `range`, without a window.
  ByteRange AskAlone(ByteRange range);
  // Forgets all requested pages.
  void Forget() { AskAlone({}); }

  // The end of the last request.
  uint64_t asked_end() const { return asked_.end; }

 private:
  ByteRange BeginWindow(uint64_t page, uint64_t pages_wanted);
  ByteRange NextWindow();
  ByteRange Window(uint64_t begin_page, uint64_t ahead_pages);

  const uint64_t pages_max_;
  ByteRange asked_;        // The requested pages, contiguous.
  uint64_t window_pages_;  // Size of the last window.
  uint64_t marked_at_;     // A read of this byte's page requests the next window.
  uint64_t read_end_;      // Where the last call ended.
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_KERNEL_READ_AHEAD_H_
