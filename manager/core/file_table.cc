#include "manager/core/file_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

constexpr Duration kOrphanLinger = Milliseconds(250);

}  // namespace

Failure Gone(FileId file) {
  return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                fmt::format("file {} is gone", file.value));
}

Inode* FileTable::Find(FileId file) {
  const auto found = inodes.find(file);
  return found == inodes.end() ? nullptr : found->second.get();
}

const Inode* FileTable::Find(FileId file) const {
  const auto found = inodes.find(file);
  return found == inodes.end() ? nullptr : found->second.get();
}

Directory* FileTable::FindDirectory(FileId file) {
  const auto found = directories.find(file);
  return found == directories.end() ? nullptr : found->second.get();
}

const Directory* FileTable::FindDirectory(FileId file) const {
  const auto found = directories.find(file);
  return found == directories.end() ? nullptr : found->second.get();
}

std::optional<FileId> FileTable::ChildOf(FileId parent, std::string_view name) const {
  const Directory* directory = FindDirectory(parent);
  if (!directory) return std::nullopt;
  const auto found = directory->entries.find(name);
  if (found == directory->entries.end()) return std::nullopt;
  return found->second;
}

Failure AnotherFile(std::string_view name, FileId found, FileId meant) {
  const auto text = [](FileId file) {
    return file.value == 0 ? std::string("nothing") : fmt::format("file {}", file.value);
  };
  return Refuse(
      StatusCode::kAborted, ErrorReason::kStale,
      fmt::format("'{}' is now {}, not {}: look it up again", name, text(found), text(meant)));
}

std::optional<Failure> FileTable::CheckRegular(FileId file) const {
  const Inode* inode = Find(file);
  if (!inode)
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} is gone", file.value));
  if (inode->type == FileType::kRegular) return std::nullopt;
  const bool directory = inode->type == FileType::kDirectory;
  return Refuse(StatusCode::kFailedPrecondition,
                directory ? ErrorReason::kIsDirectory : ErrorReason::kInvalid,
                fmt::format("file {} is not a regular file and has no bytes", file.value));
}

Freeze* FileTable::FreezeOf(FileId file) {
  const auto freeze = freezes.find(file);
  if (freeze == freezes.end()) return nullptr;
  if (freeze->second.until >= step_.now) return &freeze->second;
  freezes.erase(freeze);
  return nullptr;
}

std::string FileTable::PathOf(FileId directory) const {
  std::vector<std::string_view> names;
  size_t bytes = 0;
  for (FileId at = directory; at != kRootFile;) {
    const Directory* here = FindDirectory(at);
    if (!here) break;
    bytes += 1 + here->name.size();
    if (bytes > kPathBytesMax) {
      names.push_back("...");
      break;
    }
    names.push_back(here->name);
    at = here->parent;
  }
  std::string path;
  for (auto name = names.rbegin(); name != names.rend(); ++name) path.append("/").append(*name);
  return path;
}

// Returns the directory of the file's latest name; the root if that directory is gone.
FileId FileTable::DirectoryOf(const Inode& inode) const {
  return FindDirectory(inode.named_in) ? inode.named_in : kRootFile;
}

InodeRecord FileTable::RecordOf(FileId file, const Inode& inode) const {
  InodeRecord record;
  record.attributes = StoredAttributes(inode);
  record.placement_seed = inode.placement_seed;
  record.task = texts_.TextOf(inode.task);
  record.hints = texts_.TextOf(inode.hints);
  if (const auto link = symlinks.find(file); link != symlinks.end())
    record.symlink_target = link->second;
  if (inode.bytes) {
    const FileBytes& bytes = *inode.bytes;
    record.layout = {bytes.chunk_bytes, bytes.segments, texts_.TextOf(bytes.reason)};
    record.objects = bytes.objects;
    record.copies = bytes.copies;
    record.generation = bytes.generation;
    record.kept_since = bytes.kept_since;
    record.may_differ = bytes.may_differ;
    record.raised_uncommitted = bytes.raised_uncommitted;
    record.is_inline = bytes.is_inline;
    record.inline_valid_bytes = bytes.inline_valid_bytes;
    record.inline_node = bytes.inline_node;
  }
  if (const auto found = uncommitted.find(file); found != uncommitted.end())
    record.uncommitted_by = found->second.maker;
  record.abandoned = abandoned.contains(file);
  record.stream = inode.stream;
  return record;
}

std::optional<Failure> FileTable::CheckDirectory(FileId directory) const {
  const Inode* inode = Find(directory);
  if (!inode) return Gone(directory);
  if (inode->type != FileType::kDirectory)
    return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kNotDirectory,
                  fmt::format("file {} is not a directory", directory.value));
  return std::nullopt;
}

std::optional<Failure> FileTable::CheckName(std::string_view name) const {
  if (name.size() > kNameBytesMax)
    return Refuse(
        StatusCode::kInvalidArgument, ErrorReason::kNameTooLong,
        fmt::format("a name of {} bytes exceeds the maximum of {}", name.size(), kNameBytesMax));
  if (name.empty() || name.find('/') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos)
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  "a name must not be empty and must not contain '/' or NUL");
  return std::nullopt;
}

void FileTable::TouchDirectory(FileId directory, Time at) {
  Inode& inode = *Find(directory);
  // A deferred make may carry an earlier time. The directory's times never go back.
  inode.change_time = std::max(inode.change_time, at);
  inode.modify_time = inode.change_time;
  step_.Touch(directory);
}

void FileTable::Linger(FileId orphan) {
  lingering[orphan] = step_.now + kOrphanLinger;
  step_.Schedule(step_.now + kOrphanLinger);
}

// Returns true if `directory` is `ancestor` or lies below it.
bool FileTable::IsWithin(FileId directory, FileId ancestor) const {
  while (true) {
    if (directory == ancestor) return true;
    if (directory == kRootFile) return false;
    const Directory* above = FindDirectory(directory);
    if (!above) return false;
    directory = above->parent;
  }
}

Result<FileId> FileTable::FileAt(std::string_view path, FileId* deepest) const {
  if (path.empty() || path[0] != '/')
    return InvalidArgumentError(fmt::format("'{}' is not an absolute path in the store", path));
  FileId file = kRootFile;
  size_t begin = 1;
  while (begin < path.size()) {
    const size_t limit = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, limit - begin);
    const Directory* directory = FindDirectory(file);
    if (directory && deepest) *deepest = file;
    if (name == "..") {
      if (directory) file = directory->parent;
    } else if (!name.empty() && name != ".") {
      const auto child = ChildOf(file, name);
      if (!child)
        return NotFoundError(
            directory ? fmt::format("there is no '{}'", path.substr(0, limit))
                      : fmt::format("'{}' is not a directory", path.substr(0, begin - 1)));
      file = *child;
    }
    begin = limit + 1;
  }
  return file;
}

std::optional<Failure> FileTable::FindRegular(const std::string& path, FileId& file) const {
  const auto found = FileAt(path);
  if (!found.ok())
    return Refuse(found.status().code(), ErrorReason::kNoEntry, MessageOf(found.status()));
  file = *found;
  if (Find(file)->type == FileType::kRegular) return std::nullopt;
  return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                fmt::format("'{}' is not a regular file", path));
}

}  // namespace mosa::manager
