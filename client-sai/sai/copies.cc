// The mount's part in copying files: it reports local writes to its node, and at close waits for as
// many copies as the file's `ack` requires.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// A report is sent for this many bytes, or when the writes are not contiguous.
constexpr uint64_t kAnnouncedBytes = 1 << 20;
// Minimum wait of a close: the manager answers an unsettled question after kAwaitCopiesMax.
constexpr Duration kCopiesPatienceMin = kAwaitCopiesMax + Milliseconds(200);

// The failure of a close or truncation that waited for copies in vain. It is committed
// nevertheless.
Failure TooFewCopies(FileId file, const AwaitCopiesReply& last) {
  const std::string message =
      fmt::format("file {} has {} of {} copies, so the call fails; its bytes are kept: {}",
                  file.value, last.copies_valid, last.copies_wanted,
                  last.reason.empty() ? "the manager does not answer" : last.reason);
  if (last.no_room) return {StatusCode::kResourceExhausted, ErrorReason::kNoSpace, message};
  return {StatusCode::kUnavailable, ErrorReason::kNodeLost, message};
}

}  // namespace

void Filesystem::Impl::NoteWrittenLocally(Inode& inode, const DataAccess& access, NodeId node,
                                          ByteRange range) {
  ByteRange announced;
  {
    const MutexLock lock(inode.mutex);
    ByteRange& waiting = inode.unannounced;
    const bool continues = !waiting.empty() && range.begin == waiting.end;
    if (!waiting.empty() && !continues) announced = std::exchange(waiting, range);
    if (announced.empty()) waiting = continues ? ByteRange{waiting.begin, range.end} : range;
    if (announced.empty() && waiting.size() >= kAnnouncedBytes)
      announced = std::exchange(waiting, {});
  }
  if (announced.empty()) return;
  // A node that misses the report finds the difference when the file is closed.
  const Status told =
      nodes_.NoteWritten({node, inode.file, access.capability}, announced.begin, announced.size());
  if (told.ok()) return;
  stats_.Add(Counter::kErrors);
  if (told.code() != StatusCode::kPermissionDenied) return;
  const MutexLock lock(inode.mutex);
  inode.access_era = 0;  // The next write has a new right.
}

void Filesystem::Impl::FinishBeforeCopies(Inode& inode) {
  AccessPtr access;
  {
    const MutexLock lock(inode.mutex);
    access = inode.access;
    if (!access || access->close_copies <= 1 || !access->layout.bound() ||
        inode.passthrough_writers > 0 || inode.mappable_handles > 0 ||
        !std::exchange(inode.wrote_locally, false))
      return;
    std::erase_if(inode.objects, [](const auto& o) { return o.second->writable; });
  }
  for (const NodeId node : access->layout.Nodes()) {
    if (!nodes_.IsLocal(node)) continue;
    Status told = nodes_.FinishLocalWrites({node, inode.file, access->capability});
    if (told.code() == StatusCode::kPermissionDenied) {
      access = RenewRight(inode, access);
      told = nodes_.FinishLocalWrites({node, inode.file, access->capability});
    }
    if (!told.ok()) stats_.Add(Counter::kErrors);
  }
}

std::optional<AwaitCopiesRequest> Filesystem::Impl::AwaitedCopies(Inode& inode) {
  const MutexLock lock(inode.mutex);
  const AccessPtr access = inode.access;
  if (!access || access->close_copies <= 1 || !access->layout.bound()) {
    inode.awaits_copies = false;
    return std::nullopt;
  }
  return AwaitCopiesRequest{.file = inode.file,
                            .data_version = inode.attributes.data_version,
                            .copies = access->close_copies};
}

// Every close waits until then: the implicit close of a terminating program reports its failure to
// nobody.
void Filesystem::Impl::NoteCopied(const AwaitCopiesRequest& request) {
  const InodePtr inode = inodes_.Find(request.file);
  if (!inode) return;
  const MutexLock lock(inode->mutex);
  if (inode->attributes.data_version == request.data_version) inode->awaits_copies = false;
}

void Filesystem::Impl::AwaitCopies(const AwaitCopiesRequest& request,
                                   std::function<void(Outcome<Done>)> done) {
  const Duration patience = std::max(WaitBudget::Patience(), kCopiesPatienceMin);
  copy_waits_.Wait(request, patience, [this, request, done = std::move(done)](const auto& last) {
    if (last.copies_valid >= last.copies_wanted) {
      NoteCopied(request);
      return done(Done{});
    }
    stats_.Add(Counter::kClosesWithoutCopies);
    done(TooFewCopies(request.file, last));
  });
}

}  // namespace mosa::sai
