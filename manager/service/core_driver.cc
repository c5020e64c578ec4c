#include "manager/service/core_driver.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "common/base/log.h"
#include "manager/core/access_file.h"
#include "proto/convert/bulk_hello.h"
#include "proto/convert/capability.h"

namespace mosa::manager {

namespace {

// Maximum of a client's unanswered envelopes that are remembered; more than a mount ever has.
constexpr size_t kEnvelopesMax = 65'536;
// Longer than any session outlives its stream.
constexpr Duration kForgetClientAfter = Seconds(60);
// A round of the loop is shorter. After a longer gap the process did not run, or was too slow to
// receive all messages.
constexpr Duration kStalledAfter = Seconds(1);
// A process that is always this slow must still end what has expired.
constexpr int kStallsInRowMax = 30;

// How often to check how full the data directory is: after this time, or this many bytes.
constexpr Duration kLookEvery = Seconds(1);
constexpr uint64_t kLookEveryBytes = uint64_t{1} << 20;
constexpr Duration kReclaimEvery = Seconds(5);
constexpr std::chrono::milliseconds kRoomAwaitedFor{100};

DataAccess* AccessOf(Reply& reply) {
  if (auto* open = std::get_if<OpenReply>(&reply)) return &open->access;
  if (auto* bind = std::get_if<BindReply>(&reply)) return &bind->access;
  if (auto* cut = std::get_if<AttributesReply>(&reply))
    return cut->access ? &*cut->access : nullptr;
  auto* const make = std::get_if<MakeReply>(&reply);
  return make != nullptr && make->access ? &*make->access : nullptr;
}

Status Stopping() { return UnavailableError("the manager is stopping; try again"); }

}  // namespace

CoreDriver::CoreDriver(std::unique_ptr<ManagerCore> core, MetadataStore& store,
                       CoreDriverOptions options)
    : store_(store),
      options_(std::move(options)),
      wall_minus_monotonic_(clock_.Now() - clock_.Monotonic()),
      core_(std::move(core)),
      inline_cache_(options_.inline_cache_bytes),
      wake_at_(Now()),
      round_began_(Now()),
      counted_until_(round_began_) {}  // The first tick learns when the core wants the next one.

// ---- messages from streams

void CoreDriver::ClientStarted(const std::shared_ptr<ClientSink>& sink, SessionStart start) {
  if (ended_) return sink->End(Stopping());
  starting_ = sink;
  Step(StartSession{std::move(start)});
  starting_ = nullptr;
}

void CoreDriver::ClientAsked(const std::shared_ptr<ClientSink>& sink, ClientId id,
                             RequestEnvelope envelope, SpanContext asked_by) {
  const auto found = clients_.find(id.value);
  // From an older stream or an ended session: the client repeats the request on its next stream.
  if (found == clients_.end() || found->second.sink != sink) return;
  auto& asked = found->second.asked;
  asked.erase(asked.begin(), asked.lower_bound(envelope.answered_below));
  SessionRequest command{.client = id, .envelope = std::move(envelope)};
  if (command.envelope.requests.empty()) return Step(command);  // A keep-alive.
  Asked now = Describe(command.envelope);
  if (residence_.log.on()) now.span = BeginSpan(asked_by);
  const Span span = now.span;
  const Time arrived = now.arrived;
  const DurationTable::ClassId kind = now.kind;
  const auto [known, is_new] = asked.try_emplace(command.envelope.id, now);
  // A request repeated on a newer stream has been waiting since it first arrived.
  if (!is_new) known->second.access_files = std::move(now.access_files);
  if (asked.size() > kEnvelopesMax) asked.erase(asked.begin());
  Step(command);
  if (!is_new) return;
  const Duration decided = clock_.Monotonic() - arrived;
  residence_.decisions.Add(kind, DurationTable::kNoPeer, decided);
  if (span.own.trace != 0)
    residence_.decisions.Log(kind, DurationTable::kNoPeer,
                             {.span = BeginSpan(span.own), .begin = arrived, .duration = decided});
}

CoreDriver::Asked CoreDriver::Describe(const RequestEnvelope& envelope) const {
  Asked asked{.arrived = clock_.Monotonic(),
              .kind = DurationTable::ClassId{EnvelopeKindOf(envelope.requests)},
              .span = {},
              .is_counted = false,
              .access_files = {}};
  for (size_t i = 0; i < envelope.requests.size(); ++i) {
    const FileId file = AccessFileOf(envelope.requests[i]);
    if (file == FileId{}) continue;
    asked.access_files.resize(envelope.requests.size());
    asked.access_files[i] = file;
  }
  return asked;
}

void CoreDriver::ClientGone(const std::shared_ptr<ClientSink>& sink, ClientId id, bool closed) {
  const auto found = clients_.find(id.value);
  if (found == clients_.end() || found->second.sink != sink) return;
  if (closed) {
    clients_.erase(found);
    Step(SessionClosed{id});
    outputs_.emplace_back(ClientOutput{sink, std::nullopt, OkStatus()});
  } else {
    found->second.sink = nullptr;
    found->second.lost_at = Now();
    Step(SessionLost{id});
  }
}

void CoreDriver::NodeStarted(const std::shared_ptr<NodeSink>& sink, NodeRegistration registration) {
  if (ended_) return sink->End(Stopping());
  Step(RegisterNode{std::move(registration)}, sink);
}

void CoreDriver::NodeHeard(const std::shared_ptr<NodeSink>& sink, NodeHeartbeat heartbeat) {
  const std::optional<NodeId> node = NodeOf(sink);
  if (!node) return;
  const TimedRequest timed(&residence_.loop, ManagerResidence::kHeartbeat);
  Step(NodeReport{.node = *node, .heartbeat = std::move(heartbeat)});
}

void CoreDriver::NodeReported(const std::shared_ptr<NodeSink>& sink, CopyReport report) {
  const std::optional<NodeId> node = NodeOf(sink);
  if (!node) return;
  const TimedRequest timed(&residence_.loop, ManagerResidence::kCopyReport);
  Step(NodeCopyReport{.node = *node, .report = std::move(report)});
}

void CoreDriver::NodeReportedAside(const std::shared_ptr<NodeSink>& sink, NodeAside aside) {
  const std::optional<NodeId> node = NodeOf(sink);
  if (node) Step(manager::NodeReportedAside{.node = *node, .aside = std::move(aside)});
}

void CoreDriver::NodeGone(const std::shared_ptr<NodeSink>& sink) {
  const std::optional<NodeId> node = NodeOf(sink);
  if (!node) return;
  nodes_.erase(*node);
  Step(NodeStreamLost{*node});
}

std::optional<NodeId> CoreDriver::NodeOf(const std::shared_ptr<NodeSink>& sink) const {
  for (const auto& [node, known] : nodes_) {
    if (known == sink) return node;
  }
  return std::nullopt;
}

std::shared_ptr<ClientSink> CoreDriver::SinkOf(ClientId client) const {
  const auto found = clients_.find(client.value);
  return found == clients_.end() ? nullptr : found->second.sink;
}

std::shared_ptr<NodeSink> CoreDriver::SinkOf(NodeId node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : found->second;
}

void CoreDriver::TickIfDue() {
  LookAtRoomIfDue();
  const Time now = Now();
  const bool is_due = wake_at_ && now >= *wake_at_;
  if (is_due || now - counted_until_ > kStalledAfter) {
    wake_at_.reset();
    Step(Tick{});
    std::erase_if(clients_, [now](const auto& item) {
      return item.second.sink == nullptr && now - item.second.lost_at > kForgetClientAfter;
    });
  }
  if (now - round_began_ <= kStalledAfter) stalls_in_row_ = 0;
  round_began_ = counted_until_ = now;
}

const ManagerCore& CoreDriver::FlushedCore() {
  Flush();
  return *core_;
}

// ---- effects

void CoreDriver::Step(const Command& command, const std::shared_ptr<NodeSink>& registering) {
  const Time now = Now();
  const Duration gap = now - counted_until_;
  if (gap > kStalledAfter && stalls_in_row_ < kStallsInRowMax) {
    ++stalls_in_row_;
    counted_until_ = now;
    Step(Stalled{gap});
  }
  Effects effects = core_->Step(command, now);
  inline_cache_.Note(effects.writes);
  std::move(effects.writes.writes.begin(), effects.writes.writes.end(),
            std::back_inserter(batch_.writes));
  for (ToClient& effect : effects.to_clients) GatherClient(effect);
  for (ToNode& effect : effects.to_nodes) GatherNode(effect, registering);
  for (NodeRefused& refused : effects.refused_nodes) {
    if (registering == nullptr) continue;
    outputs_.emplace_back(NodeOutput{registering, std::move(refused.failure), OkStatus()});
  }
  reply_bytes_ += effects.reply_bytes;
  if (effects.admin_reply) admin_reply_ = std::move(effects.admin_reply);
  for (const std::string& line : effects.log) WriteLog(LogLevel::kInfo, line);
  for (const std::string& line : effects.frequent_log) frequent_lines_.Info("{}", line);
  if (effects.wake_at && (!wake_at_ || *effects.wake_at < *wake_at_)) wake_at_ = effects.wake_at;
}

// From now on messages to the client go to its new stream. Earlier messages of the same step, such
// as the end of an older session, were not meant for it.
void CoreDriver::AdoptStream(ClientId id) {
  Client& client = clients_[id.value];
  if (client.sink != nullptr && client.sink != starting_) {
    outputs_.emplace_back(ClientOutput{std::exchange(client.sink, nullptr),
                                       Push(SessionEndPush{"the client has opened a newer stream"}),
                                       OkStatus()});
  }
  client.sink = std::exchange(starting_, nullptr);
}

void CoreDriver::GatherClient(ToClient& effect) {
  // Both answer a session start.
  if (starting_ != nullptr && (std::holds_alternative<SessionReady>(effect.message) ||
                               std::holds_alternative<Failure>(effect.message))) {
    AdoptStream(effect.client);
  }
  const auto found = clients_.find(effect.client.value);
  // Without a stream the message is dropped: the client repeats its request when it returns.
  if (found == clients_.end() || found->second.sink == nullptr) return;
  std::optional<Answered> answers;
  if (auto* const envelope = std::get_if<ReplyEnvelope>(&effect.message)) {
    const auto asked = found->second.asked.find(envelope->id);
    if (asked != found->second.asked.end()) {
      FillAccess(effect.client, asked->second, *envelope);
      if (!std::exchange(asked->second.is_counted, true))
        answers = {asked->second.arrived, asked->second.kind, asked->second.span};
    }
  }
  if (auto* const ready = std::get_if<SessionReady>(&effect.message)) {
    ready->bulk_key = BulkKeyOf(options_.capability_key, effect.client, ready->era);
    ready->bulk_tls = options_.bulk_tls;
  }
  const auto* const push = std::get_if<Push>(&effect.message);
  const bool ends = std::holds_alternative<Failure>(effect.message) ||
                    (push != nullptr && std::holds_alternative<SessionEndPush>(*push));
  outputs_.emplace_back(ClientOutput{
      found->second.sink,
      std::visit([](auto& message) { return ManagerMessage(std::move(message)); }, effect.message),
      ends ? std::optional<Status>(OkStatus()) : std::nullopt, answers});
  if (ends) clients_.erase(found);
}

void CoreDriver::GatherNode(ToNode& effect, const std::shared_ptr<NodeSink>& registering) {
  ManagerToNode message = NodeRegistered{};
  if (auto* const registered = std::get_if<NodeRegistered>(&effect.message)) {
    if (registering == nullptr) return;
    registered->capability_key = options_.capability_key;
    registered->bulk_tls = options_.bulk_tls;
    std::shared_ptr<NodeSink>& current = nodes_[effect.node];
    if (current != nullptr && current != registering) {
      outputs_.emplace_back(NodeOutput{current, std::nullopt,
                                       AbortedError("the node has registered on a newer stream")});
    }
    current = registering;
    message = std::move(*registered);
  } else {
    message = std::move(std::get<NodeOrder>(effect.message));
  }
  const auto found = nodes_.find(effect.node);
  if (found == nodes_.end()) return;
  outputs_.emplace_back(NodeOutput{found->second, std::move(message), std::nullopt});
}

AdminReply CoreDriver::Change(const Command& command) {
  admin_reply_.reset();
  if (!ended_) Step(command);
  Flush();
  // The rest of the batch was not made durable: the process stops without it.
  if (!admin_reply_ || !batch_.empty())
    return {.status = UnavailableError("the manager is stopping")};
  return *std::exchange(admin_reply_, std::nullopt);
}

void CoreDriver::Count(const Answered& answered, const std::optional<Commit>& commit) {
  const Duration duration = clock_.Monotonic() - answered.arrived;
  residence_.requests.Add(answered.kind, DurationTable::kNoPeer, duration);
  if (answered.span.own.trace == 0) return;
  if (commit)
    residence_.loop.Log(ManagerResidence::kLog, DurationTable::kNoPeer,
                        {.span = BeginSpan(answered.span.own),
                         .begin = commit->begin,
                         .duration = commit->duration});
  residence_.requests.Log(answered.kind, DurationTable::kNoPeer,
                          {.span = answered.span, .begin = answered.arrived, .duration = duration});
}

// While it retries, the core is ahead of the store, and no client has heard of it. Earlier steps
// are committed and answered first, or never.
bool CoreDriver::CommitBatch() {
  while (true) {
    const Status committed = store_.Commit(batch_);
    if (committed.ok()) break;
    if (committed.code() != StatusCode::kResourceExhausted) {
      LogError("cannot make changes durable, stopping without having replied to them: {}",
               MessageOf(committed));
      std::abort();
    }
    if (options_.directory != nullptr) options_.directory->GiveReserveUp();
    looked_at_room_.reset();
    no_room_.Error("holding back all replies until there is free space for the changes: {}",
                   MessageOf(committed));
    if (options_.stopping != nullptr && *options_.stopping) return false;
    std::this_thread::sleep_for(kRoomAwaitedFor);
  }
  for (const KvBatch::Write& write : batch_.writes) {
    written_since_bytes_ += write.key.size() + (write.value ? write.value->size() : 0);
    freed_since_reclaim_ =
        freed_since_reclaim_ || (!write.value && write.key.starts_with(kInlineDataPrefix));
  }
  batch_.writes.clear();
  return true;
}

void CoreDriver::LookAtRoomIfDue() {
  if (options_.directory == nullptr) return;
  const Time now = Now();
  if (looked_at_room_ && now - *looked_at_room_ < kLookEvery &&
      written_since_bytes_ < kLookEveryBytes)
    return;
  looked_at_room_ = now;
  written_since_bytes_ = 0;
  const RoomView room = options_.directory->Look();
  SetStorePressure pressure{room.used_bytes, room.limit_bytes, {}};
  if (room.is_full) pressure.refusal = options_.directory->WhyFull(room);
  // If nothing was removed, a compaction would free nothing.
  if (room.is_full && freed_since_reclaim_ && (!reclaimed_ || now - *reclaimed_ > kReclaimEvery)) {
    reclaimed_ = now;
    freed_since_reclaim_ = false;
    store_.Reclaim();
  }
  Step(pressure);
}

void CoreDriver::Flush() {
  std::optional<Commit> commit;
  if (!batch_.empty()) {
    const Time begin = clock_.Monotonic();
    if (!CommitBatch()) return outputs_.clear();
    commit = {begin, clock_.Monotonic() - begin};
    residence_.loop.Add(ManagerResidence::kLog, DurationTable::kNoPeer, commit->duration);
  }
  for (const auto& output : outputs_) {
    std::visit(
        [&](const auto& out) {
          if (out.message) out.sink->Send(*out.message);
          if (out.end) out.sink->End(*out.end);
          if (out.answers) Count(*out.answers, commit);
        },
        output);
  }
  outputs_.clear();
  reply_bytes_ = 0;
}

void CoreDriver::EndAll() {
  Flush();
  ended_ = true;
  for (auto& [id, client] : clients_) {
    if (client.sink == nullptr) continue;
    client.sink->Send(Push(SessionEndPush{"the manager is stopping"}));
    client.sink->End(OkStatus());
  }
  for (auto& [id, sink] : nodes_) sink->End(UnavailableError("the manager is stopping"));
  clients_.clear();
  nodes_.clear();
}

// ---- access

void CoreDriver::FillAccess(ClientId client, const Asked& asked, ReplyEnvelope& envelope) {
  const size_t count = std::min(envelope.replies.size(), asked.access_files.size());
  for (size_t i = 0; i < count; ++i) {
    Reply& reply = envelope.replies[i];
    DataAccess* const access = AccessOf(reply);
    if (access == nullptr) continue;
    const Status filled = FillAccess(client, asked.access_files[i], *access);
    if (filled.ok()) continue;
    // Kernels repeat an open that was answered with ESTALE.
    reply = Failure{.code = filled.code(),
                    .reason = filled.code() == StatusCode::kAborted ? ErrorReason::kStale
                                                                    : ErrorReason::kCorrupt,
                    .message = MessageOf(filled)};
  }
}

Status CoreDriver::FillAccess(ClientId client, FileId file, DataAccess& access) {
  if (access.layout.bound()) {
    const CapabilityTerms terms = core_->TermsFor(client);
    access.capability = SealCapability({.file = file,
                                        .client = client,
                                        .may_write = access.may_write,
                                        .expires = access.expires,
                                        .era = terms.era,
                                        .generation = access.generation,
                                        .epoch = terms.epoch},
                                       options_.capability_key);
  }
  if (access.is_inline && access.inline_data.empty() && access.inline_valid_bytes > 0) {
    MOSA_ASSIGN_OR_RETURN(access.inline_data, InlineBytes(file));
    if (access.inline_data.size() > access.inline_valid_bytes) {
      access.inline_data.resize(access.inline_valid_bytes);
    }
  }
  return OkStatus();
}

// Returns the bytes as of the latest step: from the cache, from the batch being collected, or from
// the store.
Result<std::string> CoreDriver::InlineBytes(FileId file) {
  const std::string key = InlineDataKey(file);
  if (const std::string* const cached = inline_cache_.Find(key)) return *cached;
  const auto gone = [file] {
    return AbortedError(fmt::format(
        "the inline bytes of file {} moved to an object while it was being opened: open it again",
        file.value));
  };
  for (auto write = batch_.writes.rbegin(); write != batch_.writes.rend(); ++write) {
    if (write->key != key) continue;
    if (!write->value) return gone();
    return *write->value;
  }
  Result<std::string> stored = store_.Get(key);
  if (!stored.ok()) {
    return stored.status().code() == StatusCode::kNotFound ? gone() : stored.status();
  }
  inline_cache_.Put(key, *stored);
  return stored;
}

}  // namespace mosa::manager
