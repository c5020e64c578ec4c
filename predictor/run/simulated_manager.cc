#include "predictor/run/simulated_manager.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/hash.h"

namespace mosa::predict {
namespace {

// Bytes of request and reply envelopes on the wire with headers, without inline data: the means
// over a pipeline's tasks. Replies are larger because of layouts.
constexpr uint64_t kRequestBytes = 150;
constexpr uint64_t kReplyBytes = 240;
// A heartbeat or keep-alive without news only makes the core look at waiting grants again, which it
// does after a second anyway, and lets copies go that are not needed any more: here some seconds
// later than on a real cluster. So these are sent just often enough to stay alive; that is checked
// every kHeartbeatEvery.
constexpr Duration kSignOfLifeEvery = Seconds(4);
static_assert(kSignOfLifeEvery + kHeartbeatEvery < std::min(kNodeDeadAfter, kSessionLease));
// The core adds what mounts have reported as used to a node's usage until the second heartbeat
// after that (NodeReport).
constexpr uint32_t kNews = 2;

struct CostOfRequest {
  const ManagerPlatform& manager;
  const Cost& operator()(const LookupRequest&) const { return manager.lookup; }
  const Cost& operator()(const MakeRequest&) const { return manager.make; }
  const Cost& operator()(const OpenRequest&) const { return manager.open; }
  const Cost& operator()(const BindRequest&) const { return manager.bind; }
  const Cost& operator()(const CommitRequest&) const { return manager.commit; }
  const Cost& operator()(const GrantRequest&) const { return manager.grant; }
  const Cost& operator()(const GetAttributesRequest&) const { return manager.attribute; }
  const Cost& operator()(const SetAttributesRequest&) const { return manager.attribute; }
  const Cost& operator()(const GetXattrRequest&) const { return manager.attribute; }
  const Cost& operator()(const SetXattrRequest&) const { return manager.attribute; }
  const Cost& operator()(const auto&) const { return manager.other; }
};

uint64_t InlineBytesOf(const Request& request) {
  const auto* commit = std::get_if<CommitRequest>(&request);
  return commit && commit->inline_data ? commit->inline_data->size() : 0;
}

// The core knows only that inline bytes exist; the manager's shell adds them.
uint64_t InlineBytesOf(const Reply& reply) {
  const auto* open = std::get_if<OpenReply>(&reply);
  return open != nullptr && open->access.is_inline ? open->attributes.size_bytes : 0;
}

}  // namespace

manager::ManagerOptions ManagerOptionsOf(const Configuration& configuration) {
  manager::ManagerOptions options;
  options.cluster_seed = configuration.seed;
  options.chunk_bytes = configuration.chunk_bytes;
  options.stripe_width = configuration.stripe_width;
  options.default_placement = configuration.placement;
  options.sessions_max = std::max(options.sessions_max, configuration.hosts + 1);
  return options;
}

SimulatedManager::SimulatedManager(des::EventLoop& loop, const Platform& platform,
                                   Machines& machines, manager::ManagerOptions options)
    : loop_(loop),
      platform_(platform),
      machines_(machines),
      core_(std::move(options)),
      turn_(loop, 1),
      copies_(loop, platform, machines, *this) {}

NodeId SimulatedManager::AddNode(MachineIndex on, uint64_t limit_bytes) {
  Node node;
  node.id = NodeId{static_cast<uint32_t>(nodes_.size() + 1)};
  node.name = fmt::format("h{}", on.value + 1);
  node.machine = on;
  node.limit_bytes = limit_bytes;
  node.last_report = loop_.now();
  nodes_.push_back(node);
  machines_by_name_.emplace(node.name, on);
  NodeRegistration registration;
  registration.name = node.name;
  registration.incarnation = 1;
  registration.host_identity = node.name;
  registration.limit_bytes = limit_bytes;
  Step(manager::RegisterNode{std::move(registration)});
  NodeHeartbeat heartbeat;
  heartbeat.limit_bytes = limit_bytes;
  Step(manager::NodeReport{node.id, heartbeat});
  return node.id;
}

void SimulatedManager::AddReplicasRule(uint32_t replicas) {
  manager::AddHintRule rule;
  rule.glob = "/**";
  rule.hints.push_back({"replicas", fmt::format("{}", replicas)});
  Step(manager::Command{std::move(rule)});
}

SessionReady SimulatedManager::AddClient(ClientId client, MachineIndex on,
                                         std::function<void(const Push&)> on_push) {
  Client& made = clients_[client];
  made.machine = on;
  made.on_push = std::move(on_push);
  made.last_heard = loop_.now();
  SessionStart start;
  start.client = client;
  start.node_name = start.host_identity = fmt::format("h{}", on.value + 1);
  Step(manager::StartSession{std::move(start)});
  MOSA_CHECK(ready_.has_value());
  SessionReady ready = *std::move(ready_);
  ready_.reset();
  return ready;
}

void SimulatedManager::Begin() { des::Spawn(loop_, Upkeep()); }

des::Activity<void> SimulatedManager::Upkeep() {
  for (;;) {
    co_await loop_.Sleep(kHeartbeatEvery);
    for (Node& node : nodes_) {
      if (node.news == 0 && loop_.now() - node.last_report < kSignOfLifeEvery) continue;
      if (node.news > 0) --node.news;
      node.last_report = loop_.now();
      NodeHeartbeat heartbeat;
      heartbeat.used_bytes = node.used_bytes;
      heartbeat.limit_bytes = node.limit_bytes;
      heartbeat.object_count = node.objects.size();
      heartbeat.measurements = ++node.measurements;
      heartbeat.drops_done = node.drops_done;
      Step(manager::NodeReport{node.id, heartbeat});
    }
    for (auto& [id, client] : clients_) {
      if (loop_.now() - client.last_heard < kSignOfLifeEvery) continue;
      client.last_heard = loop_.now();
      Step(manager::SessionRequest{id, {}});
    }
  }
}

des::Activity<std::vector<Reply>> SimulatedManager::Call(ClientId client,
                                                         std::vector<Request> requests) {
  ++calls_;
  if (observer_ != nullptr) observer_->OnCall(client, requests);
  Client& from = clients_.at(client);
  RequestEnvelope envelope;
  envelope.id = RequestId{++from.last_request};
  envelope.answered_below =
      from.waiting.empty() ? envelope.id : RequestId{from.waiting.begin()->first};
  const EnvelopeNames& names = NamesOf(requests);
  const SimulatedResidence::Timed timed(machines_.residence(), Daemon::kMount, from.machine,
                                        names.at_mount);
  Answer answer;
  answer.name = names.at_manager;
  from.waiting[envelope.id.value] = &answer;
  const Duration cost = CostOf(requests);
  uint64_t bytes = kRequestBytes;
  for (const Request& request : requests) bytes += InlineBytesOf(request);
  envelope.requests = std::move(requests);
  const MachineIndex here = machines_.manager();
  from.last_arrival =
      std::max(from.last_arrival, loop_.now() + machines_.SendMessage(from.machine, here, bytes));
  co_await loop_.Until(from.last_arrival);
  co_await machines_.ManagerWait();
  co_await turn_.Take();
  answer.taken = loop_.now();
  co_await machines_.Work(here, cost);
  co_await machines_.ManagerWork();
  machines_.residence().Add(Daemon::kManager, here, names.decision, loop_.now() - answer.taken);
  const manager::Command command = manager::SessionRequest{client, std::move(envelope)};
  manager::Effects effects = core_.Step(command, loop_.now());
  from.last_heard = loop_.now();
  for (const Request& request : std::get<manager::SessionRequest>(command).envelope.requests)
    NoteConsumed(request);
  uint64_t written = 0;
  for (const KvBatch::Write& write : effects.writes.writes)
    written += write.key.size() + (write.value ? write.value->size() : 0);
  if (written > 0) {
    const SimulatedResidence::Timed log(machines_.residence(), Daemon::kManager, here, "log");
    co_await machines_.Work(here, platform_.manager.persist.Of(written));
    co_await machines_.ManagerLog();
  }
  Deliver(std::move(effects));
  turn_.Return();
  struct Awaiter {
    Answer& answer;
    bool await_ready() const { return answer.come; }
    void await_suspend(std::coroutine_handle<> waiter) const { answer.waiter = waiter; }
    void await_resume() const {}
  };
  co_await Awaiter{answer};
  co_return std::move(answer.replies);
}

void SimulatedManager::Send(ClientId client, std::vector<Request> requests) {
  des::Spawn(loop_, SendActivity(client, std::move(requests)));
}

des::Activity<void> SimulatedManager::SendActivity(ClientId client, std::vector<Request> requests) {
  const std::vector<Reply> replies = co_await Call(client, std::move(requests));
}

void SimulatedManager::BeginRun(const std::string& run) {
  Step(manager::Command{manager::BeginWorkflow{run}});
}

des::Activity<void> SimulatedManager::TellSucceeded(MachineIndex from, std::string task) {
  co_await loop_.Sleep(machines_.SendMessage(from, machines_.manager(), kRequestBytes));
  co_await turn_.Take();
  co_await machines_.Work(machines_.manager(), platform_.manager.other.Of(0));
  Step(manager::Command{manager::EndTask{std::move(task), true}});
  turn_.Return();
}

void SimulatedManager::NoteConsumed(const Request& request) {
  if (const auto* grant = std::get_if<GrantRequest>(&request); grant && grant->consumed_bytes > 0)
    nodes_[grant->node.value - 1].news = kNews;
  if (const auto* commit = std::get_if<CommitRequest>(&request))
    for (const CommitRequest::NodeBytes& node : commit->nodes)
      if (node.consumed_bytes > 0) nodes_[node.node.value - 1].news = kNews;
}

Duration SimulatedManager::CostOf(const std::vector<Request>& requests) const {
  Duration cost;
  for (const Request& request : requests)
    cost = cost + std::visit(CostOfRequest{platform_.manager}, request).Of(InlineBytesOf(request));
  return cost;
}

void SimulatedManager::Step(const manager::Command& command) {
  Deliver(core_.Step(command, loop_.now()));
}

void SimulatedManager::Deliver(manager::Effects&& effects) {
  for (const KvBatch::Write& write : effects.writes.writes) {
    decisions_ = HashCombine(decisions_, Crc32c(write.key.data(), write.key.size()));
    constexpr uint64_t kDeleted = uint64_t{1} << 32;  // Not a checksum: those have 32 bits.
    decisions_ = HashCombine(
        decisions_, write.value ? Crc32c(write.value->data(), write.value->size()) : kDeleted);
  }
  for (manager::ToClient& to : effects.to_clients) {
    if (auto* ready = std::get_if<SessionReady>(&to.message)) {
      ready_ = std::move(*ready);
    } else if (auto* reply = std::get_if<ReplyEnvelope>(&to.message)) {
      NoteAnswered(to.client, reply->id);
      DeliverTo(to.client, std::move(*reply));
    } else if (auto* push = std::get_if<Push>(&to.message)) {
      DeliverTo(to.client, std::move(*push));
    }
  }
  for (const manager::ToNode& to : effects.to_nodes) {
    const auto* order = std::get_if<NodeOrder>(&to.message);
    if (order != nullptr) Obey(to.node, *order);
  }
  ScheduleTick(effects.wake_at);
}

void SimulatedManager::NoteAnswered(ClientId client, RequestId id) {
  const auto& waiting = clients_.at(client).waiting;
  const auto answer = waiting.find(id.value);
  if (answer == waiting.end()) return;  // The reply to a keep-alive.
  machines_.residence().Add(Daemon::kManager, machines_.manager(), answer->second->name,
                            loop_.now() - answer->second->taken);
}

void SimulatedManager::DeliverTo(ClientId client, std::variant<ReplyEnvelope, Push> message) {
  Client& to = clients_.at(client);
  uint64_t bytes = kReplyBytes;
  if (const auto* envelope = std::get_if<ReplyEnvelope>(&message))
    for (const Reply& reply : envelope->replies) bytes += InlineBytesOf(reply);
  const Time at =
      std::max(to.last_delivery,
               loop_.now() + machines_.SendMessage(machines_.manager(), to.machine, bytes));
  to.last_delivery = at;
  to.inbox.push_back(std::move(message));
  loop_.At(at, [this, client] { Receive(client); });
}

void SimulatedManager::Receive(ClientId client) {
  Client& to = clients_.at(client);
  std::variant<ReplyEnvelope, Push> message = std::move(to.inbox[to.delivered++]);
  if (to.delivered == to.inbox.size()) {
    to.inbox.clear();
    to.delivered = 0;
  }
  if (const auto* push = std::get_if<Push>(&message)) {
    to.on_push(*push);
    return;
  }
  ReplyEnvelope& envelope = std::get<ReplyEnvelope>(message);
  const auto waiting = to.waiting.find(envelope.id.value);
  if (waiting == to.waiting.end()) return;  // The reply to a keep-alive.
  Answer& answer = *waiting->second;
  to.waiting.erase(waiting);
  answer.replies = std::move(envelope.replies);
  answer.come = true;
  if (answer.waiter) answer.waiter.resume();
}

bool SimulatedManager::Store(NodeId node, FileId file, uint64_t bytes) {
  if (!StoreCopy(node, file, bytes)) return false;
  written_[file] += bytes;
  copies_.NoteWritten(file);
  return true;
}

uint64_t SimulatedManager::TakeFresh(FileId file, ByteRange range) {
  IntervalSet& stored = stored_[file];
  const uint64_t fresh = stored.MissingBytes(range);
  stored.Add(range);
  return fresh;
}

void SimulatedManager::Cut(FileId file) {
  written_.erase(file);
  stored_.erase(file);
  for (Node& node : nodes_) {
    const auto object = node.objects.find(file);
    if (object == node.objects.end()) continue;
    node.used_bytes -= std::exchange(object->second, 0);
    node.news = kNews;
  }
}

bool SimulatedManager::StoreCopy(NodeId node, FileId file, uint64_t bytes) {
  Node& at = nodes_[node.value - 1];
  if (bytes > at.limit_bytes - at.used_bytes) return false;
  at.objects[file] += bytes;
  at.used_bytes += bytes;
  at.used_bytes_max = std::max(at.used_bytes_max, at.used_bytes);
  at.news = kNews;
  return true;
}

void SimulatedManager::ReportCopy(NodeId node, const CopyReport& report) {
  Step(manager::NodeCopyReport{node, report});
}

uint64_t SimulatedManager::WrittenOf(FileId file) const {
  const auto written = written_.find(file);
  return written == written_.end() ? 0 : written->second;
}

uint64_t SimulatedManager::StoredOn(NodeId node, FileId file) const {
  const auto& objects = nodes_[node.value - 1].objects;
  const auto object = objects.find(file);
  return object == objects.end() ? 0 : object->second;
}

std::optional<MachineIndex> SimulatedManager::MachineNamed(const std::string& node) const {
  const auto named = machines_by_name_.find(node);
  if (named == machines_by_name_.end()) return std::nullopt;
  return named->second;
}

// Orders reach their node at once: they are few and small, and nothing waits for them.
void SimulatedManager::Obey(NodeId node, const NodeOrder& order) {
  if (const auto* copy = std::get_if<CopyOrder>(&order)) return copies_.Order(node, *copy);
  if (const auto* cancel = std::get_if<CancelCopyOrder>(&order))
    return copies_.Cancel(node, cancel->file);
  Node& at = nodes_[node.value - 1];
  const auto& drop = std::get<DropObjectsOrder>(order);
  at.drops_done = drop.number;
  at.news = kNews;
  for (const FileId file : drop.files) {
    copies_.Cancel(node, file);
    const auto object = at.objects.find(file);
    if (object == at.objects.end()) continue;
    at.used_bytes -= object->second;
    at.objects.erase(object);
  }
}

void SimulatedManager::ScheduleTick(std::optional<Time> at) {
  if (!at || (tick_at_ && *tick_at_ <= *at)) return;
  tick_at_ = std::max(*at, loop_.now());
  loop_.At(*tick_at_, [this, when = *tick_at_] {
    if (!tick_at_ || *tick_at_ != when) return;  // Superseded by an earlier tick.
    tick_at_.reset();
    Step(manager::Tick{});
  });
}

}  // namespace mosa::predict
