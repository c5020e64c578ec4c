#include "manager/core/reclaim.h"

#include <fmt/format.h>

#include <utility>

namespace mosa::manager {
namespace {

// One step must not take as long as a lease.
constexpr size_t kReclaimedAtOnce = 10'000;

}  // namespace

void Reclaim::Handle(const EndWorkflow& command) {
  if (cluster_.grace_end) return step_.AnswerAdmin(cluster_.StillRestarting());
  if (const auto failure = CheckRun(command.run))
    return step_.AnswerAdmin(Status(failure->code, failure->message));
  if (const Status own = lifetimes_.CheckRunOwner(command.run, command.asker); !own.ok())
    return step_.AnswerAdmin(own);
  // Any program can put the name of a run on its files, so a user ends only their own.
  const auto concerned = [&](FileId file) {
    const Inode& inode = *files_.Find(file);
    return RunOf(texts_.TextOf(inode.task)) == command.run &&
           (!command.asker || inode.uid == *command.asker);
  };
  AdminReply reply{.status = OkStatus()};
  for (const auto& [file, lifetime] : lifetimes_.by_file()) {
    if (lifetime.readers_wanted > 0 || lifetimes_.due().contains(file) || !concerned(file))
      continue;
    if (lifetimes_.CountDueChecks() >= kReclaimedAtOnce) {
      reply.more = true;
      break;
    }
    lifetimes_.MarkDue(file);
  }
  CheckDue();
  for (const FileId file : lifetimes_.due())
    if (concerned(file)) ++reply.files_left;
  if (!reply.more && runs_.End(command.run)) step_.effects.writes.Delete(WorkflowKey(command.run));
  if (!reply.more && runs_.ForgetOwner(command.run))
    step_.effects.writes.Delete(RunOwnerKey(command.run));
  step_.effects.admin_reply = std::move(reply);
}

void Reclaim::CheckDue() {
  if (cluster_.grace_end) return;
  for (const FileId file : lifetimes_.TakeDueChecks()) {
    if (!lifetimes_.due().contains(file) || !files_.Find(file) || !MayReclaim(file)) continue;
    const FileId parent = files_.Find(file)->named_in;
    const std::string name = lifetimes_.by_file().at(file).name;
    names_.EraseEntry(parent, name);
    files_.TouchDirectory(parent, step_.now);
    names_.Unlink(file, false, ClientId());
  }
}

bool Reclaim::MayReclaim(FileId file) {
  Inode& inode = *files_.Find(file);
  const Lifetime& lifetime = lifetimes_.by_file().at(file);
  if (sessions_.write_opens.contains(file) || files_.uncommitted.contains(file) ||
      !lifetimes_.FindName(file))
    return false;
  // A client that makes files in this directory may be about to open this one.
  if (delegations_.IsHeld(inode.named_in)) {
    delegations_.RecallForDue(inode.named_in, file);
    return false;
  }
  for (const ClientId client : interests_.Of(file, inode, ClientId())) {
    if (lifetime.holders.contains(client)) continue;
    Session& session = *sessions_.Find(client);
    interests_.Drop(session, file, inode);
    recalls_.Send(session, file, RecallKind::kFile);
  }
  return lifetime.holders.empty() && !recalls_.IsRecalled(file);
}

// Removes files that the client made and never committed: nobody was told of their bytes.
void Reclaim::RemoveUncommittedOf(ClientId client) {
  std::vector<FileId> files;
  for (const auto& [file, uncommitted] : files_.uncommitted) {
    if (uncommitted.maker == client) files.push_back(file);
  }
  for (const FileId file : files) {
    const Uncommitted gone = files_.uncommitted.at(file);
    const auto child = files_.ChildOf(gone.parent, gone.name);
    if (child != file) continue;
    names_.EraseEntry(gone.parent, gone.name);
    files_.TouchDirectory(gone.parent, step_.now);
    names_.Unlink(file, false, client);
    if (files_.Find(file)) {
      files_.abandoned.insert(file);
      step_.dirty.insert(file);
    }
    step_.effects.frequent_log.push_back(
        fmt::format("file {} is removed: session {:016x} created it but never committed it",
                    file.value, client.value));
  }
  // Waiters of the ending session would wait for themselves.
  recalls_.RecallTouched(client, std::nullopt);
}

}  // namespace mosa::manager
