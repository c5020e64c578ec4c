// Staging: which files have been copied out of the store, at which version. The version counts
// commits, and a mount that writes commits later. So a copy is accepted only when no client has the
// file open for writing. The end of a write open may be reported too early (several descriptors
// share one), so every mount that knows the file is asked first.
#include <fmt/format.h>

#include <algorithm>

#include "manager/core/state.h"

namespace mosa::manager {

void ManagerCore::State::NoteWriter(Session& session, FileId file) {
  fences_.TakeBack(file, session.start.client);
  FenceAbsentWriters(file);
  session.write_opens.insert(file);
  write_opens_[file].insert(session.start.client);
  ForgetStaged(file);
}

void ManagerCore::State::ForgetStaged(FileId file) {
  staging_.erase(file);
  if (staged_.erase(file) == 0) return;
  effects_.writes.Delete(StagedKey(file));
}

bool ManagerCore::State::IsStaged(FileId file, const Inode& inode) const {
  const auto staged = staged_.find(file);
  return staged != staged_.end() && staged->second == inode.data_version &&
         !write_opens_.contains(file) && !uncommitted_.contains(file);
}

StageOutcome ManagerCore::State::Stage(const StagedFile& staged) {
  const FileId file = staged.file;
  Inode* inode = Find(file);
  if (!inode || inode->type != FileType::kRegular || inode->data_version != staged.data_version) {
    staging_.erase(file);
    return StageOutcome::kChanged;
  }
  if (write_opens_.contains(file) || uncommitted_.contains(file)) return StageOutcome::kBusy;
  if (IsStaged(file, *inode)) return StageOutcome::kStaged;
  const auto [asked, is_new] = staging_.try_emplace(file, staged.data_version);
  if (is_new || asked->second != staged.data_version) {
    asked->second = staged.data_version;
    for (const ClientId client : interests_.Of(file, *inode, ClientId())) {
      Session& session = *FindSession(client);
      interests_.Drop(session, file, *inode);
      SendRecall(session, file, RecallKind::kFile);
    }
  }
  // Any client that has learned of the file since then has reported whether it writes.
  if (recalls_by_file_.contains(file)) return StageOutcome::kBusy;
  staging_.erase(file);
  staged_[file] = staged.data_version;
  effects_.writes.Put(StagedKey(file), Encode(StagedRecord{staged.data_version}));
  return StageOutcome::kStaged;
}

void ManagerCore::State::Handle(const MarkStaged& command) {
  if (grace_end_) return AnswerAdmin(StillRestarting());
  if (command.asker) {
    for (const StagedFile& staged : command.files) {
      const Inode* const inode = Find(staged.file);
      if (inode && inode->uid != *command.asker) {
        return AnswerAdmin(PermissionDeniedError(
            fmt::format("file {} does not belong to user {}", staged.file.value, *command.asker)));
      }
    }
  }
  AdminReply reply{.status = OkStatus()};
  reply.staged.reserve(command.files.size());
  for (const StagedFile& staged : command.files) reply.staged.push_back(Stage(staged));
  effects_.admin_reply = std::move(reply);
}

void ManagerCore::State::Handle(const RecallMakers& command) {
  if (grace_end_) return AnswerAdmin(StillRestarting());
  if (delegations_.empty()) return AnswerAdmin(OkStatus());
  // A user asking in a loop must not keep all mounts from making files without asking.
  if (command.asker) {
    if (now_ < users_recall_at_) {
      return AnswerAdmin(
          AbortedError(fmt::format("mounts are creating files, and users can have these recalled "
                                   "only once in {} s: try again",
                                   kUserRecallEvery.ns / Seconds(1).ns)));
    }
    users_recall_at_ = now_ + kUserRecallEvery;
  }
  std::vector<FileId> directories;
  for (const auto& [directory, delegation] : delegations_) directories.push_back(directory);
  for (const FileId directory : directories) RecallDelegation(directory);
  AnswerAdmin(AbortedError("a mount is still making files: try again in a moment"));
}

}  // namespace mosa::manager
