#include "client-sai/sai/handle_writer.h"

#include "client-sai/core/rules.h"
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
  return handle.append ? appends_.Write(handle, data, piece)
                       : writer_.WriteAt(*handle.inode, piece.offset, data, memory);
}

}  // namespace mosa::sai
