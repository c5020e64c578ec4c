#include "tests/simulation/history_calls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "common/base/check.h"

namespace mosa::simulation {
namespace {

// A close that waits for copies may take this much longer, for copying that goes on
// (client-sai/core/copy_wait.h).
constexpr Duration kCopyExtension = Seconds(11);
// A write that is first moved off a full node, or waits for other appenders, and then meets a
// silent node may take this much longer: a store has some time of its own whatever came before
// (Filesystem::Impl::RunStore).
constexpr Duration kStoreExtension = Seconds(3);
// Programs that use one file on one host wait for each other.
constexpr Duration kOthersMax = kCallMax;
constexpr size_t kItemsMax = 3;

sai::Caller Myself() { return {0, 0, 1, 022}; }

// Starts a call that answers through a callback, and waits for its outcome.
template <typename Value>
Outcome<Value> Await(const std::function<void(std::function<void(Outcome<Value>)>)>& start) {
  struct State {
    Mutex mutex;
    CondVar told;
    std::optional<Outcome<Value>> outcome;
  };
  const auto state = std::make_shared<State>();
  start([state](Outcome<Value> outcome) {
    const std::lock_guard lock(state->mutex);
    state->outcome = std::move(outcome);
    state->told.notify_all();
  });
  std::unique_lock lock(state->mutex);
  state->told.wait(lock, [&] { return state->outcome.has_value(); });
  return *std::move(state->outcome);
}

void AddTo(std::string& content, const sai::ReadResult& part) {
  std::string bytes(part.size_bytes, '\0');
  if (part.descriptor >= 0) {
    MOSA_CHECK(pread(part.descriptor, bytes.data(), bytes.size(),
                     static_cast<off_t>(part.offset)) == static_cast<ssize_t>(bytes.size()));
  } else {
    bytes.assign(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
  }
  content += bytes;
}

}  // namespace

void HistoryCalls::Judge(const Host& host, const std::string& what, const Failure* failure,
                         Time begun, Duration took, Duration max) {
  const bool shared = what.ends_with(NameOf(kLog));
  History& history = state_.history;
  if (took > history.longest) {
    history.longest = took;
    history.longest_call = fmt::format("{} on h{}", what, host.id);
  }
  if (took > max + (shared ? kOthersMax : Duration{0}))
    state_.Problem(fmt::format("{} on h{} took {} ms", what, host.id, took.ns / 1'000'000));
  if (state_.options.trace)
    state_.network.Note(
        fmt::format("h{} {}: {}", host.id, what, failure == nullptr ? "ok" : failure->message));
  if (failure == nullptr) return;
  ++history.failed;
  const bool is_answer =
      failure->reason == ErrorReason::kNoEntry || failure->reason == ErrorReason::kExists;
  if (!is_answer && !state_.MayFail(begun) && !IsLoss(*failure) && !IsFull(*failure))
    state_.Problem(
        fmt::format("{} on h{} failed without a fault: {}", what, host.id, failure->message));
}

Duration HistoryCalls::CloseMax() const {
  return state_.store.pessimistic ? kCallMax + kCopyExtension : kCallMax;
}

Outcome<FileId> HistoryCalls::Find(const Host& host, size_t at) {
  auto found =
      Ask(host, "lookup " + NameOf(at), [&] { return host.fs().Lookup(kRootFile, NameOf(at)); });
  if (!found.ok()) return found.failure();
  return found->entry.file;
}

Outcome<sai::HandleId> HistoryCalls::Open(const Host& host, size_t at, uint32_t flags) {
  const auto file = Find(host, at);
  if (!file.ok()) return file.failure();
  if (*file == FileId{}) {
    if ((flags & O_CREAT) == 0)
      return Failure{StatusCode::kNotFound, ErrorReason::kNoEntry, "no such file"};
    const std::string name = NameOf(at);
    auto made = Ask(host, "create " + name, [&] {
      return host.fs().Create({kRootFile, name, 0644, 0, Myself()}, flags);
    });
    if (!made.ok() && made.failure().reason == ErrorReason::kExists)
      return Open(host, at, flags & ~static_cast<uint32_t>(O_CREAT));
    if (!made.ok()) return made.failure();
    return made->handle;
  }
  auto opened = Ask(host, "open " + NameOf(at), [&] {
    return host.fs().Open(*file, flags & ~static_cast<uint32_t>(O_CREAT), Myself());
  });
  if (!opened.ok()) return opened.failure();
  return opened->handle;
}

Outcome<Done> HistoryCalls::Close(const Host& host, size_t at, sai::HandleId handle) {
  const auto flush = [&] {
    return Await<Done>([&](auto done) { host.fs().Flush(handle, 0, std::move(done)); });
  };
  auto closed = Ask(host, "close " + NameOf(at), flush, CloseMax());
  host.fs().Release(handle, std::nullopt);
  return closed;
}

Outcome<Done> HistoryCalls::InOpen(const Host& host, size_t at, uint32_t flags,
                                   const std::function<Outcome<Done>(sai::HandleId)>& change) {
  const auto handle = Open(host, at, flags);
  if (!handle.ok()) return handle.failure();
  Outcome<Done> changed = change(*handle);
  const Outcome<Done> closed = Close(host, at, *handle);
  return changed.ok() ? closed : changed;
}

Outcome<Done> HistoryCalls::Write(const Host& host, size_t at, sai::HandleId handle,
                                  uint64_t offset, std::string_view data) {
  const std::unique_lock lock(state_.writing[{host.id, at}]);
  const auto write = [&] {
    return host.fs().Write(handle, {.offset = offset, .call_bytes = data.size()},
                           std::as_bytes(std::span(data)));
  };
  const std::string what = fmt::format("write {} B at {} of {}", data.size(), offset, NameOf(at));
  const auto written = Ask(host, what, write, kCallMax + kStoreExtension);
  if (!written.ok()) return written.failure();
  return Done{};
}

Outcome<Done> HistoryCalls::Fsync(const Host& host, sai::HandleId handle) {
  return Ask(host, "fsync", [&] { return host.fs().Fsync(handle); });
}

Outcome<Done> HistoryCalls::Truncate(const Host& host, size_t at, FileId file, uint64_t size) {
  sai::AttributeChanges changes;
  changes.size_bytes = size;
  const auto resize = [&] {
    return Await<sai::AttributesResult>(
        [&](auto done) { host.fs().SetAttributes(file, changes, std::move(done)); });
  };
  const auto cut =
      Ask(host, fmt::format("truncate {} to {}", NameOf(at), size), resize, CloseMax());
  if (!cut.ok()) return cut.failure();
  return Done{};
}

Outcome<Done> HistoryCalls::Remove(const Host& host, size_t at) {
  const auto removed =
      Ask(host, "unlink " + NameOf(at), [&] { return host.fs().Unlink(kRootFile, NameOf(at)); });
  if (!removed.ok()) return removed.failure();
  return Done{};
}

Outcome<Done> HistoryCalls::Rename(const Host& host, size_t from, size_t to) {
  const auto moved = Ask(host, fmt::format("rename {} to {}", NameOf(from), NameOf(to)), [&] {
    return host.fs().Rename(kRootFile, NameOf(from), kRootFile, NameOf(to), 0);
  });
  if (!moved.ok()) return moved.failure();
  return Done{};
}

Outcome<std::string> HistoryCalls::Read(const Host& host, size_t at, FileId file) {
  const auto opened =
      Ask(host, "open " + NameOf(at), [&] { return host.fs().Open(file, O_RDONLY, Myself()); });
  if (!opened.ok()) return opened.failure();
  std::string content;
  std::optional<Failure> failure;
  for (;;) {
    const auto part = Ask(host, "read " + NameOf(at), [&] {
      return host.fs().Read(opened->handle, content.size(), 128 << 10);
    });
    if (!part.ok()) failure = part.failure();
    if (!part.ok() || part->size_bytes == 0) break;
    AddTo(content, *part);
  }
  // Whether the close succeeds says nothing of the bytes.
  static_cast<void>(Close(host, at, opened->handle));
  if (failure) return *failure;
  return content;
}

Outcome<std::set<std::string>> HistoryCalls::List(const Host& host) {
  const auto opened = Ask(host, "opendir", [&] { return host.fs().OpenDirectory(kRootFile); });
  if (!opened.ok()) return opened.failure();
  std::set<std::string> names;
  std::optional<Failure> failure;
  for (uint64_t offset = 0;;) {
    const auto page =
        Ask(host, "readdir", [&] { return host.fs().ReadDirectory(*opened, offset, kItemsMax); });
    if (!page.ok()) failure = page.failure();
    if (!page.ok() || page->items.empty()) break;
    for (const sai::DirectoryItem& item : page->items) {
      if (!names.insert(item.name).second)
        state_.Problem(fmt::format("h{} lists {} twice", host.id, item.name));
      offset = item.next_offset;
    }
  }
  host.fs().ReleaseDirectory(*opened);
  if (failure) return *failure;
  return names;
}

}  // namespace mosa::simulation
