#include "tests/simulation/simulated_kernel.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/base/sync.h"
#include "common/model/ranges.h"
#include "tests/simulation/await.h"
#include "tests/simulation/virtual_threads.h"

namespace mosa::simulation {
namespace {

using sai::Done;
using sai::HandleId;
using sai::OpenMode;
using sai::Outcome;

// Whose programs make files.
constexpr uint32_t kUser = 0;

constexpr uint64_t kReadAheadBytes = 128 << 10;

Time Now() { return Scheduler::Current()->now(); }

std::string ContentOf(const sai::ReadResult& read) {
  std::string bytes(read.size_bytes, '\0');
  if (read.descriptor < 0) {
    bytes.assign(reinterpret_cast<const char*>(read.bytes.data()), read.bytes.size());
  } else {
    MOSA_CHECK(pread(read.descriptor, bytes.data(), bytes.size(),
                     static_cast<off_t>(read.offset)) == static_cast<ssize_t>(bytes.size()));
  }
  return bytes;
}

}  // namespace

Outcome<FileId> SimulatedKernel::Lookup(FileId parent, const std::string& name) {
  const auto known = names_.find({parent, name});
  if (known != names_.end() && Now() < known->second.valid_until && known->second.epoch == epoch_)
    return known->second.file;
  const uint64_t asked = last_change_;
  const uint64_t epoch = epoch_;
  const uint64_t changes = own_name_changes_;
  const auto found = fs_->Lookup(parent, name, kUser);
  if (!found.ok()) return found.failure();
  const FileId file = found->entry.file;
  if (file != FileId{}) Learn(file, found->entry.attributes, found->attributes_valid, asked);
  if (changes == own_name_changes_) NoteName(parent, name, *found, epoch);
  return file;
}

void SimulatedKernel::NoteName(FileId parent, const std::string& name,
                               const sai::EntryResult& found, uint64_t epoch) {
  names_[{parent, name}] = {found.entry.file, Now() + found.entry_valid, epoch};
}

Outcome<Done> SimulatedKernel::Unlink(FileId parent, const std::string& name) {
  auto removed = fs_->Unlink(parent, name);
  ++own_name_changes_;
  ForgetName(parent, name);
  return removed;
}

Outcome<Done> SimulatedKernel::Rename(FileId from, const std::string& name, FileId to,
                                      const std::string& new_name) {
  auto renamed = fs_->Rename(from, name, to, new_name, 0);
  ++own_name_changes_;
  ForgetName(to, new_name);
  // A lookup beside it may have found the old name gone. The kernel locks the directories instead.
  if (const auto known = names_.find({from, name});
      renamed.ok() && known != names_.end() && known->second.file != FileId{})
    names_[{to, new_name}] = known->second;
  ForgetName(from, name);
  return renamed;
}

Outcome<FileId> SimulatedKernel::Link(FileId file, FileId parent, const std::string& name) {
  const uint64_t asked = last_change_;
  const uint64_t epoch = epoch_;
  const auto linked = fs_->Link(file, parent, name);
  ++own_name_changes_;
  ForgetName(parent, name);
  if (!linked.ok()) return linked.failure();
  NoteName(parent, name, *linked, epoch);
  Learn(file, linked->entry.attributes, linked->attributes_valid, asked);
  return file;
}

Outcome<HandleId> SimulatedKernel::Create(const sai::NewEntry& entry, uint32_t flags) {
  const uint64_t asked = last_change_;
  const uint64_t epoch = epoch_;
  const auto made = fs_->Create(entry, flags);
  ++own_name_changes_;
  ForgetName(entry.parent, std::string(entry.name));
  if (!made.ok()) return made.failure();
  NoteName(entry.parent, std::string(entry.name), made->entry, epoch);
  const FileId file = made->entry.entry.file;
  Learn(file, made->entry.entry.attributes, made->entry.attributes_valid, asked);
  Opened(file, made->handle, made->mode, flags);
  return made->handle;
}

Outcome<HandleId> SimulatedKernel::Open(FileId file, uint32_t flags, const sai::Caller& caller) {
  // To check the permissions, the kernel asks for attributes that are not valid.
  if (Now() >= files_[file].size_valid_until) MOSA_RETURN_IF_FAILED(AskSize(file));
  const auto opened = fs_->Open(file, flags, caller);
  if (!opened.ok()) return opened.failure();
  Opened(file, opened->handle, opened->mode, flags);
  return opened->handle;
}

void SimulatedKernel::Opened(FileId id, HandleId handle, const OpenMode& mode, uint32_t flags) {
  handles_[handle] = {id, mode.kind == OpenMode::Kind::kDirect, (flags & O_APPEND) != 0};
  File& file = files_[id];
  const bool cuts = (flags & O_TRUNC) != 0;
  if (cuts) {
    NoteChange(file);
    file.size = 0;
    file.size_valid_until = {};
  }
  if (!cuts && mode.keep_cache) return;
  const MutexLock lock(file.pages_locked);
  file.pages.clear();
}

void SimulatedKernel::Release(HandleId handle) {
  handles_.erase(handle);
  fs_->Release(handle, std::nullopt);
}

void SimulatedKernel::Learn(FileId id, const Attributes& attributes, Duration valid,
                            uint64_t asked) {
  File& file = files_[id];
  if (file.change > asked || file.size_unstable) return;
  NoteChange(file);
  const bool is_cut = attributes.size_bytes < file.size;
  file.size = attributes.size_bytes;
  file.size_valid_until = Now() + valid;
  if (is_cut) CutPages(file, attributes.size_bytes);
}

Outcome<Done> SimulatedKernel::AskSize(FileId file) {
  const uint64_t asked = last_change_;
  const auto now = fs_->GetAttributes(file);
  if (!now.ok()) return now.failure();
  Learn(file, now->attributes, now->attributes_valid, asked);
  return Done{};
}

Outcome<std::string> SimulatedKernel::Read(HandleId handle, uint64_t offset, uint64_t length) {
  const Handle open = handles_.at(handle);
  if (open.direct) {
    const auto read = fs_->Read(handle, offset, length);
    if (!read.ok()) return read.failure();
    return ContentOf(*read);
  }
  File& file = files_[open.file];
  if (offset + length > file.size && Now() >= file.size_valid_until)
    MOSA_RETURN_IF_FAILED(AskSize(open.file));
  return ReadPages(file, handle, {offset, offset + length});
}

Outcome<std::string> SimulatedKernel::ReadPages(File& file, HandleId handle, ByteRange range) {
  std::string bytes;
  for (;;) {
    const MutexLock lock(file.pages_locked);
    const uint64_t number = range.begin / kPageBytes;
    const uint64_t end = std::min({range.end, file.size, (number + 1) * kPageBytes});
    if (end <= range.begin) return bytes;
    if (!file.pages.contains(number)) {
      const uint64_t ahead = std::min(range.end + kReadAheadBytes, file.size);
      MOSA_RETURN_IF_FAILED(FillPages(file, handle, number, (ahead - 1) / kPageBytes + 1));
      continue;
    }
    bytes += file.pages.at(number).substr(range.begin % kPageBytes, end - range.begin);
    range.begin = end;
  }
}

// Reads pages that are locked. After a short read the rest is zeroes, and the file ends there.
Outcome<Done> SimulatedKernel::FillPages(File& file, HandleId handle, uint64_t first,
                                         uint64_t end) {
  end = std::min(end, first + kReadAheadBytes / kPageBytes);
  for (uint64_t number = first + 1; number < end; ++number)
    if (file.pages.contains(number)) end = number;
  const uint64_t asked = last_change_;
  const auto read = fs_->Read(handle, first * kPageBytes, (end - first) * kPageBytes);
  if (!read.ok()) return read.failure();
  std::string bytes = ContentOf(*read);
  const uint64_t file_end = first * kPageBytes + bytes.size();
  if (file_end < std::min(end * kPageBytes, file.size) && file.change <= asked) {
    NoteChange(file);
    file.size = file_end;
  }
  bytes.resize((end - first) * kPageBytes);
  for (uint64_t number = first; number < end; ++number)
    file.pages[number] = bytes.substr((number - first) * kPageBytes, kPageBytes);
  return Done{};
}

Outcome<Done> SimulatedKernel::Write(HandleId handle, uint64_t offset, std::string_view data) {
  const Handle open = handles_.at(handle);
  File& file = files_[open.file];
  const MutexLock one_at_a_time(file.changes);
  if (open.append) offset = file.size;
  Outcome<Done> written = Done{};
  file.size_unstable = offset + data.size() > file.size;
  for (uint64_t done = 0; done < data.size() && written.ok(); done += kWriteMax)
    written = WritePiece(open, handle, offset + done, data.substr(done, kWriteMax), data.size());
  file.size_unstable = false;
  return written;
}

// Other requests may use whole pages before the mount has answered. A page of which only a part is
// known stays locked until then.
Outcome<Done> SimulatedKernel::WritePiece(const Handle& open, HandleId handle, uint64_t offset,
                                          std::string_view data, uint64_t call_bytes) {
  File& file = files_[open.file];
  const ByteRange range{offset, offset + data.size()};
  std::unique_lock lock(file.pages_locked);
  if (open.direct)
    DropPages(file, range);
  else
    WriteInPages(file, offset, data);
  const bool all_known = file.pages.contains(range.begin / kPageBytes) &&
                         file.pages.contains((range.end - 1) / kPageBytes);
  if (open.direct || all_known) lock.unlock();
  const auto written = fs_->Write(handle, {.offset = offset, .call_bytes = call_bytes},
                                  std::as_bytes(std::span(data)));
  NoteChange(file);
  file.size_valid_until = {};
  if (written.ok()) {
    file.size = std::max(file.size, range.end);
    return Done{};
  }
  if (!lock.owns_lock()) lock.lock();
  if (!open.direct) DropPages(file, range);
  return written.failure();
}

void SimulatedKernel::WriteInPages(File& file, uint64_t offset, std::string_view data) {
  while (!data.empty()) {
    const uint64_t number = offset / kPageBytes;
    const uint64_t begin = offset % kPageBytes;
    const auto part = data.substr(0, kPageBytes - begin);
    if (const auto page = file.pages.find(number); page != file.pages.end())
      page->second.replace(begin, part.size(), part);
    else if (part.size() == kPageBytes)
      file.pages[number] = part;
    offset += part.size();
    data.remove_prefix(part.size());
  }
}

void SimulatedKernel::CutPages(File& file, uint64_t size_bytes) {
  const MutexLock lock(file.pages_locked);
  const uint64_t kept = size_bytes % kPageBytes;
  const auto last = file.pages.find(size_bytes / kPageBytes);
  if (last != file.pages.end())
    last->second = last->second.substr(0, kept).append(kPageBytes - kept, '\0');
  DropPages(file, {WidenToPages({0, size_bytes}).end, UINT64_MAX});
}

void SimulatedKernel::DropPages(File& file, ByteRange range) {
  const auto first = file.pages.lower_bound(range.begin / kPageBytes);
  auto end = first;
  while (end != file.pages.end() && end->first * kPageBytes < range.end) ++end;
  file.pages.erase(first, end);
}

void SimulatedKernel::ClearPages(File& file, ByteRange range) {
  for (auto& [number, page] : file.pages) {
    const uint64_t begin = std::max(range.begin, number * kPageBytes);
    const uint64_t end = std::min(range.end, (number + 1) * kPageBytes);
    if (begin < end) page.replace(begin % kPageBytes, end - begin, end - begin, '\0');
  }
  const uint64_t first = (range.begin + kPageBytes - 1) / kPageBytes * kPageBytes;
  DropPages(file, {first, range.end / kPageBytes * kPageBytes});
}

Outcome<Done> SimulatedKernel::Punch(HandleId handle, ByteRange range) {
  File& file = files_[handles_.at(handle).file];
  const MutexLock one_at_a_time(file.changes);
  const auto punched =
      fs_->Allocate(handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, range.begin, range.size());
  NoteChange(file);
  file.size_valid_until = {};
  if (!punched.ok()) return punched;
  const MutexLock lock(file.pages_locked);
  ClearPages(file, range);
  return punched;
}

Outcome<sai::AttributesResult> SimulatedKernel::SetSize(FileId id, uint64_t size_bytes) {
  File& file = files_[id];
  const MutexLock one_at_a_time(file.changes);
  sai::AttributeChanges changes;
  changes.size_bytes = size_bytes;
  file.size_unstable = true;
  auto set = Await<sai::AttributesResult>(
      [&](auto done) { fs_->SetAttributes(id, changes, std::move(done)); });
  file.size_unstable = false;
  if (!set.ok()) return set;
  NoteChange(file);
  const uint64_t size_before = std::exchange(file.size, set->attributes.size_bytes);
  file.size_valid_until = Now() + set->attributes_valid;
  if (size_before == file.size) return set;
  const MutexLock lock(file.pages_locked);
  file.pages.clear();
  return set;
}

bool SimulatedKernel::InvalidateFile(FileId id) {
  const auto found = files_.find(id);
  if (found == files_.end()) return false;
  InvalidateAttributes(id);
  const MutexLock lock(found->second.pages_locked);
  found->second.pages.clear();
  return true;
}

void SimulatedKernel::InvalidateAttributes(FileId id) {
  const auto found = files_.find(id);
  if (found == files_.end()) return;
  NoteChange(found->second);
  found->second.size_valid_until = {};
}

}  // namespace mosa::simulation
