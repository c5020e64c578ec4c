#include "predictor/run/kernel_read_ahead.h"

#include <algorithm>
#include <bit>

namespace mosa::predict {
namespace {

constexpr uint64_t kNowhere = UINT64_MAX;

uint64_t PageOf(uint64_t at) { return at / kPageBytes; }

}  // namespace

KernelReadAhead::KernelReadAhead(uint64_t window_bytes_max)
    : pages_max_(window_bytes_max / kPageBytes),
      window_pages_(0),
      marked_at_(kNowhere),
      read_end_(kNowhere) {}

ByteRange KernelReadAhead::ComeTo(ByteRange rest) {
  const uint64_t page = PageOf(rest.begin);
  if (rest.begin < asked_.end && page >= PageOf(asked_.begin))
    return marked_at_ != kNowhere && page == PageOf(marked_at_) ? NextWindow() : ByteRange{};
  const uint64_t pages_wanted = PageOf(WidenToPages(rest).end) - page;
  const bool goes_on = read_end_ != kNowhere && page - PageOf(read_end_) <= 1;
  if (page == 0 || goes_on || pages_wanted > pages_max_) return BeginWindow(page, pages_wanted);
  uint64_t pages_before =
      page == PageOf(asked_.end) ? std::min(page - PageOf(asked_.begin), pages_max_) : 0;
  if (pages_before <= pages_wanted) return AskAlone(rest);
  if (pages_before == page) pages_before *= 2;
  window_pages_ = std::min(pages_before + pages_wanted, pages_max_);
  return Window(page, 1);
}

uint64_t KernelReadAhead::NextQuestion(uint64_t at) const {
  return marked_at_ > at ? std::min(marked_at_, asked_.end) : asked_.end;
}

ByteRange KernelReadAhead::AskAlone(ByteRange range) {
  asked_ = WidenToPages(range);
  marked_at_ = kNowhere;
  return asked_;
}

// get_init_ra_size()
ByteRange KernelReadAhead::BeginWindow(uint64_t page, uint64_t pages_wanted) {
  const uint64_t rounded = std::bit_ceil(pages_wanted);
  if (rounded <= pages_max_ / 32)
    window_pages_ = rounded * 4;
  else if (rounded <= pages_max_ / 4)
    window_pages_ = rounded * 2;
  else
    window_pages_ = pages_max_;
  if (page != PageOf(asked_.end)) asked_ = {page * kPageBytes, page * kPageBytes};
  return Window(page,
                window_pages_ > pages_wanted ? window_pages_ - pages_wanted : window_pages_ / 2);
}

// get_next_ra_size()
ByteRange KernelReadAhead::NextWindow() {
  if (window_pages_ < pages_max_ / 16)
    window_pages_ *= 4;
  else
    window_pages_ = std::min(window_pages_ * 2, pages_max_);
  return Window(PageOf(asked_.end), window_pages_);
}

ByteRange KernelReadAhead::Window(uint64_t begin_page, uint64_t ahead_pages) {
  asked_.end = (begin_page + window_pages_) * kPageBytes;
  marked_at_ = asked_.end - ahead_pages * kPageBytes;
  return {begin_page * kPageBytes, asked_.end};
}

}  // namespace mosa::predict
