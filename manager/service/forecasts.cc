#include "manager/service/forecasts.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "fmt/format.h"
#include "predictor/run/copies_forecast.h"

namespace mosa::manager {

Result<ReadCostTask> TaskOf(const ManagerCore& core, Time now, const ReadCostQuery& query) {
  ReadCostTask task;
  std::map<std::string, NodeId> nodes;
  for (const NodeStatus& node : core.GetClusterStatus(now).nodes) {
    nodes.emplace(node.address.name, node.address.node);
    const bool answers =
        node.address.state == NodeState::kLive || node.address.state == NodeState::kDraining;
    if (query.hosts.empty() && answers) task.hosts.push_back(node.address.name);
  }
  if (!query.hosts.empty()) task.hosts = query.hosts;
  for (const std::string& host : task.hosts) {
    const auto node = nodes.find(host);
    if (node == nodes.end())
      return InvalidArgumentError(
          fmt::format("'{}' is no storage node of this cluster of {}", host, nodes.size()));
    task.nodes.push_back(node->second);
  }
  if (query.sets.size() * task.hosts.size() > kReadAnswersMax)
    return InvalidArgumentError(fmt::format(
        "{} sets on {} hosts are {} answers: ask for at most {} at once", query.sets.size(),
        task.hosts.size(), query.sets.size() * task.hosts.size(), kReadAnswersMax));
  for (const std::vector<std::string>& set : query.sets) {
    std::vector<ReadableFile> files = core.ListReadable(set);
    std::move(files.begin(), files.end(), std::back_inserter(task.files));
    task.set_ends.push_back(task.files.size());
  }
  return task;
}

Forecasts::Forecasts(const predict::Platform& platform)
    : platform_(platform), read_costs_(platform), thread_([this] { Run(); }) {}

Forecasts::~Forecasts() {
  Stop();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Forecasts::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
}

void Forecasts::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const auto job = std::move(waiting_.front());
    waiting_.pop_front();
    const bool stopping = stopping_;
    lock.unlock();
    job(stopping);
    lock.lock();
  }
}

void Forecasts::PredictReads(ReadCostTask task, AnswerReads answer) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < kWaitingMax) {
      waiting_.push_back([this, task = std::move(task), answer = std::move(answer)](bool stopping) {
        Status status = stopping ? UnavailableError("the manager is stopping") : OkStatus();
        answer(status, stopping ? ReadCostAnswer() : Answer(task, status));
      });
      changed_.notify_one();
      return;
    }
  }
  answer(ResourceExhaustedError(fmt::format(
             "{} questions about reading wait already: ask again in a moment", kWaitingMax)),
         {});
}

ReadCostAnswer Forecasts::Answer(const ReadCostTask& task, Status& status) {
  ReadCostAnswer answer{task.hosts, {}};
  size_t next = 0;
  for (const size_t end : task.set_ends) {
    ReadSetCost& set = answer.sets.emplace_back();
    std::vector<ReadCost> costs(task.nodes.size());
    for (; next < end && !set.failure; ++next) {
      set.failure = task.files[next].failure;
      if (set.failure) break;
      status = read_costs_.Add(task.files[next], task.nodes, costs);
      if (!status.ok()) return {};
    }
    next = end;
    if (set.failure) continue;
    for (uint32_t i = 0; i < costs.size(); ++i) set.hosts.push_back({i, costs[i]});
    std::stable_sort(
        set.hosts.begin(), set.hosts.end(),
        [](const HostReadCost& a, const HostReadCost& b) { return a.cost.time < b.cost.time; });
  }
  return answer;
}

std::optional<SetCopiesForecast> Forecasts::ComputeCopies(uint32_t nodes) {
  if (nodes == 0) return std::nullopt;
  asked_nodes_ = nodes;
  auto sizes = predict::ForecastCopies(platform_, nodes);
  if (sizes.ok()) return SetCopiesForecast{nodes, *std::move(sizes)};
  LogWarning("replicas=auto stays a rule for {} nodes: {}", nodes, MessageOf(sizes.status()));
  return std::nullopt;
}

std::optional<SetCopiesForecast> Forecasts::TakeCopies(uint32_t nodes) {
  const std::lock_guard lock(mutex_);
  if (nodes > 0 && nodes != asked_nodes_) {
    asked_nodes_ = nodes;
    waiting_.push_back([this, nodes](bool stopping) {
      if (stopping) return;
      auto sizes = predict::ForecastCopies(platform_, nodes);
      if (!sizes.ok())
        return LogWarning("replicas=auto stays as it is for {} nodes: {}", nodes,
                          MessageOf(sizes.status()));
      const std::lock_guard result(mutex_);
      copies_ = SetCopiesForecast{nodes, *std::move(sizes)};
    });
    changed_.notify_one();
  }
  return std::exchange(copies_, std::nullopt);
}

}  // namespace mosa::manager
