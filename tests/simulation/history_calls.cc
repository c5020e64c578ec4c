#include "tests/simulation/history_calls.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "tests/simulation/await.h"

namespace mosa::simulation {
namespace {

// A close that waits for copies may take this much longer, for copying that goes on
// (client-sai/core/copy_wait.h).
constexpr Duration kCopyExtension = Seconds(11);
// A write that is first moved off a full node, or waits for other appenders, and then meets a
// silent node may take this much longer: a store has some time of its own whatever came before
// (Filesystem::Impl::RunStore).
constexpr Duration kStoreExtension = Seconds(6);
// Work in the background has no budget of its own, and a program may wait for it: with two faults
// at a time a write took 34 s, and a close 22.6 s.
constexpr Duration kSeveralExtension = Seconds(15);
// Answers that come late take no time of what a call may wait in vain.
constexpr Duration kSlowExtension = Seconds(60);
// Programs that use one file on one host wait for each other.
constexpr Duration kOthersMax = kCallMax;
// How long a program may wait for others that hold a lock, some of which are not heard of.
constexpr Duration kLockWaitMax = Seconds(600);
constexpr Duration kLockLookEvery = Milliseconds(5);
constexpr const char* kNote = "user.note";
constexpr size_t kItemsMax = 3;
constexpr uint64_t kReadMax = 128 << 10;  // In one request.

sai::Caller Myself() { return {0, 0, 1, 022}; }

bool IsChange(const std::string& what) {
  constexpr std::array<std::string_view, 12> kChanges = {
      "write",  "close", "fsync", "create", "truncate", "unlink",
      "rename", "punch", "link",  "lock",   "unlock",   "wait for the lock"};
  return std::ranges::any_of(kChanges,
                             [&](std::string_view kind) { return what.starts_with(kind); });
}

}  // namespace

HistoryCalls::Changing::Changing(HistoryState& state, const Host& host, const std::string& what)
    : state_(state), host_(host.id), changes_(IsChange(what)) {
  if (!changes_) return;
  state_.changes_now.insert(host_);
  state_.change_begins.WakeAll();
}

HistoryCalls::Changing::~Changing() {
  if (changes_) state_.changes_now.erase(state_.changes_now.find(host_));
}

void HistoryCalls::Judge(const Host& host, const std::string& what, const Failure* failure,
                         Time begun, Duration took, Duration max) {
  const bool shared = what.ends_with(NameOf(kLog)) || what.ends_with(NameOf(kGrid)) ||
                      what.ends_with(NameOf(kGuarded));
  History& history = state_.history;
  if (took > history.longest) {
    history.longest = took;
    history.longest_call = fmt::format("{} on h{}", what, host.id);
  }
  if (took > max)
    state_.Problem(fmt::format("{} on h{} took {} ms", what, host.id, took.ns / 1'000'000));
  if (state_.options.trace)
    state_.network.Note(
        fmt::format("h{} {}: {}", host.id, what, failure == nullptr ? "ok" : failure->message));
  if (failure == nullptr) return;
  ++history.failed;
  // Others may remove a file between its lookup and its use.
  const bool by_name = what.starts_with("lookup") || what.starts_with("open ") ||
                       what.starts_with("create") || what.starts_with("unlink") ||
                       what.starts_with("rename") || what.starts_with("truncate") ||
                       what.starts_with("link");
  const bool is_answer = (by_name && (failure->reason == ErrorReason::kNoEntry ||
                                      failure->reason == ErrorReason::kExists ||
                                      failure->reason == ErrorReason::kStale)) ||
                         (what.starts_with("lock") && failure->reason == ErrorReason::kWouldBlock);
  if (!is_answer && (what.starts_with("open ") || what.starts_with("truncate")))
    state_.may_be_cut = true;
  // Closes that wait for copies fail while others have the file open for writing.
  const bool may_be_lost = IsLoss(*failure) && (state_.wipes > 0 || state_.may_be_cut || shared ||
                                                state_.store.may_be_full());
  if (!is_answer && !state_.MayFail(host, begun) && !may_be_lost && !IsFull(*failure))
    state_.Problem(
        fmt::format("{} on h{} failed without a fault: {}", what, host.id, failure->message));
}

Duration HistoryCalls::OthersMax(const Host& host, const std::string& what) const {
  const auto users = std::ranges::count_if(opened_, [&](const auto& open) {
    return open.first.first == host.mount.get() && what.ends_with(NameOf(open.second.at));
  });
  // With two faults at a time each of them may wait so long, also after its close.
  return users > 1 ? kOthersMax * (state_.plan.at_once > 1 ? 4 : 1) : Duration{0};
}

Duration HistoryCalls::SlowMax(Time begun) const {
  const bool was_slow = state_.slow_now > 0 || state_.slow_ended > begun;
  return was_slow ? kSlowExtension : Duration{0};
}

Duration HistoryCalls::SeveralMax() const {
  return state_.plan.at_once > 1 ? kSeveralExtension : Duration{0};
}

Duration HistoryCalls::CloseMax() const {
  return state_.store.pessimistic ? kCallMax + kCopyExtension : kCallMax;
}

Outcome<FileId> HistoryCalls::Find(const Host& host, size_t at) {
  auto found = Ask(host, "lookup " + NameOf(at),
                   [&] { return host.kernel().Lookup(DirectoryOf(at), NameOf(at)); });
  return found;
}

Outcome<FileId> HistoryCalls::MakeDirectory(const Host& host, const std::string& name) {
  const auto made = Ask(host, "mkdir " + name, [&] {
    return host.fs().MakeDirectory({kRootFile, name, 0755, 0, Myself()});
  });
  if (!made.ok()) return made.failure();
  return made->entry.file;
}

Outcome<sai::HandleId> HistoryCalls::Open(const Host& host, size_t at, uint32_t flags) {
  const Time begun = state_.scheduler.now();
  std::unique_lock lock(host.kernel().LockOf(DirectoryOf(at)), std::defer_lock);
  if ((flags & O_CREAT) != 0) lock.lock();
  const auto file = Find(host, at);
  if (!file.ok()) return file.failure();
  if (*file == FileId{}) {
    if ((flags & O_CREAT) == 0)
      return Failure{StatusCode::kNotFound, ErrorReason::kNoEntry, "no such file"};
    const std::string name = NameOf(at);
    auto made = Ask(host, "create " + name, [&] {
      return host.kernel().Create({DirectoryOf(at), name, 0644, 0, Myself()}, flags);
    });
    if (lock.owns_lock()) lock.unlock();
    if (!made.ok() && made.failure().reason == ErrorReason::kExists)
      return Open(host, at, flags & ~static_cast<uint32_t>(O_CREAT));
    if (!made.ok()) return made.failure();
    return Opened(host, at, *made, begun);
  }
  if (lock.owns_lock()) lock.unlock();
  const uint32_t without = flags & ~static_cast<uint32_t>(O_CREAT);
  auto opened = OpenFile(host, at, *file, without);
  if (opened.ok() || opened.failure().reason != ErrorReason::kStale) return opened;
  // The kernel looks the path up once more.
  host.kernel().ForgetName(DirectoryOf(at), NameOf(at));
  const auto again = Find(host, at);
  if (!again.ok()) return again.failure();
  return *again == FileId{} ? opened : OpenFile(host, at, *again, without);
}

Outcome<sai::HandleId> HistoryCalls::OpenFile(const Host& host, size_t at, FileId file,
                                              uint32_t flags) {
  const Time begun = state_.scheduler.now();
  auto opened =
      Ask(host, "open " + NameOf(at), [&] { return host.kernel().Open(file, flags, Myself()); });
  if (!opened.ok()) return opened.failure();
  return Opened(host, at, *opened, begun);
}

sai::HandleId HistoryCalls::Opened(const Host& host, size_t at, sai::HandleId handle, Time begun) {
  opened_[{host.mount.get(), handle}] = {begun, at};
  return handle;
}

Outcome<Done> HistoryCalls::Close(const Host& host, size_t at, sai::HandleId handle) {
  const auto flush = [&] {
    return Await<Done>([&](auto done) { host.fs().Flush(handle, 0, std::move(done)); });
  };
  auto closed = Ask(host, "close " + NameOf(at), flush, CloseMax(), OpenedAt(host, handle));
  const sai::WaitBudget budget(SteadyNow());  // As each request of the kernel has.
  host.kernel().Release(handle);
  opened_.erase({host.mount.get(), handle});
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
  const auto write = [&] { return host.kernel().Write(handle, offset, data); };
  const std::string what = fmt::format("write {} B at {} of {}", data.size(), offset, NameOf(at));
  const auto written = Ask(host, what, write, kCallMax + kStoreExtension, OpenedAt(host, handle));
  if (!written.ok()) return written.failure();
  return Done{};
}

Outcome<Done> HistoryCalls::Fsync(const Host& host, sai::HandleId handle) {
  const auto fsync = [&] { return host.fs().Fsync(handle); };
  return Ask(host, "fsync", fsync, kCallMax + kStoreExtension, OpenedAt(host, handle));
}

Outcome<Done> HistoryCalls::Punch(const Host& host, size_t at, sai::HandleId handle,
                                  ByteRange range) {
  const auto punch = [&] { return host.kernel().Punch(handle, range); };
  const std::string what =
      fmt::format("punch {} B at {} of {}", range.size(), range.begin, NameOf(at));
  return Ask(host, what, punch, kCallMax + kStoreExtension, OpenedAt(host, handle));
}

Outcome<Done> HistoryCalls::Truncate(const Host& host, size_t at, uint64_t size) {
  for (bool again = false;; again = true) {
    const auto file = Find(host, at);
    if (!file.ok()) return file.failure();
    if (*file == FileId{})
      return Failure{StatusCode::kNotFound, ErrorReason::kNoEntry, "no such file"};
    const auto resize = [&] { return host.kernel().SetSize(*file, size); };
    const auto cut =
        Ask(host, fmt::format("truncate {} to {}", NameOf(at), size), resize, CloseMax());
    if (cut.ok()) return Done{};
    if (again || cut.failure().reason != ErrorReason::kStale) return cut.failure();
    host.kernel().ForgetName(DirectoryOf(at), NameOf(at));
  }
}

Outcome<Done> HistoryCalls::Remove(const Host& host, size_t at) {
  const auto removed = Ask(host, "unlink " + NameOf(at),
                           [&] { return host.kernel().Unlink(DirectoryOf(at), NameOf(at)); });
  if (!removed.ok()) return removed.failure();
  return Done{};
}

Outcome<Done> HistoryCalls::Rename(const Host& host, size_t from, size_t to) {
  const auto moved = Ask(host, fmt::format("rename {} to {}", NameOf(from), NameOf(to)), [&] {
    return host.kernel().Rename(DirectoryOf(from), NameOf(from), DirectoryOf(to), NameOf(to));
  });
  if (!moved.ok()) return moved.failure();
  return Done{};
}

Outcome<Done> HistoryCalls::Link(const Host& host, size_t from, size_t to) {
  const auto file = Find(host, from);
  if (!file.ok()) return file.failure();
  if (*file == FileId{})
    return Failure{StatusCode::kNotFound, ErrorReason::kNoEntry, "no such file"};
  const auto linked = Ask(host, fmt::format("link {} to {}", NameOf(from), NameOf(to)),
                          [&] { return host.kernel().Link(*file, DirectoryOf(to), NameOf(to)); });
  if (!linked.ok()) return linked.failure();
  return Done{};
}

Outcome<Done> HistoryCalls::TryLock(const Host& host, size_t at, sai::HandleId handle,
                                    const Lock& lock) {
  const FileId file = host.kernel().FileOf(handle);
  return Ask(
      host, "lock " + NameOf(at), [&] { return host.fs().SetLock(file, lock); }, kCallMax,
      OpenedAt(host, handle));
}

Outcome<Done> HistoryCalls::WaitForLock(const Host& host, size_t at, sai::HandleId handle,
                                        const Lock& lock) {
  const FileId file = host.kernel().FileOf(handle);
  const auto wait = [&]() -> Outcome<Done> {
    struct Answer {
      Mutex mutex;
      std::optional<Outcome<Done>> outcome;
    };
    const auto answer = std::make_shared<Answer>();
    host.fs().WaitForLock(file, lock, [answer](Outcome<Done> outcome) {
      const MutexLock held(answer->mutex);
      answer->outcome = std::move(outcome);
    });
    // A mount that was killed hears of nothing any more.
    for (;; SleepFor(kLockLookEvery)) {
      const MutexLock held(answer->mutex);
      if (answer->outcome) return *answer->outcome;
      if (host.mount->is_killed()) return Done{};
    }
  };
  ++state_.lock_waits;
  auto locked =
      Ask(host, "wait for the lock of " + NameOf(at), wait, kLockWaitMax, OpenedAt(host, handle));
  --state_.lock_waits;
  return locked;
}

Outcome<Done> HistoryCalls::Unlock(const Host& host, size_t at, sai::HandleId handle, Lock lock) {
  const FileId file = host.kernel().FileOf(handle);
  lock.type = LockType::kUnlock;
  // It stores what was written.
  return Ask(
      host, "unlock " + NameOf(at), [&] { return host.fs().SetLock(file, lock); },
      kCallMax + kStoreExtension, OpenedAt(host, handle));
}

Outcome<Done> HistoryCalls::SetNote(const Host& host, size_t directory, const std::string& value) {
  return Ask(host, fmt::format("setxattr d{}", directory), [&] {
    return host.fs().SetXattr(state_.directories[directory], kNote, value, sai::XattrMode::kAny);
  });
}

Outcome<std::string> HistoryCalls::GetNote(const Host& host, size_t directory) {
  return Ask(host, fmt::format("getxattr d{}", directory),
             [&] { return host.fs().GetXattr(state_.directories[directory], kNote); });
}

Outcome<std::string> HistoryCalls::Read(const Host& host, size_t at) {
  const auto opened = Open(host, at, O_RDONLY);
  if (!opened.ok()) return opened.failure();
  auto content = ReadRange(host, at, *opened, 0, UINT64_MAX);
  // Whether the close succeeds says nothing of the bytes.
  static_cast<void>(Close(host, at, *opened));
  return content;
}

Outcome<std::string> HistoryCalls::ReadRange(const Host& host, size_t at, sai::HandleId handle,
                                             uint64_t offset, uint64_t length) {
  std::string content;
  while (content.size() < length) {
    const auto read = [&] {
      return host.kernel().Read(handle, offset + content.size(),
                                std::min(kReadMax, length - content.size()));
    };
    const auto part = Ask(host, "read " + NameOf(at), read, kCallMax, OpenedAt(host, handle));
    if (!part.ok()) return part.failure();
    if (part->empty()) break;
    content += *part;
  }
  return content;
}

Outcome<std::set<std::string>> HistoryCalls::List(const Host& host, size_t directory) {
  const auto opened =
      Ask(host, "opendir", [&] { return host.fs().OpenDirectory(state_.directories[directory]); });
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
