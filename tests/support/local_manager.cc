#include "tests/support/local_manager.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "tests/support/local_manager_api.h"

namespace mosa::testing {

LocalManager::LocalManager(manager::ManagerOptions options, const Clock& clock)
    : clock_(clock), store_(manager::NewMemoryStore()), core_(std::move(options)) {
  MOSA_CHECK(core_.FinishLoad(clock_.Now()).ok());
  ticker_ = std::thread([this] { Run(); });
}

LocalManager::~LocalManager() {
  {
    const SystemMutexLock lock(mutex_);
    stopping_ = true;
  }
  ticker_.join();
}

manager::AdminReply LocalManager::Change(const manager::Command& command) {
  return Step(command).value();
}

std::optional<manager::AdminReply> LocalManager::Step(const manager::Command& command) {
  std::optional<manager::AdminReply> admin_reply;
  std::vector<std::pair<NodeId, NodeOrder>> orders;
  {
    const SystemMutexLock lock(mutex_);
    if (const auto* request = std::get_if<manager::SessionRequest>(&command)) {
      std::vector<FileId> files;
      for (const Request& each : request->envelope.requests) {
        const auto* open = std::get_if<OpenRequest>(&each);
        const auto* bind = std::get_if<BindRequest>(&each);
        files.push_back(open ? open->file : bind ? bind->file : FileId{});
      }
      if (!files.empty())
        files_of_requests_[{request->client, request->envelope.id}] = std::move(files);
    }
    manager::Effects effects = core_.Step(command, clock_.Now());
    admin_reply = effects.admin_reply;
    Deliver(std::move(effects), &orders);
  }
  CarryOut(orders);
  return admin_reply;
}

void LocalManager::CarryOut(const std::vector<std::pair<NodeId, NodeOrder>>& orders) {
  for (const auto& [node, order] : orders) {
    std::function<void(const NodeOrder&)> execute;
    std::function<NodeHeartbeat()> report;
    {
      const SystemMutexLock lock(mutex_);
      const auto it = nodes_.find(node);
      if (it == nodes_.end() || it->second.silent) continue;
      execute = it->second.order;
      report = it->second.report;
    }
    execute(order);
    Step(manager::NodeReport{node, report()});
  }
}

void LocalManager::Deliver(manager::Effects effects,
                           std::vector<std::pair<NodeId, NodeOrder>>* orders) {
  MOSA_CHECK(store_->Commit(effects.writes).ok());
  for (manager::ToClient& to : effects.to_clients) {
    const auto client = clients_.find(to.client);
    if (client == clients_.end()) continue;
    if (auto* envelope = std::get_if<ReplyEnvelope>(&to.message)) FillInline(to.client, *envelope);
    client->second->Receive(std::move(to.message));
  }
  for (manager::ToNode& to : effects.to_nodes) {
    if (const auto* registered = std::get_if<NodeRegistered>(&to.message))
      registered_ = registered->node;
    else
      orders->emplace_back(to.node, std::get<NodeOrder>(to.message));
  }
}

// The inline bytes of replies that open or bind a file: the core leaves them to its shell.
void LocalManager::FillInline(ClientId client, ReplyEnvelope& envelope) {
  const auto files = files_of_requests_.find({client, envelope.id});
  if (files == files_of_requests_.end()) return;
  for (size_t i = 0; i < envelope.replies.size(); ++i) {
    DataAccess* access = nullptr;
    if (auto* open = std::get_if<OpenReply>(&envelope.replies[i])) access = &open->access;
    if (auto* bind = std::get_if<BindReply>(&envelope.replies[i])) access = &bind->access;
    if (access == nullptr || !access->is_inline || access->inline_valid_bytes == 0) continue;
    const auto data = store_->Get(manager::InlineDataKey(files->second[i]));
    if (data.ok())
      access->inline_data = data->substr(0, access->inline_valid_bytes);
    else
      envelope.replies[i] =
          Failure{StatusCode::kAborted, ErrorReason::kStale,
                  "the inline bytes moved to an object while it was being opened"};
  }
  files_of_requests_.erase(files);
}

void LocalManager::Run() {
  Time heartbeat_due;
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::vector<std::pair<NodeId, std::function<NodeHeartbeat()>>> reports;
    {
      const SystemMutexLock lock(mutex_);
      if (stopping_) return;
      const Time now = clock_.Now();
      if (now >= heartbeat_due) {
        heartbeat_due = now + kHeartbeatEvery;
        for (const auto& [node, link] : nodes_)
          if (!link.silent) reports.emplace_back(node, link.report);
      }
    }
    for (const auto& [node, report] : reports) Step(manager::NodeReport{node, report()});
    Step(manager::Tick{});
  }
}

std::unique_ptr<sai::ManagerApi> LocalManager::NewClient(std::string node_name) {
  const SystemMutexLock lock(mutex_);
  const ClientId id{next_client_++};
  auto client = std::make_unique<LocalManagerApi>(*this, id, std::move(node_name));
  clients_[id] = client.get();
  return client;
}

NodeId LocalManager::AddNode(NodeRegistration registration,
                             std::function<void(const NodeOrder&)> order,
                             std::function<NodeHeartbeat()> report) {
  const NodeHeartbeat first = report();
  NodeId node;
  std::vector<std::pair<NodeId, NodeOrder>> orders;
  {
    const SystemMutexLock lock(mutex_);
    Deliver(core_.Step(manager::RegisterNode{std::move(registration)}, clock_.Now()), &orders);
    node = registered_;
    nodes_[node] = {std::move(order), std::move(report), false};
  }
  Step(manager::NodeReport{node, first});
  CarryOut(orders);
  return node;
}

void LocalManager::ReportCopy(NodeId node, const CopyReport& report) {
  Step(manager::NodeCopyReport{node, report});
}

void LocalManager::SilenceNode(NodeId node) {
  {
    const SystemMutexLock lock(mutex_);
    nodes_[node].silent = true;
  }
  Step(manager::NodeStreamLost{node});
}

manager::ClusterStatus LocalManager::Status() {
  const SystemMutexLock lock(mutex_);
  return core_.GetClusterStatus(clock_.Now());
}

Result<manager::FileStatus> LocalManager::StatusOf(std::string_view path) {
  const SystemMutexLock lock(mutex_);
  return core_.GetFileStatus(path);
}

}  // namespace mosa::testing
