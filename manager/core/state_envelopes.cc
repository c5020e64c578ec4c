// Envelopes: each runs once, as one step, and is answered when all other clients have let go of
// what it changed.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "common/base/check.h"
#include "manager/core/access_file.h"
#include "manager/core/state.h"

namespace mosa::manager {
namespace {

constexpr size_t kRequestsPerEnvelopeMax = 4096;
constexpr size_t kPendingPerSessionMax = 16384;
// Per client: twice the number of requests that may wait.
constexpr size_t kRecordedRepliesMax = 2 * kPendingPerSessionMax;
// Approximate maximum for the replies of one envelope: they leave as one message.
constexpr size_t kReplyBytesMax = size_t{32} << 20;
// The same for an envelope with changes, whose replies are kept until the client confirms them.
constexpr size_t kKeptReplyBytesMax = size_t{4} << 20;
// Approximate maximum for all replies to waiting requests that run in one step.
constexpr size_t kReadyReplyBytesMax = size_t{4} << 20;
constexpr size_t kPendingOverheadBytes = 512;

bool IsChange(const Request& request) {
  return std::holds_alternative<MakeRequest>(request) ||
         std::holds_alternative<LinkRequest>(request) ||
         std::holds_alternative<RemoveRequest>(request) ||
         std::holds_alternative<RenameRequest>(request) ||
         std::holds_alternative<SetAttributesRequest>(request) ||
         std::holds_alternative<BindRequest>(request) ||
         std::holds_alternative<CommitRequest>(request) ||
         std::holds_alternative<SetXattrRequest>(request) ||
         std::holds_alternative<RemoveXattrRequest>(request);
}

// Returns true for requests that only give something back. Others may be waiting for that.
bool IsEnd(const Request& request) {
  return std::holds_alternative<RecallDoneRequest>(request) ||
         std::holds_alternative<ReleaseRequest>(request) ||
         std::holds_alternative<ForgetRequest>(request) ||
         std::holds_alternative<CancelLockRequest>(request);
}

// Variable-size parts of a request, and of its waiting envelope.
size_t RequestBytes(const Request& request) {
  constexpr size_t kRequestBytes = sizeof(Request);
  return kRequestBytes + std::visit(
                             [](const auto& r) -> size_t {
                               using T = std::decay_t<decltype(r)>;
                               if constexpr (std::is_same_v<T, CommitRequest>) {
                                 return r.inline_data ? r.inline_data->size() : 0;
                               } else if constexpr (std::is_same_v<T, SetXattrRequest>) {
                                 return r.name.size() + r.value.size();
                               } else if constexpr (std::is_same_v<T, MakeRequest>) {
                                 size_t bytes =
                                     r.name.size() + r.symlink_target.size() + r.task.size();
                                 for (const HintValue& hint : r.hints)
                                   bytes += hint.name.size() + hint.value.size();
                                 return bytes;
                               } else if constexpr (std::is_same_v<T, RenameRequest>) {
                                 return r.old_name.size() + r.new_name.size();
                               } else if constexpr (std::is_same_v<T, ForgetRequest>) {
                                 return r.files.size() * sizeof(FileId);
                               } else {
                                 return 0;
                               }
                             },
                             request);
}

size_t AccessBytes(const DataAccess& access) {
  constexpr size_t kIdBytes = 8;
  size_t bytes = access.layout.reason.size() + access.inline_valid_bytes;
  for (const Segment& segment : access.layout.segments)
    bytes += (segment.nodes.size() + 2) * kIdBytes;
  return bytes;
}

// Variable-size parts of a reply. A short request can ask for much.
size_t ReplyBytes(const Reply& reply) {
  constexpr size_t kAttributesBytes = 160;
  size_t bytes = kAttributesBytes;
  if (const auto* list = std::get_if<ListDirectoryReply>(&reply)) {
    for (const auto& item : list->items) bytes += item.name.size() + kAttributesBytes;
  } else if (const auto* names = std::get_if<ListXattrsReply>(&reply)) {
    for (const std::string& name : names->names) bytes += name.size();
  } else if (const auto* value = std::get_if<GetXattrReply>(&reply)) {
    bytes += value->value.size();
  } else if (const auto* open = std::get_if<OpenReply>(&reply)) {
    bytes += AccessBytes(open->access);
  } else if (const auto* bind = std::get_if<BindReply>(&reply)) {
    bytes += AccessBytes(bind->access);
  }
  return bytes;
}

std::vector<FileId> AccessFilesOf(const std::vector<Request>& requests) {
  std::vector<FileId> files;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (const FileId file = AccessFileOf(requests[i]); file != FileId{}) {
      files.resize(i + 1);
      files[i] = file;
    }
  }
  return files;
}

}  // namespace

void ManagerCore::State::Handle(const SessionRequest& command) {
  Session* session = FindSession(command.client);
  if (!session || session->awaited || session->condemned) {
    effects_.to_clients.push_back(
        {command.client,
         Push(SessionEndPush{session && session->condemned
                                 ? "the session did not answer a recall in time: open it again"
                                 : "the session does not exist or has expired: open it again"})});
    return;
  }
  session->heard = now_;
  session->connected = true;
  ReceiveEnvelope(*session, command.envelope);
}

void ManagerCore::State::ReceiveEnvelope(Session& session, const RequestEnvelope& envelope) {
  const ClientId client = session.start.client;
  DropRecordedReplies(client, envelope.answered_below);
  NoteGivenUp(session, envelope);
  if (envelope.id.value == 0) {
    std::vector<Reply> replies;
    if (!envelope.requests.empty())
      replies.push_back(Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                               "an envelope with requests needs an id above 0"));
    return Answer(session, envelope.id, std::move(replies));
  }
  if (session.pending.contains(envelope.id)) return;  // In progress: will be answered once.
  if (!grace_end_ && AnswerAsRecorded(session, envelope)) return;
  if (session.given_up.Contains(envelope.id)) return;
  if (envelope.requests.size() > kRequestsPerEnvelopeMax)
    return Answer(session, envelope.id,
                  {Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                          fmt::format("an envelope of {} requests exceeds the maximum of {}",
                                      envelope.requests.size(), kRequestsPerEnvelopeMax))});
  if (MayHaveRun(client, envelope))
    return Answer(session, envelope.id,
                  {Refuse(StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
                          fmt::format("the manager no longer knows whether request {} was "
                                      "executed: check before you repeat it",
                                      envelope.id.value))});
  const bool many_bytes = session.waiting_bytes > options_.session_waiting_bytes_max ||
                          waiting_bytes_ > options_.waiting_bytes_max;
  // Never refuse requests that give something back: others may be waiting for them.
  const bool ends = !grace_end_ && !envelope.requests.empty() &&
                    std::all_of(envelope.requests.begin(), envelope.requests.end(), IsEnd);
  if (!ends && (session.pending.size() >= kPendingPerSessionMax || many_bytes))
    return Answer(
        session, envelope.id,
        {Refuse(StatusCode::kUnavailable, ErrorReason::kBusy,
                fmt::format("{} requests of this session are already waiting, with {} bytes, and "
                            "{} bytes of all sessions; try again later",
                            session.pending.size(), session.waiting_bytes, waiting_bytes_))});
  if (grace_end_) {
    // Requests that ran before the restart wait too: other clients may still show what they had
    // cached.
    Pending& pending = session.pending[envelope.id];
    pending.envelope = envelope;
    HoldWaiting(session, pending);
    grace_queue_.push_back({client, envelope.id});
    return;
  }
  RunEnvelope(session, envelope);
}

// Requests that have not begun never run; nobody waits for their answers.
void ManagerCore::State::NoteGivenUp(Session& session, const RequestEnvelope& envelope) {
  session.given_up.Note(envelope.answered_below, envelope.abandoned);
  for (const RequestId id : envelope.abandoned) {
    const auto pending = session.pending.find(id);
    if (pending != session.pending.end() && pending->second.stage == Pending::Stage::kParked)
      session.pending.erase(pending);
  }
}

void ManagerCore::State::HoldWaiting(Session& session, Pending& pending) {
  uint64_t bytes = kPendingOverheadBytes;
  for (const Request& request : pending.envelope.requests) bytes += RequestBytes(request);
  for (const Reply& reply : pending.replies) bytes += ReplyBytes(reply);
  pending.held.Hold(&session.waiting_bytes, bytes);
  pending.in_all.Hold(&waiting_bytes_, bytes);
}

// Returns true if the request ran before and its reply is known.
bool ManagerCore::State::AnswerAsRecorded(Session& session, const RequestEnvelope& envelope) {
  const ClientId client = session.start.client;
  const RequestId id = envelope.id;
  const auto log = reply_logs_.find(client);
  if (log == reply_logs_.end()) return false;
  const auto known = log->second.replies.find(id);
  if (known == log->second.replies.end()) return false;
  auto recorded = Decode<RepliesRecord>(RepliesKey(client, id), known->second);
  MOSA_CHECK(recorded.ok());
  // A delegation granted then may be gone now. Not using one is always correct.
  for (Reply& reply : recorded->replies) {
    if (MakeReply* made = std::get_if<MakeReply>(&reply)) {
      made->delegated = false;
      made->counts_readers = CountsReaders(made->entry.file);
    }
  }
  CorrectAccess(session, AccessFilesOf(envelope.requests), recorded->replies);
  CorrectCommits(CommittedBy(envelope.requests), recorded->replies);
  wait_.reset();
  promised_.clear();
  // Recalls of the earlier run may still be outstanding.
  const size_t recalls = AwaitSameNames(client, envelope, recorded->replies);
  if (recalls > 0) {
    Withhold(session, envelope, recalls, std::move(recorded->replies));
  } else {
    Answer(session, id, std::move(recorded->replies));
  }
  return true;
}

// Runs the actor's requests in order, until one fails or must be answered later.
std::vector<Reply> ManagerCore::State::RunRequests(const RequestEnvelope& envelope) {
  std::vector<Reply> replies;
  size_t reply_bytes = 0;
  const bool is_kept = envelope.requests.size() > 1 &&
                       std::any_of(envelope.requests.begin(), envelope.requests.end(), IsChange);
  const size_t reply_bytes_max = is_kept ? kKeptReplyBytesMax : kReplyBytesMax;
  for (size_t i = 0; i < envelope.requests.size(); ++i) {
    if (reply_bytes > reply_bytes_max) {
      replies.push_back(Refuse(
          StatusCode::kInvalidArgument, ErrorReason::kArgumentTooBig,
          fmt::format(
              "the replies to {} requests already have {} bytes: send the rest in another envelope",
              i, reply_bytes)));
      break;
    }
    request_index_ = i;
    last_in_envelope_ = i + 1 == envelope.requests.size();
    Reply reply =
        std::visit([this](const auto& request) { return Apply(request); }, envelope.requests[i]);
    ChargeForChanges();
    if (wait_) break;
    const bool failed = std::holds_alternative<Failure>(reply);
    reply_bytes += ReplyBytes(reply);
    replies.push_back(std::move(reply));
    if (failed) break;
  }
  effects_.reply_bytes += reply_bytes;
  return replies;
}

void ManagerCore::State::RunEnvelope(Session& session, const RequestEnvelope& envelope,
                                     bool names_awaited) {
  // The client has already reported failure to a program, and the request's names may mean other
  // files by now.
  if (envelope.expires != Time{} && envelope.expires < now_)
    return Answer(
        session, envelope.id,
        {Refuse(
            StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
            fmt::format(
                "request {} was not executed: its turn came {} ms after its client had given up",
                envelope.id.value, (now_ - envelope.expires).ns / 1'000'000))});
  std::vector<FileId> blocked_on;
  for (const Request& request : envelope.requests) {
    // Recalls all delegations at once, so that their holders are not awaited one after another.
    for (const FileId directory : BlockedOn(session, request)) {
      RecallDelegation(directory);
      blocked_on.push_back(directory);
    }
  }
  if (!blocked_on.empty()) return Park(session, envelope, blocked_on.front());
  if (!names_awaited && ParkListing(session, envelope)) return;
  // Recalls from the actor, too, what others have changed in this step.
  RecallTouched(ClientId(), std::nullopt);
  actor_ = &session;
  actor_request_ = envelope.id;
  changed_ = false;
  wait_.reset();
  promised_.clear();
  only_in_envelope_ = envelope.requests.size() == 1;
  std::vector<Reply> replies = RunRequests(envelope);
  actor_ = nullptr;
  size_t recalls = RecallTouched(session.start.client, Waiter{session.start.client, envelope.id});
  for (const FileId file : std::exchange(orphan_checks_, {})) {
    if (recalls > 0 && orphans_.contains(file)) Linger(file);
    CheckOrphan(file);
  }
  recalls += AwaitSameNames(session.start.client, envelope, replies);
  if (changed_) RecordReplies(session.start.client, envelope.id, replies);
  if (wait_ || recalls > 0) return Withhold(session, envelope, recalls, std::move(replies));
  Answer(session, envelope.id, std::move(replies));
}

// Withholds replies until other clients have let go of what changed, or until what they wait for
// has come.
void ManagerCore::State::Withhold(Session& session, const RequestEnvelope& envelope, size_t recalls,
                                  std::vector<Reply> replies) {
  Pending& pending = session.pending[envelope.id];
  pending.stage = wait_.value_or(Pending::Stage::kWithheld);
  pending.recalls_left = recalls;
  pending.replies = std::move(replies);
  pending.promised = std::move(promised_);
  pending.files = AccessFilesOf(envelope.requests);
  pending.commits = CommittedBy(envelope.requests);
  if (wait_ == Pending::Stage::kLock)
    pending.locks = std::get<SetLockRequest>(envelope.requests.back()).file;
  if (wait_ == Pending::Stage::kSpace) {
    pending.envelope = envelope;
    // Its report is already booked and must not be booked again when the request reruns.
    auto& grant = std::get<GrantRequest>(pending.envelope.requests.front());
    grant.consumed_bytes = grant.returned_bytes = 0;
    pending.deadline = now_ + Seconds(1);
    Schedule(pending.deadline);
    space_queue_.push_back({session.start.client, pending.envelope.id});
  }
  if (wait_ == Pending::Stage::kCopies) {
    pending.envelope = envelope;
    pending.deadline = now_ + kAwaitCopiesMax;
    Schedule(pending.deadline);
  }
  HoldWaiting(session, pending);
}

// Many requests may become ready at once. Limits how many replies leave in one step.
bool ManagerCore::State::MayRunReady() const {
  return !ready_.empty() && effects_.reply_bytes <= kReadyReplyBytesMax;
}

void ManagerCore::State::RunReady() {
  while (MayRunReady()) {
    const Waiter waiter = ready_.front();
    ready_.pop_front();
    Session* session = FindSession(waiter.client);
    if (!session) continue;
    const auto pending = session->pending.find(waiter.request);
    if (pending == session->pending.end() || pending->second.stage != Pending::Stage::kParked)
      continue;
    RequestEnvelope envelope = std::move(pending->second.envelope);
    const bool names_awaited = pending->second.awaits_names;
    session->pending.erase(pending);
    if (!AnswerAsRecorded(*session, envelope)) RunEnvelope(*session, envelope, names_awaited);
  }
}

void ManagerCore::State::Answer(Session& session, RequestId id, std::vector<Reply> replies) {
  effects_.to_clients.push_back(
      {session.start.client, ReplyEnvelope{id, std::move(replies), now_}});
}

// Withheld replies are corrected to the state at the time they leave: the later of two replies is
// true.
void ManagerCore::State::AnswerPending(Session& session, RequestId id, Pending pending) {
  CorrectDelegations(session.start.client, pending);
  CorrectAccess(session, pending.files, pending.replies);
  CorrectCommits(pending.commits, pending.replies);
  Answer(session, id, std::move(pending.replies));
}

// The session may have bound or relocated the file, and been answered, after it sent this request.
void ManagerCore::State::CorrectAccess(Session& session, const std::vector<FileId>& files,
                                       std::vector<Reply>& replies) {
  Session* const actor_before = std::exchange(actor_, &session);
  for (size_t i = 0; i < std::min(files.size(), replies.size()); ++i) {
    const Inode* inode = Find(files[i]);
    if (!inode) continue;
    if (auto* open = std::get_if<OpenReply>(&replies[i])) {
      open->attributes = AttributesOf(files[i], *inode);
      open->access = AccessTo(files[i], *inode, open->access.may_write);
    } else if (auto* bind = std::get_if<BindReply>(&replies[i])) {
      bind->access = AccessTo(files[i], *inode, bind->access.may_write);
    } else if (auto* make = std::get_if<MakeReply>(&replies[i])) {
      make->entry.attributes = AttributesOf(files[i], *inode);
      if (make->access) make->access = AccessTo(files[i], *inode, make->access->may_write);
    }
  }
  actor_ = actor_before;
}

// A withheld reply may promise a delegation that has been recalled since.
void ManagerCore::State::CorrectDelegations(ClientId client, Pending& pending) const {
  for (const auto& [index, directory] : pending.promised) {
    const auto found = delegations_.find(directory);
    const bool stands =
        found != delegations_.end() && !found->second.recalled && found->second.holder == client;
    if (!stands) std::get<MakeReply>(pending.replies[index]).delegated = false;
  }
}

// Returns the requests, by index, that report bytes in objects, with their files.
std::vector<std::pair<size_t, FileId>> ManagerCore::State::CommittedBy(
    const std::vector<Request>& requests) {
  std::vector<std::pair<size_t, FileId>> commits;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto* commit = std::get_if<CommitRequest>(&requests[i]);
    if (commit && TellsOfObjects(*commit)) commits.emplace_back(i, commit->file);
  }
  return commits;
}

// A node may have lost committed bytes while the reply was withheld. A program that sees no error
// relies on its bytes from then on.
void ManagerCore::State::CorrectCommits(const std::vector<std::pair<size_t, FileId>>& commits,
                                        std::vector<Reply>& replies) const {
  for (const auto& [index, file] : commits) {
    if (index >= replies.size() || std::holds_alternative<Failure>(replies[index])) return;
    const Inode* inode = Find(file);
    const auto lost = inode ? UncoveredNode(*inode, /*count_silent=*/false) : std::nullopt;
    if (!lost) continue;
    replies[index] = Refuse(
        StatusCode::kDataLoss, ErrorReason::kNodeLost,
        fmt::format("node {} lost bytes of file {} before their commit was answered: write the "
                    "file again",
                    NameOf(*lost), file.value));
    // No reply follows a failure.
    replies.erase(replies.begin() + static_cast<ptrdiff_t>(index) + 1, replies.end());
    return;
  }
}

void ManagerCore::State::RecordReplies(ClientId client, RequestId id,
                                       const std::vector<Reply>& replies) {
  std::string encoded = Encode(replies);
  effects_.writes.Put(RepliesKey(client, id), encoded);
  ReplyLog& log = reply_logs_[client];
  log.Put(&reply_log_bytes_, id, std::move(encoded));
  // While its oldest request waits, for a lock say, a client cannot confirm later ones. Replies
  // that are this many requests or bytes old have arrived.
  const auto& pending = FindSession(client)->pending;
  auto oldest = log.replies.begin();
  while (oldest != log.replies.end() && oldest->first < id && IsTooLong(log)) {
    if (pending.contains(oldest->first)) {
      ++oldest;
      continue;
    }
    effects_.writes.Delete(RepliesKey(client, oldest->first));
    log.cut = std::max(log.cut, oldest->first);
    effects_.writes.Put(CutRepliesKey(client), Encode(CutRepliesRecord{log.cut}));
    oldest = log.Erase(&reply_log_bytes_, oldest);
  }
}

// If all logs together are too long, those above their equal share are cut.
bool ManagerCore::State::IsTooLong(const ReplyLog& log) const {
  const uint64_t share = options_.reply_log_bytes_max / std::max<size_t>(reply_logs_.size(), 1);
  return log.replies.size() > kRecordedRepliesMax ||
         log.held.bytes() > options_.client_reply_log_bytes_max ||
         (reply_log_bytes_ > options_.reply_log_bytes_max && log.held.bytes() > share);
}

void ManagerCore::State::DropRecordedReplies(ClientId client, RequestId below) {
  const auto log = reply_logs_.find(client);
  if (log == reply_logs_.end()) return;
  auto& replies = log->second.replies;
  while (!replies.empty() && replies.begin()->first < below) {
    effects_.writes.Delete(RepliesKey(client, replies.begin()->first));
    log->second.Erase(&reply_log_bytes_, replies.begin());
  }
  if (log->second.cut.value != 0 && log->second.cut < below) {
    log->second.cut = {};
    effects_.writes.Delete(CutRepliesKey(client));
  }
  if (replies.empty() && log->second.cut.value == 0) reply_logs_.erase(log);
}

ManagerCore::State::ReplyLogs::iterator ManagerCore::State::ForgetReplies(ReplyLogs::iterator log) {
  const ClientId client = log->first;
  for (const auto& [id, replies] : log->second.replies)
    effects_.writes.Delete(RepliesKey(client, id));
  if (log->second.cut.value != 0) effects_.writes.Delete(CutRepliesKey(client));
  return reply_logs_.erase(log);
}

// Returns true if the request may have run before and its reply is no longer kept.
bool ManagerCore::State::MayHaveRun(ClientId client, const RequestEnvelope& envelope) const {
  const auto log = reply_logs_.find(client);
  return log != reply_logs_.end() && envelope.id <= log->second.cut &&
         !log->second.replies.contains(envelope.id) &&
         std::any_of(envelope.requests.begin(), envelope.requests.end(), IsChange);
}

// One recall of the request is done.
void ManagerCore::State::FinishPending(const Waiter& waiter) {
  Session* session = FindSession(waiter.client);
  if (!session) return;
  const auto found = session->pending.find(waiter.request);
  if (found == session->pending.end()) return;
  Pending& pending = found->second;
  if (pending.recalls_left > 0) --pending.recalls_left;
  if (pending.recalls_left > 0) return;
  if (pending.awaits_names) ready_.push_back(waiter);
  if (pending.stage != Pending::Stage::kWithheld) return;
  Pending finished = std::move(pending);
  session->pending.erase(found);
  AnswerPending(*session, waiter.request, std::move(finished));
}

// ---- directories delegated to other sessions

bool ManagerCore::State::IsDelegatedElsewhere(const Session& session, FileId directory) const {
  const auto found = delegations_.find(directory);
  return found != delegations_.end() && found->second.holder != session.start.client;
}

// Returns the directories delegated to other sessions whose true content `request` needs.
std::vector<FileId> ManagerCore::State::BlockedOn(const Session& session,
                                                  const Request& request) const {
  if (delegations_.empty()) return {};
  std::vector<FileId> blocked;
  const auto add = [&](FileId directory) {
    const bool is_blocked = IsDelegatedElsewhere(session, directory);
    if (is_blocked) blocked.push_back(directory);
    return is_blocked;
  };
  const auto add_entry = [&](FileId parent, std::string_view name) {
    if (add(parent)) return;
    if (const auto child = ChildOf(parent, name)) add(*child);
  };
  std::visit(
      [&](const auto& r) {
        using T = std::decay_t<decltype(r)>;
        if constexpr (std::is_same_v<T, LookupRequest> || std::is_same_v<T, MakeRequest>) {
          add(r.parent);
        } else if constexpr (std::is_same_v<T, GetAttributesRequest> ||
                             std::is_same_v<T, SetAttributesRequest> ||
                             std::is_same_v<T, SetXattrRequest> ||
                             std::is_same_v<T, RemoveXattrRequest>) {
          add(r.file);
        } else if constexpr (std::is_same_v<T, ListDirectoryRequest>) {
          add(r.directory);
        } else if constexpr (std::is_same_v<T, LinkRequest>) {
          add(r.new_parent);
        } else if constexpr (std::is_same_v<T, RemoveRequest>) {
          add_entry(r.parent, r.name);
        } else if constexpr (std::is_same_v<T, RenameRequest>) {
          add(r.old_parent);
          add_entry(r.new_parent, r.new_name);
        }
      },
      request);
  return blocked;
}

// Delays a listing until recalls of its directory are done, before the listing is made: many
// withheld listings would take much memory. Returns true if it waits.
bool ManagerCore::State::ParkListing(Session& session, const RequestEnvelope& envelope) {
  size_t recalls = 0;
  for (const Request& request : envelope.requests)
    if (const auto* list = std::get_if<ListDirectoryRequest>(&request))
      recalls += AwaitRecalls(list->directory, {session.start.client, envelope.id});
  if (recalls == 0) return false;
  Pending& pending = session.pending[envelope.id];
  pending.stage = Pending::Stage::kParked;
  pending.awaits_names = true;
  pending.recalls_left = recalls;
  pending.envelope = envelope;
  HoldWaiting(session, pending);
  return true;
}

void ManagerCore::State::Park(Session& session, RequestEnvelope envelope, FileId directory) {
  const RequestId id = envelope.id;
  Pending& pending = session.pending[id];
  pending.stage = Pending::Stage::kParked;
  pending.envelope = std::move(envelope);
  HoldWaiting(session, pending);
  parked_[directory].push_back({session.start.client, id});
}

// ---- locks

Reply ManagerCore::State::Apply(const GetLockRequest& request) {
  if (!Find(request.file))
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} is gone", request.file.value));
  return GetLockReply{locks_.ConflictWith(request.file, actor().start.client, request.lock)};
}

Reply ManagerCore::State::Apply(const SetLockRequest& request) {
  if (!Find(request.file))
    return Refuse(StatusCode::kNotFound, ErrorReason::kStale,
                  fmt::format("file {} is gone", request.file.value));
  if (request.wait && (!last_in_envelope_ || changed_))
    return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                  "a lock that waits must be the last request of an envelope that changes nothing");
  std::vector<LockTable::Waiting> granted;
  const auto outcome =
      locks_.Set(request.file, actor().start.client, request.lock,
                 request.wait ? std::optional(actor_request_) : std::nullopt, granted);
  AnswerLocks(granted, EmptyReply{});
  const std::string what = fmt::format("lock of bytes {} to {} of file {}", request.lock.begin,
                                       request.lock.last, request.file.value);
  switch (outcome) {
    case LockTable::Outcome::kDone:
      if (request.lock.type != LockType::kUnlock) FenceAbsentWriters(request.file);
      return EmptyReply{};
    case LockTable::Outcome::kWaiting:
      wait_ = Pending::Stage::kLock;
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

Reply ManagerCore::State::Apply(const CancelLockRequest& request) {
  const ClientId client = actor().start.client;
  if (locks_.Cancel(client, request.request))
    AnswerLocks({{client, request.request}},
                Refuse(StatusCode::kAborted, ErrorReason::kInterrupted,
                       fmt::format("request {} was cancelled", request.request.value)));
  return EmptyReply{};
}

void ManagerCore::State::AnswerLocks(const std::vector<LockTable::Waiting>& waiting,
                                     const Reply& reply) {
  for (const LockTable::Waiting& who : waiting) {
    Session* session = FindSession(who.client);
    if (!session) continue;
    const auto found = session->pending.find(who.request);
    if (found == session->pending.end() || found->second.stage != Pending::Stage::kLock) continue;
    Pending finished = std::move(found->second);
    session->pending.erase(found);
    if (std::holds_alternative<EmptyReply>(reply)) FenceAbsentWriters(finished.locks);
    finished.replies.push_back(reply);
    AnswerPending(*session, who.request, std::move(finished));
  }
}

// ---- other requests

Reply ManagerCore::State::Apply(const FileIdRangeRequest&) { return TakeFileIds(); }

Reply ManagerCore::State::Apply(const ForgetRequest& request) {
  Session& session = actor();
  for (const FileId file : request.files) {
    if (HoldsDelegation(session.start.client, file)) EndDelegation(file);
    if (Inode* inode = Find(file)) interests_.Drop(session, file, *inode);
  }
  return EmptyReply{};
}

Reply ManagerCore::State::Apply(const RecallDoneRequest& request) {
  const auto& recalls = actor().recalls;
  if (const auto recall = recalls.find(request.recall);
      recall != recalls.end() && orphans_.contains(recall->second.file))
    Linger(recall->second.file);
  FinishRecall(actor(), request);
  return EmptyReply{};
}

}  // namespace mosa::manager
