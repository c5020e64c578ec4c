#include "client-sai/sai/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

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

void CopiesAtClose::Prepare(Inode& inode) {
  AccessPtr access;
  {
    const MutexLock lock(inode.mutex);
    access = inode.right.access;
    if (!access || access->close_copies <= 1 || !access->layout.bound() ||
        inode.kernel.passthrough_writers > 0 || inode.kernel.mappable_handles > 0 ||
        !std::exchange(inode.local.wrote, false))
      return;
    std::erase_if(inode.local.objects, [](const auto& o) { return o.second->writable; });
  }
  for (const NodeId node : access->layout.Nodes()) {
    if (!nodes_.IsLocal(node)) continue;
    Status told = nodes_.FinishLocalWrites({node, inode.file, access->capability});
    if (told.code() == StatusCode::kPermissionDenied) {
      access = rights_.Renew(inode, access);
      told = nodes_.FinishLocalWrites({node, inode.file, access->capability});
    }
    if (!told.ok()) stats_.Add(Counter::kErrors);
  }
}

std::optional<AwaitCopiesRequest> CopiesAtClose::Awaited(Inode& inode) {
  const MutexLock lock(inode.mutex);
  const AccessPtr access = inode.right.access;
  if (!access || access->close_copies <= 1 || !access->layout.bound()) {
    inode.uses.awaits_copies = false;
    return std::nullopt;
  }
  return AwaitCopiesRequest{.file = inode.file,
                            .data_version = inode.known.attributes.data_version,
                            .copies = access->close_copies};
}

void CopiesAtClose::Await(const AwaitCopiesRequest& request,
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

// Every close waits until then: the implicit close of a terminating program reports its failure to
// nobody.
void CopiesAtClose::NoteCopied(const AwaitCopiesRequest& request) {
  const InodePtr inode = inodes_.Find(request.file);
  if (!inode) return;
  const MutexLock lock(inode->mutex);
  if (inode->known.attributes.data_version == request.data_version)
    inode->uses.awaits_copies = false;
}

}  // namespace mosa::sai
