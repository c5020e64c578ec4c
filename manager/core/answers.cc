#include "manager/core/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "manager/core/file_bytes.h"

namespace mosa::manager {

// Withheld replies are corrected to the state at the time they leave: the later of two replies is
// true.
void Answers::AnswerPending(Session& session, RequestId id, Pending pending) {
  delegations_.Correct(session.start.client, pending);
  CorrectAccess(session, pending.files, pending.replies);
  CorrectCommits(pending.commits, pending.replies);
  step_.Answer(session, id, std::move(pending.replies));
}

// The session may have bound or relocated the file, and been answered, after it sent this request.
void Answers::CorrectAccess(Session& session, const std::vector<FileId>& files,
                            std::vector<Reply>& replies) {
  Session* const actor_before = std::exchange(step_.actor, &session);
  for (size_t i = 0; i < std::min(files.size(), replies.size()); ++i) {
    const Inode* inode = files_.Find(files[i]);
    if (!inode) continue;
    if (auto* open = std::get_if<OpenReply>(&replies[i])) {
      open->attributes = file_view_.AttributesOf(files[i], *inode);
      open->access = file_view_.AccessTo(files[i], *inode, open->access.may_write);
    } else if (auto* bind = std::get_if<BindReply>(&replies[i])) {
      bind->access = file_view_.AccessTo(files[i], *inode, bind->access.may_write);
    } else if (auto* make = std::get_if<MakeReply>(&replies[i])) {
      make->entry.attributes = file_view_.AttributesOf(files[i], *inode);
      if (make->access)
        make->access = file_view_.AccessTo(files[i], *inode, make->access->may_write);
    }
  }
  step_.actor = actor_before;
}

// Returns the requests, by index, that report bytes in objects, with their files.
std::vector<std::pair<size_t, FileId>> Answers::CommittedBy(const std::vector<Request>& requests) {
  std::vector<std::pair<size_t, FileId>> commits;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto* commit = std::get_if<CommitRequest>(&requests[i]);
    if (commit && TellsOfObjects(*commit)) commits.emplace_back(i, commit->file);
  }
  return commits;
}

// A node may have lost committed bytes while the reply was withheld. A program that sees no error
// relies on its bytes from then on.
void Answers::CorrectCommits(const std::vector<std::pair<size_t, FileId>>& commits,
                             std::vector<Reply>& replies) const {
  for (const auto& [index, file] : commits) {
    if (index >= replies.size() || std::holds_alternative<Failure>(replies[index])) return;
    const Inode* inode = files_.Find(file);
    const auto lost =
        inode ? copy_view_.UncoveredNode(*inode, /*count_silent=*/false) : std::nullopt;
    if (!lost) continue;
    replies[index] = Refuse(
        StatusCode::kDataLoss, ErrorReason::kNodeLost,
        fmt::format("node {} lost bytes of file {} before their commit was answered: write the "
                    "file again",
                    nodes_.NameOf(*lost), file.value));
    // No reply follows a failure.
    replies.erase(replies.begin() + static_cast<ptrdiff_t>(index) + 1, replies.end());
    return;
  }
}

// One recall of the request is done.
void Answers::FinishPending(const Waiter& waiter) {
  Session* session = sessions_.Find(waiter.client);
  if (!session) return;
  const auto found = session->pending.find(waiter.request);
  if (found == session->pending.end()) return;
  Pending& pending = found->second;
  if (pending.recalls_left > 0) --pending.recalls_left;
  if (pending.recalls_left > 0) return;
  if (pending.awaits_names) queues_.ready.push_back(waiter);
  if (pending.stage != Pending::Stage::kWithheld) return;
  Pending finished = std::move(pending);
  session->pending.erase(found);
  AnswerPending(*session, waiter.request, std::move(finished));
}

Reply Answers::Apply(const GetLockRequest& request) {
  if (!files_.Find(request.file))
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} is gone", request.file.value));
  return GetLockReply{locks_.ConflictWith(request.file, step_.actor->start.client, request.lock)};
}

Reply Answers::Apply(const SetLockRequest& request) {
  if (!files_.Find(request.file))
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} is gone", request.file.value));
  if (request.wait && (!step_.last_in_envelope || step_.changed))
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  "a lock that waits must be the last request of an envelope that changes nothing");
  std::vector<LockTable::Waiting> granted;
  const auto outcome =
      locks_.Set(request.file, step_.actor->start.client, request.lock,
                 request.wait ? std::optional(step_.actor_request) : std::nullopt, granted);
  AnswerLocks(granted, EmptyReply{});
  const std::string what = fmt::format("lock of bytes {} to {} of file {}", request.lock.begin,
                                       request.lock.last, request.file.value);
  switch (outcome) {
    case LockTable::Outcome::kDone:
      if (request.lock.type != LockType::kUnlock) generations_.FenceAbsentWriters(request.file);
      return EmptyReply{};
    case LockTable::Outcome::kWaiting:
      step_.wait = Pending::Stage::kLock;
      return EmptyReply{};
    case LockTable::Outcome::kConflict:
      return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kWouldBlock,
                    what + " conflicts with another client's lock");
    case LockTable::Outcome::kDeadlock:
      return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kDeadlock,
                    what + " would deadlock: its holder waits for this client");
    case LockTable::Outcome::kTooMany:
      return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoLocks,
                    what + ": the file, its holder or the store has reached its limit of locks");
    case LockTable::Outcome::kInvalid:
      break;
  }
  return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid, what + " is invalid");
}

Reply Answers::Apply(const CancelLockRequest& request) {
  const ClientId client = step_.actor->start.client;
  if (locks_.Cancel(client, request.request))
    AnswerLocks({{client, request.request}},
                Refuse(StatusCode::kAborted, ErrorReason::kInterrupted,
                       fmt::format("request {} was cancelled", request.request.value)));
  return EmptyReply{};
}

void Answers::AnswerLocks(const std::vector<LockTable::Waiting>& waiting, const Reply& reply) {
  for (const LockTable::Waiting& who : waiting) {
    Session* session = sessions_.Find(who.client);
    if (!session) continue;
    const auto found = session->pending.find(who.request);
    if (found == session->pending.end() || found->second.stage != Pending::Stage::kLock) continue;
    Pending finished = std::move(found->second);
    session->pending.erase(found);
    if (std::holds_alternative<EmptyReply>(reply)) generations_.FenceAbsentWriters(finished.locks);
    finished.replies.push_back(reply);
    AnswerPending(*session, who.request, std::move(finished));
  }
}

}  // namespace mosa::manager
