#include "manager/service/forecasts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "fmt/format.h"
#include "predictor/run/copies_forecast.h"

namespace mosa::manager {
namespace {

// Sets `task.hosts` and `task.nodes`.
Status FindHosts(const ManagerCore& core, Time now, const std::vector<std::string>& asked,
                 ReadCostTask& task) {
  std::map<std::string, NodeId> nodes;
  std::vector<std::string> answering;
  for (const NodeStatus& node : core.GetClusterStatus(now).nodes) {
    nodes.emplace(node.address.name, node.address.node);
    if (node.address.state == NodeState::kLive || node.address.state == NodeState::kDraining)
      answering.push_back(node.address.name);
  }
  std::set<NodeId> known;
  for (const std::string& host : asked.empty() ? answering : asked) {
    const auto node = nodes.find(host);
    if (node == nodes.end())
      return InvalidArgumentError(fmt::format(
          "'{}' is not one of the {} storage nodes of this cluster", host, nodes.size()));
    if (!known.insert(node->second).second) continue;
    task.hosts.push_back(host);
    task.nodes.push_back(node->second);
  }
  return OkStatus();
}

}  // namespace

Result<ReadCostTask> TaskOf(const ManagerCore& core, Time now, const ReadCostQuery& query) {
  ReadCostTask task;
  MOSA_RETURN_IF_ERROR(FindHosts(core, now, query.hosts, task));
  size_t paths_count = 0;
  for (const std::vector<std::string>& set : query.sets) paths_count += set.size();
  const auto check = [&task](size_t count, const char* what, size_t most) {
    if (count * task.hosts.size() <= most) return OkStatus();
    return InvalidArgumentError(
        fmt::format("{} {} on {} hosts make {} combinations: ask for at most {} at once", count,
                    what, task.hosts.size(), count * task.hosts.size(), most));
  };
  MOSA_RETURN_IF_ERROR(check(query.sets.size(), "sets", kReadAnswersMax));
  MOSA_RETURN_IF_ERROR(check(paths_count, "files", kReadAddendsMax));
  std::unordered_map<std::string_view, uint32_t> known;
  std::vector<std::string> paths;
  for (const std::vector<std::string>& set : query.sets) {
    for (const std::string& path : set) {
      const auto [at, is_new] = known.emplace(path, static_cast<uint32_t>(paths.size()));
      if (is_new) paths.push_back(path);
      task.set_files.push_back(at->second);
    }
    task.set_ends.push_back(task.set_files.size());
  }
  task.files = core.ListReadable(paths);
  return task;
}

Forecasts::Forecasts(const predict::Platform& platform, Duration wait_max)
    : platform_(platform), wait_max_(wait_max), read_costs_(platform), thread_([this] { Run(); }) {}

Forecasts::~Forecasts() {
  Stop();
  {
    const SystemMutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Forecasts::Stop() { stopping_ = true; }

void Forecasts::Run() {
  SystemMutexLock lock(mutex_);
  for (;;) {
    while (!ending_ && wanted_nodes_ == 0 && waiting_.empty()) changed_.wait(lock);
    const uint32_t nodes = std::exchange(wanted_nodes_, 0);
    if (nodes != 0 && !stopping_) {
      lock.unlock();
      auto forecast = ComputeCopies(nodes);
      lock.lock();
      if (forecast) copies_.push_back(*std::move(forecast));
    } else if (!waiting_.empty()) {
      std::optional<Question> question = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      Serve(*question);
      question.reset();
      lock.lock();
    } else if (ending_) {
      return;
    }
  }
}

// ---- cost of reading

void Forecasts::PredictReads(ReadCostTask task, AnswerReads answer) {
  {
    const SystemMutexLock lock(mutex_);
    if (waiting_.size() < kWaitingMax) {
      waiting_.push_back({std::move(task), std::move(answer), Clock::now()});
      changed_.notify_one();
      return;
    }
  }
  answer(ResourceExhaustedError(fmt::format(
             "{} queries about reading are already waiting: try again in a moment", kWaitingMax)),
         {});
}

Status Forecasts::CheckAwaited(const Question& question) const {
  if (stopping_) return UnavailableError("the manager is stopping");
  if (Clock::now() - question.asked <= std::chrono::nanoseconds(wait_max_.ns)) return OkStatus();
  return DeadlineExceededError(fmt::format(
      "the query about reading {} sets on {} hosts timed out after {} s: ask about fewer, or try "
      "again in a moment",
      question.task.set_ends.size(), question.task.hosts.size(), wait_max_.ns / 1'000'000'000));
}

void Forecasts::Serve(const Question& question) {
  const Result<ReadCostAnswer> answer = Answer(question);
  if (answer.ok()) return question.answer(OkStatus(), *answer);
  question.answer(answer.status(), {});
}

Result<ReadCostAnswer> Forecasts::Answer(const Question& question) {
  const ReadCostTask& task = question.task;
  MOSA_RETURN_IF_ERROR(CheckAwaited(question));
  ReadCostAnswer answer{task.hosts, {}};
  std::vector<std::optional<predict::FileToRead>> files(task.files.size());
  size_t next = 0;
  for (const size_t end : task.set_ends) {
    ReadSetCost& set = answer.sets.emplace_back();
    std::vector<ReadCost> costs(task.nodes.size());
    for (; next < end && !set.failure; ++next) {
      MOSA_RETURN_IF_ERROR(CheckAwaited(question));
      const uint32_t at = task.set_files[next];
      set.failure = task.files[at].failure;
      if (set.failure) break;
      if (!files[at]) files[at].emplace(task.files[at]);
      MOSA_RETURN_IF_ERROR(read_costs_.Add(*files[at], task.nodes, costs));
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

// ---- number of copies

std::optional<SetCopiesForecast> Forecasts::ComputeCopies(uint32_t nodes) {
  if (nodes == 0) return std::nullopt;
  {
    const SystemMutexLock lock(mutex_);
    begun_nodes_.insert(nodes);
  }
  auto sizes = predict::ForecastCopies(platform_, nodes);
  if (sizes.ok()) return SetCopiesForecast{nodes, *std::move(sizes)};
  LogWarning("cannot forecast replicas=auto on {} nodes: {}", nodes, MessageOf(sizes.status()));
  return std::nullopt;
}

std::optional<SetCopiesForecast> Forecasts::TakeCopies(uint32_t nodes) {
  const SystemMutexLock lock(mutex_);
  wanted_nodes_ = begun_nodes_.contains(nodes) ? 0 : nodes;
  if (wanted_nodes_ != 0) changed_.notify_one();
  if (copies_.empty()) return std::nullopt;
  SetCopiesForecast forecast = std::move(copies_.front());
  copies_.pop_front();
  return forecast;
}

}  // namespace mosa::manager
