// Names: lookup and forget, making, removing, renaming, directories.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <string>

#include "tools/wrap/acting.h"
#include "tools/wrap/operations.h"

namespace mosa::wrap {

void ReplyResult(fuse_req_t request, int result) {
  fuse_reply_err(request, result < 0 ? errno : 0);
}

void NoteName(Wrap& wrap, const Inode& parent, std::string_view name, const Inode& inode) {
  if (!wrap.tracer.on()) return;
  sai::TraceEvent event;
  event.kind = TraceKind::kName;
  event.file = inode.file();
  event.parent = parent.file();
  wrap.tracer.Note(event, name);
}

fuse_entry_param EntryOf(const InodeTable::Found& found) {
  fuse_entry_param entry{};  // Timeouts of 0: the kernel asks again each time.
  entry.ino = reinterpret_cast<fuse_ino_t>(found.inode);
  entry.attr = found.attributes;
  return entry;
}

mode_t MaskedMode(fuse_req_t request, const Inode& parent, mode_t mode) {
  const std::string path = parent.Path();
  const bool is_listed = getxattr(path.c_str(), "system.posix_acl_default", nullptr, 0) > 0;
  return is_listed ? mode : mode & ~fuse_req_ctx(request)->umask;
}

namespace {

// Replies with what `name` in `parent` is now.
void ReplyEntry(fuse_req_t request, const Inode& parent, const char* name) {
  Wrap& wrap = WrapOf(request);
  InodeTable::Found found;
  if (const int error = wrap.inodes.LookUp(parent, name, found); error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  NoteName(wrap, parent, name, *found.inode);
  const fuse_entry_param entry = EntryOf(found);
  if (fuse_reply_entry(request, &entry) != 0) wrap.inodes.Forget(*found.inode, 1);
}

void Lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Wrap& wrap = WrapOf(request);
  if (wrap.tracer.on()) wrap.tracer.CountLookup();
  ReplyEntry(request, wrap.InodeOf(parent), name);
}

void Forget(fuse_req_t request, fuse_ino_t inode, uint64_t lookups) {
  Wrap& wrap = WrapOf(request);
  wrap.inodes.Forget(wrap.InodeOf(inode), lookups);
  fuse_reply_none(request);
}

void ForgetMulti(fuse_req_t request, size_t count, fuse_forget_data* forgets) {
  Wrap& wrap = WrapOf(request);
  for (size_t i = 0; i < count; ++i)
    wrap.inodes.Forget(wrap.InodeOf(forgets[i].ino), forgets[i].nlookup);
  fuse_reply_none(request);
}

// Replies with what `result` of a system call has made as `name` in `parent`.
void ReplyMade(fuse_req_t request, int result, const Inode& parent, const char* name) {
  if (result < 0) {
    fuse_reply_err(request, errno);
  } else {
    ReplyEntry(request, parent, name);
  }
}

// The same of a call with the descriptor of the parent, made as the caller of the request.
template <typename Call>
void MakeAsCaller(fuse_req_t request, const Inode& parent, const char* name, const Call& call) {
  int made = 0;
  {
    const ActingFor caller(AskerOf(request));
    made = call(parent.descriptor.get());
  }
  ReplyMade(request, made, parent, name);
}

void MakeNode(fuse_req_t request, fuse_ino_t number, const char* name, mode_t mode, dev_t device) {
  const Inode& parent = WrapOf(request).InodeOf(number);
  const mode_t masked = MaskedMode(request, parent, mode);
  MakeAsCaller(request, parent, name, [=](int in) { return mknodat(in, name, masked, device); });
}

void MakeDirectory(fuse_req_t request, fuse_ino_t number, const char* name, mode_t mode) {
  const Inode& parent = WrapOf(request).InodeOf(number);
  const mode_t masked = MaskedMode(request, parent, mode);
  MakeAsCaller(request, parent, name, [=](int in) { return mkdirat(in, name, masked); });
}

void MakeSymlink(fuse_req_t request, const char* target, fuse_ino_t number, const char* name) {
  const Inode& parent = WrapOf(request).InodeOf(number);
  MakeAsCaller(request, parent, name, [=](int in) { return symlinkat(target, in, name); });
}

void Link(fuse_req_t request, fuse_ino_t number, fuse_ino_t new_parent, const char* name) {
  Wrap& wrap = WrapOf(request);
  const Inode& parent = wrap.InodeOf(new_parent);
  const std::string path = wrap.InodeOf(number).Path();
  const int made = linkat(AT_FDCWD, path.c_str(), parent.descriptor.get(), name, AT_SYMLINK_FOLLOW);
  ReplyMade(request, made, parent, name);
}

void Unlink(fuse_req_t request, fuse_ino_t number, const char* name) {
  Wrap& wrap = WrapOf(request);
  const sai::Tracer::Use use(wrap.tracer);
  const Inode& parent = wrap.InodeOf(number);
  sai::TraceEvent event;
  event.kind = TraceKind::kUnlink;
  event.start = wrap.tracer.Now();
  event.parent = parent.file();
  const int removed = unlinkat(parent.descriptor.get(), name, 0);
  const int error = errno;
  if (removed == 0 && wrap.tracer.on()) {
    const sai::Tracer::Process process = wrap.tracer.ProcessOf(PidOf(request));
    event.pid = process.pid;
    event.process_start = process.start;
    wrap.tracer.Note(event, std::string(name) + '\0' + process.text);
  }
  fuse_reply_err(request, removed == 0 ? 0 : error);
}

void RemoveDirectory(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const int directory = WrapOf(request).InodeOf(parent).descriptor.get();
  ReplyResult(request, unlinkat(directory, name, AT_REMOVEDIR));
}

void Rename(fuse_req_t request, fuse_ino_t old_parent, const char* old_name, fuse_ino_t new_parent,
            const char* new_name, unsigned flags) {
  Wrap& wrap = WrapOf(request);
  const sai::Tracer::Use use(wrap.tracer);
  const Inode& source = wrap.InodeOf(old_parent);
  const Inode& target = wrap.InodeOf(new_parent);
  sai::TraceEvent event;
  event.kind = TraceKind::kRename;
  event.start = wrap.tracer.Now();
  event.parent = source.file();
  event.target = target.file();
  event.pid = PidOf(request);
  const int renamed =
      renameat2(source.descriptor.get(), old_name, target.descriptor.get(), new_name, flags);
  const int error = errno;
  if (renamed == 0 && wrap.tracer.on())
    wrap.tracer.Note(event, std::string(old_name) + '\0' + new_name);
  fuse_reply_err(request, renamed == 0 ? 0 : error);
}

void ReadSymlink(fuse_req_t request, fuse_ino_t number) {
  std::array<char, PATH_MAX + 1> target{};
  const int descriptor = WrapOf(request).InodeOf(number).descriptor.get();
  if (readlinkat(descriptor, "", target.data(), target.size() - 1) < 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_readlink(request, target.data());
  }
}

// ---- directories; the kernel's handle is the descriptor

void OpenDirectory(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  const int inode = WrapOf(request).InodeOf(number).descriptor.get();
  UniqueFd directory(openat(inode, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    fuse_reply_err(request, errno);
    return;
  }
  info->fh = static_cast<uint64_t>(directory.get());
  if (fuse_reply_open(request, info) == 0) directory.release();
}

// The kernel's entries of a list are a little larger than the directory's own: what finds no room
// is read again, at its offset.
void ReadDirectory(fuse_req_t request, fuse_ino_t, size_t size_bytes, off_t offset,
                   fuse_file_info* info) {
  const int directory = static_cast<int>(info->fh);
  std::string entries(size_bytes, '\0');
  const ssize_t bytes = lseek(directory, offset, SEEK_SET) < 0
                            ? -1
                            : getdents64(directory, entries.data(), entries.size());
  if (bytes < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  std::string reply(size_bytes, '\0');
  size_t used = 0;
  for (ssize_t at = 0; at < bytes;) {
    const auto* const entry = reinterpret_cast<const dirent64*>(entries.data() + at);
    struct stat attributes {};
    attributes.st_ino = entry->d_ino;
    attributes.st_mode = static_cast<mode_t>(DTTOIF(entry->d_type));
    const size_t needed = fuse_add_direntry(request, reply.data() + used, size_bytes - used,
                                            entry->d_name, &attributes, entry->d_off);
    if (needed > size_bytes - used) break;
    used += needed;
    at += entry->d_reclen;
  }
  fuse_reply_buf(request, reply.data(), used);
}

void ReleaseDirectory(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  UniqueFd(static_cast<int>(info->fh)).reset();
  fuse_reply_err(request, 0);
}

void FsyncDirectory(fuse_req_t request, fuse_ino_t, int data_only, fuse_file_info* info) {
  const int directory = static_cast<int>(info->fh);
  ReplyResult(request, data_only != 0 ? fdatasync(directory) : fsync(directory));
}

}  // namespace

void AddWrapNameOperations(fuse_lowlevel_ops& table) {
  table.lookup = Lookup;
  table.forget = Forget;
  table.forget_multi = ForgetMulti;
  table.mknod = MakeNode;
  table.mkdir = MakeDirectory;
  table.symlink = MakeSymlink;
  table.link = Link;
  table.unlink = Unlink;
  table.rmdir = RemoveDirectory;
  table.rename = Rename;
  table.readlink = ReadSymlink;
  table.opendir = OpenDirectory;
  table.readdir = ReadDirectory;
  table.releasedir = ReleaseDirectory;
  table.fsyncdir = FsyncDirectory;
}

fuse_lowlevel_ops WrapOperations() {
  fuse_lowlevel_ops table{};
  AddWrapNameOperations(table);
  AddWrapFileOperations(table);
  AddWrapAttributeOperations(table);
  return table;
}

}  // namespace mosa::wrap
