// Names: lookup and forget, create, remove, rename, directories.
#include <memory>
#include <vector>

#include "client-sai/fuse/convert.h"
#include "client-sai/fuse/operations.h"

namespace mosa::sai {

namespace {

void Lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Mount& mount = MountOf(request);
  const Outcome<EntryResult> found =
      mount.filesystem.Lookup(FileId{parent}, name, fuse_req_ctx(request)->uid);
  if (mount.tracer.on()) mount.tracer.CountLookup();
  if (found.ok()) TraceName(mount, FileId{parent}, name, found->entry.file);
  ReplyEntry(request, found, "lookup", FileId{parent});
}

void Forget(fuse_req_t request, fuse_ino_t file, uint64_t lookups) {
  MountOf(request).filesystem.Forget(FileId{file}, lookups);
  fuse_reply_none(request);
}

void ForgetMulti(fuse_req_t request, size_t count, fuse_forget_data* forgets) {
  Filesystem& filesystem = MountOf(request).filesystem;
  for (size_t i = 0; i < count; ++i) {
    filesystem.Forget(FileId{forgets[i].ino}, forgets[i].nlookup);
  }
  fuse_reply_none(request);
}

// Replies with the entry created as `name` in `parent`.
void ReplyMade(fuse_req_t request, const Outcome<EntryResult>& made, std::string_view what,
               fuse_ino_t parent, const char* name) {
  if (made.ok()) TraceName(MountOf(request), FileId{parent}, name, made->entry.file);
  ReplyEntry(request, made, what, FileId{parent});
}

NewEntry EntryToMake(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  NewEntry entry;
  entry.parent = FileId{parent};
  entry.name = name;
  entry.mode = mode;
  entry.caller = CallerOf(request);
  return entry;
}

void MakeNode(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  NewEntry entry = EntryToMake(request, parent, name, mode);
  entry.device = static_cast<uint32_t>(device);
  ReplyMade(request, MountOf(request).filesystem.MakeNode(entry), "mknod", parent, name);
}

void MakeDirectory(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  const NewEntry entry = EntryToMake(request, parent, name, mode);
  ReplyMade(request, MountOf(request).filesystem.MakeDirectory(entry), "mkdir", parent, name);
}

void MakeSymlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  const NewEntry entry = EntryToMake(request, parent, name, S_IFLNK | 0777);
  ReplyMade(request, MountOf(request).filesystem.MakeSymlink(entry, target), "symlink", parent,
            name);
}

void Link(fuse_req_t request, fuse_ino_t file, fuse_ino_t new_parent, const char* new_name) {
  ReplyEntry(request, MountOf(request).filesystem.Link(FileId{file}, FileId{new_parent}, new_name),
             "link", FileId{file});
}

void Unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Mount& mount = MountOf(request);
  const Tracer::Use use(mount.tracer);
  const Time start = TraceBegin(mount);
  const Outcome<Done> done = mount.filesystem.Unlink(FileId{parent}, name);
  if (done.ok() && start != Time{}) {
    TraceEvent event;
    const Tracer::Process process =
        mount.tracer.ProcessOf(static_cast<uint32_t>(fuse_req_ctx(request)->pid));
    event.kind = TraceKind::kUnlink;
    event.start = start;
    event.parent = FileId{parent};
    event.pid = process.pid;
    event.process_start = process.start;
    mount.tracer.Note(event, std::string(name) + '\0' + process.text);
  }
  ReplyDone(request, done, "unlink", FileId{parent});
}

void RemoveDirectory(fuse_req_t request, fuse_ino_t parent, const char* name) {
  ReplyDone(request, MountOf(request).filesystem.RemoveDirectory(FileId{parent}, name), "rmdir",
            FileId{parent});
}

void Rename(fuse_req_t request, fuse_ino_t old_parent, const char* old_name, fuse_ino_t new_parent,
            const char* new_name, unsigned flags) {
  Mount& mount = MountOf(request);
  const Tracer::Use use(mount.tracer);
  const Time start = TraceBegin(mount);
  const Outcome<Done> done =
      mount.filesystem.Rename(FileId{old_parent}, old_name, FileId{new_parent}, new_name, flags);
  if (done.ok() && start != Time{}) {
    TraceEvent event;
    event.kind = TraceKind::kRename;
    event.start = start;
    event.parent = FileId{old_parent};
    event.target = FileId{new_parent};
    event.pid = static_cast<uint32_t>(fuse_req_ctx(request)->pid);
    mount.tracer.Note(event, std::string(old_name) + '\0' + new_name);
  }
  ReplyDone(request, done, "rename", FileId{old_parent});
}

void ReadSymlink(fuse_req_t request, fuse_ino_t file) {
  const Outcome<std::string> target = MountOf(request).filesystem.ReadSymlink(FileId{file});
  if (target.ok()) {
    fuse_reply_readlink(request, target->c_str());
  } else {
    ReplyFailure(request, target.failure(), "readlink", FileId{file});
  }
}

// ---- directories

void OpenDirectory(fuse_req_t request, fuse_ino_t directory, fuse_file_info* info) {
  Filesystem& filesystem = MountOf(request).filesystem;
  const Outcome<HandleId> handle = filesystem.OpenDirectory(FileId{directory});
  if (!handle.ok()) {
    ReplyFailure(request, handle.failure(), "opendir", FileId{directory});
    return;
  }
  info->fh = handle->value;
  if (fuse_reply_open(request, info) != 0) filesystem.ReleaseDirectory(*handle);
}

// Estimates how many items fit, from short names. Items that do not fit are requested again.
constexpr size_t kShortItemBytes = 32;
constexpr size_t kShortPlusItemBytes = 160;

// Appends `item` to the buffer if it fits; returns the bytes used, 0 if it did not fit.
size_t PutItem(fuse_req_t request, const DirectoryItem& item, char* place, size_t room) {
  struct stat attributes {};
  attributes.st_ino = item.entry.file.value;
  attributes.st_mode = ModeOfType(item.entry.attributes.type);
  const size_t bytes = fuse_add_direntry(request, place, room, item.name.c_str(), &attributes,
                                         static_cast<off_t>(item.next_offset));
  return bytes <= room ? bytes : 0;
}

// As PutItem, with attributes; adds the file whose lookup the kernel now counts to `remembered`.
size_t PutPlusItem(fuse_req_t request, fuse_ino_t directory, HandleId handle,
                   const DirectoryItem& item, char* place, size_t room,
                   std::vector<FileId>& remembered) {
  const size_t bytes = fuse_add_direntry_plus(request, nullptr, 0, item.name.c_str(), nullptr, 0);
  if (bytes > room) return 0;
  fuse_entry_param entry{};
  if (item.name != "." && item.name != "..") {
    const EntryResult result = MountOf(request).filesystem.RememberEntry(handle, item);
    entry = ToEntryParam(result);
    if (entry.ino != 0) {
      remembered.push_back(result.entry.file);
      TraceName(MountOf(request), FileId{directory}, item.name, result.entry.file);
    }
  }
  if (entry.ino == 0) {
    entry.attr.st_ino = item.entry.file.value;
    entry.attr.st_mode = ModeOfType(item.entry.attributes.type);
  }
  fuse_add_direntry_plus(request, place, room, item.name.c_str(), &entry,
                         static_cast<off_t>(item.next_offset));
  return bytes;
}

void ReadPage(fuse_req_t request, fuse_ino_t directory, size_t size_bytes, off_t offset,
              HandleId handle, bool plus) {
  Filesystem& filesystem = MountOf(request).filesystem;
  const size_t items_max = size_bytes / (plus ? kShortPlusItemBytes : kShortItemBytes) + 1;
  const Outcome<DirectoryPage> page =
      filesystem.ReadDirectory(handle, static_cast<uint64_t>(offset), items_max);
  if (!page.ok()) {
    ReplyFailure(request, page.failure(), "readdir", FileId{directory});
    return;
  }
  const auto buffer = std::make_unique_for_overwrite<char[]>(size_bytes);
  std::vector<FileId> remembered;
  size_t used = 0;
  for (const DirectoryItem& item : page->items) {
    char* const place = buffer.get() + used;
    const size_t room = size_bytes - used;
    const size_t bytes =
        plus ? PutPlusItem(request, directory, handle, item, place, room, remembered)
             : PutItem(request, item, place, room);
    if (bytes == 0) break;
    used += bytes;
  }
  if (fuse_reply_buf(request, buffer.get(), used) != 0) {
    for (const FileId file : remembered) filesystem.Forget(file, 1);
  }
}

void ReadDirectory(fuse_req_t request, fuse_ino_t directory, size_t size_bytes, off_t offset,
                   fuse_file_info* info) {
  ReadPage(request, directory, size_bytes, offset, HandleId{info->fh}, false);
}

void ReadDirectoryPlus(fuse_req_t request, fuse_ino_t directory, size_t size_bytes, off_t offset,
                       fuse_file_info* info) {
  ReadPage(request, directory, size_bytes, offset, HandleId{info->fh}, true);
}

void ReleaseDirectory(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  MountOf(request).filesystem.ReleaseDirectory(HandleId{info->fh});
  fuse_reply_err(request, 0);
}

void FsyncDirectory(fuse_req_t request, fuse_ino_t directory, int, fuse_file_info*) {
  ReplyDone(request, MountOf(request).filesystem.FsyncDirectory(FileId{directory}), "fsyncdir",
            FileId{directory});
}

}  // namespace

void AddNameOperations(fuse_lowlevel_ops& table) {
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
  table.readdirplus = ReadDirectoryPlus;
  table.releasedir = ReleaseDirectory;
  table.fsyncdir = FsyncDirectory;
}

}  // namespace mosa::sai
