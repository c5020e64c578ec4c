#include "client-sai/sai/file_attributes.h"

#include <utility>

#include "client-sai/sai/io_lock.h"
#include "common/base/sync.h"

namespace mosa::sai {

Outcome<AttributesResult> FileAttributes::Get(FileId file) {
  const InodePtr inode = inodes_.Get(file);
  const Time asked = clock_.Monotonic();
  {
    MutexLock lock(inode->mutex);
    AttributeCache::AwaitSettled(*inode, lock);
  }
  attributes_.NoteKernelWrites(*inode);
  MOSA_RETURN_IF_FAILED(Ensure(*inode));
  MutexLock lock(inode->mutex);
  AttributeCache::AwaitSettled(*inode, lock);
  inode->kernel.size.NoteAnswered(asked, clock_.Monotonic());
  return AttributesResult{AttributeCache::View(*inode), attributes_.CachedFor(*inode)};
}

Outcome<Attributes> FileAttributes::GetUnsettled(FileId file) {
  const InodePtr inode = inodes_.Get(file);
  MOSA_RETURN_IF_FAILED(Ensure(*inode));
  const MutexLock lock(inode->mutex);
  return AttributeCache::View(*inode);
}

Outcome<AttributesResult> FileAttributes::Set(FileId file, const AttributeChanges& changes) {
  const InodePtr inode = inodes_.Get(file);
  const IoLock io(*inode);
  bool resizes = false;
  const std::shared_ptr<void> resize(nullptr, [&](void*) {
    inode->io.AssertHeld();
    if (resizes) size_changes_.EndResize(*inode);
  });
  if (changes.size_bytes && changes.handle) {
    const std::shared_ptr<OpenFile> handle = handles_.FindFile(*changes.handle);
    if (handle && handle->write) MOSA_RETURN_IF_FAILED(handle->EnsureCounted());
  }
  if (!SetUnsent(*inode, changes)) {
    MOSA_RETURN_IF_FAILED(commits_.EnsureMade(*inode));
    resizes = changes.size_bytes.has_value();
    if (resizes) MOSA_RETURN_IF_FAILED(size_changes_.Resize(*inode, *changes.size_bytes));
    attributes_.NoteKernelWrites(*inode);
    if (changes.modify_time || changes.modify_time_now) mapped_stores_.Catch(*inode);
    bool must_commit = false;
    {
      const MutexLock lock(inode->mutex);
      must_commit =
          (inode->unsaved.data_dirty && (changes.modify_time || changes.modify_time_now)) ||
          (inode->making.unsent_times && (changes.modify_time || changes.modify_time_now ||
                                          changes.access_time || changes.access_time_now));
    }
    // Settles earlier writes first, so that their commit cannot override the time being set.
    if (must_commit) {
      write_behind_.Drain(*inode);
      MOSA_RETURN_IF_FAILED(writer_.Commit(*inode, false));
    }
    SetAttributesRequest request{file,
                                 changes.permissions,
                                 changes.uid,
                                 changes.gid,
                                 changes.size_bytes,
                                 changes.access_time,
                                 changes.modify_time,
                                 changes.access_time_now,
                                 changes.modify_time_now};
    if (changes.modify_time || changes.modify_time_now) {
      const MutexLock lock(inode->mutex);
      ++inode->local.times_set;
    }
    Mark mark;
    auto reply = Change(*inode, std::move(request), &mark);
    if (!reply.ok()) return reply.failure();
    inode->partly_changed = false;
    if (changes.size_bytes) size_changes_.NoteCut(*inode, *changes.size_bytes, *reply, mark);
    attributes_.Store(*inode, reply->attributes, mark, true);
  }
  const MutexLock lock(inode->mutex);
  return AttributesResult{AttributeCache::View(*inode), attributes_.CachedFor(*inode)};
}

void FileAttributes::Set(FileId file, const AttributeChanges& changes,
                         std::function<void(Outcome<AttributesResult>)> done) {
  const Outcome<AttributesResult> changed = Set(file, changes);
  const InodePtr inode = inodes_.Get(file);
  std::optional<AwaitCopiesRequest> awaited;
  if (changed.ok() && changes.size_bytes) awaited = CopiesOfClosed(*inode);
  if (!awaited) return done(changed);
  copies_.Await(*awaited, [this, inode, done = std::move(done)](const Outcome<Done>& copied) {
    if (!copied.ok()) {
      write_behind_.DropFailedPages(*inode);  // The kernel still has the old size.
      return done(copied.failure());
    }
    AttributesResult now;  // Others may have changed the file meanwhile.
    {
      const MutexLock lock(inode->mutex);
      now = {AttributeCache::View(*inode), attributes_.CachedFor(*inode)};
    }
    done(now);
  });
}

Outcome<Done> FileAttributes::Ensure(Inode& inode) {
  bool has_unsent = false;
  {
    const MutexLock lock(inode.mutex);
    if (inode.making.state == MakeState::kRefused) return inode.making.failure;
    if (inode.making.state != MakeState::kSent) return Done{};
    if (attributes_.AreValid(inode)) return Done{};
    // A directory removed here keeps its attributes for programs that have it open or work in it.
    if (inode.known.attributes.type == FileType::kDirectory && inode.known.received &&
        inode.known.attributes.link_count == 0)
      return Done{};
    has_unsent = !inode.names.unsent.empty() && !inode.names.shared.is_shared();
  }
  if (has_unsent) MOSA_RETURN_IF_FAILED(commits_.EnsureAllMade(inode));
  const Mark mark = recalls_.Now();
  auto reply = calls_.Ask<AttributesReply>(GetAttributesRequest{inode.file});
  if (!reply.ok()) {
    const MutexLock lock(inode.mutex);
    const bool directory =
        inode.known.received && inode.known.attributes.type == FileType::kDirectory;
    if (reply.failure().reason != ErrorReason::kStale || !directory) return reply.failure();
    // Removed while open here: fstat still answers, with no links left.
    inode.known.attributes.link_count = 0;
    return Done{};
  }
  attributes_.Store(inode, reply->attributes, mark, false);
  return Done{};
}

// truncate(2) is the last close as well, if no program here has the file open for writing.
std::optional<AwaitCopiesRequest> FileAttributes::CopiesOfClosed(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    if (!inode.uses.awaits_copies || inode.IsOpenToWrite() ||
        inode.known.attributes.link_count == 0)
      return std::nullopt;
  }
  releases_.Send();  // While the manager counts a writer, nobody copies.
  const IoLock io(inode);
  copies_.Prepare(inode);  // The new size may have moved inline bytes to this host's node.
  return CopiesAtClose::Awaited(inode);
}

// Asks for the change, and truncates the objects again if they are no longer the file's. `mark` is
// that of the last question.
Outcome<AttributesReply> FileAttributes::Change(Inode& inode, SetAttributesRequest request,
                                                Mark* mark) {
  for (;;) {
    {
      const MutexLock lock(inode.mutex);
      request.generation = inode.cut.by;
      request.lay_out_anew = request.size_bytes && inode.cut.lays_out_anew;
    }
    *mark = recalls_.Now();
    auto reply = ManagerCalls::LastOf<AttributesReply>(
        request.lay_out_anew ? gate_.AskFreezing(inode, request) : calls_.AskAll({request}));
    if (reply.ok() || !request.size_bytes) return reply;
    {
      // Another mount has begun to move the file into objects, or its bytes have moved. An answer
      // that is late may mean that the manager has laid it out anew.
      const MutexLock lock(inode.mutex);
      inode.right.era = 0;
      inode.known.Invalidate();
    }
    if (reply.failure().code != StatusCode::kAborted) return reply;
    MOSA_RETURN_IF_FAILED(size_changes_.Resize(inode, *request.size_bytes));
  }
}

// Applies changes to a file that only this mount knows, as part of its make. False: send the make
// first.
bool FileAttributes::SetUnsent(Inode& inode, const AttributeChanges& changes) {
  const Time now = lease_.ManagerNow();
  const MutexLock lock(inode.mutex);
  if (inode.making.state != MakeState::kUnsent) return false;
  if (changes.uid || changes.gid) return false;
  const uint64_t size = changes.size_bytes.value_or(0);
  if (size > inode.right.access->inline_bytes_max) return false;
  const auto in_future = [&](const std::optional<Time>& time) { return time && *time > now; };
  if (in_future(changes.modify_time) || in_future(changes.access_time)) return false;
  if (changes.size_bytes) {
    if (!inode.content.buffer) inode.content.buffer.emplace();
    inode.content.buffer->resize(static_cast<size_t>(size));
    inode.content.ranges.Remove({size, UINT64_MAX});
    inode.unsaved.dirty_end = size;
    inode.unsaved.data_dirty = true;
    inode.unsaved.modify_time = now;
  }
  if (changes.permissions) {
    inode.making.request.permissions = *changes.permissions & 07777;
    inode.known.attributes.permissions = inode.making.request.permissions;
  }
  const bool sets_modify = changes.modify_time || changes.modify_time_now;
  const bool sets_access = changes.access_time || changes.access_time_now;
  if (sets_modify || sets_access) {
    if (!inode.making.unsent_times) inode.making.unsent_times.emplace();
    inode.making.unsent_times->file = inode.file;
    if (sets_modify) inode.making.unsent_times->modify_time = changes.modify_time.value_or(now);
    if (sets_access) inode.making.unsent_times->access_time = changes.access_time.value_or(now);
  }
  inode.known.attributes.change_time = now;
  return true;
}

}  // namespace mosa::sai
