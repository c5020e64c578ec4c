#include "manager/core/queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mosa::manager {
namespace {

// Limit for node names and chunk ranges in one answer.
constexpr size_t kLocationBytesMax = size_t{8} << 20;

// Maximum number of users listed: those with the most names.
constexpr size_t kUsersListedMax = 10;

// Returns the number of nodes that the layout names for readers, over all positions and copies.
size_t CountPlaces(const Inode& inode) {
  size_t places = 0;
  if (!inode.bytes) return places;
  for (const Segment& segment : inode.bytes->segments) places += segment.nodes.size();
  for (const auto& cells : inode.bytes->copies) places += cells.size();
  return places;
}

}  // namespace

std::vector<FileLocation> Queries::ListLocations(const std::vector<std::string>& paths,
                                                 bool with_chunks) const {
  std::vector<FileLocation> locations;
  locations.reserve(paths.size());
  size_t bytes = 0;
  for (const std::string& path : paths) {
    FileLocation& location = locations.emplace_back();
    FileId file;
    const auto too_long = [](std::string message) {
      return Refuse(StatusCode::kResourceExhausted, ErrorReason::kArgumentTooBig,
                    std::move(message));
    };
    if (bytes >= kLocationBytesMax) {
      location.failure =
          too_long("the reply has reached its maximum length: ask for fewer files at once");
      continue;
    }
    location.failure = files_.FindRegular(path, file);
    if (location.failure) {
      bytes += location.failure->message.size();
      continue;
    }
    const Inode& inode = *files_.Find(file);
    location.size_bytes = inode.size_bytes;
    location.file = file;
    location.data_version = inode.data_version;
    location.nodes = copy_view_.NodeNamesOf(inode);
    for (const std::string& name : location.nodes) bytes += name.size();
    if (!with_chunks) continue;
    auto chunks = copy_view_.ChunkLocationsOf(inode);
    // Computing a list that is too long costs as much as a long one.
    bytes += chunks.ok() ? chunks->size() : kAttributeValueBytesMax;
    if (chunks.ok()) {
      location.chunks = *std::move(chunks);
    } else {
      location.failure = too_long(MessageOf(chunks.status()));
    }
  }
  return locations;
}

std::vector<LimitStatus> Queries::ListLimits() const {
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
  if (cluster_.store_pressure.limit_bytes > 0)
    add("data directory", cluster_.store_pressure.used_bytes, cluster_.store_pressure.limit_bytes,
        true);
  add("sessions", sessions_.by_client.size(), cluster_.options.sessions_max, false);
  uint64_t waiting = 0;
  for (const auto& [client, session] : sessions_.by_client) waiting += session.pending.size();
  add("requests waiting", waiting, 0, false);
  add("bytes of requests waiting", sessions_.waiting_bytes, cluster_.options.waiting_bytes_max,
      true);
  add("bytes of replies kept", reply_logs_.bytes(), cluster_.options.reply_log_bytes_max, true);
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
    for (const auto& [id, node] : nodes_.by_id) {
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

// Counts the file. Returns true if it is to be kept and exists only in the store.
bool Queries::CountUnstaged(UnstagedFiles& unstaged, FileId file, const Inode& inode) const {
  if (inode.type != FileType::kRegular || inode.link_count == 0) return false;
  ++unstaged.all_files;
  unstaged.all_bytes += inode.size_bytes;
  if (!hints_.HintsOf(inode).keep) return false;
  ++unstaged.kept_files;
  if (staging_.IsStaged(file, inode)) return false;
  ++unstaged.files;
  unstaged.bytes += inode.size_bytes;
  return true;
}

void Queries::ScanFile(FileScan& scan, FileId file, const Inode& inode) const {
  const size_t files_max = scan.question.files_max;
  if (scan.question.kind == FileScanQuestion::Kind::kLost) {
    if (scan.found_lost.size() >= files_max ||
        !(copy_view_.LostAt(inode) || copy_view_.DamagedAt(inode)))
      return;
    scan.found_lost.emplace(file, file_view_.StatusOf(file, inode, ""));
  } else {
    if (!CountUnstaged(scan.unstaged, file, inode)) return;
    if (file <= scan.question.after || scan.found_unstaged.size() >= files_max) return;
    scan.found_unstaged.emplace(file, UnstagedFile{{}, file, inode.size_bytes});
  }
  scan.nameless.insert(file);
  scan.likely_directories.insert(inode.named_in);
}

// Examines at most `steps` files, and leaves in `steps` how many were not needed.
void Queries::ScanFiles(FileScan& scan, size_t& steps) const {
  const bool counts_all = scan.question.kind == FileScanQuestion::Kind::kUnstaged;
  const auto is_full = [&] {
    return !counts_all && scan.found_lost.size() >= scan.question.files_max;
  };
  auto entry = files_.inodes.lower_bound(scan.next_file);
  for (; entry != files_.inodes.end() && !is_full() && steps > 0; ++entry, --steps)
    ScanFile(scan, entry->first, *entry->second);
  if (entry == files_.inodes.end() || is_full()) {
    scan.stage = FileScan::Stage::kLikelyDirectories;
  } else {
    scan.next_file = entry->first;
  }
}

// Only directories hold names. Examines one directory; returns true if it was completed.
bool Queries::ScanNames(FileScan& scan, FileId id, const Directory& directory,
                        size_t& steps) const {
  const bool goes_on = scan.next_entry.first == id;
  auto entry =
      goes_on ? directory.entries.lower_bound(scan.next_entry.second) : directory.entries.begin();
  for (; entry != directory.entries.end() && steps > 0; ++entry, --steps) {
    const auto& [name, child] = *entry;
    if (scan.nameless.erase(child) == 0) continue;
    std::string path = files_.PathOf(id) + "/" + name;
    if (const auto found = scan.found_lost.find(child); found != scan.found_lost.end())
      found->second.path = std::move(path);
    else
      scan.found_unstaged.at(child).path = std::move(path);
  }
  if (entry == directory.entries.end()) return true;
  scan.next_entry = {id, entry->first};
  return false;
}

void Queries::ScanLikelyDirectories(FileScan& scan, size_t& steps) const {
  std::set<FileId>& likely = scan.likely_directories;
  while (!likely.empty() && !scan.nameless.empty()) {
    if (steps == 0) return;
    const Directory* const directory = files_.FindDirectory(*likely.begin());
    if (directory && !ScanNames(scan, *likely.begin(), *directory, steps)) return;
    likely.erase(likely.begin());
    steps -= std::min<size_t>(steps, 1);
  }
  scan.next_entry = {};
  scan.stage = FileScan::Stage::kAllDirectories;
}

void Queries::ScanAllDirectories(FileScan& scan, size_t& steps) const {
  for (auto entry = files_.directories.lower_bound(scan.next_entry.first);
       !scan.nameless.empty() && entry != files_.directories.end(); ++entry) {
    if (steps == 0) {
      scan.next_entry = {entry->first, ""};
      return;
    }
    if (!ScanNames(scan, entry->first, *entry->second, steps)) return;
    steps -= std::min<size_t>(steps, 1);
  }
  scan.stage = FileScan::Stage::kDone;
  for (auto& [file, item] : scan.found_unstaged)
    if (!item.path.empty()) scan.unstaged.first.push_back(std::move(item));
  for (auto& [file, status] : scan.found_lost) scan.lost.push_back(std::move(status));
}

bool Queries::ContinueScan(FileScan& scan, size_t steps) const {
  if (scan.stage == FileScan::Stage::kFiles) ScanFiles(scan, steps);
  if (scan.stage == FileScan::Stage::kLikelyDirectories && steps > 0)
    ScanLikelyDirectories(scan, steps);
  if (scan.stage == FileScan::Stage::kAllDirectories && steps > 0) ScanAllDirectories(scan, steps);
  return scan.stage == FileScan::Stage::kDone;
}

ClusterStatus Queries::GetClusterStatus(Time now) const {
  ClusterStatus status{.cluster_name = cluster_.record.cluster_name,
                       .now = now,
                       .in_grace = cluster_.grace_end.has_value(),
                       .files = files_.inodes.size() - files_.directories.size(),
                       .directories = files_.directories.size(),
                       .nodes = {},
                       .sessions = {},
                       .limits = ListLimits(),
                       .growth_refused = cluster_.store_pressure.refusal};
  for (const auto& [id, node] : nodes_.by_id)
    status.nodes.push_back({.address = node.address,
                            .limit_bytes = node.limit_bytes,
                            .used_bytes = node.used_bytes,
                            .granted_bytes = node.granted_bytes,
                            .object_count = node.last_heartbeat.object_count,
                            .last_heard = node.last_heard,
                            .last_heartbeat = node.last_heartbeat,
                            .files_left = node.files_left});
  for (const auto& [client, session] : sessions_.by_client)
    status.sessions.push_back({.start = session.start,
                               .connected = session.connected,
                               .open_files = session.write_opens.size(),
                               .interests = session.interests,
                               .delegations = session.delegations.size()});
  return status;
}

std::vector<ReadableFile> Queries::ListReadable(const std::vector<std::string>& paths) const {
  std::vector<ReadableFile> files(paths.size());
  size_t nodes = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    ReadableFile& readable = files[i];
    FileId file;
    readable.failure = files_.FindRegular(paths[i], file);
    if (readable.failure) continue;
    const Inode& inode = *files_.Find(file);
    if (nodes >= kReadNodesMax) {
      readable.failure = Refuse(StatusCode::kResourceExhausted, ErrorReason::kArgumentTooBig,
                                fmt::format("the files before '{}' lie in {} places, and one query "
                                            "may cover at most {}: ask about fewer files at once",
                                            paths[i], nodes, kReadNodesMax));
      continue;
    }
    nodes += CountPlaces(inode);
    if (const auto lost = copy_view_.LostAt(inode)) {
      readable.failure =
          Refuse(StatusCode::kDataLoss, ErrorReason::kNodeLost,
                 fmt::format("'{}' had bytes only on node {}, which has lost them or is silent",
                             paths[i], nodes_.NameOf(*lost)));
      continue;
    }
    readable.size_bytes = inode.size_bytes;
    readable.is_inline = inode.bytes && inode.bytes->is_inline;
    readable.layout = copy_view_.ReaderLayoutOf(inode);
    readable.layout.reason.clear();
  }
  return files;
}

}  // namespace mosa::manager
