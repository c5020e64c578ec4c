#include "manager/core/recovery_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

// Higher ids cannot have been issued and are ignored.
constexpr uint64_t kFileIdBelievable = uint64_t{1} << 56;

// Maximum number of files per node report that the log names individually.
constexpr size_t kNamedMax = 20;

uint64_t RoundUpToUnit(uint64_t bytes) {
  return (bytes + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit;
}

// Returns the end of the last byte of a file of `size_bytes` that the layout places on `node`.
uint64_t EndOn(const Layout& layout, uint64_t size_bytes, NodeId node) {
  uint64_t end = 0;
  for (const Segment& segment : layout.segments) {
    const uint64_t limit = std::min(layout.SegmentEnd(segment.begin), size_bytes);
    // Backwards from the end: one round visits every position.
    uint64_t at = limit;
    for (uint32_t i = 0; i <= segment.width && at > segment.begin; ++i) {
      const uint64_t position = layout.PositionAt(at - 1);
      if (segment.nodes[position] == node) {
        end = std::max(end, at);
        break;
      }
      at = std::max(segment.begin, (at - 1) / layout.chunk_bytes * layout.chunk_bytes);
    }
  }
  return end;
}

}  // namespace

void RecoveryRules::BeginEmpty() {
  cluster_.record.next_file_id = cluster_.options.first_file_id;
  if (cluster_.options.first_file_id == kRootFile.value + 1) return;
  cluster_.recovery.BeginEmpty(cluster_.options.first_file_id);
  step_.recovery_dirty = true;
}

void RecoveryRules::RecoverLoaded() {
  const Recovery before = cluster_.recovery;
  if (cluster_.options.may_have_forgotten) {
    ClusterRecord& cluster = cluster_.record;
    cluster.next_file_id = cluster_.recovery.Recover(cluster.next_file_id, step_.now);
    // Nodes remember forgotten sessions and incarnations, and refuse anything that is not newer.
    const uint64_t floor = cluster_.recovery.record().version_floor;
    cluster_.counters.era = std::max(cluster_.counters.era, floor);
    cluster_.counters.epoch = std::max(cluster_.counters.epoch, floor);
    step_.cluster_dirty = true;
    step_.recovery_dirty = true;
    cluster_.load_log.push_back(
        "the metadata may lack the last changes before the machine crashed: objects that no file "
        "owns are put aside, and 'mosa adopt' lists them");
  }
  const uint64_t floor = cluster_.recovery.record().version_floor;
  for (auto& [file, inode] : files_.inodes) {
    if (inode->type != FileType::kRegular || inode->data_version >= floor) continue;
    if (inode->bytes) {
      // The first copy may have changes that the others lack, so they must be compared with it. If
      // it is gone, they are still the best there is.
      for (auto& cells : inode->bytes->copies)
        for (CopyCell& cell : cells)
          if (HoldsLastCommit(*inode, cell) ||
              before.WasValid(inode->data_version, cell.data_version))
            cell.data_version = floor - 1;
      // Truncations and copies may have been forgotten, too.
      for (auto& cells : inode->bytes->copies)
        for (CopyCell& cell : cells) cell.uncut = cell.node != kNoNode;
      for (NodeObject& object : inode->bytes->objects) object.holds = ObjectHolds::kBoth;
      // Stores under a layout that may have been forgotten do not count.
      FileBytes& bytes = *inode->bytes;
      bytes.generation = std::max(bytes.generation, floor);
      bytes.kept_since = std::max(bytes.kept_since, floor);
      fences_.ForgetFile(file);
    }
    inode->data_version = floor;
  }
}

void RecoveryRules::KeepId(FileId file) {
  uint64_t& next = cluster_.record.next_file_id;
  if (file.value < next || file.value >= kFileIdBelievable) return;
  // The client that was given this id was given a whole range with it.
  next = file.value + kFileIdsAtOnce;
  step_.cluster_dirty = true;
}

RecoveryRules::Unowned RecoveryRules::FindUnowned(NodeId node,
                                                  const NodeRegistration& registration) {
  Unowned unowned;
  size_t changed = 0;
  Node& known = *nodes_.Find(node);
  const uint64_t kept_below = cluster_.recovery.record().kept_below;
  // As before any of these ids is kept.
  const uint64_t first_unknown = cluster_.record.next_file_id;
  for (size_t i = 0; i < registration.objects.size(); ++i) {
    const FileId file = registration.objects[i];
    std::optional<Time> modified;
    if (i < registration.sizes.size()) modified = registration.sizes[i].modified;
    const bool given_out = file.value < first_unknown;
    KeepId(file);
    const bool keep =
        !given_out || cluster_.recovery.MayBeForgotten(file, modified, known.settled_below);
    const Inode* inode = files_.Find(file);
    if (!inode || inode->type != FileType::kRegular) {
      (keep ? unowned.aside : unowned.dropped).push_back(file);
    } else if (nodes_.IsUncutDrop(file, node)) {
      // The order to drop it is given. The manager may have forgotten that it was carried out.
      if (keep) unowned.aside.push_back(file);
    } else if (inode->bytes && !inode->bytes->segments.empty() &&
               !NamedNodes(*inode->bytes).contains(node)) {
      // Its bytes are on other nodes by now, or the manager has forgotten that they are here.
      if (keep) {
        unowned.aside.push_back(file);
      } else {
        copy_.leftovers[file].insert(node);
        copy_.leftover_checks.insert(file);
      }
    } else if (modified && cluster_.recovery.HasForgottenChange(*modified) &&
               file.value < kept_below && ++changed <= kNamedMax) {
      step_.effects.log.push_back(
          fmt::format("node {} has bytes of file {} that are newer than its metadata ({} bytes): "
                      "the metadata has lost its last changes, check the file",
                      nodes_.NameOf(node), file.value, inode->size_bytes));
    }
  }
  if (changed > kNamedMax)
    step_.effects.log.push_back(fmt::format("node {}: the same applies to {} more files",
                                            nodes_.NameOf(node), changed - kNamedMax));
  // Everything it had of forgotten files is aside now, and it will get no more.
  if (unowned.aside.empty() && known.settled_below != kept_below) {
    known.settled_below = kept_below;
    nodes_.WriteNode(known);
  }
  return unowned;
}

std::set<FileId> RecoveryRules::TakeObjects(NodeId node, const NodeRegistration& registration) {
  Unowned unowned = FindUnowned(node, registration);
  if (!unowned.dropped.empty()) {
    step_.effects.log.push_back(fmt::format("node {} drops {} objects that no file owns",
                                            nodes_.NameOf(node), unowned.dropped.size()));
    std::vector<FileId>& drops = nodes_.drops[node].files;
    drops.insert(drops.end(), unowned.dropped.begin(), unowned.dropped.end());
  }
  if (!unowned.aside.empty()) {
    step_.effects.log.push_back(fmt::format(
        "node {} puts aside {} objects that no known file owns: 'mosa adopt' lists them",
        nodes_.NameOf(node), unowned.aside.size()));
    step_.SendOrder(node, AsideOrder{AsideAction::kSetAside, std::move(unowned.aside)});
  }
  NoteAside(node, registration.aside);
  return PresentOn(node, registration);
}

// Returns true if the object cannot hold everything that was committed: it is shorter than the file
// requires, and even without holes would hold less than was allocated for it.
bool RecoveryRules::IsShort(FileId file, const HeldSize& held, NodeId node) const {
  const Inode* inode = files_.Find(file);
  if (!inode || !inode->bytes || inode->bytes->segments.empty()) return false;
  for (const NodeObject& object : inode->bytes->objects) {
    if (object.node != node) continue;
    return held.allocated_bytes < object.allocated_bytes &&
           RoundUpToUnit(held.size_bytes) < object.allocated_bytes &&
           held.size_bytes < EndOn(hints_.LayoutOf(*inode), inode->size_bytes, node);
  }
  return false;
}

std::set<FileId> RecoveryRules::PresentOn(NodeId node, const NodeRegistration& registration) {
  std::set<FileId> present;
  const std::map<FileId, uint64_t> before = std::exchange(nodes_.cut_objects[node], {});
  std::map<FileId, uint64_t>& cut = nodes_.cut_objects[node];
  size_t short_objects = 0;
  for (size_t i = 0; i < registration.objects.size(); ++i) {
    const FileId file = registration.objects[i];
    if (i < registration.sizes.size() && IsShort(file, registration.sizes[i], node)) {
      if (++short_objects <= kNamedMax)
        step_.effects.log.push_back(
            fmt::format("node {} has only {} bytes of file {}: its object was truncated",
                        nodes_.NameOf(node), registration.sizes[i].size_bytes, file.value));
      const uint64_t held_bytes = registration.sizes[i].size_bytes;
      if (const auto earlier = before.find(file); earlier != before.end()) {
        cut[file] = std::min(earlier->second, held_bytes);
      } else if (!IsLost(*files_.Find(file)->bytes, node)) {
        cut[file] = held_bytes;
      }
      continue;
    }
    present.insert(present.end(), file);
  }
  for (const AsideObject& object : registration.aside) present.insert(object.file);
  return present;
}

bool RecoveryRules::HoldsUpTo(FileId file, const Inode& inode, uint64_t size_bytes,
                              NodeId node) const {
  const auto cut = nodes_.cut_objects.find(node);
  if (cut == nodes_.cut_objects.end()) return false;
  const auto held = cut->second.find(file);
  return held != cut->second.end() &&
         held->second >= EndOn(hints_.LayoutOf(inode), size_bytes, node);
}

bool RecoveryRules::WouldLack(FileId file, const Inode& inode, uint64_t size_bytes) const {
  if (!inode.bytes || inode.size_bytes == 0 || inode.bytes->is_inline) return false;
  const Layout layout = hints_.LayoutOf(inode);
  const uint64_t kept_bytes = std::min(size_bytes, inode.size_bytes);
  return std::any_of(inode.bytes->objects.begin(), inode.bytes->objects.end(),
                     [&](const NodeObject& object) {
                       return object.lost && EndOn(layout, kept_bytes, object.node) > 0 &&
                              !HoldsUpTo(file, inode, size_bytes, object.node);
                     });
}

void RecoveryRules::NoteShortened(FileId file, Inode& inode) {
  if (!inode.bytes || inode.bytes->segments.empty() || inode.bytes->is_inline) return;
  for (NodeObject& object : inode.bytes->objects) {
    if (!object.lost || !HoldsUpTo(file, inode, inode.size_bytes, object.node)) continue;
    object.lost = false;
    nodes_.cut_objects[object.node].erase(file);
    step_.effects.log.push_back(
        fmt::format("file {} was truncated like its object on node {}: no bytes are missing there",
                    file.value, nodes_.NameOf(object.node)));
  }
}

// Only then the file has lost what was put aside. Anywhere else it would be read again in holes.
bool RecoveryRules::HasCommittedBytes(const FileBytes& bytes, NodeId node) {
  return std::any_of(bytes.objects.begin(), bytes.objects.end(), [node](const NodeObject& object) {
    return object.node == node && object.allocated_bytes > 0 && !object.uncut;
  });
}

void RecoveryRules::NoteAside(NodeId node, const std::vector<AsideObject>& objects) {
  std::vector<FileId> known;
  for (const AsideObject& object : objects) {
    KeepId(object.file);
    const Inode* inode = files_.Find(object.file);
    if (inode && inode->bytes && NamedNodes(*inode->bytes).contains(node) &&
        HasCommittedBytes(*inode->bytes, node))
      known.push_back(object.file);
  }
  cluster_.recovery.SetAside(node, objects);
  if (!known.empty()) step_.SendOrder(node, AsideOrder{AsideAction::kRestore, std::move(known)});
}

void RecoveryRules::Handle(const NodeReportedAside& command) {
  if (nodes_.Find(command.node)) NoteAside(command.node, command.aside.objects);
}

}  // namespace mosa::manager
