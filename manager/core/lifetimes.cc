#include "manager/core/lifetimes.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/hash.h"
#include "common/model/task_names.h"

namespace mosa::manager {
namespace {

constexpr size_t kRunBytesMax = 200;

// Number 0 is not a reader: its record marks the file as due. Readers without a task name are
// numbered from kNamelessReader on; named tasks have lower numbers.
constexpr uint64_t kDueMark = 0;

constexpr uint64_t kNamelessReader = uint64_t{1} << 63;

// Mounts report "sid:..." for a process without MOSA_TASK.
bool IsTaskName(std::string_view task) { return !task.empty() && !task.starts_with("sid:"); }

uint64_t ReaderOf(std::string_view task) {
  return std::max<uint64_t>(Hash64(task) & (kNamelessReader - 1), kDueMark + 1);
}

}  // namespace

std::string_view RunOf(std::string_view task) { return task.substr(0, task.find('/')); }

std::optional<Failure> CheckRun(std::string_view run) {
  const bool good =
      !run.empty() && run.size() <= kRunBytesMax && std::all_of(run.begin(), run.end(), [](char c) {
        return static_cast<unsigned char>(c) > ' ' && c != 0x7f && c != '/';
      });
  if (good) return std::nullopt;
  return Refuse(
      StatusCode::kInvalidArgument, ErrorReason::kInvalid,
      fmt::format(
          "'{}' is not a run name: it must have 1 to {} bytes and contain neither '/' nor spaces",
          run.substr(0, kRunBytesMax), kRunBytesMax));
}

void Lifetimes::Follow(FileId file, const Inode& inode, std::string_view name) {
  const bool may = inode.type == FileType::kRegular && inode.link_count == 1 &&
                   texts_.TextOf(inode.hints).find("lifetime") != std::string::npos;
  const EffectiveHints hints = may ? hints_.HintsOf(inode) : EffectiveHints();
  if (!hints.temporary && hints.readers == 0) return Forget(file);
  Lifetime& lifetime = by_file_[file];
  if ((lifetime.readers_wanted == 0) != (hints.readers == 0)) ForgetReaders(file, lifetime);
  lifetime.readers_wanted = hints.readers;
  if (!name.empty()) lifetime.name = name;
  if (hints.readers > 0 && lifetime.counted >= hints.readers) MarkDue(file, lifetime);
}

void Lifetimes::Forget(FileId file) {
  if (by_file_.empty()) return;
  const auto found = by_file_.find(file);
  if (found == by_file_.end()) return;
  ForgetReaders(file, found->second);
  by_file_.erase(found);
}

void Lifetimes::ForgetReaders(FileId file, Lifetime& lifetime) {
  for (const auto& [reader, counts] : lifetime.readers) {
    step_.effects.writes.Delete(ReaderKey(file, reader));
    if (!counts) StopWaiting(file, reader);
  }
  lifetime.readers.clear();
  lifetime.counted = 0;
  lifetime.holders.clear();
  due_.erase(file);
}

// New content has new readers. A temporary file is removed at the end of its workflow in any case.
void Lifetimes::ContentChanged(FileId file) {
  if (by_file_.empty()) return;
  const auto found = by_file_.find(file);
  if (found != by_file_.end() && found->second.readers_wanted > 0)
    ForgetReaders(file, found->second);
}

bool Lifetimes::CountsReaders(FileId file) const {
  if (by_file_.empty()) return false;
  const auto found = by_file_.find(file);
  return found != by_file_.end() && found->second.readers_wanted > 0;
}

void Lifetimes::LoadReader(FileId file, uint64_t reader, bool counts) {
  by_file_[file].readers.insert_or_assign(reader, counts);
}

// For a freshly loaded image. Nothing is removed before the grace period ends.
void Lifetimes::FinishLoad() {
  for (auto entry = by_file_.begin(); entry != by_file_.end();) {
    auto& [file, lifetime] = *entry;
    if (lifetime.name.empty()) {  // It has no lifetime any more, or no name.
      entry = by_file_.erase(entry);
      continue;
    }
    for (const auto& [reader, counts] : lifetime.readers) {
      if (counts && reader != kDueMark) ++lifetime.counted;
      if (!counts) waiting_reads_[reader].insert(file);
    }
    const bool read = lifetime.readers_wanted > 0 && lifetime.counted >= lifetime.readers_wanted;
    if (read || lifetime.readers.contains(kDueMark)) due_.insert(file);
    ++entry;
  }
  due_checks_ = due_;
}

void Lifetimes::SetReader(FileId file, Lifetime& lifetime, uint64_t reader, bool counts) {
  const auto [known, is_new] = lifetime.readers.try_emplace(reader, counts);
  if (!is_new && (known->second || !counts)) return;
  known->second = counts;
  step_.effects.writes.Put(ReaderKey(file, reader), Encode(ReaderRecord{counts}));
  step_.changed = true;
  if (!counts) {
    waiting_reads_[reader].insert(file);
    return;
  }
  if (!is_new) StopWaiting(file, reader);
  if (reader != kDueMark) ++lifetime.counted;
}

void Lifetimes::StopWaiting(FileId file, uint64_t reader) {
  const auto waiting = waiting_reads_.find(reader);
  if (waiting == waiting_reads_.end()) return;
  waiting->second.erase(file);
  if (waiting->second.empty()) waiting_reads_.erase(waiting);
}

void Lifetimes::NoteRead(FileId file, std::string_view task) {
  if (!CountsAsReader(task)) return;
  const auto found = by_file_.find(file);
  if (found == by_file_.end() || found->second.readers_wanted == 0) return;
  Lifetime& lifetime = found->second;
  const std::string& writer = texts_.TextOf(files_.Find(file)->task);
  if (IsTaskName(task)) {
    if (task == writer) return;  // A task that reads its own file is not a reader.
    const std::string_view run = RunOf(task);
    const bool counts = !runs_.Contains(run) || runs_.HasSucceeded(run, ReaderOf(task));
    SetReader(file, lifetime, ReaderOf(task), counts);
  } else {
    // If the writer's runner reports tasks, only tasks count as readers.
    if (runs_.Contains(RunOf(writer))) return;
    const uint64_t last = lifetime.readers.empty() ? 0 : lifetime.readers.rbegin()->first;
    SetReader(file, lifetime, std::max(last + 1, kNamelessReader), true);
  }
  if (lifetime.counted >= lifetime.readers_wanted) MarkDue(file, lifetime);
}

void Lifetimes::Handle(const BeginWorkflow& command) {
  if (cluster_.grace_end) return step_.AnswerAdmin(cluster_.StillRestarting());
  if (const auto failure = CheckRun(command.run))
    return step_.AnswerAdmin(Status(failure->code, failure->message));
  if (const Status own = CheckRunOwner(command.run, command.asker); !own.ok())
    return step_.AnswerAdmin(own);
  if (runs_.Contains(command.run)) return step_.AnswerAdmin(OkStatus());
  if (const Status room = runs_.CheckBegin(command.asker); !room.ok())
    return step_.AnswerAdmin(room);
  runs_.Begin(command.run);
  step_.effects.writes.Put(WorkflowKey(command.run), Encode(WorkflowRecord{step_.now}));
  if (command.asker) {
    runs_.SetOwner(command.run, *command.asker);
    step_.effects.writes.Put(RunOwnerKey(command.run), Encode(OwnerRecord{*command.asker}));
  }
  step_.AnswerAdmin(OkStatus());
}

Status Lifetimes::CheckRunOwner(std::string_view run, Asker asker) const {
  if (!asker || !runs_.Contains(run) || runs_.OwnerOf(run) == asker) return OkStatus();
  return PermissionDeniedError(fmt::format("run '{}' does not belong to user {}", run, *asker));
}

void Lifetimes::Handle(const EndTask& command) {
  if (cluster_.grace_end) return step_.AnswerAdmin(cluster_.StillRestarting());
  const std::string_view run = RunOf(command.task);
  if (command.task.size() > kTaskBytesMax || !runs_.Contains(run))
    return step_.AnswerAdmin(FailedPreconditionError(
        fmt::format("task '{}' does not belong to an open run", command.task.substr(0, 256))));
  if (const Status own = CheckRunOwner(run, command.asker); !own.ok())
    return step_.AnswerAdmin(own);
  const uint64_t reader = ReaderOf(command.task);
  // The mount may report the task's reads only later.
  runs_.NoteTask(run, reader, command.succeeded);
  if (const auto waiting = waiting_reads_.find(reader); waiting != waiting_reads_.end()) {
    for (const FileId file : std::set<FileId>(waiting->second)) {
      Lifetime& lifetime = by_file_.at(file);
      if (command.succeeded) {
        SetReader(file, lifetime, reader, true);
        if (lifetime.counted >= lifetime.readers_wanted) MarkDue(file, lifetime);
      } else {
        lifetime.readers.erase(reader);
        step_.effects.writes.Delete(ReaderKey(file, reader));
        StopWaiting(file, reader);
      }
    }
  }
  step_.AnswerAdmin(OkStatus());
}

void Lifetimes::MarkDue(FileId file, Lifetime& lifetime) {
  due_.insert(file);
  due_checks_.insert(file);
  if (lifetime.readers_wanted == 0) SetReader(file, lifetime, kDueMark, true);
}

void Lifetimes::RecheckDue(FileId file) {
  if (due_.contains(file)) due_checks_.insert(file);
}

void Lifetimes::NoteHolder(FileId file, ClientId client, bool holds_open) {
  if (due_.empty() || !due_.contains(file)) return;
  std::set<ClientId>& holders = by_file_.at(file).holders;
  if (holds_open) {
    holders.insert(client);
  } else {
    holders.erase(client);
  }
  due_checks_.insert(file);
}

void Lifetimes::ForgetHolder(ClientId client) {
  for (const FileId file : due_) {
    by_file_.at(file).holders.erase(client);
    due_checks_.insert(file);
  }
}

void Lifetimes::NoteName(FileId file, const std::string& name) {
  if (by_file_.empty()) return;
  if (const auto found = by_file_.find(file); found != by_file_.end()) found->second.name = name;
}

bool Lifetimes::FindName(FileId file) {
  const FileId parent = files_.Find(file)->named_in;
  Lifetime& lifetime = by_file_.at(file);
  if (files_.ChildOf(parent, lifetime.name) == file) return true;
  const Directory* directory = files_.FindDirectory(parent);
  if (!directory) return false;
  for (const auto& [name, child] : directory->entries) {
    NoteName(child, name);
  }
  return files_.ChildOf(parent, lifetime.name) == file;
}

}  // namespace mosa::manager
