#include "manager/core/envelopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "common/base/check.h"
#include "manager/core/access_file.h"
#include "manager/core/dispatch.h"

namespace mosa::manager {
namespace {

constexpr size_t kRequestsPerEnvelopeMax = 4096;

// Approximate maximum for the replies of one envelope: they leave as one message.
constexpr size_t kReplyBytesMax = size_t{32} << 20;

// The same for an envelope with changes, whose replies are kept until the client confirms them.
constexpr size_t kKeptReplyBytesMax = size_t{4} << 20;

// Approximate maximum for all replies to waiting requests that run in one step.
constexpr size_t kReadyReplyBytesMax = size_t{4} << 20;

constexpr size_t kPendingOverheadBytes = 512;

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

void Envelopes::ReceiveEnvelope(Session& session, const RequestEnvelope& envelope) {
  const ClientId client = session.start.client;
  reply_logs_.Confirm(client, envelope.answered_below);
  NoteGivenUp(session, envelope);
  if (envelope.id.value == 0) {
    std::vector<Reply> replies;
    if (!envelope.requests.empty())
      replies.push_back(Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                               "an envelope with requests needs an id above 0"));
    return step_.Answer(session, envelope.id, std::move(replies));
  }
  if (session.pending.contains(envelope.id)) return;  // In progress: will be answered once.
  if (!cluster_.grace_end && AnswerAsRecorded(session, envelope)) return;
  if (session.given_up.Contains(envelope.id)) return;
  if (envelope.requests.size() > kRequestsPerEnvelopeMax)
    return step_.Answer(session, envelope.id,
                        {Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                                fmt::format("an envelope of {} requests exceeds the maximum of {}",
                                            envelope.requests.size(), kRequestsPerEnvelopeMax))});
  if (reply_logs_.MayHaveRun(client, envelope))
    return step_.Answer(session, envelope.id,
                        {Refuse(StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
                                fmt::format("the manager no longer knows whether request {} was "
                                            "executed: check before you repeat it",
                                            envelope.id.value))});
  const bool many_bytes = session.waiting_bytes > cluster_.options.session_waiting_bytes_max ||
                          sessions_.waiting_bytes > cluster_.options.waiting_bytes_max;
  // Never refuse requests that give something back: others may be waiting for them.
  const bool ends = !cluster_.grace_end && !envelope.requests.empty() &&
                    std::all_of(envelope.requests.begin(), envelope.requests.end(), IsEnd);
  if (!ends && (session.pending.size() >= kPendingPerSessionMax || many_bytes))
    return step_.Answer(
        session, envelope.id,
        {Refuse(
            StatusCode::kUnavailable, ErrorReason::kBusy,
            fmt::format("{} requests of this session are already waiting, with {} bytes, and "
                        "{} bytes of all sessions; try again later",
                        session.pending.size(), session.waiting_bytes, sessions_.waiting_bytes))});
  if (cluster_.grace_end) {
    // Requests that ran before the restart wait too: other clients may still show what they had
    // cached.
    Pending& pending = session.pending[envelope.id];
    pending.envelope = envelope;
    HoldWaiting(session, pending);
    queues_.grace.push_back({client, envelope.id});
    return;
  }
  RunEnvelope(session, envelope);
}

// Requests that have not begun never run; nobody waits for their answers.
void Envelopes::NoteGivenUp(Session& session, const RequestEnvelope& envelope) {
  session.given_up.Note(envelope.answered_below, envelope.abandoned);
  for (const RequestId id : envelope.abandoned) {
    const auto pending = session.pending.find(id);
    if (pending != session.pending.end() && pending->second.stage == Pending::Stage::kParked)
      session.pending.erase(pending);
  }
}

void Envelopes::HoldWaiting(Session& session, Pending& pending) {
  uint64_t bytes = kPendingOverheadBytes;
  for (const Request& request : pending.envelope.requests) bytes += RequestBytes(request);
  for (const Reply& reply : pending.replies) bytes += ReplyBytes(reply);
  pending.held.Hold(&session.waiting_bytes, bytes);
  pending.in_all.Hold(&sessions_.waiting_bytes, bytes);
}

// Returns true if the request ran before and its reply is known.
bool Envelopes::AnswerAsRecorded(Session& session, const RequestEnvelope& envelope) {
  const ClientId client = session.start.client;
  const RequestId id = envelope.id;
  const std::string* const known = reply_logs_.Find(client, id);
  if (!known) return false;
  auto recorded = Decode<RepliesRecord>(RepliesKey(client, id), *known);
  MOSA_CHECK(recorded.ok());
  // A delegation granted then may be gone now. Not using one is always correct.
  for (Reply& reply : recorded->replies) {
    if (MakeReply* made = std::get_if<MakeReply>(&reply)) {
      made->delegated = false;
      made->counts_readers = lifetimes_.CountsReaders(made->entry.file);
    }
  }
  answers_.CorrectAccess(session, AccessFilesOf(envelope.requests), recorded->replies);
  answers_.CorrectCommits(answers_.CommittedBy(envelope.requests), recorded->replies);
  step_.wait.reset();
  step_.promised.clear();
  // Recalls of the earlier run may still be outstanding.
  const size_t recalls = recalls_.AwaitSameNames(client, envelope, recorded->replies);
  if (recalls > 0) {
    Withhold(session, envelope, recalls, std::move(recorded->replies));
  } else {
    step_.Answer(session, id, std::move(recorded->replies));
  }
  return true;
}

// Runs the actor's requests in order, until one fails or must be answered later.
std::vector<Reply> Envelopes::RunRequests(const RequestEnvelope& envelope) {
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
    step_.request_index = i;
    step_.last_in_envelope = i + 1 == envelope.requests.size();
    Reply reply = std::visit(
        [this](const auto& request) {
          return ApplyBy(request, names_, byte_requests_, xattrs_, grants_, copy_reviews_, answers_,
                         *this);
        },
        envelope.requests[i]);
    limits_.ChargeForChanges();
    if (step_.wait) break;
    const bool failed = std::holds_alternative<Failure>(reply);
    reply_bytes += ReplyBytes(reply);
    replies.push_back(std::move(reply));
    if (failed) break;
  }
  step_.effects.reply_bytes += reply_bytes;
  return replies;
}

void Envelopes::RunEnvelope(Session& session, const RequestEnvelope& envelope, bool names_awaited) {
  // The client has already reported failure to a program, and the request's names may mean other
  // files by now.
  if (envelope.expires != Time{} && envelope.expires < step_.now)
    return step_.Answer(
        session, envelope.id,
        {Refuse(
            StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
            fmt::format(
                "request {} was not executed: its turn came {} ms after its client had given up",
                envelope.id.value, (step_.now - envelope.expires).ns / 1'000'000))});
  std::vector<FileId> blocked_on;
  // Recalls everything at once, so that holders are not awaited one after another.
  for (const Request& request : envelope.requests)
    for (const FileId directory : RecallHeld(session, request)) blocked_on.push_back(directory);
  if (!blocked_on.empty()) return Park(session, envelope, blocked_on.front());
  if (!names_awaited && ParkListing(session, envelope)) return;
  // Recalls from the actor, too, what others have changed in this step.
  recalls_.RecallTouched(ClientId(), std::nullopt);
  step_.actor = &session;
  step_.actor_request = envelope.id;
  step_.changed = false;
  step_.wait.reset();
  step_.promised.clear();
  step_.only_in_envelope = envelope.requests.size() == 1;
  std::vector<Reply> replies = RunRequests(envelope);
  step_.actor = nullptr;
  size_t recalls =
      recalls_.RecallTouched(session.start.client, Waiter{session.start.client, envelope.id});
  for (const FileId file : std::exchange(step_.orphan_checks, {})) {
    if (recalls > 0 && files_.orphans.contains(file)) files_.Linger(file);
    orphans_.CheckOrphan(file);
  }
  recalls += recalls_.AwaitSameNames(session.start.client, envelope, replies);
  if (step_.changed) reply_logs_.Record(session.start.client, envelope.id, replies);
  if (step_.wait || recalls > 0) return Withhold(session, envelope, recalls, std::move(replies));
  step_.Answer(session, envelope.id, std::move(replies));
}

// Withholds replies until other clients have let go of what changed, or until what they wait for
// has come.
void Envelopes::Withhold(Session& session, const RequestEnvelope& envelope, size_t recalls,
                         std::vector<Reply> replies) {
  Pending& pending = session.pending[envelope.id];
  pending.stage = step_.wait.value_or(Pending::Stage::kWithheld);
  pending.recalls_left = recalls;
  pending.replies = std::move(replies);
  pending.promised = std::move(step_.promised);
  pending.files = AccessFilesOf(envelope.requests);
  pending.commits = answers_.CommittedBy(envelope.requests);
  if (step_.wait == Pending::Stage::kLock)
    pending.locks = std::get<SetLockRequest>(envelope.requests.back()).file;
  if (step_.wait == Pending::Stage::kSpace) {
    pending.envelope = envelope;
    // Its report is already booked and must not be booked again when the request reruns.
    auto& grant = std::get<GrantRequest>(pending.envelope.requests.front());
    grant.consumed_bytes = grant.returned_bytes = 0;
    pending.deadline = step_.now + Seconds(1);
    step_.Schedule(pending.deadline);
    queues_.space.push_back({session.start.client, pending.envelope.id});
  }
  if (step_.wait == Pending::Stage::kCopies) {
    pending.envelope = envelope;
    pending.deadline = step_.now + kAwaitCopiesMax;
    step_.Schedule(pending.deadline);
  }
  HoldWaiting(session, pending);
}

// Many requests may become ready at once. Limits how many replies leave in one step.
bool Envelopes::MayRunReady() const {
  return !queues_.ready.empty() && step_.effects.reply_bytes <= kReadyReplyBytesMax;
}

void Envelopes::RunReady() {
  while (MayRunReady()) {
    const Waiter waiter = queues_.ready.front();
    queues_.ready.pop_front();
    Session* session = sessions_.Find(waiter.client);
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

std::vector<FileId> Envelopes::RecallHeld(const Session& session, const Request& request) {
  if (delegations_.empty()) return {};
  std::vector<FileId> blocked;
  const auto await = [&](FileId directory, bool recalled) {
    if (recalled) blocked.push_back(directory);
    return recalled;
  };
  using Need = Delegations::Need;
  const auto add = [&](FileId directory, Need need = Need::kChange) {
    return await(directory, delegations_.RecallFromOthers(session, directory, need));
  };
  const auto add_name = [&](FileId parent, std::string_view name, Need need = Need::kChange) {
    return await(parent, delegations_.RecallNameFromOthers(session, parent, name, need));
  };
  const auto add_entry = [&](FileId parent, std::string_view name) {
    if (add_name(parent, name)) return;
    if (const auto child = files_.ChildOf(parent, name)) add(*child);
  };
  std::visit(
      [&](const auto& r) {
        using T = std::decay_t<decltype(r)>;
        if constexpr (std::is_same_v<T, LookupRequest>) {
          add_name(r.parent, r.name, Need::kLook);
        } else if constexpr (std::is_same_v<T, MakeRequest>) {
          add_name(r.parent, r.name);
        } else if constexpr (std::is_same_v<T, GetAttributesRequest>) {
          // Those of a shared directory may be old.
          await(r.file, delegations_.RecallDelegationFromOthers(session, r.file, Need::kLook));
        } else if constexpr (std::is_same_v<T, SetAttributesRequest> ||
                             std::is_same_v<T, SetXattrRequest> ||
                             std::is_same_v<T, RemoveXattrRequest>) {
          add(r.file);
        } else if constexpr (std::is_same_v<T, ListDirectoryRequest>) {
          add(r.directory, Need::kLook);
        } else if constexpr (std::is_same_v<T, LinkRequest>) {
          add_name(r.new_parent, r.new_name);
        } else if constexpr (std::is_same_v<T, RemoveRequest>) {
          add_entry(r.parent, r.name);
        } else if constexpr (std::is_same_v<T, RenameRequest>) {
          add_name(r.old_parent, r.old_name);
          add_entry(r.new_parent, r.new_name);
        }
      },
      request);
  return blocked;
}

// Delays a listing until recalls of its directory are done, before the listing is made: many
// withheld listings would take much memory. Returns true if it waits.
bool Envelopes::ParkListing(Session& session, const RequestEnvelope& envelope) {
  size_t recalls = 0;
  for (const Request& request : envelope.requests)
    if (const auto* list = std::get_if<ListDirectoryRequest>(&request))
      recalls += recalls_.AwaitRecalls(list->directory, {session.start.client, envelope.id});
  if (recalls == 0) return false;
  Pending& pending = session.pending[envelope.id];
  pending.stage = Pending::Stage::kParked;
  pending.awaits_names = true;
  pending.recalls_left = recalls;
  pending.envelope = envelope;
  HoldWaiting(session, pending);
  return true;
}

void Envelopes::Park(Session& session, RequestEnvelope envelope, FileId directory) {
  const RequestId id = envelope.id;
  Pending& pending = session.pending[id];
  pending.stage = Pending::Stage::kParked;
  pending.envelope = std::move(envelope);
  HoldWaiting(session, pending);
  queues_.parked[directory].push_back({session.start.client, id});
}

Reply Envelopes::Apply(const FileIdRangeRequest&) { return cluster_.TakeFileIds(); }

Reply Envelopes::Apply(const ForgetRequest& request) {
  Session& session = *step_.actor;
  for (const FileId file : request.files) {
    if (delegations_.Holds(session.start.client, file)) delegations_.End(file);
    if (Inode* inode = files_.Find(file)) interests_.Drop(session, file, *inode);
  }
  return EmptyReply{};
}

Reply Envelopes::Apply(const RecallDoneRequest& request) {
  const auto& recalls = step_.actor->recalls;
  if (const auto recall = recalls.find(request.recall);
      recall != recalls.end() && files_.orphans.contains(recall->second.file))
    files_.Linger(recall->second.file);
  FinishRecall(*step_.actor, request);
  return EmptyReply{};
}

void Envelopes::FinishRecall(Session& session, const RecallDoneRequest& done) {
  const auto found = session.recalls.find(done.recall);
  if (found == session.recalls.end()) return;
  const Recall recall = std::move(found->second);
  session.recalls.erase(found);
  const ClientId client = session.start.client;
  recalls_.NoteDone(client, done.recall, recall.file);

  if (const auto orphan = files_.orphans.find(recall.file); orphan != files_.orphans.end()) {
    // Only the answer to the last recall is sure to include every open.
    if (done.holds_open) {
      orphan->second.insert(client);
    } else if (recall.opened_since) {
      recalls_.AskHolder(session, recall.file);
    } else if (!recalls_.IsRecalledFrom(client, recall.file)) {
      orphan->second.erase(client);
    }
    step_.orphan_checks.insert(recall.file);
  } else if (Inode* inode = files_.Find(recall.file); inode && done.holds_open) {
    // The client must learn when the file loses its last name.
    interests_.Add(session, recall.file, *inode);
  }
  lifetimes_.NoteHolder(recall.file, client, done.holds_open);
  if (done.writes && files_.Find(recall.file)) staging_.NoteWriter(session, recall.file);
  if (Freeze* freeze = files_.FreezeOf(recall.file); freeze && freeze->holder != client)
    freeze->pinned = freeze->pinned || done.pinned;
  if (copy_.leftovers.contains(recall.file)) copy_.leftover_checks.insert(recall.file);
  const Delegation* const delegation = delegations_.Find(recall.file);
  if (delegation && delegation->holder == client && delegation->recalled)
    delegations_.End(recall.file);
  if (recall.kind == RecallKind::kEntries) delegations_.EndNames(recall.file, client);
  for (const Waiter& waiter : recall.waiters) answers_.FinishPending(waiter);
}

// Reruns waiting grant requests: all of them when room may have come back (they may go on waiting),
// else those that have waited long enough (they are answered with what there is).
void Envelopes::RetrySpaceWaiters(bool only_expired) {
  if (queues_.space.empty()) return;
  std::deque<Waiter> queue = std::exchange(queues_.space, {});
  for (const Waiter& waiter : queue) {
    Session* session = sessions_.Find(waiter.client);
    if (!session) continue;
    const auto found = session->pending.find(waiter.request);
    if (found == session->pending.end() || found->second.stage != Pending::Stage::kSpace) continue;
    const Time deadline = found->second.deadline;
    const bool expired = deadline <= step_.now;
    if (only_expired && !expired) {
      step_.Schedule(deadline);
      queues_.space.push_back(waiter);
      continue;
    }
    RequestEnvelope envelope = std::move(found->second.envelope);
    session->pending.erase(found);
    step_.may_wait_for_space = !expired;
    RunEnvelope(*session, envelope);
    step_.may_wait_for_space = true;
    const auto again = session->pending.find(waiter.request);
    if (again != session->pending.end()) again->second.deadline = deadline;
  }
}

}  // namespace mosa::manager
