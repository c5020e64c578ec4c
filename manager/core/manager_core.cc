#include "manager/core/manager_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "manager/core/dispatch.h"
#include "manager/core/state.h"

namespace mosa::manager {

Failure Refuse(StatusCode code, ErrorReason reason, std::string message) {
  return {code, reason, std::move(message)};
}

ManagerCore::ManagerCore(ManagerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
ManagerCore::~ManagerCore() = default;

Status ManagerCore::LoadRecord(std::string_view key, std::string_view value) {
  return state_->loader.LoadRecord(key, value);
}
Status ManagerCore::FinishLoad(Time now) { return state_->loader.FinishLoad(now); }
Effects ManagerCore::Step(const Command& command, Time now) { return state_->Run(command, now); }
ClusterStatus ManagerCore::GetClusterStatus(Time now) const {
  return state_->queries.GetClusterStatus(now);
}
Result<FileStatus> ManagerCore::GetFileStatus(std::string_view path) const {
  return state_->file_view.GetFileStatus(path);
}
std::vector<FileStatus> ManagerCore::ListLostFiles(size_t files_max) const {
  FileScan scan({.kind = FileScanQuestion::Kind::kLost, .files_max = files_max});
  state_->queries.ContinueScan(scan, SIZE_MAX);
  return std::move(scan.lost);
}
Result<HintExplanation> ManagerCore::ExplainHints(std::string_view path) const {
  return state_->hint_commands.ExplainHints(path);
}
std::vector<HintRule> ManagerCore::ListHintRules() const { return state_->rules.List(); }
std::vector<FileLocation> ManagerCore::ListLocations(const std::vector<std::string>& paths,
                                                     bool with_chunks) const {
  return state_->queries.ListLocations(paths, with_chunks);
}
std::vector<ReadableFile> ManagerCore::ListReadable(const std::vector<std::string>& paths) const {
  return state_->queries.ListReadable(paths);
}
UnstagedFiles ManagerCore::ListUnstaged(size_t files_max, FileId after) const {
  FileScan scan(
      {.kind = FileScanQuestion::Kind::kUnstaged, .files_max = files_max, .after = after});
  state_->queries.ContinueScan(scan, SIZE_MAX);
  return std::move(scan.unstaged);
}

bool ManagerCore::ContinueScan(FileScan& scan, size_t steps) const {
  return state_->queries.ContinueScan(scan, steps);
}

CapabilityTerms ManagerCore::TermsFor(ClientId client) const {
  return state_->sessions.TermsFor(client);
}

std::vector<AsideFile> ManagerCore::ListAside(size_t files_max, FileId after) const {
  return state_->adoption.ListAside(files_max, after);
}

ManagerCore::State::State(ManagerOptions options)
    : cluster(std::move(options), step),
      texts(cluster.options.text_bytes_max),
      quotas(cluster.options.quotas),
      files(step, texts),
      nodes(step, groups),
      sessions(step, cluster, nodes),
      hints(cluster, files, nodes, rules, texts),
      limits(step, cluster, files, quotas, texts),
      reply_logs(step, cluster, sessions),
      copy_view(nodes, texts, hints),
      recalls(step, files, sessions, interests),
      lifetimes(step, cluster, files, runs, texts, hints),
      copy_queue(step, files, nodes, copy),
      uncut_objects(step, files, nodes, copy, hints),
      grants(step, cluster, files, nodes, sessions, quotas),
      recovery_rules(step, cluster, files, nodes, copy, fences, hints),
      generations(step, cluster, files, nodes, sessions, copy, fences, hints, copy_view, lifetimes,
                  copy_queue),
      delegations(step, queues, files, sessions, interests, rules, recalls, lifetimes),
      copy_ordering(step, cluster, files, nodes, sessions, copy, hints, copy_view, copy_queue),
      staging(step, cluster, files, sessions, fences, interests, recalls, generations, delegations),
      copy_planner(step, cluster, files, nodes, sessions, copy, hints, copy_view, copy_queue,
                   generations),
      node_events(step, queues, cluster, nodes, sessions, copy_queue, uncut_objects, recovery_rules,
                  generations),
      copy_reviews(step, cluster, files, nodes, sessions, copy, hints, copy_view, recalls,
                   copy_queue, uncut_objects, copy_ordering, copy_planner),
      placing(step, cluster, files, nodes, sessions, groups, interests, hints, recalls, copy_queue,
              uncut_objects, generations, copy_planner),
      file_view(step, cluster, files, nodes, sessions, fences, interests, delegations, texts, hints,
                limits, copy_view, generations, copy_planner),
      loader(step, cluster, files, nodes, sessions, copy, fences, groups, rules, runs, texts, hints,
             limits, reply_logs, recalls, lifetimes, copy_queue, recovery_rules, generations,
             staging),
      byte_requests(step, cluster, files, nodes, groups, interests, texts, hints, limits, copy_view,
                    recalls, lifetimes, copy_queue, uncut_objects, grants, generations, staging,
                    copy_reviews, placing, file_view),
      names(step, cluster, files, sessions, interests, quotas, texts, hints, limits, lifetimes,
            copy_queue, uncut_objects, recovery_rules, generations, delegations, staging, placing,
            file_view),
      xattrs(step, files, nodes, quotas, texts, hints, limits, copy_view, lifetimes, copy_queue,
             copy_planner, placing, file_view),
      answers(step, queues, files, nodes, sessions, locks, copy_view, generations, delegations,
              file_view),
      queries(cluster, files, nodes, sessions, locks, quotas, runs, texts, hints, reply_logs,
              copy_view, staging, file_view),
      reclaim(step, cluster, files, sessions, interests, runs, texts, recalls, lifetimes,
              delegations, names),
      hint_commands(step, cluster, files, quotas, rules, hints, delegations, xattrs),
      orphans(step, cluster, files, nodes, sessions, copy, fences, groups, interests, locks, quotas,
              texts, hints, recalls, copy_queue, delegations, staging, placing, answers),
      adoption(step, cluster, files, nodes, texts, hints, lifetimes, delegations, names),
      envelopes(step, queues, cluster, files, sessions, copy, interests, limits, reply_logs,
                recalls, lifetimes, delegations, staging, names, byte_requests, xattrs, grants,
                copy_reviews, answers, orphans),
      session_events(step, queues, cluster, files, nodes, sessions, copy, fences, interests, locks,
                     rules, reply_logs, recalls, lifetimes, copy_queue, grants, generations,
                     delegations, node_events, copy_reviews, answers, reclaim, envelopes) {
  cluster.record.cluster_name = cluster.options.cluster_name;
  cluster.record.cluster_seed = cluster.options.cluster_seed;
}

Effects ManagerCore::State::Run(const Command& command, Time now) {
  // A core that was given no image starts with an empty one.
  if (!loader.loaded()) MOSA_CHECK(loader.FinishLoad(now).ok());
  step.effects = {};
  step.effects.log = std::exchange(cluster.load_log, {});
  step.now = std::max(step.now, now);
  // Ends what has expired before the command is handled, however late the shell's tick is.
  if (step.now >= step.wake_at && !std::holds_alternative<Stalled>(command)) Dispatch(Tick{});
  if (!std::holds_alternative<Tick>(command)) Dispatch(command);
  FinishStep();
  return std::move(step.effects);
}

void ManagerCore::State::Dispatch(const Command& command) {
  std::visit(
      [this](const auto& what) {
        HandleBy(what, session_events, node_events, copy_ordering, copy_reviews, recovery_rules,
                 lifetimes, reclaim, staging, hint_commands, adoption);
      },
      command);
}

void ManagerCore::State::FinishStep() {
  while (envelopes.MayRunReady() || step.space_changed) {
    envelopes.RunReady();
    if (std::exchange(step.space_changed, false)) envelopes.RetrySpaceWaiters(false);
  }
  if (!queues.ready.empty()) step.Schedule(step.now);
  reclaim.CheckDue();
  copy_reviews.Run();
  recalls.RecallTouched(ClientId(), std::nullopt);
  for (const FileId file : std::exchange(copy.leftover_checks, {}))
    copy_reviews.DropLeftovers(file);
  for (const FileId file : std::exchange(step.orphan_checks, {})) orphans.CheckOrphan(file);
  step.recharges.clear();
  for (const FileId file : step.dirty) {
    Inode* const inode = files.Find(file);
    if (!inode) continue;
    quotas.Recharge(inode->charged, limits.ChargeOf(file, *inode));
    step.effects.writes.Put(InodeKey(file), Encode(files.RecordOf(file, *inode)));
  }
  step.dirty.clear();
  for (const FileId file : fences.TakeChanged()) generations.WriteWriterBounds(file);
  if (std::exchange(step.cluster_dirty, false)) cluster.WriteCluster();
  if (std::exchange(step.recovery_dirty, false)) {
    step.effects.writes.Put(RecoveryKey(), Encode(cluster.recovery.record()));
    step.effects.writes.Put(CountersKey(), Encode(cluster.counters));
  }
  nodes.SendDrops();
  if (step.wake_at != Step::kNever) step.effects.wake_at = step.wake_at;
}

}  // namespace mosa::manager
