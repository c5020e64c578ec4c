// Limits: the charge of each file, what may still grow, and current use.
#include <fmt/format.h>

#include <algorithm>

#include "manager/core/state.h"

namespace mosa::manager {
namespace {

// Maximum number of users listed: those with the most names.
constexpr size_t kUsersListedMax = 10;

uint32_t Saturate(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX));
}

}  // namespace

// ---- charging

Charge ManagerCore::State::ChargeOf(FileId file, const Inode& inode) const {
  Charge charge;
  charge.uid = inode.uid;
  // A file without a name exists as long as a client has it open.
  charge.names = inode.type == FileType::kDirectory ? 1 : std::max<uint32_t>(inode.link_count, 1);
  if (inode.bytes && inode.bytes->is_inline)
    charge.inline_bytes = Saturate(inode.bytes->inline_valid_bytes);
  if (inode.type == FileType::kSymlink) charge.attribute_bytes = Saturate(inode.size_bytes);
  if (xattrs_.empty()) return charge;
  if (const auto found = xattrs_.find(file); found != xattrs_.end())
    charge.attribute_bytes = Saturate(charge.attribute_bytes + found->second.charged_bytes());
  return charge;
}

void ManagerCore::State::ChargeForChanges() {
  for (const FileId file : recharges_) {
    if (Inode* inode = Find(file)) quotas_.Recharge(inode->charged, ChargeOf(file, *inode));
  }
  recharges_.clear();
}

void ManagerCore::State::ChargeForAll() {
  for (auto& [file, inode] : inodes_) quotas_.Recharge(inode->charged, ChargeOf(file, *inode));
}

// ---- checks of growth

uint64_t ManagerCore::State::InlineBytesMaxOf(const Inode& inode) const {
  const uint64_t kept = inode.bytes && inode.bytes->is_inline ? inode.bytes->inline_valid_bytes : 0;
  const uint64_t bytes_max = options_.inline_bytes_max;
  if (kept >= bytes_max) return bytes_max;
  return quotas_.Check(inode.uid, {.inline_bytes = bytes_max - kept}) ? kept : bytes_max;
}

// FailedPrecondition makes the client give the file objects instead.
std::optional<Failure> ManagerCore::State::CheckInlineGrowth(const Inode& inode,
                                                             uint64_t bytes) const {
  const uint64_t kept = inode.bytes && inode.bytes->is_inline ? inode.bytes->inline_valid_bytes : 0;
  if (bytes <= kept) return std::nullopt;
  auto failure = quotas_.Check(inode.uid, {.inline_bytes = bytes - kept});
  if (failure) failure->code = StatusCode::kFailedPrecondition;
  return failure;
}

std::optional<Failure> ManagerCore::State::CheckAttributeGrowth(FileId file, const Inode& inode,
                                                                std::string_view name,
                                                                uint64_t value_bytes) const {
  static const FileAttributes kNone;
  const auto found = xattrs_.find(file);
  const FileAttributes& before = found == xattrs_.end() ? kNone : found->second;
  const uint64_t after_bytes = before.BytesWith(name, value_bytes);
  if (after_bytes > kAttributeBytesPerFileMax && after_bytes > before.bytes())
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                  fmt::format("the attributes of file {}, with their names, would have {} bytes, "
                              "and the maximum is {}",
                              file.value, after_bytes, kAttributeBytesPerFileMax));
  const bool is_new = !before.values().contains(name);
  const uint64_t charged_after =
      after_bytes + (before.values().size() + (is_new ? 1 : 0)) * kAttributeOverheadBytes;
  if (charged_after <= before.charged_bytes()) return std::nullopt;
  return quotas_.Check(inode.uid, {.attribute_bytes = charged_after - before.charged_bytes()});
}

// Refuses at the user's share (kQuota), and for everybody once the pool is full (kNoSpace).
std::optional<Failure> ManagerCore::State::CheckTextGrowth(uint32_t uid) const {
  if (texts_.HasRoomFor(uid)) return std::nullopt;
  return Refuse(StatusCode::kResourceExhausted,
                texts_.is_full() ? ErrorReason::kNoSpace : ErrorReason::kQuota,
                texts_.WhyFull(uid));
}

// A mount with a delegation reports a file as made before the manager knows of it.
// Programs must now learn of the limit at once, so all delegations end.
void ManagerCore::State::Handle(const SetStorePressure& command) {
  const bool was_refused = quotas_.is_refused();
  store_pressure_ = command;
  if (command.refusal.empty()) {
    if (was_refused) effects_.log.push_back("there is free space for metadata again");
    return quotas_.AllowGrowth();
  }
  quotas_.RefuseGrowth(command.refusal);
  if (was_refused) return;
  effects_.log.push_back("accepting only requests that free space: " + command.refusal);
  std::vector<FileId> directories;
  for (const auto& [directory, delegation] : delegations_) directories.push_back(directory);
  for (const FileId directory : directories) RecallDelegation(directory);
}

// ---- current use

std::vector<LimitStatus> ManagerCore::State::ListLimits() const {
  std::vector<LimitStatus> limits;
  const auto add = [&limits](std::string name, uint64_t used, uint64_t limit, bool is_bytes) {
    limits.push_back({std::move(name), used, limit == kNoLimit ? 0 : limit, is_bytes});
  };
  const Amounts& used = quotas_.all();
  const Amounts& most = quotas_.options().all;
  add("names", used.names, most.names, false);
  add("inline", used.inline_bytes, most.inline_bytes, true);
  add("attributes", used.attribute_bytes, most.attribute_bytes, true);
  add("texts", texts_.bytes(), texts_.bytes_max(), true);
  if (store_pressure_.limit_bytes > 0)
    add("data directory", store_pressure_.used_bytes, store_pressure_.limit_bytes, true);
  add("sessions", sessions_.size(), options_.sessions_max, false);
  uint64_t waiting = 0;
  for (const auto& [client, session] : sessions_) waiting += session.pending.size();
  add("requests waiting", waiting, 0, false);
  add("bytes of requests waiting", waiting_bytes_, options_.waiting_bytes_max, true);
  add("bytes of replies kept", reply_log_bytes_, options_.reply_log_bytes_max, true);
  add("locks", locks_.held(), kLocksMax, false);
  const RunLimits& run_limits = runs_.limits();
  add("runs", runs_.all().runs, run_limits.runs_max, false);
  add("tasks of runs", runs_.all().tasks, run_limits.tasks_max, false);
  if (const auto user = runs_.UserWithMostRuns()) {
    const Runs::Use own = runs_.UseOf(*user);
    add(fmt::format("runs of user {}", *user), own.runs, run_limits.runs_per_user_max, false);
    add(fmt::format("tasks of user {}", *user), own.tasks, run_limits.tasks_per_user_max, false);
  }
  // Nodes have their own limits: lists the node nearest to its limit.
  const auto add_nearest = [&](const char* name, uint64_t BulkUse::*own,
                               uint64_t BulkUse::*own_most, bool is_bytes) {
    const auto share = [&](const BulkUse& use) {
      return static_cast<double>(use.*own) /
             static_cast<double>(std::max<uint64_t>(use.*own_most, 1));
    };
    const BulkUse* nearest = nullptr;
    for (const auto& [id, node] : nodes_) {
      const BulkUse& use = node.last_heartbeat.bulk;
      if (use.*own_most > 0 && (nearest == nullptr || share(use) > share(*nearest))) nearest = &use;
    }
    if (nearest != nullptr) add(name, nearest->*own, nearest->*own_most, is_bytes);
  };
  add_nearest("connections of a node", &BulkUse::connections, &BulkUse::connections_max, false);
  add_nearest("connections not proven", &BulkUse::unproven, &BulkUse::unproven_max, false);
  add_nearest("requests under way at a node", &BulkUse::threads, &BulkUse::threads_max, false);
  add_nearest("bytes under way at a node", &BulkUse::buffer_bytes, &BulkUse::buffer_bytes_max,
              true);

  std::vector<std::pair<uint32_t, Amounts>> users(quotas_.users().begin(), quotas_.users().end());
  std::stable_sort(users.begin(), users.end(),
                   [](const auto& a, const auto& b) { return a.second.names > b.second.names; });
  if (users.size() > kUsersListedMax) users.resize(kUsersListedMax);
  for (const auto& [uid, own] : users) {
    // Only the global limits apply to root.
    const Amounts& own_most = uid == 0 ? most : quotas_.options().per_user;
    add(fmt::format("names of user {}", uid), own.names, own_most.names, false);
    add(fmt::format("inline of user {}", uid), own.inline_bytes, own_most.inline_bytes, true);
    add(fmt::format("attributes of user {}", uid), own.attribute_bytes, own_most.attribute_bytes,
        true);
  }
  return limits;
}

}  // namespace mosa::manager
