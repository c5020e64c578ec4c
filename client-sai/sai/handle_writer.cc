#include "client-sai/sai/handle_writer.h"

#include <vector>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"
#include "client-sai/core/stream.h"
#include "client-sai/sai/failures.h"
#include "client-sai/sai/io_lock.h"
#include "common/base/sync.h"

namespace mosa::sai {

Outcome<size_t> HandleWriter::Write(HandleId id, const CallPiece& piece,
                                    std::span<const std::byte> data, const Memory& memory) {
  stats_.Add(Counter::kWrites);
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle || !handle->write)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                "the file is not open for writing");
  Inode& inode = *handle->inode;
  uint64_t opens_before = 0;
  {
    const MutexLock lock(inode.mutex);
    ++inode.known.unsettled;
    opens_before = inode.kernel.cached_opens;
  }
  const Outcome<Done> written = WriteThrough(*handle, piece, data, memory);
  PagesAfterWrite pages = PagesAfterWrite::kKeep;
  {
    const MutexLock lock(inode.mutex);
    inode.kernel.size.NoteWrite(clock_.Monotonic());
    if (handle->mode.kind == OpenMode::Kind::kDirect)
      pages = PagesAfter({.kernel_drops_pages = notifier_.capabilities().drops_pages,
                          .opened_meanwhile = inode.kernel.cached_opens != opens_before,
                          .filled_meanwhile = inode.kernel.filling_handles > 0,
                          .open_by_pages = inode.kernel.cached_handles > 0});
    if (pages != PagesAfterWrite::kKeep) inode.kernel.pages_version.reset();
  }
  // Not under io: dropping a dirty page writes it first.
  if (pages == PagesAfterWrite::kDrop)
    pages_.DropNow(inode.file, [changed = handle->inode] { AttributeCache::Settle(*changed); });
  else
    AttributeCache::Settle(inode);
  if (!written.ok()) return written.failure();
  return data.size();
}

Outcome<size_t> HandleWriter::WritePages(HandleId id, uint64_t offset,
                                         std::span<const std::byte> data, const Memory& memory) {
  stats_.Add(Counter::kWrites);
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle || !handle->write)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                "the file is not open for writing");
  Inode& inode = *handle->inode;
  const IoLock io(inode);
  Outcome<Done> written = handle->EnsureCounted();
  if (written.ok()) written = writer_.WriteAt(inode, offset, data, memory);
  if (written.ok()) return data.size();
  bool is_late = false;
  {
    const MutexLock lock(inode.mutex);
    is_late = handle->was_closed;
  }
  // No close or fsync tells a program that has stored through a mapping after its last close.
  if (is_late) mapped_stores_.NoteUnsaved(inode, written.failure());
  write_behind_.DropFailedPages(inode);
  return written.failure();
}

Outcome<Done> HandleWriter::WriteThrough(OpenFile& handle, const CallPiece& piece,
                                         std::span<const std::byte> data, const Memory& memory) {
  const IoLock io(*handle.inode);
  MOSA_RETURN_IF_FAILED(handle.TellError());
  if (data.empty()) return Done{};
  MOSA_RETURN_IF_FAILED(handle.EnsureCounted());
  const Outcome<Done> written = handle.append
                                    ? appends_.Write(handle, data, piece)
                                    : writer_.WriteAt(*handle.inode, piece.offset, data, memory);
  if (written.ok() && handle.stream) NoteStreamed(handle.inode, data.size());
  return written;
}

void HandleWriter::NoteStreamed(const InodePtr& inode, uint64_t bytes) {
  const Time now = clock_.Monotonic();
  {
    const MutexLock lock(mutex_);
    Stream& stream =
        streams_.try_emplace(inode->file, Stream{inode, now - kPublishAfter}).first->second;
    stream.bytes += bytes;
    if (stream.bytes < kPublishBytes && now - stream.published < kPublishAfter) return;
    stream.published = now;
    stream.bytes = 0;
  }
  Publish(inode);
}

// What fails is tried again. It stays uncommitted, and the close tells the program.
void HandleWriter::Publish(const InodePtr& inode) {
  write_behind_.Drain(*inode);
  if (!writer_.Commit(*inode, false).ok()) {
    stats_.Add(Counter::kErrors);
    const MutexLock lock(mutex_);
    Stream& stream =
        streams_.try_emplace(inode->file, Stream{inode, clock_.Monotonic()}).first->second;
    stream.bytes += 1;
  }
  stream_waits_.NoteChanged(inode->file);  // The manager tells other mounts.
}

void HandleWriter::PublishDue() {
  std::vector<InodePtr> due;
  const Time now = clock_.Monotonic();
  {
    const MutexLock lock(mutex_);
    for (auto each = streams_.begin(); each != streams_.end();) {
      Stream& stream = each->second;
      const bool is_due = now - stream.published >= kPublishAfter;
      if (is_due && stream.bytes == 0) {
        each = streams_.erase(each);
        continue;
      }
      if (is_due) {
        due.push_back(stream.inode);
        stream.published = now;
        stream.bytes = 0;
      }
      ++each;
    }
  }
  for (const InodePtr& inode : due) {
    const WaitBudget budget(WaitBudget::ForBackground());
    const IoLock io(*inode);
    Publish(inode);
  }
}

}  // namespace mosa::sai
