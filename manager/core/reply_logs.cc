#include "manager/core/reply_logs.h"

#include <algorithm>
#include <utility>

namespace mosa::manager {
namespace {

// Per client: twice the number of requests that may wait.
constexpr size_t kRecordedRepliesMax = 2 * kPendingPerSessionMax;

}  // namespace

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

void ReplyLogs::Record(ClientId client, RequestId id, const std::vector<Reply>& replies) {
  std::string encoded = Encode(replies);
  step_.effects.writes.Put(RepliesKey(client, id), encoded);
  ReplyLog& log = logs_[client];
  log.Put(&bytes_, id, std::move(encoded));
  // While its oldest request waits, for a lock say, a client cannot confirm later ones. Replies
  // that are this many requests or bytes old have arrived.
  const auto& pending = sessions_.Find(client)->pending;
  auto oldest = log.replies.begin();
  while (oldest != log.replies.end() && oldest->first < id && IsTooLong(log)) {
    if (pending.contains(oldest->first)) {
      ++oldest;
      continue;
    }
    step_.effects.writes.Delete(RepliesKey(client, oldest->first));
    log.cut = std::max(log.cut, oldest->first);
    step_.effects.writes.Put(CutRepliesKey(client), Encode(CutRepliesRecord{log.cut}));
    oldest = log.Erase(&bytes_, oldest);
  }
}

// If all logs together are too long, those above their equal share are cut.
bool ReplyLogs::IsTooLong(const ReplyLog& log) const {
  const uint64_t share = cluster_.options.reply_log_bytes_max / std::max<size_t>(logs_.size(), 1);
  return log.replies.size() > kRecordedRepliesMax ||
         log.held.bytes() > cluster_.options.client_reply_log_bytes_max ||
         (bytes_ > cluster_.options.reply_log_bytes_max && log.held.bytes() > share);
}

void ReplyLogs::Confirm(ClientId client, RequestId below) {
  const auto log = logs_.find(client);
  if (log == logs_.end()) return;
  auto& replies = log->second.replies;
  while (!replies.empty() && replies.begin()->first < below) {
    step_.effects.writes.Delete(RepliesKey(client, replies.begin()->first));
    log->second.Erase(&bytes_, replies.begin());
  }
  if (log->second.cut.value != 0 && log->second.cut < below) {
    log->second.cut = {};
    step_.effects.writes.Delete(CutRepliesKey(client));
  }
  if (replies.empty() && log->second.cut.value == 0) logs_.erase(log);
}

ReplyLogs::Logs::iterator ReplyLogs::Drop(Logs::iterator log) {
  const ClientId client = log->first;
  for (const auto& [id, replies] : log->second.replies)
    step_.effects.writes.Delete(RepliesKey(client, id));
  if (log->second.cut.value != 0) step_.effects.writes.Delete(CutRepliesKey(client));
  return logs_.erase(log);
}

bool ReplyLogs::MayHaveRun(ClientId client, const RequestEnvelope& envelope) const {
  const auto log = logs_.find(client);
  return log != logs_.end() && envelope.id <= log->second.cut &&
         !log->second.replies.contains(envelope.id) &&
         std::any_of(envelope.requests.begin(), envelope.requests.end(), IsChange);
}

const std::string* ReplyLogs::Find(ClientId client, RequestId id) const {
  const auto log = logs_.find(client);
  if (log == logs_.end()) return nullptr;
  const auto known = log->second.replies.find(id);
  return known == log->second.replies.end() ? nullptr : &known->second;
}

void ReplyLogs::DropLater(ClientId client) {
  logs_[client].drop_at = step_.now + kRepliesKeptFor;
  step_.Schedule(step_.now + kRepliesKeptFor);
}

void ReplyLogs::Keep(ClientId client) {
  if (const auto log = logs_.find(client); log != logs_.end()) log->second.drop_at.reset();
}

void ReplyLogs::Drop(ClientId client) {
  if (const auto log = logs_.find(client); log != logs_.end()) Drop(log);
}

std::vector<ClientId> ReplyLogs::DropExpired() {
  std::vector<ClientId> dropped;
  for (auto log = logs_.begin(); log != logs_.end();) {
    const std::optional<Time> drop_at = log->second.drop_at;
    if (drop_at && *drop_at <= step_.now) {
      dropped.push_back(log->first);
      log = Drop(log);
      continue;
    }
    if (drop_at) step_.Schedule(*drop_at);
    ++log;
  }
  return dropped;
}

void ReplyLogs::Postpone(Duration time) {
  for (auto& [client, log] : logs_)
    if (log.drop_at) log.drop_at = *log.drop_at + time;
}

void ReplyLogs::Load(ClientId client, RequestId id, std::string encoded) {
  logs_[client].Put(&bytes_, id, std::move(encoded));
}

void ReplyLogs::FinishLoad() {
  for (const auto& [client, log] : logs_)
    if (!sessions_.Find(client)) DropLater(client);
}

}  // namespace mosa::manager
