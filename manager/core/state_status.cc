// Answers to status queries.
#include <fmt/format.h>

#include "manager/core/state.h"

namespace mosa::manager {
namespace {

// Returns the number of nodes that the layout names for readers, over all positions and copies.
size_t CountPlaces(const Inode& inode) {
  size_t places = 0;
  if (!inode.bytes) return places;
  for (const Segment& segment : inode.bytes->segments) places += segment.nodes.size();
  for (const auto& cells : inode.bytes->copies) places += cells.size();
  return places;
}

}  // namespace

ClusterStatus ManagerCore::State::GetClusterStatus(Time now) const {
  ClusterStatus status{.cluster_name = cluster_.cluster_name,
                       .now = now,
                       .in_grace = grace_end_.has_value(),
                       .files = inodes_.size() - directories_.size(),
                       .directories = directories_.size(),
                       .nodes = {},
                       .sessions = {},
                       .limits = ListLimits(),
                       .growth_refused = store_pressure_.refusal};
  for (const auto& [id, node] : nodes_)
    status.nodes.push_back({.address = node.address,
                            .limit_bytes = node.limit_bytes,
                            .used_bytes = node.used_bytes,
                            .granted_bytes = node.granted_bytes,
                            .object_count = node.last_heartbeat.object_count,
                            .last_heard = node.last_heard,
                            .last_heartbeat = node.last_heartbeat,
                            .files_left = node.files_left});
  for (const auto& [client, session] : sessions_)
    status.sessions.push_back({.start = session.start,
                               .connected = session.connected,
                               .open_files = session.write_opens.size(),
                               .interests = session.interests,
                               .delegations = session.delegations.size()});
  return status;
}

FileStatus ManagerCore::State::StatusOf(FileId file, const Inode& inode, std::string path) const {
  FileStatus status{.path = std::move(path),
                    .entry = {file, AttributesOf(file, inode)},
                    .layout = {},
                    .is_inline = false,
                    .lost = LostAt(inode).has_value(),
                    .damage = DamageOf(inode),
                    .task = texts_.TextOf(inode.task),
                    .allocated_bytes = {},
                    .copies = {},
                    .copies_missing = {}};
  if (inode.type != FileType::kRegular) return status;
  status.layout = LayoutOf(inode);
  if (!inode.bytes) return status;
  status.is_inline = inode.bytes->is_inline;
  for (const NodeObject& object : inode.bytes->objects)
    status.allocated_bytes.emplace_back(object.node, object.allocated_bytes);
  if (status.layout.bound() && !status.is_inline) DescribeCopies(file, inode, status);
  return status;
}

Result<FileId> ManagerCore::State::FileAt(std::string_view path, FileId* deepest) const {
  if (path.empty() || path[0] != '/')
    return InvalidArgumentError(fmt::format("'{}' is not an absolute path in the store", path));
  FileId file = kRootFile;
  size_t begin = 1;
  while (begin < path.size()) {
    const size_t limit = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, limit - begin);
    const Directory* directory = FindDirectory(file);
    if (directory && deepest) *deepest = file;
    if (name == "..") {
      if (directory) file = directory->parent;
    } else if (!name.empty() && name != ".") {
      const auto child = ChildOf(file, name);
      if (!child)
        return NotFoundError(
            directory ? fmt::format("there is no '{}'", path.substr(0, limit))
                      : fmt::format("'{}' is not a directory", path.substr(0, begin - 1)));
      file = *child;
    }
    begin = limit + 1;
  }
  return file;
}

Result<FileStatus> ManagerCore::State::GetFileStatus(std::string_view path) const {
  MOSA_ASSIGN_OR_RETURN(const FileId file, FileAt(path));
  return StatusOf(file, *Find(file), std::string(path));
}

std::optional<Failure> ManagerCore::State::FindRegular(const std::string& path,
                                                       FileId& file) const {
  const auto found = FileAt(path);
  if (!found.ok())
    return Refuse(found.status().code(), ErrorReason::kNoEntry, MessageOf(found.status()));
  file = *found;
  if (Find(file)->type == FileType::kRegular) return std::nullopt;
  return Refuse(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                fmt::format("'{}' is not a regular file", path));
}

std::vector<ReadableFile> ManagerCore::State::ListReadable(
    const std::vector<std::string>& paths) const {
  std::vector<ReadableFile> files(paths.size());
  size_t nodes = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    ReadableFile& readable = files[i];
    FileId file;
    readable.failure = FindRegular(paths[i], file);
    if (readable.failure) continue;
    const Inode& inode = *Find(file);
    if (nodes >= kReadNodesMax) {
      readable.failure = Refuse(StatusCode::kResourceExhausted, ErrorReason::kArgumentTooBig,
                                fmt::format("the files before '{}' lie in {} places, and one query "
                                            "may cover at most {}: ask about fewer files at once",
                                            paths[i], nodes, kReadNodesMax));
      continue;
    }
    nodes += CountPlaces(inode);
    if (const auto lost = LostAt(inode)) {
      readable.failure =
          Refuse(StatusCode::kDataLoss, ErrorReason::kNodeLost,
                 fmt::format("'{}' had bytes only on node {}, which has lost them or is silent",
                             paths[i], NameOf(*lost)));
      continue;
    }
    readable.size_bytes = inode.size_bytes;
    readable.is_inline = inode.bytes && inode.bytes->is_inline;
    readable.layout = ReaderLayoutOf(inode);
    readable.layout.reason.clear();
  }
  return files;
}

}  // namespace mosa::manager
