// Any events for the client's machines, also those that cannot be: a reply to no request, room that
// was never granted, a block that was dropped, times that go back, sizes near 2^63. The answers are
// always defined, and what a machine counts never becomes more than what it was told of.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include "client-sai/core/block_index.h"
#include "client-sai/core/copy_wait.h"
#include "client-sai/core/grant_book.h"
#include "client-sai/core/name_epoch.h"
#include "client-sai/core/read_ahead.h"
#include "client-sai/core/rules.h"
#include "client-sai/core/size_in_kernel.h"
#include "common/base/check.h"
#include "common/base/rng.h"

namespace mosa::sai {
namespace {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  bool empty() const { return at_ == end_; }
  uint8_t Byte() { return empty() ? uint8_t{0} : *at_++; }
  uint64_t Below(uint64_t limit) { return Byte() % limit; }
  bool Bool() { return (Byte() & 1) != 0; }
  // Often a size at which something changes.
  uint64_t Size() {
    static constexpr uint64_t kSizes[] = {0,
                                          1,
                                          4095,
                                          4096,
                                          1 << 20,
                                          (1 << 20) + 1,
                                          4 << 20,
                                          1 << 30,
                                          uint64_t{1} << 40,
                                          (uint64_t{1} << 63) - 1,
                                          uint64_t{1} << 63,
                                          UINT64_MAX};
    const uint64_t which = Below(2 * std::size(kSizes));
    if (which < std::size(kSizes)) return kSizes[which];
    uint64_t size = 0;
    for (int i = 0; i < 8; ++i) size = size << 8 | Byte();
    return size >> Below(64);
  }
  // Mostly later than before.
  Time Now() {
    const auto step = static_cast<int64_t>(Size() % 20'000'000'000);
    now_ = Below(16) == 0 ? Time{step} : now_ + Nanoseconds(step);
    if (now_.ns > INT64_MAX / 2) now_ = Time{0};
    return now_;
  }

 private:
  const uint8_t* at_;
  const uint8_t* const end_;
  Time now_;
};

struct FuzzBlock {
  ByteRange of;
  ByteRange range() const { return of; }
};
using FuzzBlockPtr = std::shared_ptr<FuzzBlock>;

void FeedBlocks(Input& in) {
  BlockIndex<FuzzBlockPtr> blocks(in.Size() % (64 << 20));
  std::optional<FuzzBlockPtr> dropped;
  while (!in.empty()) {
    const FileId file{in.Below(3)};
    const uint64_t begin = in.Size() & (UINT64_MAX >> 1);
    const ByteRange range{begin, begin + 1 + in.Size() % (8 << 20)};
    switch (in.Below(6)) {
      case 0:
      case 1: {
        const auto step = blocks.Next(file, range);
        MOSA_CHECK(!step.range.empty() && step.range.begin == range.begin &&
                   step.range.end <= range.end);
        if (step.block)
          MOSA_CHECK(step.block->of.begin <= step.range.begin &&
                     step.range.end <= step.block->of.end);
        break;
      }
      case 2:
      case 3:
        for (const FuzzBlockPtr& block : blocks.Add(file, range, [](ByteRange of) {
               return std::make_shared<FuzzBlock>(FuzzBlock{of});
             })) {
          MOSA_CHECK(!block->of.empty() && block->of.size() <= kBlockBytesMax);
          dropped = block;
        }
        break;
      case 4:
        blocks.Drop(file, range);
        break;
      default:
        if (dropped) blocks.DropBlock(FileId{in.Below(3)}, *dropped);
    }
    MOSA_CHECK(blocks.ShareBytes() >= kBlockBytesMax);
  }
}

void FeedGrants(Input& in) {
  GrantBook book;
  GrantBook::Attempt attempt;
  std::map<NodeId, Wide> granted;
  while (!in.empty()) {
    const NodeId node{static_cast<uint32_t>(in.Below(3))};
    const uint64_t bytes = in.Size();
    GrantBook::Step step;
    std::optional<GrantRequest> request;
    switch (in.Below(10)) {
      case 0:
        step = book.Take(node, bytes, attempt, in.Now());
        MOSA_CHECK(step.next != GrantBook::Next::kAsk || step.request);
        break;
      case 1:
        step = book.Reserve(node, bytes, attempt, in.Now());
        MOSA_CHECK(step.next != GrantBook::Next::kAsk || step.request);
        break;
      case 2:
        static_cast<void>(book.TakeHeld(node, bytes, in.Now(), request));
        break;
      case 3: {
        const GrantReply reply{bytes, in.Size(), in.Size()};
        const bool answers = in.Bool();
        book.Settle(node, answers ? &reply : nullptr, in.Now(), in.Bool() ? &attempt : nullptr);
        if (answers) granted[node] += bytes;
        break;
      }
      case 4:
        book.PutBack(node, bytes);
        break;
      case 5:
        book.Charge(node, bytes, in.Size(), in.Now());
        break;
      case 6:
        book.Unreserve(node, bytes);
        break;
      case 7:
        MOSA_CHECK(book.TakeUnreported(node) <= granted[node]);
        break;
      case 8:
        if (const auto back = book.GiveBack(node))
          MOSA_CHECK(Wide{back->returned_bytes} + back->consumed_bytes <= granted[node]);
        break;
      default:
        book.ForgetUnreported();
        static_cast<void>(book.Idle(in.Now()));
        attempt = {};
    }
    for (const HeldGrant& held : book.Held()) MOSA_CHECK(held.bytes <= granted[held.node]);
  }
}

void FeedReads(Input& in) {
  ReadAhead ahead;
  while (!in.empty()) {
    const uint64_t begin = in.Size() >> 1;
    const ByteRange range{begin, begin + in.Size() % (2 << 20)};
    const uint64_t file_bytes = in.Size() >> 1;
    const uint64_t window = in.Size() % (64 << 20);
    const ByteRange fetch = ahead.OnRead(range, file_bytes, window);
    MOSA_CHECK(fetch.empty() || fetch.end <= file_bytes);
    MOSA_CHECK(fetch.empty() || fetch.size() <= range.size() + window);
  }
}

void FeedWaits(Input& in) {
  CopyWait wait(in.Now(), Nanoseconds(static_cast<int64_t>(in.Size() % 60'000'000'000)));
  NameEpoch epoch;
  SizeInKernel size;
  BindRetries retries(in.Now());
  int delays = 0;
  while (!in.empty()) {
    const Time now = in.Now();
    switch (in.Below(8)) {
      case 0: {
        AwaitCopiesReply reply;
        reply.copies_valid = static_cast<uint32_t>(in.Size());
        reply.copies_wanted = static_cast<uint32_t>(in.Size());
        reply.copied_bytes = in.Size();
        reply.more = in.Bool();
        reply.open_for_writing = in.Bool();
        if (wait.EndsWith(reply, now)) return;
        break;
      }
      case 1:
        static_cast<void>(wait.IsOverdue(now));
        break;
      case 2:
        if (epoch.MayKeep(now)) epoch.BeginForChange();
        break;
      case 3:
        epoch.NoteForeignChange(now);
        break;
      case 4:
        size.NoteTelling(now);
        if (in.Bool()) size.NoteTold(now);
        break;
      case 5:
        size.NoteWrite(now);
        size.NoteAnswered(in.Now(), now);
        break;
      case 6:
        MOSA_CHECK(!(size.is_settled() && size.may_be_old()));
        break;
      default: {
        const Failure refused{in.Bool() ? StatusCode::kResourceExhausted : StatusCode::kInternal,
                              in.Bool() ? ErrorReason::kNoSpace : ErrorReason::kStale, ""};
        if (retries.DelayAfter(refused, now)) MOSA_CHECK(++delays <= 3);
      }
    }
  }
}

}  // namespace
}  // namespace mosa::sai

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mosa::sai;
  for (const auto feed : {FeedBlocks, FeedGrants, FeedReads, FeedWaits}) {
    Input in(data, size);
    feed(in);
  }
  return 0;
}
