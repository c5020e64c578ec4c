#include "manager/core/file_view.h"

#include <algorithm>
#include <utility>

#include "manager/core/file_bytes.h"

namespace mosa::manager {

DataAccess FileView::AccessTo(FileId file, const Inode& inode, bool may_write) {
  DataAccess access;
  if (may_write) generations_.MarkMayDiffer(file);
  const Freeze* freeze = files_.FreezeOf(file);
  access.frozen = freeze && freeze->holder != step_.actor->start.client;
  // Writers store in the first copy only.
  access.layout = may_write ? hints_.LayoutOf(inode) : copy_view_.ReaderLayoutOf(inode);
  access.may_write = may_write;
  access.expires = step_.now + kCapabilityLifetime;
  if (inode.bytes) {
    access.generation = inode.bytes->generation;
    access.kept_since = fences_.KeptSince(file, step_.actor->start.client, inode.bytes->kept_since);
    access.empty_nodes = copy_view_.EmptyNodesOf(inode, access.layout);
    access.is_inline = inode.bytes->is_inline;
    access.inline_valid_bytes = inode.bytes->inline_valid_bytes;
    // Other copies do not help a client that stores in the first copy.
    access.lost = copy_view_.UncoveredNode(inode, /*count_silent=*/false).has_value() ||
                  (may_write && IsFirstCopyLost(inode));
  }
  const EffectiveHints hints = hints_.HintsOf(inode);
  if (hints.replicas != 1) {
    uint32_t copies = copy_planner_.CopiesOf(file, inode, hints);
    // The actual number is known at the close; the closer asks for it then (CopiesAwaited).
    if (hints.replicas == 0)
      copies = std::max(copies, MostCopies(cluster_.copies_forecast, nodes_.CountStayingNodes()));
    access.copied_eagerly = hints.copied_eagerly;
    access.close_copies = hints.close_copies == 0 ? copies : std::min(hints.close_copies, copies);
  }
  const bool may_be_inline = !access.layout.bound() && hints.may_be_inline;
  access.inline_bytes_max = may_be_inline ? limits_.InlineBytesMaxOf(inode) : 0;
  return access;
}

StreamState FileView::StreamOf(FileId file, const Inode& inode) const {
  if (inode.type != FileType::kRegular || !hints_.HintsOf(inode).stream) return StreamState::kNone;
  // After a restart, its writers may not be back yet.
  if (inode.stream == StreamPhase::kOpen || sessions_.write_opens.contains(file))
    return StreamState::kOpen;
  if (inode.stream == StreamPhase::kBroken) return StreamState::kBroken;
  // What had content before it got the hint is whole.
  if (inode.stream == StreamPhase::kEnded || inode.size_bytes > 0) return StreamState::kEnded;
  // Nobody will write what has no name.
  return inode.link_count == 0 ? StreamState::kBroken : StreamState::kExpected;
}

Attributes FileView::AttributesOf(FileId file, const Inode& inode) const {
  Attributes a = StoredAttributes(inode);
  a.stream = StreamOf(file, inode);
  if (inode.type == FileType::kDirectory) {
    const Directory& directory = *files_.FindDirectory(file);
    a.link_count = files_.orphans.contains(file) ? 0 : 2 + directory.subdirectories;
    a.size_bytes = directory.entries.size();
  }
  if (inode.bytes) {
    if (inode.bytes->is_inline)
      a.allocated_bytes = (inode.bytes->inline_valid_bytes + 511) / 512 * 512;
    // Programs look for holes by this value, so further copies do not count.
    const bool all_count = inode.bytes->copies.empty();
    const std::vector<NodeId> first =
        all_count ? std::vector<NodeId>() : hints_.LayoutOf(inode).Nodes();
    for (const NodeObject& object : inode.bytes->objects) {
      const bool counts = all_count || std::binary_search(first.begin(), first.end(), object.node);
      if (counts && !object.uncut && HasCommitted(object) && !object.lost)
        a.allocated_bytes += object.allocated_bytes;
    }
  }
  return a;
}

bool FileView::Watch(FileId file) {
  Inode& inode = *files_.Find(file);
  if (inode.type == FileType::kDirectory && delegations_.IsShared(file) &&
      !interests_.Has(*step_.actor, file, inode))
    return false;
  interests_.Add(*step_.actor, file, inode);
  return true;
}

Entry FileView::EntryWithInterest(FileId file) {
  const bool watched = Watch(file);
  Entry entry{file, AttributesOf(file, *files_.Find(file))};
  entry.attributes.shared = !watched;
  return entry;
}

FileStatus FileView::StatusOf(FileId file, const Inode& inode, std::string path) const {
  FileStatus status{.path = std::move(path),
                    .entry = {file, AttributesOf(file, inode)},
                    .layout = {},
                    .is_inline = false,
                    .lost = copy_view_.LostAt(inode).has_value(),
                    .damage = copy_view_.DamageOf(inode),
                    .task = texts_.TextOf(inode.task),
                    .allocated_bytes = {},
                    .copies = {},
                    .copies_missing = {}};
  if (inode.type != FileType::kRegular) return status;
  status.layout = hints_.LayoutOf(inode);
  if (!inode.bytes) return status;
  status.is_inline = inode.bytes->is_inline;
  for (const NodeObject& object : inode.bytes->objects)
    status.allocated_bytes.emplace_back(object.node, object.allocated_bytes);
  if (status.layout.bound() && !status.is_inline) copy_planner_.DescribeCopies(file, inode, status);
  return status;
}

Result<FileStatus> FileView::GetFileStatus(std::string_view path) const {
  MOSA_ASSIGN_OR_RETURN(const FileId file, files_.FileAt(path));
  return StatusOf(file, *files_.Find(file), std::string(path));
}

}  // namespace mosa::manager
