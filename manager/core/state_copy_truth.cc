// The validity of copies: which may be read, which may become the first copy, and which must be
// compared or fetched again because a writer ended without a commit or a node found damage.
//
// Writers store in the first copy and report to the manager at the commit. Until then the other
// copies hold the last commit and remain valid. So before a client may store, the file's record is
// marked (`may_differ`). The file's next version ends the mark: all other copies are then older and
// must be compared before they count again. A client that ends without a commit leaves an unknown
// number of bytes in the first copy. Its files therefore get a new version, as do all marked files
// that nobody has open after a restart of the manager. So readers are sent to the first copy, and
// to others only once they equal it.
//
// If the first copy is lost before that, any copy with the last commit replaces it. Each of its
// bytes is from the last commit or was stored later, since such a copy is compared only with the
// first one, or with others like itself (SourceFor). A program may find exactly that after a writer
// has failed: acknowledged bytes are present, missing ones were not acknowledged.
#include <fmt/format.h>

#include <algorithm>

#include "manager/core/state.h"

namespace mosa::manager {

// ---- writers that end without a commit

void ManagerCore::State::RaiseVersion(FileId file, Inode& inode, bool committed) {
  ++inode.data_version;
  ContentChanged(file);
  if (!inode.bytes) return;
  inode.bytes->may_differ = false;
  inode.bytes->raised_uncommitted = committed ? 0 : inode.bytes->raised_uncommitted + 1;
}

// Returns true if some copy counts as valid and the file is not marked `may_differ`.
bool ManagerCore::State::HasUnmarkedCopies(const Inode& inode) {
  if (!inode.bytes || inode.bytes->may_differ || inode.size_bytes == 0) return false;
  const auto is_valid = [&](const CopyCell& cell) {
    return cell.node != kNoNode && cell.data_version == inode.data_version && !cell.was_first;
  };
  return std::any_of(
      inode.bytes->copies.begin(), inode.bytes->copies.end(),
      [&](const auto& cells) { return std::any_of(cells.begin(), cells.end(), is_valid); });
}

void ManagerCore::State::MarkMayDiffer(FileId file) {
  Inode* inode = Find(file);
  if (!inode || !HasUnmarkedCopies(*inode)) return;
  inode->bytes->may_differ = true;
  dirty_.insert(file);
}

void ManagerCore::State::EndUncommitted(FileId file) {
  Inode* inode = Find(file);
  // Inline bytes arrive with the commit, and an empty file shows none.
  if (!inode || !inode->bytes || inode->bytes->segments.empty() || inode->bytes->is_inline ||
      inode->size_bytes == 0)
    return;
  RaiseVersion(file, *inode, /*committed=*/false);
  Touch(file);
  ReviewCopiesLater(file, *inode);
}

void ManagerCore::State::EndMarkedOpens() {
  for (const FileId file : std::exchange(copy_.marked, {})) {
    const Inode* inode = Find(file);
    if (inode && inode->bytes && inode->bytes->may_differ && !write_opens_.contains(file))
      EndUncommitted(file);
  }
}

bool ManagerCore::State::HoldsLastCommit(const Inode& inode, const CopyCell& cell) {
  return cell.node != kNoNode && cell.data_version != 0 &&
         cell.data_version + inode.bytes->raised_uncommitted >= inode.data_version;
}

// ---- damage

bool ManagerCore::State::IsDamaged(const FileBytes& bytes, NodeId node) {
  return std::any_of(bytes.objects.begin(), bytes.objects.end(),
                     [node](const NodeObject& o) { return o.node == node && o.damaged; });
}

// Returns the node, if any, that found damage in bytes of which no node that answers has a valid
// copy.
std::optional<NodeId> ManagerCore::State::DamagedAt(const Inode& inode) const {
  if (!inode.bytes || inode.size_bytes == 0 || inode.bytes->is_inline) return std::nullopt;
  const FileBytes& bytes = *inode.bytes;
  if (std::none_of(bytes.objects.begin(), bytes.objects.end(),
                   [](const NodeObject& o) { return o.damaged; }))
    return std::nullopt;
  for (size_t i = 0; i < bytes.segments.size(); ++i) {
    const Segment& segment = bytes.segments[i];
    for (size_t position = 0; position < segment.width; ++position) {
      if (!IsDamaged(bytes, segment.nodes[position]) ||
          !HasBytes(bytes, inode.size_bytes, i, position))
        continue;
      bool has_other = false;
      for (size_t c = position; !bytes.copies.empty() && c < bytes.copies[i].size();
           c += segment.width)
        has_other = has_other || (IsValid(inode, i, c) && IsReachable(bytes.copies[i][c].node));
      if (!has_other) return segment.nodes[position];
    }
  }
  return std::nullopt;
}

std::string ManagerCore::State::DamageOf(const Inode& inode) const {
  const auto node = DamagedAt(inode);
  if (!node) return "";
  return fmt::format(
      "node {} found damaged blocks that no other copy has, so reads of them fail; run task '{}', "
      "which wrote the file, again",
      NameOf(*node), texts_.TextOf(inode.task));
}

void ManagerCore::State::NoteDamage(NodeId node, FileId file) {
  Inode* inode = Find(file);
  if (!inode || !inode->bytes || !NamedNodes(*inode->bytes).contains(node)) return;
  FileBytes& bytes = *inode->bytes;
  // What it compared before it found the damage does not count.
  EndCopyTask(file, node);
  for (auto& cells : bytes.copies)
    for (CopyCell& cell : cells)
      if (cell.node == node) cell.data_version = 0;
  const bool is_new = !std::exchange(ObjectOn(bytes, node).damaged, true);
  TouchAccess(file);
  ReviewCopiesLater(file, *inode);
  if (!is_new) return;
  const std::string damage = DamageOf(*inode);
  effects_.log.push_back(fmt::format(
      "node {} found damage in its object of file {}: {}", NameOf(node), file.value,
      damage.empty() ? "it is replaced from another copy" : "'mosa lost' lists it; " + damage));
}

void ManagerCore::State::NoteHealed(NodeId node, FileId file) {
  Inode* inode = Find(file);
  if (!inode || !inode->bytes || !IsDamaged(*inode->bytes, node)) return;
  ObjectOn(*inode->bytes, node).damaged = false;
  TouchAccess(file);
  ReviewCopiesLater(file, *inode);
}

// ---- closes with fewer copies than requested

void ManagerCore::State::ExplainCopies(FileId file, const Inode& inode,
                                       AwaitCopiesReply& reply) const {
  if (reply.copies_valid >= reply.copies_wanted || !inode.bytes) return;
  FileStatus status;
  DescribeCopies(file, inode, status);
  const auto full = copy_.full.find(file);
  const auto usable = std::count_if(nodes_.begin(), nodes_.end(), [this](const auto& entry) {
    return Stays(entry.first) && IsReachable(entry.first);
  });
  // Nodes could hold a copy, but have no room.
  const bool lacks_room =
      (full != copy_.full.end() && !full->second.empty()) ||
      (!status.copies_missing.empty() && static_cast<size_t>(usable) >= reply.copies_wanted);
  reply.no_room = lacks_room || HintsOf(inode).strict;
  reply.reason = DamageOf(inode);
  if (reply.reason.empty()) reply.reason = status.copies_missing;
  if (reply.reason.empty() && write_opens_.contains(file))
    reply.reason = "the file is open for writing";
  for (const CopyStatus& copy : status.copies)
    if (reply.reason.empty() && !copy.why.empty())
      reply.reason = fmt::format("node {}: {}", NameOf(copy.node), copy.why);
  if (reply.reason.empty()) reply.reason = "copying takes long";
}

}  // namespace mosa::manager
