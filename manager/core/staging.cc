#include "manager/core/staging.h"

#include <fmt/format.h>

#include <utility>

namespace mosa::manager {

void Staging::NoteWriter(Session& session, FileId file) {
  fences_.TakeBack(file, session.start.client);
  generations_.FenceAbsentWriters(file);
  generations_.NoteStreamOpened(file);
  session.write_opens.insert(file);
  sessions_.write_opens[file].insert(session.start.client);
  Forget(file);
}

void Staging::Forget(FileId file) {
  in_work_.erase(file);
  if (staged_.erase(file) == 0) return;
  step_.effects.writes.Delete(StagedKey(file));
}

bool Staging::IsStaged(FileId file, const Inode& inode) const {
  const auto staged = staged_.find(file);
  return staged != staged_.end() && staged->second == inode.data_version &&
         !sessions_.write_opens.contains(file) && !files_.uncommitted.contains(file);
}

StageOutcome Staging::Stage(const StagedFile& staged) {
  const FileId file = staged.file;
  Inode* inode = files_.Find(file);
  if (!inode || inode->type != FileType::kRegular || inode->data_version != staged.data_version) {
    in_work_.erase(file);
    return StageOutcome::kChanged;
  }
  if (sessions_.write_opens.contains(file) || files_.uncommitted.contains(file))
    return StageOutcome::kBusy;
  if (IsStaged(file, *inode)) return StageOutcome::kStaged;
  const auto [asked, is_new] = in_work_.try_emplace(file, staged.data_version);
  if (is_new || asked->second != staged.data_version) {
    asked->second = staged.data_version;
    for (const ClientId client : interests_.Of(file, *inode, ClientId())) {
      Session& session = *sessions_.Find(client);
      interests_.Drop(session, file, *inode);
      recalls_.Send(session, file, RecallKind::kFile);
    }
  }
  // Any client that has learned of the file since then has reported whether it writes.
  if (recalls_.IsRecalled(file)) return StageOutcome::kBusy;
  in_work_.erase(file);
  staged_[file] = staged.data_version;
  step_.effects.writes.Put(StagedKey(file), Encode(StagedRecord{staged.data_version}));
  return StageOutcome::kStaged;
}

void Staging::Handle(const MarkStaged& command) {
  if (cluster_.grace_end) return step_.AnswerAdmin(cluster_.StillRestarting());
  if (command.asker) {
    for (const StagedFile& staged : command.files) {
      const Inode* const inode = files_.Find(staged.file);
      if (inode && inode->uid != *command.asker) {
        return step_.AnswerAdmin(PermissionDeniedError(
            fmt::format("file {} does not belong to user {}", staged.file.value, *command.asker)));
      }
    }
  }
  AdminReply reply{.status = OkStatus()};
  reply.staged.reserve(command.files.size());
  for (const StagedFile& staged : command.files) reply.staged.push_back(Stage(staged));
  step_.effects.admin_reply = std::move(reply);
}

void Staging::Handle(const RecallMakers& command) {
  if (cluster_.grace_end) return step_.AnswerAdmin(cluster_.StillRestarting());
  if (delegations_.empty()) return step_.AnswerAdmin(OkStatus());
  // A user asking in a loop must not keep all mounts from making files without asking.
  if (command.asker) {
    if (step_.now < users_recall_at_) {
      return step_.AnswerAdmin(
          AbortedError(fmt::format("mounts are creating files, and users can have these recalled "
                                   "only once in {} s: try again",
                                   kUserRecallEvery.ns / Seconds(1).ns)));
    }
    users_recall_at_ = step_.now + kUserRecallEvery;
  }
  delegations_.RecallAll();
  step_.AnswerAdmin(AbortedError("a mount is still making files: try again in a moment"));
}

}  // namespace mosa::manager
