// How a simulated mount's writes continue when a node is full, as in client-sai/sai/spill.cc.
#include <algorithm>
#include <string>
#include <utility>

#include "client-sai/core/rules.h"
#include "predictor/run/simulated_writes.h"

namespace mosa::predict {
namespace {

// How often in a row a write gives way to other mounts that continue the same file elsewhere.
constexpr uint32_t kOvertakenMax = 1000;

}  // namespace

// `full` has no room for `range`, of which nothing is stored. On OK, the same node or another one
// may have room now, and the caller must ask again.
des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::Spill(Writer& writer, ByteRange range,
                                                              NodeId full) {
  writer.refusing.insert(full);
  const auto refused = [&writer] {
    return std::vector<NodeId>(writer.refusing.begin(), writer.refusing.end());
  };
  // Store what has room first: no write may be in flight while the layout changes.
  SendOpenExtent(writer);
  while (writer.sending.under_way() > 0) co_await writer.sending.changed().Wait();
  std::string why;
  // Existing bytes do not move, and the file's holes are not known here.
  if (writer.before != Content::kKept) {
    const Outcome<Done> spilled = co_await GoOnElsewhere(writer, range);
    if (spilled.ok()) {
      writer.overtaken = 0;
      co_return spilled;
    }
    writer.state.right_known = writer.state.attributes_known = false;
    if (spilled.failure().code == StatusCode::kAborted && ++writer.overtaken < kOvertakenMax) {
      co_await loop_.Sleep(sai::kFrozenDelay);
      co_return co_await files_.EnsureRight(writer.file, true, false, kNoTask);
    }
    if (spilled.failure().reason != ErrorReason::kNoSpace) co_return spilled;
    why = spilled.failure().message;
  }
  const std::optional<Duration> delay = sai::NoSpaceDelay(writer.refusals++);
  if (!delay) co_return NoSpace(writer, refused(), why);
  co_await loop_.Sleep(*delay);
  writer.refusing.clear();
  co_return Done{};
}

// Moves the bytes from the first page of `range` on that has no room to nodes that have not refused
// them.
des::Activity<sai::Outcome<sai::Done>> SimulatedWrites::GoOnElsewhere(Writer& writer,
                                                                      ByteRange range) {
  Request freeze = FreezeRequest{writer.file};
  const Outcome<BindReply> frozen = co_await Ask<BindReply>(std::move(freeze));
  if (!frozen.ok()) co_return frozen.failure();
  RelocateRequest relocate;
  relocate.file = writer.file;
  relocate.begin = std::max(WidenToPages(range).begin, writer.pages_end);
  relocate.end = frozen->access.layout.SegmentEnd(relocate.begin);
  relocate.full.assign(writer.refusing.begin(), writer.refusing.end());
  SimulatedMark mark = files_.mark();
  Request request = relocate;
  Outcome<BindReply> relocated = co_await Ask<BindReply>(std::move(request));
  while (relocated.ok() && !relocated->older.empty()) {
    // Removing older bytes takes next to no time beside the question.
    relocate.cleaned.insert(relocate.cleaned.end(), relocated->older.begin(),
                            relocated->older.end());
    mark = files_.mark();
    request = relocate;
    relocated = co_await Ask<BindReply>(std::move(request));
  }
  if (!relocated.ok()) co_return relocated.failure();
  writer.state.access = relocated->access;
  writer.state.right_known = !files_.RecalledSince(mark, writer.file);
  writer.state.room_version.reset();
  co_return Done{};
}

}  // namespace mosa::predict
