#include "tests/support/local_mount.h"

#include <fcntl.h>
#include <unistd.h>

#include <future>
#include <utility>

#include "common/base/check.h"
#include "tests/support/local_manager_api.h"

namespace mosa::testing {
namespace {

Failure Missing(std::string_view path) {
  return {StatusCode::kNotFound, ErrorReason::kNoEntry, std::string(path)};
}

sai::Caller Myself() { return {0, 0, static_cast<uint32_t>(getpid()), 022}; }

}  // namespace

LocalMount::LocalMount(LocalManager& manager, LocalNodes& nodes, const std::string& node_name,
                       const Clock& clock, bool passthrough, sai::FilesystemOptions options)
    : manager_(manager.NewClient(node_name)), nodes_(nodes.ViewFrom(node_name)) {
  notifier_.can.passthrough = passthrough;
  options.node_name = node_name;
  options.mount_point = "/mnt/" + node_name;
  filesystem_ =
      std::make_unique<sai::Filesystem>(std::move(options), *manager_, *nodes_, notifier_, clock);
  MOSA_CHECK(filesystem_->Start().ok());
}

LocalMount::~LocalMount() = default;

void LocalMount::Freeze(bool frozen) { static_cast<LocalManagerApi&>(*manager_).Freeze(frozen); }

void LocalMount::SetUnheard(bool unheard) {
  static_cast<LocalManagerApi&>(*manager_).SetUnheard(unheard);
}

void LocalMount::OnAnswer(std::function<void(const std::vector<Request>&)> hook) {
  static_cast<LocalManagerApi&>(*manager_).OnAnswer(std::move(hook));
}

void LocalMount::OnSend(std::function<void(const std::vector<Request>&)> hook) {
  static_cast<LocalManagerApi&>(*manager_).OnSend(std::move(hook));
}

sai::Outcome<LocalMount::Place> LocalMount::PlaceOf(std::string_view path) {
  Place place{kRootFile, {}};
  size_t begin = 1;
  for (;;) {
    const size_t end = path.find('/', begin);
    place.name = std::string(path.substr(begin, end == path.npos ? path.npos : end - begin));
    if (end == path.npos) return place;
    auto found = filesystem_->Lookup(place.parent, place.name, Myself().uid);
    if (!found.ok()) return found.failure();
    if (found->entry.file.value == 0) return Missing(path);
    place.parent = found->entry.file;
    begin = end + 1;
  }
}

sai::Outcome<FileId> LocalMount::Find(std::string_view path) {
  if (path == "/") return kRootFile;
  auto place = PlaceOf(path);
  if (!place.ok()) return place.failure();
  auto found = filesystem_->Lookup(place->parent, place->name, Myself().uid);
  if (!found.ok()) return found.failure();
  if (found->entry.file.value == 0) return Missing(path);
  return found->entry.file;
}

sai::Outcome<Attributes> LocalMount::Stat(std::string_view path) {
  auto file = Find(path);
  if (!file.ok()) return file.failure();
  auto result = filesystem_->GetAttributes(*file);
  if (!result.ok()) return result.failure();
  return result->attributes;
}

sai::Outcome<FileId> LocalMount::MakeDirectory(std::string_view path) {
  auto place = PlaceOf(path);
  if (!place.ok()) return place.failure();
  auto made = filesystem_->MakeDirectory({place->parent, place->name, 0755, 0, Myself()});
  if (!made.ok()) return made.failure();
  return made->entry.file;
}

// As the kernel does: a lookup first, then open, or create what is absent.
sai::Outcome<sai::OpenResult> LocalMount::Open(std::string_view path, uint32_t flags) {
  auto place = PlaceOf(path);
  if (!place.ok()) return place.failure();
  auto found = filesystem_->Lookup(place->parent, place->name, Myself().uid);
  if (!found.ok()) return found.failure();
  if (found->entry.file.value != 0 && (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
    return Failure{StatusCode::kAlreadyExists, ErrorReason::kExists, std::string(path)};
  if (found->entry.file.value == 0) {
    if ((flags & O_CREAT) == 0) return Missing(path);
    auto made = filesystem_->Create({place->parent, place->name, 0644, 0, Myself()}, flags);
    const bool exists = !made.ok() && made.failure().reason == ErrorReason::kExists;
    if (exists && (flags & O_EXCL) == 0) return Open(path, flags & ~static_cast<uint32_t>(O_CREAT));
    if (!made.ok()) return made.failure();
    return sai::OpenResult{made->handle, made->mode};
  }
  return filesystem_->Open(found->entry.file, flags & ~static_cast<uint32_t>(O_CREAT), Myself());
}

sai::Outcome<sai::Done> LocalMount::Close(sai::HandleId handle, uint64_t owner) {
  auto flushed = Flush(handle, owner);
  filesystem_->Release(handle, std::nullopt);
  return flushed;
}

sai::Outcome<sai::Done> LocalMount::Flush(sai::HandleId handle, uint64_t owner) {
  std::promise<sai::Outcome<sai::Done>> flushed;
  filesystem_->Flush(handle, owner,
                     [&](sai::Outcome<sai::Done> done) { flushed.set_value(std::move(done)); });
  return flushed.get_future().get();
}

sai::Outcome<std::string> LocalMount::Read(sai::HandleId handle, uint64_t offset,
                                           size_t size_bytes) {
  auto result = filesystem_->Read(handle, offset, size_bytes);
  if (!result.ok()) return result.failure();
  std::string bytes(result->size_bytes, '\0');
  if (result->descriptor >= 0) {
    MOSA_CHECK(pread(result->descriptor, bytes.data(), bytes.size(),
                     static_cast<off_t>(result->offset)) == static_cast<ssize_t>(bytes.size()));
  } else {
    bytes.assign(reinterpret_cast<const char*>(result->bytes.data()), result->bytes.size());
  }
  return bytes;
}

sai::Outcome<size_t> LocalMount::Write(sai::HandleId handle, uint64_t offset,
                                       std::string_view data) {
  return filesystem_->Write(handle, {.offset = offset},
                            std::as_bytes(std::span(data.data(), data.size())));
}

sai::Outcome<sai::Done> LocalMount::WriteFile(std::string_view path, std::string_view content) {
  auto opened = Open(path, O_CREAT | O_WRONLY | O_TRUNC);
  if (!opened.ok()) return opened.failure();
  constexpr size_t kStep = 128 << 10;
  std::optional<Failure> failed;
  for (size_t at = 0; at < content.size() && !failed; at += kStep) {
    auto written = Write(opened->handle, at, content.substr(at, kStep));
    if (!written.ok()) failed = written.failure();
  }
  auto closed = Close(opened->handle);
  if (failed) return *failed;
  return closed;
}

sai::Outcome<std::string> LocalMount::ReadFile(std::string_view path) {
  auto opened = Open(path, O_RDONLY);
  if (!opened.ok()) return opened.failure();
  constexpr size_t kStep = 128 << 10;
  std::string content;
  for (;;) {
    auto part = Read(opened->handle, content.size(), kStep);
    if (!part.ok() || part->empty()) {
      auto closed = Close(opened->handle);
      if (!part.ok()) return part.failure();
      if (!closed.ok()) return closed.failure();
      return content;
    }
    content += *part;
  }
}

sai::Outcome<sai::Done> LocalMount::Truncate(std::string_view path, uint64_t size_bytes) {
  auto file = Find(path);
  if (!file.ok()) return file.failure();
  sai::AttributeChanges changes;
  changes.size_bytes = size_bytes;
  std::promise<sai::Outcome<sai::Done>> cut;
  filesystem_->SetAttributes(*file, changes, [&](sai::Outcome<sai::AttributesResult> result) {
    cut.set_value(result.ok() ? sai::Outcome<sai::Done>(sai::Done{}) : result.failure());
  });
  return cut.get_future().get();
}

sai::Outcome<sai::Done> LocalMount::Unlink(std::string_view path) {
  auto place = PlaceOf(path);
  if (!place.ok()) return place.failure();
  return filesystem_->Unlink(place->parent, place->name);
}

sai::Outcome<sai::Done> LocalMount::Rename(std::string_view from, std::string_view to) {
  auto source = PlaceOf(from);
  if (!source.ok()) return source.failure();
  auto target = PlaceOf(to);
  if (!target.ok()) return target.failure();
  return filesystem_->Rename(source->parent, source->name, target->parent, target->name, 0);
}

sai::Outcome<sai::Done> LocalMount::SetXattr(std::string_view path, std::string_view name,
                                             std::string_view value) {
  auto file = Find(path);
  if (!file.ok()) return file.failure();
  return filesystem_->SetXattr(*file, name, value, sai::XattrMode::kAny);
}

sai::Outcome<std::vector<std::string>> LocalMount::List(std::string_view path) {
  auto directory = Find(path);
  if (!directory.ok()) return directory.failure();
  auto handle = filesystem_->OpenDirectory(*directory);
  if (!handle.ok()) return handle.failure();
  std::vector<std::string> names;
  uint64_t offset = 0;
  for (;;) {
    auto page = filesystem_->ReadDirectory(*handle, offset, 100);
    if (!page.ok()) return page.failure();
    if (page->items.empty()) break;
    for (const sai::DirectoryItem& item : page->items) {
      if (item.name != "." && item.name != "..") names.push_back(item.name);
      offset = item.next_offset;
    }
  }
  filesystem_->ReleaseDirectory(*handle);
  return names;
}

}  // namespace mosa::testing
