// Files that are removed automatically: `temporary` ones at the end of their workflow,
// `readers:<n>` ones after the n-th reader. A file and its name are removed once no client has it
// open. Clients that know the file are asked, and a mount that has it open reports its close.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/hash.h"
#include "manager/core/state.h"

namespace mosa::manager {
namespace {

constexpr size_t kRunBytesMax = 200;
// One step must not take as long as a lease.
constexpr size_t kReclaimedAtOnce = 10'000;
// Number 0 is not a reader: its record marks the file as due. Readers without a task name are
// numbered from kNamelessReader on; named tasks have lower numbers.
constexpr uint64_t kDueMark = 0;
constexpr uint64_t kNamelessReader = uint64_t{1} << 63;

// Mounts report "sid:..." for a process without MOSA_TASK.
bool IsTaskName(std::string_view task) { return !task.empty() && !task.starts_with("sid:"); }

std::string_view RunOf(std::string_view task) { return task.substr(0, task.find('/')); }

uint64_t ReaderOf(std::string_view task) {
  return std::max<uint64_t>(Hash64(task) & (kNamelessReader - 1), kDueMark + 1);
}

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

}  // namespace

// ---- the files

void ManagerCore::State::FollowLifetime(FileId file, const Inode& inode, std::string_view name) {
  const bool may = inode.type == FileType::kRegular && inode.link_count == 1 &&
                   texts_.TextOf(inode.hints).find("lifetime") != std::string::npos;
  const EffectiveHints hints = may ? HintsOf(inode) : EffectiveHints();
  if (!hints.temporary && hints.readers == 0) return ForgetLifetime(file);
  Lifetime& lifetime = lifetimes_[file];
  if ((lifetime.readers_wanted == 0) != (hints.readers == 0)) ForgetReaders(file, lifetime);
  lifetime.readers_wanted = hints.readers;
  if (!name.empty()) lifetime.name = name;
  if (hints.readers > 0 && lifetime.counted >= hints.readers) MarkDue(file, lifetime);
}

void ManagerCore::State::ForgetLifetime(FileId file) {
  if (lifetimes_.empty()) return;
  const auto found = lifetimes_.find(file);
  if (found == lifetimes_.end()) return;
  ForgetReaders(file, found->second);
  lifetimes_.erase(found);
}

void ManagerCore::State::ForgetReaders(FileId file, Lifetime& lifetime) {
  for (const auto& [reader, counts] : lifetime.readers) {
    effects_.writes.Delete(ReaderKey(file, reader));
    if (!counts) StopWaiting(file, reader);
  }
  lifetime.readers.clear();
  lifetime.counted = 0;
  lifetime.holders.clear();
  due_.erase(file);
}

// New content has new readers. A temporary file is removed at the end of its workflow in any case.
void ManagerCore::State::ContentChanged(FileId file) {
  if (lifetimes_.empty()) return;
  const auto found = lifetimes_.find(file);
  if (found != lifetimes_.end() && found->second.readers_wanted > 0)
    ForgetReaders(file, found->second);
}

bool ManagerCore::State::CountsReaders(FileId file) const {
  if (lifetimes_.empty()) return false;
  const auto found = lifetimes_.find(file);
  return found != lifetimes_.end() && found->second.readers_wanted > 0;
}

// For a freshly loaded image. Nothing is removed before the grace period ends.
void ManagerCore::State::FinishLifetimes() {
  for (auto entry = lifetimes_.begin(); entry != lifetimes_.end();) {
    auto& [file, lifetime] = *entry;
    if (lifetime.name.empty()) {  // It has no lifetime any more, or no name.
      entry = lifetimes_.erase(entry);
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

// ---- readers

void ManagerCore::State::SetReader(FileId file, Lifetime& lifetime, uint64_t reader, bool counts) {
  const auto [known, is_new] = lifetime.readers.try_emplace(reader, counts);
  if (!is_new && (known->second || !counts)) return;
  known->second = counts;
  effects_.writes.Put(ReaderKey(file, reader), Encode(ReaderRecord{counts}));
  changed_ = true;
  if (!counts) {
    waiting_reads_[reader].insert(file);
    return;
  }
  if (!is_new) StopWaiting(file, reader);
  if (reader != kDueMark) ++lifetime.counted;
}

void ManagerCore::State::StopWaiting(FileId file, uint64_t reader) {
  const auto waiting = waiting_reads_.find(reader);
  if (waiting == waiting_reads_.end()) return;
  waiting->second.erase(file);
  if (waiting->second.empty()) waiting_reads_.erase(waiting);
}

void ManagerCore::State::NoteRead(FileId file, std::string_view task) {
  if (task == kStageTask) return;
  const auto found = lifetimes_.find(file);
  if (found == lifetimes_.end() || found->second.readers_wanted == 0) return;
  Lifetime& lifetime = found->second;
  const std::string& writer = texts_.TextOf(Find(file)->task);
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

// ---- reports of runners

void ManagerCore::State::Handle(const BeginWorkflow& command) {
  if (grace_end_) return AnswerAdmin(StillRestarting());
  if (const auto failure = CheckRun(command.run))
    return AnswerAdmin(Status(failure->code, failure->message));
  if (const Status own = CheckRunOwner(command.run, command.asker); !own.ok())
    return AnswerAdmin(own);
  if (runs_.Contains(command.run)) return AnswerAdmin(OkStatus());
  if (const Status room = runs_.CheckBegin(command.asker); !room.ok()) return AnswerAdmin(room);
  runs_.Begin(command.run);
  effects_.writes.Put(WorkflowKey(command.run), Encode(WorkflowRecord{now_}));
  if (command.asker) {
    runs_.SetOwner(command.run, *command.asker);
    effects_.writes.Put(RunOwnerKey(command.run), Encode(OwnerRecord{*command.asker}));
  }
  AnswerAdmin(OkStatus());
}

Status ManagerCore::State::CheckRunOwner(std::string_view run, Asker asker) const {
  if (!asker || !runs_.Contains(run) || runs_.OwnerOf(run) == asker) return OkStatus();
  return PermissionDeniedError(fmt::format("run '{}' does not belong to user {}", run, *asker));
}

void ManagerCore::State::Handle(const EndTask& command) {
  if (grace_end_) return AnswerAdmin(StillRestarting());
  const std::string_view run = RunOf(command.task);
  if (command.task.size() > kTaskBytesMax || !runs_.Contains(run))
    return AnswerAdmin(FailedPreconditionError(
        fmt::format("task '{}' does not belong to an open run", command.task.substr(0, 256))));
  if (const Status own = CheckRunOwner(run, command.asker); !own.ok()) return AnswerAdmin(own);
  const uint64_t reader = ReaderOf(command.task);
  // The mount may report the task's reads only later.
  runs_.NoteTask(run, reader, command.succeeded);
  if (const auto waiting = waiting_reads_.find(reader); waiting != waiting_reads_.end()) {
    for (const FileId file : std::set<FileId>(waiting->second)) {
      Lifetime& lifetime = lifetimes_.at(file);
      if (command.succeeded) {
        SetReader(file, lifetime, reader, true);
        if (lifetime.counted >= lifetime.readers_wanted) MarkDue(file, lifetime);
      } else {
        lifetime.readers.erase(reader);
        effects_.writes.Delete(ReaderKey(file, reader));
        StopWaiting(file, reader);
      }
    }
  }
  AnswerAdmin(OkStatus());
}

void ManagerCore::State::Handle(const EndWorkflow& command) {
  if (grace_end_) return AnswerAdmin(StillRestarting());
  if (const auto failure = CheckRun(command.run))
    return AnswerAdmin(Status(failure->code, failure->message));
  if (const Status own = CheckRunOwner(command.run, command.asker); !own.ok())
    return AnswerAdmin(own);
  // Any program can put the name of a run on its files, so a user ends only their own.
  const auto concerned = [&](FileId file) {
    const Inode& inode = *Find(file);
    return RunOf(texts_.TextOf(inode.task)) == command.run &&
           (!command.asker || inode.uid == *command.asker);
  };
  AdminReply reply{.status = OkStatus()};
  for (auto& [file, lifetime] : lifetimes_) {
    if (lifetime.readers_wanted > 0 || due_.contains(file) || !concerned(file)) continue;
    if (due_checks_.size() >= kReclaimedAtOnce) {
      reply.more = true;
      break;
    }
    MarkDue(file, lifetime);
  }
  CheckDue();
  for (const FileId file : due_)
    if (concerned(file)) ++reply.files_left;
  if (!reply.more && runs_.End(command.run)) effects_.writes.Delete(WorkflowKey(command.run));
  if (!reply.more && runs_.ForgetOwner(command.run))
    effects_.writes.Delete(RunOwnerKey(command.run));
  effects_.admin_reply = std::move(reply);
}

// ---- removal

void ManagerCore::State::MarkDue(FileId file, Lifetime& lifetime) {
  due_.insert(file);
  due_checks_.insert(file);
  if (lifetime.readers_wanted == 0) SetReader(file, lifetime, kDueMark, true);
}

// Rechecks a due file after a change in which clients may have it open.
void ManagerCore::State::RecheckDue(FileId file) {
  if (due_.contains(file)) due_checks_.insert(file);
}

void ManagerCore::State::NoteHolder(FileId file, ClientId client, bool holds_open) {
  if (due_.empty() || !due_.contains(file)) return;
  std::set<ClientId>& holders = lifetimes_.at(file).holders;
  if (holds_open) {
    holders.insert(client);
  } else {
    holders.erase(client);
  }
  due_checks_.insert(file);
}

void ManagerCore::State::CheckDue() {
  if (grace_end_) return;
  for (const FileId file : std::exchange(due_checks_, {})) {
    if (!due_.contains(file) || !Find(file) || !MayReclaim(file)) continue;
    const FileId parent = Find(file)->named_in;
    const std::string name = lifetimes_.at(file).name;
    EraseEntry(parent, name);
    TouchDirectory(parent, now_);
    Unlink(file, false, ClientId());
  }
}

bool ManagerCore::State::MayReclaim(FileId file) {
  Inode& inode = *Find(file);
  Lifetime& lifetime = lifetimes_.at(file);
  if (write_opens_.contains(file) || uncommitted_.contains(file) || !FindName(file)) return false;
  // A client that makes files in this directory may be about to open this one.
  if (delegations_.contains(inode.named_in)) {
    RecallDelegation(inode.named_in);
    due_delegated_[inode.named_in].insert(file);
    return false;
  }
  for (const ClientId client : interests_.Of(file, inode, ClientId())) {
    if (lifetime.holders.contains(client)) continue;
    Session& session = *FindSession(client);
    interests_.Drop(session, file, inode);
    SendRecall(session, file, RecallKind::kFile);
  }
  return lifetime.holders.empty() && !recalls_by_file_.contains(file);
}

// Finds the file's name. Files made with their lifetime have it recorded. Scanning a directory
// finds the names of all such files in it.
bool ManagerCore::State::FindName(FileId file) {
  const FileId parent = Find(file)->named_in;
  Lifetime& lifetime = lifetimes_.at(file);
  if (ChildOf(parent, lifetime.name) == file) return true;
  const Directory* directory = FindDirectory(parent);
  if (!directory) return false;
  for (const auto& [name, child] : directory->entries) {
    if (const auto found = lifetimes_.find(child); found != lifetimes_.end())
      found->second.name = name;
  }
  return ChildOf(parent, lifetime.name) == file;
}

}  // namespace mosa::manager
