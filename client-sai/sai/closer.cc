#include "client-sai/sai/closer.h"

#include <utility>

#include "client-sai/core/rules.h"
#include "client-sai/sai/io_lock.h"

namespace mosa::sai {

void Closer::Flush(HandleId id, uint64_t lock_owner, std::function<void(Outcome<Done>)> done) {
  stats_.Add(Counter::kCloses);
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle) return done(Done{});
  std::optional<AwaitCopiesRequest> awaited;
  const Outcome<Done> flushed = FlushData(*handle, lock_owner, &awaited);
  if (!awaited) return done(flushed);
  copies_.Await(*awaited, [inode = handle->inode, done = std::move(done)](Outcome<Done> copied) {
    {
      const MutexLock lock(inode->mutex);
      --inode->uses.closes_waiting;
    }
    done(std::move(copied));
  });
}

Outcome<Done> Closer::FlushData(OpenFile& handle, uint64_t lock_owner,
                                std::optional<AwaitCopiesRequest>* awaited) {
  Inode& inode = *handle.inode;
  Outcome<Done> result = Done{};
  bool concerned = handle.write;
  {
    const MutexLock lock(inode.mutex);
    concerned = concerned || (inode.unsaved.needs_commit && inode.uses.write_handles == 0);
  }
  if (concerned) {
    const IoLock io(inode);
    attributes_.NoteKernelWrites(inode);
    mapped_stores_.Catch(inode);
    write_behind_.Drain(inode);
    bool last = false;
    bool awaits_copies = false;
    bool tells_close = false;
    {
      const MutexLock lock(inode.mutex);
      // The kernel releases a handle later than its last descriptor is closed. Writes by
      // passthrough after one of several descriptors was closed are not seen here.
      const bool by_kernel = handle.mode.kind == OpenMode::Kind::kPassthrough;
      // A program may write on through another descriptor, and a stream that has ended has ended.
      if (handle.write && !by_kernel && !handle.stream && !std::exchange(handle.closed, true))
        --inode.uses.unclosed_writers;
      handle.was_closed = true;
      last = !handle.stream &&
             inode.uses.unclosed_writers <= (handle.write && by_kernel ? 1U : 0U) &&
             inode.known.attributes.link_count > 0 && !MappedStores::MayBeStoredInto(inode);
      awaits_copies =
          last && (inode.unsaved.data_dirty || (handle.write && inode.uses.awaits_copies));
      tells_close = awaits_copies && inode.right.access && inode.right.access->close_copies > 1;
      if (awaits_copies) ++inode.uses.closes_waiting;
    }
    if (awaits_copies) copies_.Prepare(inode);
    // Only files that nobody has open for writing are copied. So the manager must hear of this
    // close, even if an fsync, or the close of another descriptor, has already reported the bytes.
    result = writer_.Commit(inode, last, tells_close);
    if (!result.ok() && last && handle.write && !OpenModes::MayBeMapped(handle))
      commits_.GiveUpUnsaved(inode, result.failure());
    // Who only reads has lost nothing.
    const Outcome<Done> earlier = handle.write ? handle.TellError() : Outcome<Done>(Done{});
    if (!earlier.ok() || !handle.write) result = earlier;
    if (awaits_copies && result.ok()) {
      copies_.Prepare(inode);  // The commit may have moved inline bytes to this host's node.
      *awaited = CopiesAtClose::Awaited(inode);
    }
    if (awaits_copies && !awaited->has_value()) {
      const MutexLock lock(inode.mutex);
      --inode.uses.closes_waiting;
    }
  }
  locks_.DropOf(inode, lock_owner, false);
  locks_.NoteOwnersClosing(handle, lock_owner);
  return result;
}

Outcome<Done> Closer::Fsync(HandleId id) {
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle) return Done{};
  const IoLock io(*handle->inode);
  attributes_.NoteKernelWrites(*handle->inode);
  mapped_stores_.Catch(*handle->inode);
  write_behind_.Drain(*handle->inode);
  const Outcome<Done> committed = writer_.Commit(*handle->inode, false);
  MOSA_RETURN_IF_FAILED(handle->TellError());
  return committed;
}

void Closer::Release(HandleId id, std::optional<uint64_t> flock_owner) {
  const OpenFilePtr handle = handles_.TakeFile(id);
  if (!handle) return;
  stream_waits_.EndOf(id);
  const InodePtr inode = handle->inode;
  const bool mapped = OpenModes::MayBeMapped(*handle);
  if (!mapped) open_modes_.LeaveBacking(*handle);
  // A task that still has another handle may continue to read.
  if (handle->reader && !handles_.HasOtherReader(*handle))
    releases_.Queue({.file = inode->file, .reader = handle->reader});
  bool unfinished = false;
  if (handle->write) unfinished = !CommitAtRelease(*inode, id);
  if (mapped) {
    const MutexLock lock(inode->mutex);
    unfinished = unfinished || MappedStores::MayBeStoredInto(*inode);
  }
  if (flock_owner) locks_.DropOf(*inode, *flock_owner, true);
  // Nobody else can hold this handle any more.
  for (const uint64_t owner : handle->lock_owners) {
    locks_.DropOf(*inode, owner, false);
    const MutexLock lock(inode->mutex);
    inode->locking.owners_closing.erase(owner);
    inode->changed.notify_all();
  }
  if (mapped) DropObject(*handle);
  if (unfinished && mapped_stores_.Keep(handle)) return;
  if (mapped) open_modes_.LeaveBacking(*handle);
  mapped_stores_.EndHandle(*handle);
  if (handle->stream && handle->write) EndStream(*inode);
}

// Readers wait for the end. The manager tells those of other mounts.
void Closer::EndStream(Inode& inode) {
  releases_.Send();
  {
    const MutexLock lock(inode.mutex);
    inode.known.Invalidate();
  }
  stream_waits_.NoteChanged(inode.file);
}

// Commits pages that were stored into through mmap, which arrive after the flush. False: retry.
bool Closer::CommitAtRelease(Inode& inode, HandleId id) {
  const IoLock io(inode);
  appends_.EndOf(inode, id);
  attributes_.NoteKernelWrites(inode);
  uint64_t errors_before = 0;
  {
    const MutexLock lock(inode.mutex);
    errors_before = inode.behind.error_count;
  }
  write_behind_.Drain(inode);
  std::optional<Failure> lost;
  {
    const MutexLock lock(inode.mutex);
    if (inode.behind.error_count != errors_before) lost = inode.behind.error;
  }
  if (lost) mapped_stores_.NoteUnsaved(inode, *lost);
  const Outcome<Done> committed = writer_.Commit(inode, false);
  if (committed.ok()) return true;
  stats_.Add(Counter::kErrors);
  if (MayBeTriedAgain(committed.failure())) return false;
  mapped_stores_.NoteUnsaved(inode, committed.failure());
  return true;
}

// From here on the handle holds no descriptor of the object, and no room for the kernel's writes: a
// mapping does not extend a file.
void Closer::DropObject(OpenFile& handle) {
  Inode& inode = *handle.inode;
  uint64_t unused = 0;
  const NodeId node = handle.object->node;
  {
    const MutexLock lock(inode.mutex);
    const bool writes = handle.mode.kind == OpenMode::Kind::kPassthrough;
    if (writes && inode.kernel.passthrough_writers == 1)
      unused = std::exchange(inode.kernel.room, 0);
    handle.object = std::make_shared<LocalObject>(LocalObject{.node = node, .fd = {}});
  }
  if (unused > 0) grants_.Unreserve(node, unused);
}

}  // namespace mosa::sai
