// Open files: create, open, read, write, flush, release, fsync, fallocate, lseek, copy_file_range.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>

#include "common/base/check.h"
#include "common/base/large_buffer.h"
#include "tools/wrap/acting.h"
#include "tools/wrap/operations.h"

namespace mosa::wrap {
namespace {

// For pwritev2: where the descriptor is, which moves on.
constexpr off_t kAtPosition = -1;

// How the file below is opened. The kernel follows no link here, writes its pages where they lie
// even by a descriptor that appends (Write), and has buffers that are not aligned.
int FlagsBelow(int flags) {
  return (flags & ~(O_NOFOLLOW | O_APPEND | O_DIRECT | O_NOCTTY)) | O_CLOEXEC;
}

uint64_t SizeOf(const WrappedFile& file) {
  struct stat attributes {};
  return fstat(file.descriptor.get(), &attributes) == 0 ? static_cast<uint64_t>(attributes.st_size)
                                                        : 0;
}

std::optional<sai::Tracer::OpenRecord> RecordOfOpen(fuse_req_t request, TraceKind kind, int flags) {
  sai::Tracer& tracer = WrapOf(request).tracer;
  if (!tracer.on()) return std::nullopt;
  return tracer.RecordOfOpen(kind, PidOf(request), flags);
}

// The kernel gets an open file of `inode`; the record of its open says so. The reply comes after:
// a program that has that may close the file, and the inode be forgotten.
void KeepOpen(Wrap& wrap, UniqueFd descriptor, const Inode& inode, fuse_file_info& info,
              std::optional<sai::Tracer::OpenRecord>& record) {
  auto file = std::make_unique<WrappedFile>();
  file->descriptor = std::move(descriptor);
  file->handle = ++wrap.last_handle;
  if (record) {
    record->event.file = inode.file();
    record->event.handle = file->handle;
    record->event.size_bytes = SizeOf(*file);
  }
  info.fh = reinterpret_cast<uint64_t>(file.release());
}

std::unique_ptr<WrappedFile> TakeBack(const fuse_file_info& info) {
  return std::unique_ptr<WrappedFile>(&FileOf(info));
}

// A new file, or none and errno. What somebody else has just made is not opened here, as nobody
// has asked whether the caller may: at ESTALE the kernel looks the name up again.
UniqueFd Make(fuse_req_t request, const Inode& parent, const char* name, mode_t mode, int flags) {
  const mode_t masked = MaskedMode(request, parent, mode);
  UniqueFd made;
  {
    const ActingFor caller(AskerOf(request));
    made = UniqueFd(
        openat(parent.descriptor.get(), name, FlagsBelow(flags) | O_CREAT | O_EXCL, masked));
  }
  if (!made && errno == EEXIST && (flags & O_EXCL) == 0) errno = ESTALE;
  return made;
}

void Create(fuse_req_t request, fuse_ino_t number, const char* name, mode_t mode,
            fuse_file_info* info) {
  Wrap& wrap = WrapOf(request);
  const sai::Tracer::Use use(wrap.tracer);
  const Inode& parent = wrap.InodeOf(number);
  auto record = RecordOfOpen(request, TraceKind::kCreate, info->flags);
  UniqueFd made = Make(request, parent, name, mode, info->flags);
  InodeTable::Found found;
  // By the descriptor: the name may be another file's by now.
  if (const int error = made ? wrap.inodes.LookUpOpen(made.get(), found) : errno; error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  NoteName(wrap, parent, name, *found.inode);
  KeepOpen(wrap, std::move(made), *found.inode, *info, record);
  const fuse_entry_param entry = EntryOf(found);
  if (fuse_reply_create(request, &entry, info) != 0) {
    TakeBack(*info);
    wrap.inodes.Forget(*found.inode, 1);
    return;
  }
  if (record) wrap.tracer.Note(record->event, record->text);
}

void Open(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Wrap& wrap = WrapOf(request);
  const sai::Tracer::Use use(wrap.tracer);
  const Inode& inode = wrap.InodeOf(number);
  auto record = RecordOfOpen(request, TraceKind::kOpen, info->flags);
  UniqueFd descriptor;
  {
    const KillingPrivileges killing(sai::RequestKillsPrivileges());
    descriptor = UniqueFd(open(inode.Path().c_str(), FlagsBelow(info->flags)));
  }
  if (!descriptor) {
    fuse_reply_err(request, errno);
    return;
  }
  KeepOpen(wrap, std::move(descriptor), inode, *info, record);
  if (fuse_reply_open(request, info) != 0) {
    TakeBack(*info);
    return;
  }
  if (record) wrap.tracer.Note(record->event, record->text);
}

// A read or write, in a full trace; without one it has no start. The request is gone once it is
// answered.
sai::TraceEvent BeginTransfer(fuse_req_t request, TraceKind kind, fuse_ino_t number,
                              const fuse_file_info& info, off_t offset) {
  Wrap& wrap = WrapOf(request);
  sai::TraceEvent event;
  if (!wrap.tracer.full()) return event;
  event.kind = kind;
  event.file = wrap.InodeOf(number).file();
  event.handle = FileOf(info).handle;
  event.offset = static_cast<uint64_t>(offset);
  event.pid = PidOf(request);
  if (info.writepage != 0) event.flags = kTraceByMapping;
  event.start = wrap.tracer.Now();
  return event;
}

void EndTransfer(sai::Tracer& tracer, sai::TraceEvent event, ssize_t size_bytes) {
  if (event.start == Time{}) return;
  event.size_bytes = static_cast<uint64_t>(size_bytes);
  tracer.Note(event);
}

void Read(fuse_req_t request, fuse_ino_t number, size_t size_bytes, off_t offset,
          fuse_file_info* info) {
  Wrap& wrap = WrapOf(request);
  const sai::Tracer::Use use(wrap.tracer);
  MOSA_CHECK(size_bytes <= LargeBuffer::kBytes);  // So it was agreed with the kernel.
  const sai::TraceEvent event = BeginTransfer(request, TraceKind::kRead, number, *info, offset);
  const LargeBuffer room = LargeBuffer::Take();
  auto* const bytes = reinterpret_cast<char*>(room.data());
  // The kernel takes less than it asks for as the file's end.
  size_t done = 0;
  while (done < size_bytes) {
    const ssize_t got = pread(FileOf(*info).descriptor.get(), bytes + done, size_bytes - done,
                              offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && done == 0) {
      fuse_reply_err(request, errno);
      return;
    }
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  fuse_reply_buf(request, bytes, done);
  EndTransfer(wrap.tracer, event, static_cast<ssize_t>(done));
}

void Write(fuse_req_t request, fuse_ino_t number, const char* data, size_t size_bytes, off_t offset,
           fuse_file_info* info) {
  Wrap& wrap = WrapOf(request);
  const sai::Tracer::Use use(wrap.tracer);
  sai::TraceEvent event = BeginTransfer(request, TraceKind::kWrite, number, *info, offset);
  // Pages that were stored into by a mapping go where they lie, whoever writes them.
  const bool appends = (info->flags & O_APPEND) != 0 && info->writepage == 0;
  const int descriptor = FileOf(*info).descriptor.get();
  const KillingPrivileges killing(sai::RequestKillsPrivileges());
  size_t done = 0;
  while (done < size_bytes) {
    const iovec part{const_cast<char*>(data) + done, size_bytes - done};
    const ssize_t put = appends
                            ? pwritev2(descriptor, &part, 1, kAtPosition, RWF_APPEND)
                            : pwritev2(descriptor, &part, 1, offset + static_cast<off_t>(done), 0);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && done == 0) {
      fuse_reply_err(request, errno);
      return;
    }
    if (put <= 0) break;
    done += static_cast<size_t>(put);
  }
  // The kernel's own offset is where it has last seen the end. It sends one append at a time.
  if (appends) event.offset = static_cast<uint64_t>(lseek(descriptor, 0, SEEK_CUR)) - done;
  fuse_reply_write(request, done);
  EndTransfer(wrap.tracer, event, static_cast<ssize_t>(done));
}

// close(2) of one descriptor: so is a copy of ours, for what only a close says.
void Flush(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Wrap& wrap = WrapOf(request);
  const sai::Tracer::Use use(wrap.tracer);
  const WrappedFile& file = FileOf(*info);
  sai::TraceEvent event;
  event.kind = TraceKind::kFlush;
  event.start = wrap.tracer.Now();
  event.file = wrap.InodeOf(number).file();
  event.handle = file.handle;
  UniqueFd copy(dup(file.descriptor.get()));
  // Without a descriptor to spare the file below is not asked: a close never fails for that.
  const int error = !copy || close(copy.release()) == 0 ? 0 : errno;
  sai::Tracer::Process process;
  const bool on = wrap.tracer.on();
  if (on) {
    process = wrap.tracer.ProcessOf(PidOf(request));
    event.pid = process.pid;
    event.process_start = process.start;
    event.size_bytes = SizeOf(file);
  }
  fuse_reply_err(request, error);
  if (on) wrap.tracer.Note(event, process.text);
}

void Release(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Wrap& wrap = WrapOf(request);
  const sai::Tracer::Use use(wrap.tracer);
  const std::unique_ptr<WrappedFile> file = TakeBack(*info);
  if (wrap.tracer.on()) {
    sai::TraceEvent event;
    event.kind = TraceKind::kClose;
    event.file = wrap.InodeOf(number).file();
    event.handle = file->handle;
    event.size_bytes = SizeOf(*file);
    wrap.tracer.Note(event);
  }
  fuse_reply_err(request, 0);
}

void Fsync(fuse_req_t request, fuse_ino_t, int data_only, fuse_file_info* info) {
  const int descriptor = FileOf(*info).descriptor.get();
  ReplyResult(request, data_only != 0 ? fdatasync(descriptor) : fsync(descriptor));
}

void Allocate(fuse_req_t request, fuse_ino_t, int mode, off_t offset, off_t length,
              fuse_file_info* info) {
  int allocated = 0;
  {
    const KillingPrivileges killing(fuse_req_ctx(request)->uid != 0);
    allocated = fallocate(FileOf(*info).descriptor.get(), mode, offset, length);
  }
  ReplyResult(request, allocated);
}

void Seek(fuse_req_t request, fuse_ino_t, off_t offset, int whence, fuse_file_info* info) {
  const off_t found = lseek(FileOf(*info).descriptor.get(), offset, whence);
  if (found < 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_lseek(request, found);
  }
}

// In the trace, a read of the one and a write of the other.
void Copy(fuse_req_t request, fuse_ino_t source, off_t source_offset, fuse_file_info* source_info,
          fuse_ino_t target, off_t target_offset, fuse_file_info* target_info, size_t size_bytes,
          int flags) {
  Wrap& wrap = WrapOf(request);
  const sai::Tracer::Use use(wrap.tracer);
  const sai::TraceEvent read =
      BeginTransfer(request, TraceKind::kRead, source, *source_info, source_offset);
  const sai::TraceEvent write =
      BeginTransfer(request, TraceKind::kWrite, target, *target_info, target_offset);
  ssize_t copied = 0;
  {
    const KillingPrivileges killing(fuse_req_ctx(request)->uid != 0);
    copied = copy_file_range(FileOf(*source_info).descriptor.get(), &source_offset,
                             FileOf(*target_info).descriptor.get(), &target_offset, size_bytes,
                             static_cast<unsigned>(flags));
  }
  if (copied < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  fuse_reply_write(request, static_cast<size_t>(copied));
  EndTransfer(wrap.tracer, read, copied);
  EndTransfer(wrap.tracer, write, copied);
}

}  // namespace

void AddWrapFileOperations(fuse_lowlevel_ops& table) {
  table.create = Create;
  table.open = Open;
  table.read = Read;
  table.write = Write;
  table.flush = Flush;
  table.release = Release;
  table.fsync = Fsync;
  table.fallocate = Allocate;
  table.lseek = Seek;
  table.copy_file_range = Copy;
}

}  // namespace mosa::wrap
