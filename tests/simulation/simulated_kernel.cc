#include "tests/simulation/simulated_kernel.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/model/ranges.h"
#include "tests/simulation/await.h"
#include "tests/simulation/virtual_threads.h"

namespace mosa::simulation {
namespace {

using sai::Done;
using sai::HandleId;
using sai::OpenMode;
using sai::Outcome;

constexpr uint64_t kReadAheadPages = 32;

Time Now() { return Scheduler::Current()->now(); }

std::string BytesOf(const sai::ReadResult& read) {
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

Outcome<FileId> SimulatedKernel::Lookup(FileId parent, std::string_view name) {
  const uint64_t asked = last_change_;
  const auto found = fs_->Lookup(parent, name);
  if (!found.ok()) return found.failure();
  const FileId file = found->entry.file;
  if (file != FileId{}) Learn(file, found->entry.attributes, found->attributes_valid, asked);
  return file;
}

Outcome<HandleId> SimulatedKernel::Create(const sai::NewEntry& entry, uint32_t flags) {
  const uint64_t asked = last_change_;
  const auto made = fs_->Create(entry, flags);
  if (!made.ok()) return made.failure();
  const FileId file = made->entry.entry.file;
  Learn(file, made->entry.entry.attributes, made->entry.attributes_valid, asked);
  Opened(file, made->handle, made->mode, flags);
  return made->handle;
}

Outcome<HandleId> SimulatedKernel::Open(FileId file, uint32_t flags, const sai::Caller& caller) {
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
    Change(file);
    file.size = 0;
    file.size_valid_until = {};
  }
  if (!cuts && (mode.kind == OpenMode::Kind::kDirect || mode.keep_cache)) return;
  const std::unique_lock lock(file.pages_locked);
  file.pages.clear();
}

void SimulatedKernel::Release(HandleId handle) {
  handles_.erase(handle);
  fs_->Release(handle, std::nullopt);
}

void SimulatedKernel::Learn(FileId id, const Attributes& attributes, Duration valid,
                            uint64_t asked) {
  File& file = files_[id];
  if (file.change > asked) {
    file.size_valid_until = {};
    return;
  }
  if (attributes.size_bytes < file.size) CutPages(file, attributes.size_bytes);
  file.size = attributes.size_bytes;
  file.size_valid_until = Now() + valid;
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
    return BytesOf(*read);
  }
  File& file = files_[open.file];
  if (offset + length > file.size && Now() >= file.size_valid_until)
    MOSA_RETURN_IF_FAILED(AskSize(open.file));
  return ReadPages(file, handle, {offset, offset + length});
}

Outcome<std::string> SimulatedKernel::ReadPages(File& file, HandleId handle, ByteRange range) {
  std::string bytes;
  while (range.begin < std::min(range.end, file.size)) {
    const uint64_t number = range.begin / kPageBytes;
    const std::unique_lock lock(file.pages_locked);
    if (!file.pages.contains(number)) {
      const uint64_t last = (std::min(range.end, file.size) - 1) / kPageBytes;
      MOSA_RETURN_IF_FAILED(FillPages(file, handle, number, last + 1));
      continue;
    }
    const uint64_t end = std::min({range.end, file.size, (number + 1) * kPageBytes});
    if (end <= range.begin) break;
    bytes += file.pages.at(number).substr(range.begin % kPageBytes, end - range.begin);
    range.begin = end;
  }
  return bytes;
}

// Reads pages that are locked. Behind a shorter answer they are zero, and the file ends there.
Outcome<Done> SimulatedKernel::FillPages(File& file, HandleId handle, uint64_t first,
                                         uint64_t end) {
  end = std::min(end, first + kReadAheadPages);
  for (uint64_t number = first + 1; number < end; ++number)
    if (file.pages.contains(number)) end = number;
  const uint64_t asked = last_change_;
  const auto read = fs_->Read(handle, first * kPageBytes, (end - first) * kPageBytes);
  if (!read.ok()) return read.failure();
  std::string bytes = BytesOf(*read);
  const uint64_t file_end = first * kPageBytes + bytes.size();
  if (bytes.size() < (end - first) * kPageBytes && file.change <= asked)
    file.size = std::min(file.size, file_end);
  bytes.resize((end - first) * kPageBytes);
  for (uint64_t number = first; number < end; ++number)
    file.pages[number] = bytes.substr((number - first) * kPageBytes, kPageBytes);
  return Done{};
}

Outcome<Done> SimulatedKernel::Write(HandleId handle, uint64_t offset, std::string_view data) {
  const Handle open = handles_.at(handle);
  File& file = files_[open.file];
  if (open.append) offset = file.size;
  std::unique_lock lock(file.pages_locked);
  if (open.direct) {
    DropPages(file, {offset, offset + data.size()});
    lock.unlock();
  }
  const auto written = fs_->Write(handle, {.offset = offset, .call_bytes = data.size()},
                                  std::as_bytes(std::span(data)));
  if (!open.direct && written.ok()) WriteInPages(file, offset, data);
  if (!open.direct && !written.ok()) DropPages(file, {offset, offset + data.size()});
  if (!written.ok()) return written.failure();
  Change(file);
  file.size = std::max(file.size, offset + data.size());
  file.size_valid_until = {};
  return Done{};
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
  const std::unique_lock lock(file.pages_locked);
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

Outcome<sai::AttributesResult> SimulatedKernel::SetSize(FileId id, uint64_t size_bytes) {
  sai::AttributeChanges changes;
  changes.size_bytes = size_bytes;
  auto set = Await<sai::AttributesResult>(
      [&](auto done) { fs_->SetAttributes(id, changes, std::move(done)); });
  if (!set.ok()) return set;
  File& file = files_[id];
  Change(file);
  file.size = set->attributes.size_bytes;
  file.size_valid_until = Now() + set->attributes_valid;
  const std::unique_lock lock(file.pages_locked);
  file.pages.clear();
  return set;
}

bool SimulatedKernel::InvalidateFile(FileId id) {
  const auto found = files_.find(id);
  if (found == files_.end()) return false;
  InvalidateAttributes(id);
  const std::unique_lock lock(found->second.pages_locked);
  found->second.pages.clear();
  return true;
}

void SimulatedKernel::InvalidateAttributes(FileId id) {
  const auto found = files_.find(id);
  if (found == files_.end()) return;
  Change(found->second);
  found->second.size_valid_until = {};
}

}  // namespace mosa::simulation
