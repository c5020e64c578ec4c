#include "manager/core/manager_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "manager/core/state.h"
#include "manager/core/state_recovery.h"

namespace mosa::manager {

Failure Refuse(StatusCode code, ErrorReason reason, std::string message) {
  return {code, reason, std::move(message)};
}

ManagerCore::ManagerCore(ManagerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
ManagerCore::~ManagerCore() = default;

Status ManagerCore::LoadRecord(std::string_view key, std::string_view value) {
  return state_->LoadRecord(key, value);
}
Status ManagerCore::FinishLoad(Time now) { return state_->FinishLoad(now); }
Effects ManagerCore::Step(const Command& command, Time now) { return state_->Step(command, now); }
ClusterStatus ManagerCore::GetClusterStatus(Time now) const {
  return state_->GetClusterStatus(now);
}
Result<FileStatus> ManagerCore::GetFileStatus(std::string_view path) const {
  return state_->GetFileStatus(path);
}
std::vector<FileStatus> ManagerCore::ListLostFiles(size_t files_max) const {
  FileScan scan({.kind = FileScanQuestion::Kind::kLost, .files_max = files_max});
  state_->ContinueScan(scan, SIZE_MAX);
  return std::move(scan.lost);
}
Result<HintExplanation> ManagerCore::ExplainHints(std::string_view path) const {
  return state_->ExplainHints(path);
}
std::vector<HintRule> ManagerCore::ListHintRules() const { return state_->ListHintRules(); }
std::vector<FileLocation> ManagerCore::ListLocations(const std::vector<std::string>& paths,
                                                     bool with_chunks) const {
  return state_->ListLocations(paths, with_chunks);
}
uint32_t ManagerCore::CountStayingNodes() const { return state_->CountStayingNodes(); }
std::vector<ReadableFile> ManagerCore::ListReadable(const std::vector<std::string>& paths) const {
  return state_->ListReadable(paths);
}
UnstagedFiles ManagerCore::ListUnstaged(size_t files_max, FileId after) const {
  FileScan scan(
      {.kind = FileScanQuestion::Kind::kUnstaged, .files_max = files_max, .after = after});
  state_->ContinueScan(scan, SIZE_MAX);
  return std::move(scan.unstaged);
}

bool ManagerCore::ContinueScan(FileScan& scan, size_t steps) const {
  return state_->ContinueScan(scan, steps);
}

CapabilityTerms ManagerCore::TermsFor(ClientId client) const { return state_->TermsFor(client); }

std::vector<AsideFile> ManagerCore::ListAside(size_t files_max, FileId after) const {
  return State::RecoveryRules{*state_}.ListAside(files_max, after);
}

ManagerCore::State::State(ManagerOptions options)
    : options_(std::move(options)), quotas_(options_.quotas), texts_(options_.text_bytes_max) {
  cluster_.cluster_name = options_.cluster_name;
  cluster_.cluster_seed = options_.cluster_seed;
}

Effects ManagerCore::State::Step(const Command& command, Time now) {
  // A core that was given no image starts with an empty one.
  if (!loaded_) MOSA_CHECK(FinishLoad(now).ok());
  effects_ = {};
  effects_.log = std::exchange(load_log_, {});
  now_ = std::max(now_, now);
  // Ends what has expired before the command is handled, however late the shell's tick is.
  if (now_ >= next_tick_ && !std::holds_alternative<Stalled>(command)) Handle(Tick{});
  if (!std::holds_alternative<Tick>(command))
    std::visit([this](const auto& what) { Handle(what); }, command);
  FinishStep();
  return std::move(effects_);
}

void ManagerCore::State::FinishStep() {
  while (MayRunReady() || space_changed_) {
    RunReady();
    if (std::exchange(space_changed_, false)) RetrySpaceWaiters(false);
  }
  if (!ready_.empty()) Schedule(now_);
  CheckDue();
  RunCopyReviews();
  RecallTouched(ClientId(), std::nullopt);
  for (const FileId file : std::exchange(copy_.leftover_checks, {})) DropLeftovers(file);
  for (const FileId file : std::exchange(orphan_checks_, {})) CheckOrphan(file);
  recharges_.clear();
  for (const FileId file : dirty_) {
    Inode* const inode = Find(file);
    if (!inode) continue;
    quotas_.Recharge(inode->charged, ChargeOf(file, *inode));
    effects_.writes.Put(InodeKey(file), Encode(RecordOf(file, *inode)));
  }
  dirty_.clear();
  for (const FileId file : fences_.TakeChanged()) WriteWriterBounds(file);
  if (std::exchange(cluster_dirty_, false)) WriteCluster();
  if (std::exchange(recovery_dirty_, false)) {
    effects_.writes.Put(RecoveryKey(), Encode(recovery_.record()));
    effects_.writes.Put(CountersKey(), Encode(counters_));
  }
  SendDrops();
  if (next_tick_ != kNever) effects_.wake_at = next_tick_;
}

Inode* ManagerCore::State::Find(FileId file) {
  const auto found = inodes_.find(file);
  return found == inodes_.end() ? nullptr : found->second.get();
}
const Inode* ManagerCore::State::Find(FileId file) const {
  const auto found = inodes_.find(file);
  return found == inodes_.end() ? nullptr : found->second.get();
}
Directory* ManagerCore::State::FindDirectory(FileId file) {
  const auto found = directories_.find(file);
  return found == directories_.end() ? nullptr : found->second.get();
}
const Directory* ManagerCore::State::FindDirectory(FileId file) const {
  const auto found = directories_.find(file);
  return found == directories_.end() ? nullptr : found->second.get();
}

std::optional<FileId> ManagerCore::State::ChildOf(FileId parent, std::string_view name) const {
  const Directory* directory = FindDirectory(parent);
  if (!directory) return std::nullopt;
  const auto found = directory->entries.find(name);
  if (found == directory->entries.end()) return std::nullopt;
  return found->second;
}

Session* ManagerCore::State::FindSession(ClientId client) {
  const auto found = sessions_.find(client);
  return found == sessions_.end() ? nullptr : &found->second;
}

}  // namespace mosa::manager
