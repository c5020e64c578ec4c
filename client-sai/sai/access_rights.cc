#include "client-sai/sai/access_rights.h"

#include <utility>

#include "client-sai/core/rules.h"

namespace mosa::sai {
namespace {

constexpr uint64_t kInlineCachedBytesMax = uint64_t{32} << 20;

}  // namespace

Outcome<AccessPtr> AccessRights::Ensure(Inode& inode, bool write, const std::string& task) {
  auto fresh = FreshFromCache(inode, write, /*with_attributes=*/false);
  if (!fresh) fresh = AskFresh(inode, write, task);
  if (!fresh->ok()) return fresh->failure();
  return (*fresh)->access;
}

Outcome<Fresh> AccessRights::EnsureFresh(Inode& inode, bool write, const std::string& task) {
  auto fresh = FreshFromCache(inode, write, /*with_attributes=*/true);
  return fresh ? *std::move(fresh) : AskFresh(inode, write, task);
}

// Absent: ask the manager.
std::optional<Outcome<Fresh>> AccessRights::FreshFromCache(Inode& inode, bool write,
                                                           bool with_attributes) {
  const Time now = lease_.ManagerNow();
  MutexLock lock(inode.mutex);
  while (inode.making.state == MakeState::kSending) inode.changed.wait(lock);
  if (inode.making.state == MakeState::kRefused) return inode.making.failure;
  const uint64_t era = lease_.ValidEra();
  const AccessPtr& access = inode.right.access;
  const bool valid = access && era != 0 &&
                     MayUseCached({.is_current = inode.right.era == era,
                                   .has_attributes = inode.known.era == era,
                                   .serves = inode.AccessServes(*access, write),
                                   .bound = access->layout.bound(),
                                   .expires = access->expires},
                                  with_attributes, now);
  if (!valid && inode.making.state != MakeState::kUnsent) return std::nullopt;
  return Fresh{inode.right.access, inode.known.attributes, inode.right.version,
               inode.known.own_changes};
}

Outcome<Fresh> AccessRights::AskFresh(Inode& inode, bool write, const std::string& task) {
  uint64_t own_changes = 0;
  bool reads_first = false;  // To read, the mount asks as the writer that it is.
  {
    const MutexLock lock(inode.mutex);
    own_changes = inode.known.own_changes;
    reads_first = !write && inode.MustReadFirstCopy();
    write = write || reads_first;
  }
  const bool taken_back = write && TakeBackRelease(inode);
  const Mark mark = recalls_.Now();
  Outcome<OpenReply> reply = calls_.Ask<OpenReply>(OpenRequest{inode.file, write, task});
  for (int again = 0; !reply.ok() && OpenIsRepeated(reply.failure(), again); ++again)
    reply = calls_.Ask<OpenReply>(OpenRequest{inode.file, write, task});
  const bool may_count =
      !reply.ok() && (taken_back || reply.failure().reason == ErrorReason::kTimedOut);
  if (reads_first && (reply.ok() || may_count)) EndReadAsWriter(inode);
  if (write && !reads_first && may_count) NoteUnheardOpen(inode);
  if (!reply.ok()) return reply.failure();
  attributes_.Store(inode, reply->attributes, mark, false);
  const uint64_t version = reply->attributes.data_version;
  Fresh fresh{std::make_shared<const DataAccess>(std::move(reply->access)), reply->attributes,
              version, own_changes};
  const MutexLock lock(inode.mutex);
  inode.uses.counts_readers = reply->counts_readers;
  if (write && !reads_first) inode.uses.manager_counts_open = true;
  // The content is already in the objects, and the manager is being told.
  if (inode.content.moves && inode.right.access && !inode.right.access->is_inline)
    fresh.access = inode.right.access;
  // The answer may be older than a change that this mount has made or heard of. Then the cached
  // access stays for its current users, and the next use asks again.
  const bool outdated =
      inode.known.own_changes != own_changes || recalls_.HappenedForeign(mark.log, inode.file);
  // A right to read may have been asked for before the mount became a writer.
  const bool serves = inode.AccessServes(*fresh.access, write);
  if ((!outdated && serves) || !inode.right.access) Keep(inode, fresh.access, mark, version);
  if (outdated) inode.right.era = 0;
  return fresh;
}

// The last writer here may have closed the file while the question was under way, and the manager
// may have heard of that first.
void AccessRights::EndReadAsWriter(Inode& inode) {
  std::optional<ReleaseRequest> release;
  {
    const MutexLock lock(inode.mutex);
    release = inode.EndUnlessWriter();
  }
  if (release) releases_.Queue(*std::move(release));
}

// The mount becomes a writer again. Returns true if it has withdrawn a release that the manager had
// not received yet.
bool AccessRights::TakeBackRelease(Inode& inode) {
  const Releases::TakenBack taken = releases_.TakeBack(inode.file);
  if (taken.uncommitted) inode.NoteChangeFailed();
  return taken.any;
}

// A timed-out request to open the file for writing may still run, or the manager was not told of
// the end of an earlier one: so it must be told.
void AccessRights::NoteUnheardOpen(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    inode.uses.manager_counts_open = inode.uses.handles > 0 || inode.cut.resizing;
    if (inode.uses.manager_counts_open) return;
  }
  releases_.Queue({.file = inode.file});
}

AccessPtr AccessRights::Store(Inode& inode, DataAccess access, Mark mark, uint64_t version) {
  const MutexLock lock(inode.mutex);
  Keep(inode, std::make_shared<const DataAccess>(std::move(access)), mark, version);
  ++inode.known.own_changes;
  return inode.right.access;
}

void AccessRights::Keep(Inode& inode, AccessPtr access, Mark mark, uint64_t version) {
  if (inode.right.access && inode.right.access->layout.bound() &&
      inode.kernel.passthrough_handles == 0 && inode.right.access->layout != access->layout)
    inode.local.objects.clear();
  if (inode.right.access) inline_bytes_ -= inode.right.access->inline_data.size();
  inline_bytes_ += access->inline_data.size();
  inode.right.access = std::move(access);
  inode.right.era = recalls_.HappenedForeign(mark.log, inode.file) ? 0 : mark.era;
  inode.right.version = version;
}

AccessPtr AccessRights::Renew(Inode& inode, const AccessPtr& refused) {
  {
    const MutexLock lock(inode.mutex);
    if (inode.right.access == refused) inode.right.era = 0;
  }
  const auto renewed = Ensure(inode, refused->may_write);
  return renewed.ok() ? *renewed : refused;
}

// Makes the committed content the access' inline data, so that the next open here needs no call.
void AccessRights::KeepInline(Inode& inode) {
  auto access = WithoutInlineBytes(*inode.right.access);
  inode.content.buffer->shrink_to_fit();  // Only its size is counted.
  access->is_inline = !inode.content.buffer->empty();
  access->inline_data = std::move(*inode.content.buffer);
  access->inline_valid_bytes = access->inline_data.size();
  inline_bytes_ += access->inline_data.size();
  inline_bytes_ -= inode.right.access->inline_data.size();
  inode.right.access = std::move(access);
  inode.content.buffer.reset();
  inode.content.ranges.Clear();
}

void AccessRights::DropUnusedInline(Inode& inode) {
  if (inode.uses.handles > 0 || !inode.right.access || inode.right.access->inline_data.empty())
    return;
  const bool is_current = inode.right.era != 0 && inode.right.era == lease_.ValidEra();
  if (is_current && inline_bytes_ <= kInlineCachedBytesMax) return;
  inline_bytes_ -= inode.right.access->inline_data.size();
  inode.right.access = WithoutInlineBytes(*inode.right.access);
  inode.right.era = 0;
}

void AccessRights::NoteInlineMoved(Inode& inode) {
  inline_bytes_ -= inode.right.access->inline_data.size();
  auto objects_only = WithoutInlineBytes(*inode.right.access);
  objects_only->is_inline = false;
  inode.right.access = std::move(objects_only);
}

void AccessRights::NoteDropped(const Inode& inode) {
  if (inode.right.access) inline_bytes_ -= inode.right.access->inline_data.size();
}

}  // namespace mosa::sai
