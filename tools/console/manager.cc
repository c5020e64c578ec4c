#include "tools/console/manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "common/base/units.h"
#include "proto/convert/credentials.h"
#include "tools/console/output.h"

namespace mosa::cli {
namespace {

std::string Human(uint64_t bytes) { return HumanBytes(static_cast<int64_t>(bytes)); }

std::string ToText(FileType type) {
  switch (type) {
    case FileType::kRegular:
      return "file";
    case FileType::kDirectory:
      return "directory";
    case FileType::kSymlink:
      return "symlink";
    case FileType::kFifo:
      return "fifo";
    case FileType::kSocket:
      return "socket";
    case FileType::kCharacterDevice:
      return "character device";
    case FileType::kBlockDevice:
      return "block device";
  }
  return "unknown";
}

std::string ToText(CopyStatus::State state) {
  switch (state) {
    case CopyStatus::State::kValid:
      return "valid";
    case CopyStatus::State::kCopying:
      return "copying";
    case CopyStatus::State::kWaiting:
      return "waiting";
    case CopyStatus::State::kFailed:
      return "failed";
  }
  return "unknown";
}

nlohmann::json ToJson(const Layout& layout) {
  nlohmann::json segments = nlohmann::json::array();
  for (const Segment& segment : layout.segments) {
    nlohmann::json nodes = nlohmann::json::array();
    for (const NodeId node : segment.nodes) nodes.push_back(node.value);
    segments.push_back(
        {{"begin", segment.begin}, {"width", segment.width}, {"nodes", std::move(nodes)}});
  }
  return {{"chunk_bytes", layout.chunk_bytes},
          {"segments", std::move(segments)},
          {"reason", layout.reason}};
}

// Sorts nodes and mounts as people count: h2 before h10.
void SortByName(ClusterStatus& status) {
  std::sort(status.nodes.begin(), status.nodes.end(), [](const auto& a, const auto& b) {
    return strverscmp(a.address.name.c_str(), b.address.name.c_str()) < 0;
  });
  std::sort(status.sessions.begin(), status.sessions.end(), [](const auto& a, const auto& b) {
    return strverscmp(a.start.node_name.c_str(), b.start.node_name.c_str()) < 0;
  });
}

std::string DirectoryOf(const ManagerChoice& choice) {
  return std::filesystem::absolute(choice.cluster.directory).lexically_normal();
}

Result<ClusterStatus> StatusFrom(sai::AdminClient& manager, const ManagerChoice& choice) {
  Result<ClusterStatus> status = manager.GetClusterStatus();
  if (status.ok() || status.status().code() != StatusCode::kUnavailable || !choice.address.empty())
    return status;
  const auto state = cluster::Load(DirectoryOf(choice), choice.cluster.name);
  if (!state.ok() || state->manager_runs()) return status;
  return UnavailableError(
      fmt::format("the manager of cluster '{0}' is not running: 'mosa cluster restart --name {0}' "
                  "starts it again; nodes, mounts and files stay",
                  choice.cluster.name));
}

}  // namespace

Result<ClusterStatus> AskClusterStatus(const ManagerChoice& choice) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(choice));
  MOSA_ASSIGN_OR_RETURN(ClusterStatus status, StatusFrom(*manager, choice));
  SortByName(status);
  return status;
}

Result<std::unique_ptr<sai::AdminClient>> ConnectManager(const ManagerChoice& choice) {
  std::string address = choice.address;
  std::string secret_path = choice.secret;
  if (address.empty()) {
    MOSA_ASSIGN_OR_RETURN(const auto state,
                          cluster::Load(DirectoryOf(choice), choice.cluster.name));
    if (state.manager_address.empty()) {
      return UnavailableError(
          fmt::format("the manager of cluster '{}' has not started yet", choice.cluster.name));
    }
    address = state.manager_address;
    secret_path = state.plan.secret();
  }
  std::optional<ClusterSecret> secret;
  if (!secret_path.empty()) {
    MOSA_ASSIGN_OR_RETURN(secret,
                          LoadSecret(secret_path, {Role::kAdmin, Role::kUser, Role::kMount}));
  }
  return std::make_unique<sai::AdminClient>(address, secret);
}

Result<std::unique_ptr<sai::AdminClient>> ConnectManagerOf(ManagerChoice choice,
                                                           const std::string& mount_point) {
  const std::string clusters =
      std::filesystem::absolute(choice.cluster.directory).lexically_normal() / "";
  if (choice.address.empty() && mount_point.starts_with(clusters)) {
    const std::string below = mount_point.substr(clusters.size());
    choice.cluster.name = below.substr(0, below.find('/'));
  }
  MOSA_ASSIGN_OR_RETURN(auto manager, ConnectManager(choice));
  MOSA_ASSIGN_OR_RETURN(const ClusterStatus status, StatusFrom(*manager, choice));
  const bool known = std::any_of(
      status.sessions.begin(), status.sessions.end(),
      [&](const SessionStatus& session) { return session.start.mount_point == mount_point; });
  if (!known)
    return FailedPreconditionError(
        fmt::format("the manager of cluster '{}' has no mount at {}: choose another one with "
                    "--manager or --name",
                    status.cluster_name, mount_point));
  return manager;
}

std::string ToText(NodeState state) {
  switch (state) {
    case NodeState::kLive:
      return "live";
    case NodeState::kSilent:
      return "silent";
    case NodeState::kLost:
      return "lost";
    case NodeState::kDraining:
      return "draining";
  }
  return "unknown";
}

nlohmann::json ToJson(const NodeStatus& node, Time now) {
  nlohmann::json json = {{"name", node.address.name},
                         {"id", node.address.node.value},
                         {"state", ToText(node.address.state)},
                         {"address", node.address.address},
                         {"incarnation", node.address.incarnation},
                         {"used_bytes", node.used_bytes},
                         {"granted_bytes", node.granted_bytes},
                         {"limit_bytes", node.limit_bytes},
                         {"objects", node.object_count},
                         {"unsealed_objects", node.last_heartbeat.unsealed_objects},
                         {"bytes_read_remote", node.last_heartbeat.bytes_read_remote},
                         {"bytes_written_remote", node.last_heartbeat.bytes_written_remote},
                         {"bytes_written_local", node.last_heartbeat.bytes_written_local},
                         {"corrupt_blocks", node.last_heartbeat.corrupt_blocks},
                         {"last_heard_ms_ago", (now - node.last_heard).ns / 1'000'000}};
  if (node.files_left) json["files_left"] = *node.files_left;
  json["drained"] = node.files_left == 0U;
  return json;
}

nlohmann::json ToJson(const ClusterStatus& status) {
  nlohmann::json nodes = nlohmann::json::array();
  for (const NodeStatus& node : status.nodes) nodes.push_back(ToJson(node, status.now));
  nlohmann::json mounts = nlohmann::json::array();
  for (const SessionStatus& session : status.sessions) {
    nlohmann::json mount = {{"client", fmt::format("{:016x}", session.start.client.value)},
                            {"host", session.start.node_name},
                            {"connected", session.connected},
                            {"open_files", session.open_files},
                            {"interests", session.interests},
                            {"delegations", session.delegations}};
    PutBytes(mount, "mount", session.start.mount_point);
    mounts.push_back(std::move(mount));
  }
  nlohmann::json limits = nlohmann::json::array();
  for (const LimitStatus& limit : status.limits) {
    limits.push_back({{"name", limit.name}, {"used", limit.used}, {"is_bytes", limit.is_bytes}});
    limits.back()["limit"] = limit.limit == 0 ? nlohmann::json() : nlohmann::json(limit.limit);
  }
  return {{"name", status.cluster_name}, {"in_grace", status.in_grace},
          {"files", status.files},       {"directories", status.directories},
          {"nodes", std::move(nodes)},   {"mounts", std::move(mounts)},
          {"limits", std::move(limits)}, {"growth_refused", status.growth_refused}};
}

nlohmann::json ToJson(const FileStatus& file) {
  nlohmann::json allocated = nlohmann::json::array();
  for (const auto& [node, bytes] : file.allocated_bytes) {
    allocated.push_back({{"node", node.value}, {"bytes", bytes}});
  }
  nlohmann::json json = {{"id", file.entry.file.value},
                         {"type", ToText(file.entry.attributes.type)},
                         {"size_bytes", file.entry.attributes.size_bytes},
                         {"inline", file.is_inline},
                         {"lost", file.lost},
                         {"damage", file.damage},
                         {"layout", ToJson(file.layout)},
                         {"allocated", std::move(allocated)}};
  nlohmann::json copies = nlohmann::json::array();
  for (const CopyStatus& copy : file.copies) {
    copies.push_back({{"node", copy.node.value},
                      {"state", ToText(copy.state)},
                      {"copied_bytes", copy.copied_bytes},
                      {"why", copy.why}});
  }
  json["copies_wanted"] = file.copies_wanted;
  json["copies_valid"] = file.copies_valid;
  json["copies"] = std::move(copies);
  json["copies_missing"] = file.copies_missing;
  PutBytes(json, "path", file.path);
  PutBytes(json, "task", file.task);
  return json;
}

void PrintNodes(const ClusterStatus& status) {
  Table table({"NODE", "STATE", "ADDRESS", "USED", "GRANTED", "LIMIT", "OBJECTS"});
  for (const NodeStatus& node : status.nodes) {
    std::string state = ToText(node.address.state);
    if (node.files_left)
      state = *node.files_left == 0
                  ? "drained"
                  : fmt::format("{}, {} left", state, Counted(*node.files_left, "file"));
    table.Add({node.address.name, state, node.address.address, Human(node.used_bytes),
               Human(node.granted_bytes), Human(node.limit_bytes),
               fmt::format("{}", node.object_count)});
  }
  table.Print();
}

}  // namespace mosa::cli
