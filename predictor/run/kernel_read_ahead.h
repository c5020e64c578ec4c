// KernelReadAhead: which pages of one open file Linux asks a mount for while a program reads it,
// and when; as page_cache_sync_ra() and page_cache_async_ra() in mm/readahead.c (Linux 6.9 to 6.18)
// say.
//
// A program that comes to a page that is not there brings a window if the file begins there, if it
// goes on where it has read to, or if it reads more than a window; and one that is marked at its
// last page if more pages than it reads are there right before; else no more than it reads. If a
// first window is larger than the
// read, the page behind the read is marked; a program that comes to it brings the next window,
// twice or four times as large until it is the largest that the mount allows, marked at its first
// page. So a program that reads a part from the middle of a file brings that part's first read
// alone, and behind the part's end what is left of two windows.
//
// Pages that are there since other opens are not looked at, nor is a dropped page. Plain
// values, no thread.
#ifndef MOSA_PREDICTOR_RUN_KERNEL_READ_AHEAD_H_
#define MOSA_PREDICTOR_RUN_KERNEL_READ_AHEAD_H_

#include <cstdint>

#include "common/model/ranges.h"

namespace mosa::predict {

class KernelReadAhead {
 public:
  // `window_bytes_max`: the mount's read_ahead_kb. At least 128 KiB.
  explicit KernelReadAhead(uint64_t window_bytes_max);

  // The program comes to the begin of `rest`, which is not empty: what it still reads with this
  // call. Returns the pages that are asked for now, beyond the file's end as they may be; empty if
  // none.
  ByteRange ComeTo(ByteRange rest);
  // Where the next question may be: beyond `at`, to which it has come.
  uint64_t NextQuestion(uint64_t at) const;
  // A call has read to here.
  void HasRead(uint64_t end) { read_end_ = end; }
  // `range` is asked for as it is.
  ByteRange AskAlone(ByteRange range);
  // Nothing is there.
  void Forget() { AskAlone({}); }

  // Where the last request ends.
  uint64_t asked_end() const { return asked_.end; }

 private:
  ByteRange BeginWindow(uint64_t page, uint64_t pages_wanted);
  ByteRange NextWindow();
  ByteRange Window(uint64_t begin_page, uint64_t ahead_pages);

  const uint64_t pages_max_;
  ByteRange asked_;        // In one piece.
  uint64_t window_pages_;  // Size of the last window.
  uint64_t marked_at_;     // A read of this byte's page brings the next window.
  uint64_t read_end_;      // Where the last call ended.
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_KERNEL_READ_AHEAD_H_
