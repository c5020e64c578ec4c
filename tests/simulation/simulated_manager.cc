#include "tests/simulation/simulated_manager.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "proto/convert/bulk_hello.h"
#include "proto/convert/capability.h"

namespace mosa::simulation {
namespace {

FileId FileOf(const Request& request) {
  if (const auto* open = std::get_if<OpenRequest>(&request)) return open->file;
  if (const auto* bind = std::get_if<BindRequest>(&request)) return bind->file;
  if (const auto* freeze = std::get_if<FreezeRequest>(&request)) return freeze->file;
  if (const auto* relocate = std::get_if<RelocateRequest>(&request)) return relocate->file;
  if (const auto* cut = std::get_if<SetAttributesRequest>(&request)) return cut->file;
  return {};
}

DataAccess* AccessOf(Reply& reply) {
  if (auto* open = std::get_if<OpenReply>(&reply)) return &open->access;
  if (auto* bind = std::get_if<BindReply>(&reply)) return &bind->access;
  if (auto* cut = std::get_if<AttributesReply>(&reply))
    return cut->access ? &*cut->access : nullptr;
  return nullptr;
}

// As in the manager's shell.
constexpr Duration kStalledAfter = Seconds(1);
constexpr Duration kTickEvery = Milliseconds(20);

}  // namespace

SimulatedManager::SimulatedManager(manager::ManagerOptions options)
    : options_(std::move(options)), image_(manager::NewMemoryStore()) {
  Start();
  Scheduler::Current()->Start([this] { Run(); }, kHost);
}

void SimulatedManager::Stop() {
  stopping_ = true;
  filled_.WakeAll();
}

std::optional<uint32_t> SimulatedManager::CopiesOf(const std::string& path) const {
  const auto status = core_->GetFileStatus(path);
  if (!status.ok() || status->is_inline || !status->layout.bound()) return std::nullopt;
  return status->copies_valid;
}

std::optional<uint64_t> SimulatedManager::FilesLeft(const std::string& node) const {
  if (!is_up()) return std::nullopt;
  for (const NodeStatus& status : core_->GetClusterStatus(clock_.Now()).nodes)
    if (status.address.name == node) return status.files_left;
  return std::nullopt;
}

bool SimulatedManager::Drain(const std::string& node, bool drain) {
  if (!is_up()) return false;
  const auto reply = Step(manager::DrainNode{node, drain});
  return reply && reply->status.ok();
}

void SimulatedManager::Take(std::function<void()> message) {
  if (!is_up()) return;
  inbox_.push_back(std::move(message));
  filled_.WakeAll();
}

void SimulatedManager::Run() {
  Time tick_due;
  while (!stopping_) {
    const Time now = clock_.Monotonic();
    if (is_up() && now >= tick_due) {
      tick_due = now + kTickEvery;
      Step(manager::Tick{});
    } else if (!inbox_.empty()) {
      const std::function<void()> message = std::move(inbox_.front());
      inbox_.pop_front();
      message();
    } else {
      filled_.Wait(Scheduler::Current()->now() + kTickEvery);
    }
  }
}

void SimulatedManager::Kill() {
  core_ = nullptr;
  inbox_.clear();
  for (const auto& [client, connection] : std::exchange(clients_, {})) connection->Break();
  for (const auto& [node, connection] : std::exchange(nodes_, {})) connection->Break();
  files_of_requests_.clear();
}

void SimulatedManager::Start() {
  core_ = std::make_unique<manager::ManagerCore>(options_);
  const auto load = [this](std::string_view key, std::string_view value) {
    return core_->LoadRecord(key, value);
  };
  MOSA_CHECK(image_->Load(manager::kInlineDataPrefix, load).ok());
  MOSA_CHECK(core_->FinishLoad(clock_.Now()).ok());
  counted_until_ = clock_.Monotonic();
}

bool SimulatedManager::IsCurrent(ClientId client, const ClientConnection& connection) const {
  const auto current = clients_.find(client);
  return current != clients_.end() && current->second == connection;
}

bool SimulatedManager::IsCurrent(NodeId node, const NodeConnection& connection) const {
  const auto current = nodes_.find(node);
  return current != nodes_.end() && current->second == connection;
}

void SimulatedManager::OpenSession(ClientId client, const ClientConnection& connection,
                                   const SessionStart& start) {
  if (!is_up()) return connection->Break();
  Take([=, this] {
    if (const auto earlier = clients_.find(client); earlier != clients_.end())
      earlier->second->Break();
    clients_[client] = connection;
    Step(manager::StartSession{start});
  });
}

void SimulatedManager::Receive(ClientId client, const ClientConnection& connection,
                               const RequestEnvelope& envelope) {
  Take([=, this] {
    if (!IsCurrent(client, connection)) return;
    std::vector<FileId> files;
    for (const Request& request : envelope.requests) files.push_back(FileOf(request));
    if (!files.empty()) files_of_requests_[{client, envelope.id}] = std::move(files);
    Step(manager::SessionRequest{client, envelope});
  });
}

void SimulatedManager::Close(ClientId client, const ClientConnection& connection) {
  Take([=, this] {
    if (!IsCurrent(client, connection)) return;
    clients_.erase(client);
    Step(manager::SessionClosed{client});
  });
}

void SimulatedManager::RegisterNode(const NodeConnection& connection,
                                    const NodeRegistration& registration) {
  if (!is_up()) return connection->Break();
  Take([=, this] {
    registering_ = connection;
    Step(manager::RegisterNode{registration});
    registering_ = nullptr;
  });
}

void SimulatedManager::Report(NodeId node, const NodeConnection& connection,
                              const NodeHeartbeat& heartbeat) {
  Take([=, this] {
    if (IsCurrent(node, connection)) Step(manager::NodeReport{node, heartbeat});
  });
}

void SimulatedManager::ReportCopy(NodeId node, const NodeConnection& connection,
                                  const CopyReport& report) {
  Take([=, this] {
    if (IsCurrent(node, connection)) Step(manager::NodeCopyReport{node, report});
  });
}

void SimulatedManager::Break(NodeId node, const NodeConnection& connection) {
  Take([=, this] {
    if (!IsCurrent(node, connection)) return;
    nodes_.erase(node);
    Step(manager::NodeStreamLost{node});
  });
}

// No thread can run between the beginning of a step and its end.
std::optional<manager::AdminReply> SimulatedManager::Step(const manager::Command& command) {
  const Time now = clock_.Monotonic();
  const Duration gap = now - std::exchange(counted_until_, now);
  if (gap > kStalledAfter) Step(manager::Stalled{gap});
  manager::Effects effects = core_->Step(command, clock_.Now());
  MOSA_CHECK(image_->Commit(effects.writes).ok());
  for (manager::ToClient& to : effects.to_clients) {
    const auto client = clients_.find(to.client);
    if (client == clients_.end()) continue;
    if (auto* envelope = std::get_if<ReplyEnvelope>(&to.message)) Fill(to.client, *envelope);
    if (auto* ready = std::get_if<SessionReady>(&to.message))
      ready->bulk_key = BulkKeyOf(key_, to.client, ready->era);
    client->second->Put(std::move(to.message));
  }
  for (manager::ToNode& to : effects.to_nodes) {
    if (auto* registered = std::get_if<NodeRegistered>(&to.message)) {
      registered->capability_key = key_;
      if (const auto earlier = nodes_.find(to.node); earlier != nodes_.end())
        earlier->second->Break();
      nodes_[to.node] = registering_;
      registering_->Put(*registered);
    } else if (const auto node = nodes_.find(to.node); node != nodes_.end()) {
      node->second->Put(std::get<NodeOrder>(std::move(to.message)));
    }
  }
  for (const manager::NodeRefused& refused : effects.refused_nodes)
    if (registering_ != nullptr) registering_->Put(refused.failure);
  return std::move(effects.admin_reply);
}

// As the manager's shell does: capabilities, and the inline bytes that the core leaves to it.
void SimulatedManager::Fill(ClientId client, ReplyEnvelope& envelope) {
  const auto files = files_of_requests_.find({client, envelope.id});
  if (files == files_of_requests_.end()) return;
  for (size_t i = 0; i < std::min(envelope.replies.size(), files->second.size()); ++i) {
    DataAccess* const access = AccessOf(envelope.replies[i]);
    if (access == nullptr) continue;
    const FileId file = files->second[i];
    const manager::CapabilityTerms terms = core_->TermsFor(client);
    if (access->layout.bound())
      access->capability = SealCapability({.file = file,
                                           .client = client,
                                           .may_write = access->may_write,
                                           .expires = access->expires,
                                           .era = terms.era,
                                           .generation = access->generation,
                                           .epoch = terms.epoch},
                                          key_);
    if (!access->is_inline || access->inline_valid_bytes == 0) continue;
    const auto data = image_->Get(manager::InlineDataKey(file));
    if (data.ok())
      access->inline_data = data->substr(0, access->inline_valid_bytes);
    else
      envelope.replies[i] = Failure{StatusCode::kAborted, ErrorReason::kStale,
                                    "the inline bytes moved to an object meanwhile"};
  }
  files_of_requests_.erase(files);
}

}  // namespace mosa::simulation
