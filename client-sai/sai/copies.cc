// What a mount does for files with copies: tells its node what it writes by itself, and waits at
// close until there are as many copies as the file's `ack` asks for.
#include <algorithm>
#include <utility>

#include "client-sai/sai/impl.h"
#include "common/base/log.h"

namespace mosa::sai {
namespace {

// A node hears of what was written when it is so much, or not one stretch.
constexpr uint64_t kAnnouncedBytes = 1 << 20;
// From its beginning, with all that it does before it waits for copies: a close that copies slowly
// ends then as well, and the copies follow.
constexpr Duration kCloseWaitMax = kWaitMax - Milliseconds(300);

}  // namespace

void Filesystem::Impl::NoteWrittenLocally(Inode& inode, const DataAccess& access, NodeId node,
                                          ByteRange range) {
  ByteRange announced;
  {
    const std::lock_guard lock(inode.mutex);
    ByteRange& waiting = inode.unannounced;
    const bool continues = !waiting.empty() && range.begin == waiting.end;
    if (!waiting.empty() && !continues) announced = std::exchange(waiting, range);
    if (announced.empty()) waiting = continues ? ByteRange{waiting.begin, range.end} : range;
    if (announced.empty() && waiting.size() >= kAnnouncedBytes)
      announced = std::exchange(waiting, {});
  }
  if (announced.empty()) return;
  // Who misses it finds the difference when the file is closed.
  const Status told =
      nodes_.NoteWritten({node, inode.file, access.capability}, announced.begin, announced.size());
  if (!told.ok()) stats_.Add(Counter::kErrors);
}

bool Filesystem::Impl::HasDataToCommit(Inode& inode) {
  const std::lock_guard lock(inode.mutex);
  return inode.data_dirty;
}

void Filesystem::Impl::FinishBeforeCopies(Inode& inode) {
  AccessPtr access;
  {
    const std::lock_guard lock(inode.mutex);
    access = inode.access;
    if (!access || access->close_copies <= 1 || !access->layout.bound() ||
        inode.passthrough_writers > 0 || !std::exchange(inode.wrote_locally, false))
      return;
    std::erase_if(inode.objects, [](const auto& o) { return o.second->writable; });
  }
  for (const NodeId node : access->layout.Nodes()) {
    if (!nodes_.IsLocal(node)) continue;
    if (!nodes_.FinishLocalWrites({node, inode.file, access->capability}).ok())
      stats_.Add(Counter::kErrors);
  }
}

std::optional<AwaitCopiesRequest> Filesystem::Impl::AwaitedCopies(Inode& inode) {
  const std::lock_guard lock(inode.mutex);
  const AccessPtr& access = inode.access;
  if (!access || access->close_copies <= 1 || !access->layout.bound()) return std::nullopt;
  return AwaitCopiesRequest{.file = inode.file,
                            .data_version = inode.attributes.data_version,
                            .copies = access->close_copies};
}

void Filesystem::Impl::AwaitCopies(const AwaitCopiesRequest& request, Time begun,
                                   std::function<void()> done) {
  copy_waits_.Wait(request, begun + kCloseWaitMax,
                   [this, file = request.file, done = std::move(done)](const auto& last) {
                     if (last.copies_valid < last.copies_wanted) NoteWithoutCopies(file, last);
                     done();
                   });
}

void Filesystem::Impl::NoteWithoutCopies(FileId file, const AwaitCopiesReply& last) {
  stats_.Add(Counter::kClosesWithoutCopies);
  LogWarning("file {} was closed with {} of {} copies: the others will follow, or no node has room",
             file.value, last.copies_valid, last.copies_wanted);
}

}  // namespace mosa::sai
