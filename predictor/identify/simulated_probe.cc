#include "predictor/identify/simulated_probe.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "predictor/des/activity.h"
#include "predictor/des/waiting.h"
#include "predictor/model/cost.h"
#include "predictor/run/prediction.h"
#include "predictor/run/simulated_client.h"

namespace mosa::predict {
namespace {

constexpr Time kBegin{1'700'000'000'000'000'000};
constexpr ClientId kActor{1000};
constexpr ClientId kOther{1001};
// Sequential operations of each concurrent lane. Work that is done once for many operations (a
// range of file ids, a grant) is spread over them, as on a real store with more of them.
constexpr uint32_t kRoundsSmall = 4;
constexpr uint32_t kRoundsLarge = 2;
constexpr uint64_t kLargeBytes = 1 << 20;

// Adapts the platform where the model has no figure for the probe.
Platform ForProbe(const Probe& probe, Platform platform) {
  if (probe.where == Where::kOwnThroughMount) platform.client.passthrough = false;
  // Here a program asks the kernel itself; `look` otherwise is the runner's cost.
  platform.runner.look = probe.kind == ProbeKind::kGetAttribute ? platform.client.call : Cost{};
  return platform;
}

class ProbeRun {
 public:
  ProbeRun(const Probe& probe, const Platform& platform, const Configuration& deployment)
      : probe_(probe),
        platform_(ForProbe(probe, platform)),
        machines_(loop_, platform_, deployment),
        manager_(loop_, platform_, machines_, ManagerOptionsOf(deployment)),
        rounds_(probe.bytes >= kLargeBytes ? kRoundsLarge : kRoundsSmall) {
    for (uint32_t i = 0; i < machines_.node_count(); ++i)
      manager_.AddNode(machines_.node(i), platform_.host.store_bytes);
    actor_.emplace(loop_, platform_, machines_, manager_, kActor, MachineIndex{0});
    other_.emplace(loop_, platform_, machines_, manager_, kOther, MachineIndex{1});
    manager_.Begin();
  }
  ~ProbeRun() { loop_.EndAll(); }
  ProbeRun(const ProbeRun&) = delete;
  ProbeRun& operator=(const ProbeRun&) = delete;

  Result<double> Run() {
    des::Spawn(loop_, Everything());
    loop_.Run();
    if (failure_)
      return InternalError(fmt::format("simulated '{}' fails: {}", ToText(probe_), *failure_));
    return SecondsOf(taken_) / rounds_;
  }

 private:
  template <typename T>
  bool Good(const sai::Outcome<T>& outcome) {
    if (!outcome.ok() && !failure_) failure_ = outcome.failure().message;
    return outcome.ok();
  }
  bool Good(const std::vector<Reply>& replies) {
    for (const Reply& reply : replies)
      if (const auto* failure = std::get_if<Failure>(&reply)) {
        if (!failure_) failure_ = failure->message;
        return false;
      }
    return true;
  }

  std::string DirectoryOf(bool by_other) const {
    if (probe_.where == Where::kDefault) return "default";
    // Files that the actor reads from the other lie where the other wrote them.
    const bool at_other = probe_.where == Where::kOther && !by_other;
    return at_other ? "at-other" : "own";
  }
  // Whether the other prepares the files, so that they are new to the actor. Files of the actor's
  // own host need no such preparation.
  bool by_other() const {
    if (probe_.kind == ProbeKind::kStat || probe_.kind == ProbeKind::kStatAgain ||
        probe_.kind == ProbeKind::kOpen)
      return true;
    const bool reads = probe_.kind == ProbeKind::kRead || probe_.kind == ProbeKind::kReadAgain;
    return reads && (probe_.where == Where::kOther || probe_.where == Where::kDefault);
  }

  des::Activity<void> Everything() {
    co_await Directories();
    const uint32_t each = rounds_ + 1;  // The first is not timed.
    for (uint32_t i = 0; i < each * probe_.at_once; ++i)
      paths_.push_back(fmt::format("{}/{}", DirectoryOf(by_other()), i));
    for (size_t i = 0; i < paths_.size() && !failure_; ++i) co_await Ready(paths_[i]);
    co_await actor_->AwaitSealed();
    co_await other_->AwaitSealed();
    for (size_t i = 0; i < paths_.size() && !failure_; ++i) co_await Know(paths_[i]);
    for (uint32_t i = 0; i < probe_.at_once && !failure_; ++i) co_await Operate(i);
    const Time begin = loop_.now();
    des::Group group(loop_);
    for (uint32_t lane = 0; lane < probe_.at_once && !failure_; ++lane) {
      group.Begin();
      des::Spawn(loop_, Lane(lane, group));
    }
    while (group.under_way() > 0) co_await group.changed().Wait();
    taken_ = loop_.now() - begin;
    loop_.Stop();
  }

  des::Activity<void> Lane(uint32_t lane, des::Group& group) {
    for (uint32_t round = 1; round <= rounds_ && !failure_; ++round)
      co_await Operate(round * probe_.at_once + lane);
    group.End();
  }

  des::Activity<void> Directories() {
    const std::string own = "own", at_other = "at-other", plain = "default";
    const HintMap local = {{"placement", "local"}};
    const HintMap there = {{"placement", "node:h2"}};
    const HintMap none;
    Good(co_await actor_->MakeDirectory(plain, none));
    Good(co_await actor_->MakeDirectory(own, local));
    Good(co_await actor_->MakeDirectory(at_other, there));
  }

  // Prepares a file before the clock runs.
  des::Activity<void> Ready(const std::string& path) {
    const ProbeKind kind = probe_.kind;
    if (kind == ProbeKind::kWrite || kind == ProbeKind::kMakeDirectory ||
        kind == ProbeKind::kSetAttribute)
      co_return;
    SimulatedClient& writer = by_other() ? *other_ : *actor_;
    const std::string task;
    Good(co_await writer.WriteFile(path, probe_.bytes, task));
  }

  // Makes the actor know a file beforehand. All files are written by then, since a new name in a
  // directory makes the actor forget the others.
  des::Activity<void> Know(const std::string& path) {
    const ProbeKind kind = probe_.kind;
    const std::string task;
    if (kind == ProbeKind::kReadAgain || kind == ProbeKind::kOpenAgain)
      Good(co_await actor_->ReadFile(path, task));
    if (kind == ProbeKind::kOpen || kind == ProbeKind::kStatAgain)
      Good(co_await actor_->Look(path));
  }

  des::Activity<void> Operate(uint32_t index) {
    const std::string& path = paths_[index];
    const std::string task;
    switch (probe_.kind) {
      case ProbeKind::kWrite:
        Good(co_await actor_->WriteFile(path, probe_.bytes, task));
        break;
      case ProbeKind::kStat:
      case ProbeKind::kGetAttribute:
        Good(co_await actor_->Look(path));
        break;
      case ProbeKind::kOpen:
      case ProbeKind::kOpenAgain:
      case ProbeKind::kRead:
      case ProbeKind::kReadAgain:
        Good(co_await actor_->ReadFile(path, task));
        break;
      case ProbeKind::kStatAgain:
        break;  // The kernel's own time, which is not simulated.
      case ProbeKind::kMakeDirectory: {
        const HintMap none;
        Good(co_await actor_->MakeDirectory(path, none));
        break;
      }
      case ProbeKind::kSetAttribute: {
        const std::string own = "own";
        const HintMap hints = {{"stripe_width", fmt::format("{}", 1 + index % 2)}};
        Good(co_await actor_->MakeDirectory(own, hints));
        break;
      }
      case ProbeKind::kRemove:
        co_await Remove(path);
        break;
    }
  }

  des::Activity<void> Remove(std::string path) {
    const size_t slash = path.rfind('/');
    const auto directory = manager_.core().GetFileStatus("/" + path.substr(0, slash));
    if (!directory.ok()) {
      failure_ = MessageOf(directory.status());
      co_return;
    }
    co_await machines_.Work(actor_->machine(), platform_.client.call.Of(0));
    std::vector<Request> requests;
    RemoveRequest remove;
    remove.parent = directory->entry.file;
    remove.name = path.substr(slash + 1);
    requests.emplace_back(std::move(remove));
    Good(co_await manager_.Call(kActor, std::move(requests)));
  }

  const Probe& probe_;
  const Platform platform_;
  des::EventLoop loop_{kBegin};
  Machines machines_;
  SimulatedManager manager_;
  const uint32_t rounds_;
  std::optional<SimulatedClient> actor_, other_;
  std::vector<std::string> paths_;
  std::optional<std::string> failure_;
  Duration taken_;
};

}  // namespace

Result<double> SimulateProbe(const Probe& probe, const Platform& platform,
                             const Configuration& deployment) {
  MOSA_RETURN_IF_ERROR(Check(platform));
  ProbeRun run(probe, platform, deployment);
  return run.Run();
}

}  // namespace mosa::predict
