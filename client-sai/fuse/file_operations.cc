// Open files: create, open, read, write, flush, release, fsync, fallocate, lseek.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>

#include "client-sai/api/wait_budget.h"
#include "client-sai/fuse/convert.h"
#include "client-sai/fuse/operations.h"
#include "client-sai/fuse/write_call.h"
#include "common/base/check.h"
#include "common/base/large_buffer.h"

namespace mosa::sai {

namespace {

constexpr size_t kKeptBytesMin = size_t{1} << 19;
// A piece that the kernel cuts off a write has as many pages as one request may have. It has fewer
// bytes only if it consists of many tiny parts (writev).
constexpr size_t kCutBytesMin = 4096;

// The reply to an open: its flags, and its backing file if it has one. If the kernel refuses a
// descriptor, the Filesystem says how to open instead. FailedPrecondition if the file cannot be
// opened now; see BackingFiles::Join.
struct Opened {
  FileId file;
  HandleId handle;
  OpenMode mode;
  uint32_t flags = 0;
  uint64_t data_version = 0;
};
Result<kernel::OpenOut> PrepareOpen(Mount& mount, const Opened& opened) {
  kernel::OpenOut out{};
  const auto& [file, handle, mode_wanted, flags, data_version] = opened;
  OpenMode mode = mode_wanted;
  if (mode.kind == OpenMode::Kind::kPassthrough) {
    const Result<int32_t> backing =
        mount.session.backing_files().Acquire(file, mode.descriptor, data_version);
    if (backing.ok()) {
      out.open_flags = kernel::kOpenPassthrough;
      out.backing_id = *backing;
    } else {
      mount.failures.Warning("opening file {} without passthrough: {}", file.value,
                             MessageOf(backing.status()));
      mode = mount.filesystem.PassthroughRefused(handle);
    }
  }
  if (mode.kind == OpenMode::Kind::kCached && mode.keep_cache && !mount.tracer.cold())
    out.open_flags = FOPEN_KEEP_CACHE;
  if (mode.kind == OpenMode::Kind::kDirect)
    out.open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES;
  if (mode.joins) {
    MOSA_ASSIGN_OR_RETURN(out.backing_id, mount.session.backing_files().Join(
                                              file, flags, mode.descriptor, data_version));
    if (out.backing_id != 0)
      out.open_flags |= kernel::kOpenPassthrough;
    else
      mount.filesystem.OpenedUnbacked(handle);
  }
  out.handle = EncodeHandle({handle, out.backing_id != 0, mode.stream});
  return out;
}

Failure Busy(const Status& status) {
  return {StatusCode::kFailedPrecondition, ErrorReason::kBusy, MessageOf(status)};
}

std::optional<Tracer::OpenRecord> TraceOpen(Mount& mount, fuse_req_t request, TraceKind kind,
                                            const fuse_file_info& info) {
  if (!mount.tracer.on()) return std::nullopt;
  return mount.tracer.RecordOfOpen(kind, static_cast<uint32_t>(fuse_req_ctx(request)->pid),
                                   info.flags);
}

void NoteOpen(Mount& mount, std::optional<Tracer::OpenRecord>& traced, FileId file,
              const kernel::OpenOut& out, uint64_t size_bytes) {
  if (!traced) return;
  TraceEvent& event = traced->event;
  event.file = file;
  event.handle = DecodeHandle(out.handle).handle.value;
  event.size_bytes = size_bytes;
  if ((out.open_flags & kernel::kOpenPassthrough) != 0 && (out.open_flags & FOPEN_DIRECT_IO) == 0)
    event.flags |= kTracePassthrough;
  if ((out.open_flags & FOPEN_KEEP_CACHE) != 0) event.flags |= kTraceKeptPages;
  mount.tracer.Note(event, traced->text);
}

// Begins a read or write event of a full trace; without a trace it has no start. Copies what it
// needs, because the request is gone once answered.
TraceEvent BeginTransfer(fuse_req_t request, TraceKind kind, fuse_ino_t ino,
                         const fuse_file_info& info, off_t offset) {
  TraceEvent event;
  const Tracer& tracer = MountOf(request).tracer;
  if (!tracer.full()) return event;
  event.kind = kind;
  event.file = FileId{ino};
  event.handle = DecodeHandle(info.fh).handle.value;
  event.offset = static_cast<uint64_t>(offset);
  event.pid = static_cast<uint32_t>(fuse_req_ctx(request)->pid);
  if (info.writepage != 0) event.flags = kTraceByMapping;
  event.start = tracer.Now();
  return event;
}

void EndTransfer(Tracer& tracer, TraceEvent event, size_t size_bytes) {
  if (event.start == Time{}) return;
  event.size_bytes = size_bytes;
  tracer.Note(event);
}

void ReleaseHandle(Mount& mount, FileId file, uint64_t encoded,
                   std::optional<uint64_t> flock_owner) {
  const KernelHandle handle = DecodeHandle(encoded);
  if (handle.backing) mount.session.backing_files().Release(file);
  mount.filesystem.Release(handle.handle, flock_owner);
}

void Create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
            fuse_file_info* info) {
  Mount& mount = MountOf(request);
  const Tracer::Use use(mount.tracer);
  auto traced = TraceOpen(mount, request, TraceKind::kCreate, *info);
  NewEntry entry;
  entry.parent = FileId{parent};
  entry.name = name;
  entry.mode = mode;
  entry.caller = CallerOf(request);
  // A file that another mount has made since the kernel looked must be opened by the kernel, which
  // checks who may: ESTALE makes it look again.
  const auto flags = static_cast<uint32_t>(info->flags);
  const Outcome<CreateResult> made = mount.filesystem.Create(entry, flags);
  if (!made.ok() && made.failure().reason == ErrorReason::kExists && (flags & O_EXCL) == 0) {
    fuse_reply_err(request, ESTALE);
    return;
  }
  if (!made.ok()) {
    ReplyFailure(request, made.failure(), "create", FileId{parent});
    return;
  }
  const FileId file = made->entry.entry.file;
  kernel::CreateOut out{};
  out.entry = ToEntryOut(made->entry);
  const Result<kernel::OpenOut> open =
      PrepareOpen(mount, {file, made->handle, made->mode, flags, made->data_version});
  if (!open.ok()) {
    mount.filesystem.Release(made->handle, std::nullopt);
    mount.filesystem.Forget(file, 1);
    ReplyFailure(request, Busy(open.status()), "create", file);
    return;
  }
  out.open = *open;
  if (traced) TraceName(mount, FileId{parent}, name, file);
  if (fuse_reply_buf(request, reinterpret_cast<const char*>(&out), sizeof(out)) != 0) {
    ReleaseHandle(mount, file, out.open.handle, std::nullopt);
    mount.filesystem.Forget(file, 1);
    return;
  }
  NoteOpen(mount, traced, file, out.open, made->size_bytes);
}

void Open(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
  Mount& mount = MountOf(request);
  const Tracer::Use use(mount.tracer);
  const FileId file{ino};
  auto traced = TraceOpen(mount, request, TraceKind::kOpen, *info);
  const Outcome<OpenResult> opened =
      mount.filesystem.Open(file, static_cast<uint32_t>(info->flags), CallerOf(request));
  if (!opened.ok()) {
    ReplyFailure(request, opened.failure(), "open", file);
    return;
  }
  if (RequestKillsPrivileges()) KillPrivileges(mount, file);
  const Result<kernel::OpenOut> prepared =
      PrepareOpen(mount, {file, opened->handle, opened->mode, static_cast<uint32_t>(info->flags),
                          opened->data_version});
  if (!prepared.ok()) {
    mount.filesystem.Release(opened->handle, std::nullopt);
    ReplyFailure(request, Busy(prepared.status()), "open", file);
    return;
  }
  const kernel::OpenOut& out = *prepared;
  if (fuse_reply_buf(request, reinterpret_cast<const char*>(&out), sizeof(out)) != 0) {
    ReleaseHandle(mount, file, out.handle, std::nullopt);
    return;
  }
  NoteOpen(mount, traced, file, out, opened->size_bytes);
}

// Reads the whole range, or returns an errno. Bytes that the object has lost meanwhile (by a
// truncate) read as zeroes.
int ReadAll(int descriptor, uint64_t offset, std::span<char> out) {
  while (!out.empty()) {
    const ssize_t bytes = pread(descriptor, out.data(), out.size(), static_cast<off_t>(offset));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno;
    if (bytes == 0) {
      std::memset(out.data(), 0, out.size());
      return 0;
    }
    offset += static_cast<uint64_t>(bytes);
    out = out.subspan(static_cast<size_t>(bytes));
  }
  return 0;
}

// A read call of the kernel.
struct ReadCall {
  fuse_req_t request;
  fuse_ino_t ino;
  size_t size_bytes;
  off_t offset;
  HandleId handle;
  int flags;
};

// Returns the number of bytes in the reply, or nothing after an error. Does not reply if it sets
// `await` (ReadResult).
using Await = decltype(ReadResult::await);
std::optional<size_t> AnswerRead(const ReadCall& call, Await& await) {
  const auto& [request, ino, size_bytes, offset, handle, flags] = call;
  Filesystem& filesystem = MountOf(request).filesystem;
  Outcome<ReadResult> result = filesystem.Read(handle, static_cast<uint64_t>(offset), size_bytes);
  if (!result.ok()) {
    ReplyFailure(request, result.failure(), "read", FileId{ino});
    return std::nullopt;
  }
  await = std::move(result->await);
  if (await) return std::nullopt;
  if (result->descriptor < 0) {
    fuse_reply_buf(request, reinterpret_cast<const char*>(result->bytes.data()),
                   result->bytes.size());
    return result->bytes.size();
  }
  if (!result->mapped.empty() && (flags & O_DIRECT) == 0) {
    // If the object is truncated meanwhile, the kernel gets no pages and asks again for those that
    // it needs. If that second reply were also short, the program would get EIO.
    const int error = fuse_reply_buf(request, reinterpret_cast<const char*>(result->mapped.data()),
                                     result->mapped.size());
    if (error == -EFAULT) filesystem.OnUnreadableMapping(handle);
    return error == 0 ? std::optional(result->mapped.size()) : std::nullopt;
  }
  MOSA_CHECK(result->size_bytes <= LargeBuffer::kBytes);  // As agreed with the kernel.
  const LargeBuffer room = LargeBuffer::Take();
  const std::span<char> buffer(reinterpret_cast<char*>(room.data()), result->size_bytes);
  if (const int error = ReadAll(result->descriptor, result->offset, buffer); error != 0) {
    MountOf(request).failures.Warning(
        "cannot read file {} at offset {} through its object's descriptor: {}", ino, result->offset,
        strerrorname_np(error));
    fuse_reply_err(request, EIO);
    return std::nullopt;
  }
  fuse_reply_buf(request, buffer.data(), buffer.size());
  return buffer.size();
}

// What a read that waits at the end of a stream holds until it is answered.
struct StreamRead {
  StreamRead(const ReadCall& read, const TraceEvent& begun, Mount& mount)
      : call(read), event(begun), unanswered(mount.session.Detach()) {}

  ReadCall call;
  TraceEvent event;
  KernelSession::Detached unanswered;
};

// Answers from other threads, and no worker waits. A killed reader is answered by KilledAskers.
void AwaitStream(Mount& mount, const Await& await, const std::shared_ptr<StreamRead>& read) {
  await([&mount, read](bool may_read) {
    if (!may_read) {
      fuse_reply_err(read->call.request, EIO);
      return;
    }
    const WaitBudget budget(std::chrono::steady_clock::now());
    const Tracer::Use use(mount.tracer);
    Await again;
    const std::optional<size_t> answered = AnswerRead(read->call, again);
    if (again) return AwaitStream(mount, again, read);
    if (answered) EndTransfer(mount.tracer, read->event, *answered);
  });
}

void Read(fuse_req_t request, fuse_ino_t ino, size_t size_bytes, off_t offset,
          fuse_file_info* info) {
  Mount& mount = MountOf(request);
  const Tracer::Use use(mount.tracer);
  const TraceEvent event = BeginTransfer(request, TraceKind::kRead, ino, *info, offset);
  const ReadCall call{request, ino, size_bytes, offset, DecodeHandle(info->fh).handle, info->flags};
  Await await;
  const std::optional<size_t> answered = AnswerRead(call, await);
  if (await) AwaitStream(mount, await, std::make_shared<StreamRead>(call, event, mount));
  if (answered) EndTransfer(mount.tracer, event, *answered);
}

void Write(fuse_req_t request, fuse_ino_t ino, const char* data, size_t size_bytes, off_t offset,
           fuse_file_info* info) {
  Mount& mount = MountOf(request);
  const Tracer::Use use(mount.tracer);
  Filesystem& filesystem = mount.filesystem;
  const TraceEvent event = BeginTransfer(request, TraceKind::kWrite, ino, *info, offset);
  const bool kills_privileges = RequestKillsPrivileges();
  // Large writes go to other nodes directly from the kernel's request.
  Memory memory;
  if (size_bytes >= kKeptBytesMin) {
    const auto owner = std::make_shared<LargeBuffer>(TakeRequestMemory());
    const auto* const end = reinterpret_cast<const std::byte*>(data) + size_bytes;
    memory = {owner, static_cast<size_t>(owner->data() + LargeBuffer::kBytes - end)};
  }
  const HandleId handle = DecodeHandle(info->fh).handle;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size_bytes);
  const auto at = static_cast<uint64_t>(offset);
  CallPiece piece{.offset = at};
  if (info->writepage == 0 && (info->flags & O_APPEND) != 0 && size_bytes >= kCutBytesMin)
    piece.call_bytes = BytesOfWriteCall(fuse_req_ctx(request)->pid);
  const Outcome<size_t> written = info->writepage != 0
                                      ? filesystem.WritePages(handle, at, bytes, memory)
                                      : filesystem.Write(handle, piece, bytes, memory);
  if (!written.ok()) {
    ReplyFailure(request, written.failure(), "write", FileId{ino});
    return;
  }
  if (kills_privileges) KillPrivileges(mount, FileId{ino});
  // For writes through its pages the kernel itself requests an fsync. For direct writes it leaves
  // that to the file system.
  constexpr int kDirectAndStored = O_DIRECT | O_DSYNC;
  if (info->writepage == 0 && (info->flags & kDirectAndStored) == kDirectAndStored) {
    const Outcome<Done> stored = filesystem.Fsync(handle);
    if (!stored.ok()) {
      ReplyFailure(request, stored.failure(), "write", FileId{ino});
      return;
    }
  }
  fuse_reply_write(request, *written);
  EndTransfer(mount.tracer, event, *written);
}

// The close may wait for copies. The reply then comes from another thread, and no worker waits.
void Flush(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
  Mount& mount = MountOf(request);
  const FileId file{ino};
  TraceEvent event;
  event.kind = TraceKind::kFlush;
  event.start = TraceBegin(mount);
  event.handle = DecodeHandle(info->fh).handle.value;
  event.file = file;
  Tracer::Process process;
  if (event.start != Time{}) {
    process = mount.tracer.ProcessOf(static_cast<uint32_t>(fuse_req_ctx(request)->pid));
    event.pid = process.pid;
    event.process_start = process.start;
  }
  auto use = std::make_shared<Tracer::Use>(mount.tracer);
  auto unanswered = std::make_shared<KernelSession::Detached>(mount.session.Detach());
  mount.filesystem.Flush(HandleId{event.handle}, info->lock_owner,
                         [&mount, request, file, event, process, use = std::move(use),
                          unanswered = std::move(unanswered)](const Outcome<Done>& done) mutable {
                           if (event.start != Time{})
                             event.size_bytes = mount.filesystem.KnownSize(file);
                           ReplyDone(request, done, "close", file);
                           if (event.start != Time{}) mount.tracer.Note(event, process.text);
                         });
}

void Release(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
  std::optional<uint64_t> flock_owner;
  if (info->flock_release != 0) flock_owner = info->lock_owner;
  Mount& mount = MountOf(request);
  const Tracer::Use use(mount.tracer);
  TraceEvent event;
  event.kind = TraceKind::kClose;
  event.start = TraceBegin(mount);
  event.file = FileId{ino};
  event.handle = DecodeHandle(info->fh).handle.value;
  ReleaseHandle(mount, FileId{ino}, info->fh, flock_owner);
  if (event.start != Time{}) {
    event.size_bytes = mount.filesystem.KnownSize(event.file);
    mount.tracer.Note(event);
  }
  fuse_reply_err(request, 0);
}

void Fsync(fuse_req_t request, fuse_ino_t ino, int, fuse_file_info* info) {
  ReplyDone(request, MountOf(request).filesystem.Fsync(DecodeHandle(info->fh).handle), "fsync",
            FileId{ino});
}

void Allocate(fuse_req_t request, fuse_ino_t ino, int mode, off_t offset, off_t length,
              fuse_file_info* info) {
  Mount& mount = MountOf(request);
  const Outcome<Done> allocated =
      mount.filesystem.Allocate(DecodeHandle(info->fh).handle, mode, static_cast<uint64_t>(offset),
                                static_cast<uint64_t>(length));
  // Unlike for a write, the kernel does not say whether the caller may keep the bits.
  if (allocated.ok() && fuse_req_ctx(request)->uid != 0) KillPrivileges(mount, FileId{ino});
  ReplyDone(request, allocated, "fallocate", FileId{ino});
}

void Seek(fuse_req_t request, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* info) {
  if (whence != SEEK_DATA && whence != SEEK_HOLE) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  const Outcome<uint64_t> found =
      MountOf(request).filesystem.Seek(DecodeHandle(info->fh).handle, static_cast<uint64_t>(offset),
                                       whence == SEEK_DATA ? SeekKind::kData : SeekKind::kHole);
  if (found.ok()) {
    fuse_reply_lseek(request, static_cast<off_t>(*found));
  } else if (found.failure().reason == ErrorReason::kNoEntry) {
    fuse_reply_err(request, ENXIO);
  } else {
    ReplyFailure(request, found.failure(), "lseek", FileId{ino});
  }
}

// The kernel copies by itself, up to the size that it knows. Programs that get EINVAL read and
// write instead, and so wait at the end of a stream.
void CopyRange(fuse_req_t request, fuse_ino_t, off_t, fuse_file_info* from, fuse_ino_t, off_t,
               fuse_file_info*, size_t, int) {
  fuse_reply_err(request, DecodeHandle(from->fh).stream ? EINVAL : EOPNOTSUPP);
}

void Control(fuse_req_t request, fuse_ino_t, unsigned, void*, fuse_file_info*, unsigned,
             const void*, size_t, size_t) {
  fuse_reply_err(request, ENOTTY);
}

}  // namespace

void AddFileOperations(fuse_lowlevel_ops& table) {
  table.create = Create;
  table.open = Open;
  table.read = Read;
  table.write = Write;
  table.flush = Flush;
  table.release = Release;
  table.fsync = Fsync;
  table.fallocate = Allocate;
  table.lseek = Seek;
  table.copy_file_range = CopyRange;
  table.ioctl = Control;
}

}  // namespace mosa::sai
