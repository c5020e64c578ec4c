#include "tests/simulation/history_programs.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "common/base/sync.h"
#include "tests/simulation/history_bytes.h"

namespace mosa::simulation {

void HistoryPrograms::MakeDirectory(const Host& host) {
  const auto made = calls_.MakeDirectory(host, fmt::format("d{}", state_.directories.size()));
  state_.directories.push_back(made.ok() ? *made : kRootFile);
  while (state_.notes.size() < state_.directories.size()) state_.notes.emplace_back();
}

// Few names: some are used by programs of different hosts at about the same time.
size_t HistoryPrograms::ChooseName(const Host& host, Rng& rng) const {
  if (state_.work.few_names) return rng.Below(2);
  // A program often uses the directory that its mount has made.
  const size_t own = state_.options.files + host.number * kNamesEach;
  return rng.Chance(250) ? own + rng.Below(kNamesEach) : rng.Below(state_.names.size());
}

void HistoryPrograms::Step(const Host& host, Rng& rng, Kept& kept) {
  const uint32_t bursts = state_.work.bursts_per_mille;
  if (bursts > 0 && rng.Chance(bursts)) return bursts_.Step(host, rng);
  const Action action = state_.work.Choose(rng);
  const size_t at = ChooseName(host, rng);
  switch (action) {
    case Action::kList:
      return List(host, rng);
    case Action::kPeek:
      return Peek(host, at);
    case Action::kAppend:
      return shared_.Append(host, rng);
    case Action::kWritePart:
      return shared_.WritePart(host, rng);
    case Action::kCheckPart:
      return shared_.CheckPart(host, rng);
    case Action::kKeep:
      return Keep(host, at, rng, kept);
    case Action::kLock:
      return locks_.Step(host, rng);
    case Action::kNote:
      return UseNote(host, rng);
    default:
      return StepOn(host, at, action, rng);
  }
}

void HistoryPrograms::StepOn(const Host& host, size_t at, Action action, Rng& rng) {
  Name& name = state_.names[at];
  while (!name.used.try_lock()) {
    if (takeovers_.MayTakeOver(host, at)) return takeovers_.TakeOver(host, at, rng);
    SleepFor(Milliseconds(static_cast<int64_t>(50 + rng.Below(300))));
  }
  const MutexLock lock(name.used, std::adopt_lock);
  if (name.is_tangled) return;
  switch (action) {
    case Action::kRemove:
      return Remove(host, at);
    case Action::kRename:
      return Rename(host, at, rng);
    case Action::kLink:
      return Link(host, at, rng);
    case Action::kTruncate:
      return Truncate(host, at, rng);
    case Action::kRewrite:
      return Rewrite(host, at, rng);
    case Action::kChange:
      return Change(host, at, rng);
    case Action::kWork:
      return Work(host, at, rng);
    default:
      return Read(host, at);
  }
}

void HistoryPrograms::Rewrite(const Host& host, size_t at, Rng& rng) {
  Name& name = state_.names[at];
  const Name::Replacement replacement(name);
  if (rng.Chance(200)) Remove(host, at);  // Some programs make a new file instead.
  const Time begun = state_.scheduler.now();
  const std::string data = state_.Fresh(LengthOf(rng));
  const uint64_t wipes = state_.wipes;
  OpenChange change(host, name);
  const Outcome<Done> done = calls_.InOpen(
      host, at, O_CREAT | O_RDWR | O_TRUNC, [&](sai::HandleId handle) -> Outcome<Done> {
        const uint64_t step = 1 + data.size() / (1 + rng.Below(4));
        for (uint64_t i = 0; i < data.size(); i += step) {
          const auto piece = std::string_view(data).substr(i, step);
          MOSA_RETURN_IF_FAILED(calls_.Write(host, at, handle, i, piece));
          change.NoteWrite(i, piece.size());
          if (rng.Chance(200)) SleepFor(Milliseconds(static_cast<int64_t>(rng.Below(5'000))));
          if (!rng.Chance(100)) continue;
          change.BeginSync();
          MOSA_RETURN_IF_FAILED(calls_.Fsync(host, handle));
          change.NoteSync();
        }
        change.BeginSync();
        return Done{};
      });
  if (!done.ok()) change.NoteStale(done.failure());
  // It needs nothing of what a node may have lost.
  if (!done.ok() && !state_.MayFail(host, begun) && !state_.store.may_be_full())
    state_.Problem(
        fmt::format("h{} cannot write {} anew: {}", host.id, NameOf(at), done.failure().message));
  if (change.is_taken_over())
    return takeovers_.End(host, at, change, done.ok() ? std::optional(data) : std::nullopt);
  name.certain = done.ok();
  name.has_remains = name.has_remains || !done.ok();
  if (!done.ok()) return;
  name.exists = true;
  name.content = data;
  name.wipes = wipes;
  name.has_copies = state_.store.pessimistic;
  name.has_holes = false;
}

// A close that waits for copies has succeeded.
void HistoryPrograms::NoteCopies(Name& name, uint64_t wipes) const {
  if (!state_.store.pessimistic) return;
  name.has_copies = true;
  name.wipes = wipes;
}

void HistoryPrograms::Change(const Host& host, size_t at, Rng& rng) {
  Name& name = state_.names[at];
  if (!name.certain || !name.exists || state_.MayBeLost(name)) return Read(host, at);
  const Time begun = state_.scheduler.now();
  const uint64_t wipes = state_.wipes;
  const bool appends = rng.Chance(300);
  const std::string data = state_.Fresh(LengthOf(rng));
  const uint64_t gap = name.has_remains ? 1 : GapOf(rng);
  const uint64_t offset = appends ? name.content.size() : rng.Below(name.content.size() + gap);
  if (offset > name.content.size()) name.has_holes = true;
  const Outcome<Done> done = calls_.InOpen(
      host, at, O_RDWR | (appends ? uint32_t{O_APPEND} : 0), [&](sai::HandleId handle) {
        return calls_.Write(host, at, handle, appends ? 0 : offset, data);
      });
  if (!done.ok()) CheckFailure(host, at, begun, done.failure());
  name.certain = done.ok();
  name.has_remains = name.has_remains || !done.ok();
  if (!done.ok()) return;
  if (name.content.size() < offset + data.size()) name.content.resize(offset + data.size());
  name.content.replace(offset, data.size(), data);
  NoteCopies(name, wipes);
}

void HistoryPrograms::Work(const Host& host, size_t at, Rng& rng) {
  Name& name = state_.names[at];
  if (!name.certain || !name.exists || state_.MayBeLost(name)) return Read(host, at);
  const Name::Replacement replacement(name);
  const Time begun = state_.scheduler.now();
  std::string content = name.content;
  OpenChange change(host, name);
  const Outcome<Done> done =
      calls_.InOpen(host, at, O_RDWR, [&](sai::HandleId handle) -> Outcome<Done> {
        for (uint64_t i = 2 + rng.Below(6); i > 0; --i) {
          MOSA_RETURN_IF_FAILED(WorkOnce(host, at, handle, content, change, rng));
          if (rng.Chance(400)) SleepFor(Milliseconds(static_cast<int64_t>(rng.Below(9'000))));
        }
        change.BeginSync();
        return Done{};
      });
  if (!done.ok()) CheckFailure(host, at, begun, done.failure());
  if (!done.ok()) change.NoteStale(done.failure());
  if (change.is_taken_over())
    return takeovers_.End(host, at, change, done.ok() ? std::optional(content) : std::nullopt);
  name.certain = done.ok();
  name.has_remains = name.has_remains || !done.ok();
  if (done.ok()) name.content = std::move(content);
}

Outcome<Done> HistoryPrograms::WriteAt(const Host& host, size_t at, sai::HandleId handle,
                                       uint64_t offset, std::string& content, OpenChange& change,
                                       Rng& rng) {
  const std::string data = state_.Fresh(LengthOf(rng));
  MOSA_RETURN_IF_FAILED(calls_.Write(host, at, handle, offset, data));
  change.NoteWrite(offset, data.size());
  if (content.size() < offset + data.size()) content.resize(offset + data.size());
  content.replace(offset, data.size(), data);
  return Done{};
}

// Makes the file shorter or longer, punches a hole, or writes behind its end.
Outcome<Done> HistoryPrograms::ResizeOnce(const Host& host, size_t at, sai::HandleId handle,
                                          std::string& content, OpenChange& change, Rng& rng) {
  Name& name = state_.names[at];
  if (!name.has_remains && rng.Chance(400)) {
    name.has_holes = true;
    return WriteAt(host, at, handle, content.size() + GapOf(rng), content, change, rng);
  }
  const uint64_t kept = rng.Below(content.size() + 1);
  change.BeginSync();
  if (!name.has_remains && kept < content.size() && rng.Chance(500)) {
    const uint64_t end = std::min<uint64_t>(kept + LengthOf(rng), content.size());
    name.has_holes = true;
    MOSA_RETURN_IF_FAILED(calls_.Punch(host, at, handle, {kept, end}));
    content.replace(kept, end - kept, end - kept, '\0');
    change.NoteResize();
    return Done{};
  }
  const uint64_t size = name.has_remains ? kept : kept + rng.Below(50'000);
  if (size > content.size()) name.has_holes = true;
  MOSA_RETURN_IF_FAILED(calls_.Truncate(host, at, size));
  content.resize(size);
  change.NoteResize();
  return Done{};
}

Outcome<Done> HistoryPrograms::WorkOnce(const Host& host, size_t at, sai::HandleId handle,
                                        std::string& content, OpenChange& change, Rng& rng) {
  if (rng.Chance(state_.work.resizes_per_mille))
    return ResizeOnce(host, at, handle, content, change, rng);
  const uint64_t what = rng.Below(10);
  const uint64_t offset = rng.Below(content.size() + 1);
  if (what < 4) return WriteAt(host, at, handle, offset, content, change, rng);
  if (what == 4) {
    change.BeginSync();
    MOSA_RETURN_IF_FAILED(calls_.Fsync(host, handle));
    change.NoteSync();
    return Done{};
  }
  const uint64_t length = LengthOf(rng);
  const auto read = calls_.ReadRange(host, at, handle, offset, length);
  if (!read.ok()) return read.failure();
  std::string right = content.substr(offset, length);
  if (change.is_taken_over()) {
    right.resize(read->size());
    for (uint64_t i = 0; i < right.size(); ++i)
      if (!change.IsOwn(offset + i)) right[i] = (*read)[i];
  }
  if (*read != right)
    state_.Problem(fmt::format("h{} reads {} from {} in the open that wrote it: {}", host.id,
                               NameOf(at), offset, Difference(right, *read)));
  return Done{};
}

void HistoryPrograms::Truncate(const Host& host, size_t at, Rng& rng) {
  Name& name = state_.names[at];
  if (!name.certain || !name.exists || state_.MayBeLost(name)) return Read(host, at);
  const Name::Replacement replacement(name);
  const Time begun = state_.scheduler.now();
  const uint64_t longest = name.content.size() * (name.has_remains ? 1 : 2);
  const uint64_t size = rng.Chance(300) ? 0 : rng.Below(longest + 1);
  const auto file = calls_.Find(host, at);
  if (!CheckFound(host, at, file) || !file.ok()) return;
  if (size > name.content.size()) name.has_holes = true;
  const auto cut = calls_.Truncate(host, at, size);
  if (!cut.ok()) CheckFailure(host, at, begun, cut.failure());
  name.certain = cut.ok();
  if (cut.ok()) name.content.resize(size);
}

void HistoryPrograms::Remove(const Host& host, size_t at) {
  Name& name = state_.names[at];
  const Name::Replacement replacement(name);
  const auto removed = calls_.Remove(host, at);
  if (!removed.ok() && removed.failure().reason == ErrorReason::kNoEntry) {
    if (name.certain && name.exists)
      state_.Problem(fmt::format("unlink on h{}: {} is absent", host.id, NameOf(at)));
    return;
  }
  if (removed.ok() && name.certain && !name.exists)
    state_.Problem(fmt::format("unlink on h{}: {} was there", host.id, NameOf(at)));
  name.certain = removed.ok();
  name.has_remains = !removed.ok();
  name.exists = false;
  name.content.clear();
  name.wipes = state_.wipes;
}

// Moves the file to a name with a higher number, or over its file. So the names are locked in one
// order everywhere.
void HistoryPrograms::Rename(const Host& host, size_t at, Rng& rng) {
  if (at + 1 == state_.names.size()) return Read(host, at);
  const size_t target = at + 1 + rng.Below(state_.names.size() - at - 1);
  Name& from = state_.names[at];
  Name& to = state_.names[target];
  const MutexLock lock(to.used);
  if (to.is_tangled) return;
  const Name::Replacement from_replacement(from);
  const Name::Replacement to_replacement(to);
  const auto moved = calls_.Rename(host, at, target);
  const bool absent = !moved.ok() && moved.failure().reason == ErrorReason::kNoEntry;
  if (from.certain && absent == from.exists && (absent || moved.ok()))
    state_.Problem(fmt::format("rename {} to {} on h{}: it {} there", NameOf(at), NameOf(target),
                               host.id, absent ? "is not" : "was"));
  if (absent) return;
  from.certain = from.certain && moved.ok();
  from.has_remains = from.has_remains || !moved.ok();
  to.NoteFileOf(from);
  if (!moved.ok()) return;
  from.certain = true;
  from.exists = from.has_remains = false;
  from.content.clear();
  from.wipes = state_.wipes;
}

void HistoryPrograms::Link(const Host& host, size_t at, Rng& rng) {
  // A link that fails for a fault takes two names out of use.
  if (at + 1 == state_.names.size() || state_.work.few_names) return Read(host, at);
  const size_t target = at + 1 + rng.Below(state_.names.size() - at - 1);
  Name& from = state_.names[at];
  Name& to = state_.names[target];
  const MutexLock lock(to.used);
  if (to.is_tangled) return;
  const Name::Replacement from_replacement(from);
  const Name::Replacement to_replacement(to);
  const auto linked = calls_.Link(host, at, target);
  const bool exists = !linked.ok() && linked.failure().reason == ErrorReason::kExists;
  const bool absent = !linked.ok() && linked.failure().reason == ErrorReason::kNoEntry;
  if ((exists && to.certain && !to.exists) || (absent && from.certain && from.exists) ||
      (linked.ok() && ((to.certain && to.exists) || (from.certain && !from.exists))))
    state_.Problem(fmt::format("link {} to {} on h{}: {}", NameOf(at), NameOf(target), host.id,
                               linked.ok() ? "it was made" : linked.failure().message));
  if (exists || absent) return;
  if (linked.ok()) {
    to.NoteFileOf(from);
    if (from.certain && !state_.MayBeLost(from)) ChangeLinked(host, at, target, rng);
    const size_t gone = rng.Chance(500) ? at : target;
    Remove(host, gone);
    if (state_.names[gone].certain) return;
  }
  from.is_tangled = to.is_tangled = true;
  from.certain = to.certain = false;
}

void HistoryPrograms::ChangeLinked(const Host& host, size_t at, size_t other, Rng& rng) {
  if (rng.Chance(500)) Change(host, at, rng);
  state_.names[other].NoteFileOf(state_.names[at]);
  Read(host, other);
}

void HistoryPrograms::UseNote(const Host& host, Rng& rng) {
  const size_t directory = rng.Below(state_.directories.size());
  Note& note = state_.notes[directory];
  const MutexLock lock(note.used);
  if (rng.Chance(400)) {
    const std::string value = fmt::format("{}", ++state_.writes);
    const auto set = calls_.SetNote(host, directory, value);
    note.is_certain = set.ok();
    if (set.ok()) note.value = value;
    return;
  }
  if (!note.is_certain || note.value.empty()) return;
  const auto got = calls_.GetNote(host, directory);
  const bool is_gone = !got.ok() && got.failure().reason == ErrorReason::kNoAttribute;
  if (is_gone || (got.ok() && *got != note.value))
    state_.Problem(fmt::format("h{} reads the attribute {} of directory {}, which was set to {}",
                               host.id, is_gone ? "(none)" : *got, directory, note.value));
}

bool HistoryPrograms::CheckFound(const Host& host, size_t at, const Outcome<FileId>& file) {
  const Name& name = state_.names[at];
  if (!file.ok()) return false;
  const bool found = *file != FileId{};
  if (!name.certain || found == name.exists) return found;
  state_.Problem(fmt::format("h{} finds {} {}", host.id, NameOf(at),
                             found ? "although it was removed" : "absent although it was closed"));
  return false;
}

void HistoryPrograms::CheckFailure(const Host& host, size_t at, Time begun,
                                   const Failure& failure) {
  const Name& name = state_.names[at];
  if (!name.certain || state_.MayFail(host, begun) || calls_.IsFull(failure)) return;
  if (state_.MayBeLost(name) && HistoryCalls::IsLoss(failure)) return;
  state_.Problem(fmt::format("h{} cannot use {}: {}", host.id, NameOf(at), failure.message));
}

void HistoryPrograms::Read(const Host& host, size_t at) {
  const Name& name = state_.names[at];
  const Time begun = state_.scheduler.now();
  const auto file = calls_.Find(host, at);
  if (!CheckFound(host, at, file)) return;
  const auto content = calls_.Read(host, at);
  if (!content.ok()) {
    // That a node has lost everything is no reason to say that a file with other copies is lost.
    if (HistoryCalls::IsLoss(content.failure()) && name.certain && !state_.MayBeLost(name) &&
        !state_.MayMissNodes(begun) && !host.mount->is_killed())
      state_.Problem(fmt::format("h{} cannot read {}, of which there is another copy: {}", host.id,
                                 NameOf(at), content.failure().message));
    return CheckFailure(host, at, begun, content.failure());
  }
  if (name.certain && *content != name.content)
    state_.Problem(
        fmt::format("h{} reads {}: {}", host.id, NameOf(at), Difference(name.content, *content)));
}

void HistoryPrograms::Peek(const Host& host, size_t at) {
  const Name& name = state_.names[at];
  const uint64_t before = name.replacements;
  if (before % 2 != 0 || !name.certain || !name.exists || name.has_holes || name.has_remains ||
      state_.MayBeLost(name))
    return;
  const auto file = calls_.Find(host, at);
  if (!file.ok() || *file == FileId{}) return;
  const auto content = calls_.Read(host, at);
  if (!content.ok() || name.replacements != before || !name.certain || name.has_holes ||
      name.has_remains || state_.MayBeLost(name))
    return;
  if (const size_t zero = content->find('\0'); zero != std::string::npos)
    state_.Problem(fmt::format("h{} reads zeroes in {} at {} of {} while others may write", host.id,
                               NameOf(at), zero, content->size()));
}

void HistoryPrograms::Keep(const Host& host, size_t at, Rng& rng, Kept& kept) {
  if (kept.mount != host.mount) kept.mount = nullptr;  // The mount was killed, with its opens.
  if (kept.mount == nullptr) {
    // A close that waits for copies fails while others have the file open for writing.
    const bool reads = rng.Chance(600) || state_.store.pessimistic;
    const auto opened = calls_.Open(host, at, reads ? O_RDONLY : O_RDWR);
    if (opened.ok()) kept = {at, *opened, host.mount};
    return;
  }
  if (rng.Chance(400)) return Leave(host, kept);
  Name& name = state_.names[kept.at];
  const MutexLock lock(name.used);
  const uint64_t offset = rng.Below(50'000);
  const uint64_t length = LengthOf(rng);
  const Time begun = state_.scheduler.now();
  const auto read = calls_.ReadRange(host, kept.at, kept.handle, offset, length);
  if (!read.ok()) return Leave(host, kept);
  // It sees what others have closed, if it is still the file of that name.
  const auto file = calls_.Find(host, kept.at);
  if (!file.ok() || *file != host.kernel().FileOf(kept.handle) || !name.certain ||
      state_.MayFail(host, begun))
    return;
  const std::string right =
      offset < name.content.size() ? name.content.substr(offset, length) : std::string();
  if (*read != right)
    state_.Problem(fmt::format("h{} reads {} from {} in an open that it has kept: {}", host.id,
                               NameOf(kept.at), offset, Difference(right, *read)));
}

void HistoryPrograms::Leave(const Host& host, Kept& kept) {
  const auto mount = std::exchange(kept.mount, nullptr);
  if (mount == nullptr || mount != host.mount) return;
  static_cast<void>(calls_.Close(host, kept.at, kept.handle));
}

void HistoryPrograms::List(const Host& host, Rng& rng) {
  const size_t directory = rng.Below(state_.directories.size());
  std::vector<std::unique_lock<Mutex>> locks;
  for (size_t at = 0; at < state_.names.size(); ++at)
    if (state_.DirectoryOf(at) == directory) locks.emplace_back(state_.names[at].used);
  const auto listed = calls_.List(host, directory);
  if (!listed.ok()) return;
  for (size_t at = 0; at < state_.names.size(); ++at) {
    const Name& name = state_.names[at];
    if (state_.DirectoryOf(at) == directory && name.certain &&
        name.exists != listed->contains(NameOf(at)))
      state_.Problem(
          fmt::format("h{} {} {}", host.id, name.exists ? "does not list" : "lists", NameOf(at)));
  }
}

void HistoryPrograms::CheckUncertain(const std::vector<Host>& hosts, size_t at) {
  std::optional<std::pair<HostId, std::string>> first;
  std::optional<HostId> absent;
  for (const Host& host : hosts) {
    const auto file = calls_.Find(host, at);
    if (!file.ok()) continue;
    if (*file == FileId{}) {
      absent = host.id;
      continue;
    }
    const auto content = calls_.Read(host, at);
    if (!content.ok()) {
      if (!HistoryCalls::IsLoss(content.failure()) || (state_.wipes == 0 && !state_.may_be_cut))
        state_.Problem(fmt::format("h{} cannot read {} at the end: {}", host.id, NameOf(at),
                                   content.failure().message));
    } else if (!first) {
      first = {host.id, *content};
    } else if (first->second != *content) {
      state_.Problem(fmt::format("h{} reads another {} than h{}: {}", host.id, NameOf(at),
                                 first->first, Difference(first->second, *content)));
    }
  }
  if (first && absent)
    state_.Problem(fmt::format("h{} finds {}, h{} does not", first->first, NameOf(at), *absent));
}

void HistoryPrograms::CheckAll(const std::vector<Host>& hosts) {
  for (size_t at = 0; at < state_.names.size(); ++at) {
    if (!state_.names[at].certain) {
      CheckUncertain(hosts, at);
      continue;
    }
    for (const Host& host : hosts) Read(host, at);
  }
  shared_.CheckAll(hosts);
  bursts_.CheckAll(hosts);
}

}  // namespace mosa::simulation
