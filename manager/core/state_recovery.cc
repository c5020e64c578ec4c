#include "manager/core/state_recovery.h"

#include <fmt/format.h>

#include <algorithm>

namespace mosa::manager {
namespace {

// Higher ids cannot have been issued and are ignored.
constexpr uint64_t kFileIdBelievable = uint64_t{1} << 56;
constexpr std::string_view kAdoptedName = "lost+found";
// Maximum number of names tried for that directory.
constexpr size_t kAdoptedPlacesMax = 100;
// Maximum number of parts of an adopted file: each is a segment of its layout.
constexpr size_t kPiecesMax = 4096;
// Maximum number of files per node report that the log names individually.
constexpr size_t kNamedMax = 20;

uint64_t RoundUpToUnit(uint64_t bytes) {
  return (bytes + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit;
}

// Returns "name", "name.1", "name.2" and so on.
std::string Numbered(std::string_view name, size_t number) {
  return number == 0 ? std::string(name) : fmt::format("{}.{}", name, number);
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

// ---- loading

void ManagerCore::State::RecoveryRules::BeginEmpty() {
  state.cluster_.next_file_id = state.options_.first_file_id;
  if (state.options_.first_file_id == kRootFile.value + 1) return;
  state.recovery_.BeginEmpty(state.options_.first_file_id);
  state.recovery_dirty_ = true;
}

void ManagerCore::State::RecoveryRules::FinishLoad() {
  const Recovery before = state.recovery_;
  if (state.options_.may_have_forgotten) {
    ClusterRecord& cluster = state.cluster_;
    cluster.next_file_id = state.recovery_.Recover(cluster.next_file_id, state.now_);
    // Nodes remember forgotten sessions and incarnations, and refuse anything that is not newer.
    const uint64_t floor = state.recovery_.record().version_floor;
    state.counters_.era = std::max(state.counters_.era, floor);
    state.counters_.epoch = std::max(state.counters_.epoch, floor);
    state.cluster_dirty_ = true;
    state.recovery_dirty_ = true;
    state.load_log_.push_back(
        "the metadata may lack the last changes before the machine crashed: objects that no file "
        "owns are put aside, and 'mosa adopt' lists them");
  }
  const uint64_t floor = state.recovery_.record().version_floor;
  for (auto& [file, inode] : state.inodes_) {
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
      state.fences_.ForgetFile(file);
    }
    inode->data_version = floor;
  }
}

// ---- registration of a node

void ManagerCore::State::RecoveryRules::KeepId(FileId file) {
  uint64_t& next = state.cluster_.next_file_id;
  if (file.value < next || file.value >= kFileIdBelievable) return;
  // The client that was given this id was given a whole range with it.
  next = file.value + kFileIdsAtOnce;
  state.cluster_dirty_ = true;
}

ManagerCore::State::RecoveryRules::Unowned ManagerCore::State::RecoveryRules::FindUnowned(
    NodeId node, const NodeRegistration& registration) {
  Unowned unowned;
  size_t changed = 0;
  Node& known = *state.FindNode(node);
  const uint64_t kept_below = state.recovery_.record().kept_below;
  // As before any of these ids is kept.
  const uint64_t first_unknown = state.cluster_.next_file_id;
  for (size_t i = 0; i < registration.objects.size(); ++i) {
    const FileId file = registration.objects[i];
    std::optional<Time> modified;
    if (i < registration.sizes.size()) modified = registration.sizes[i].modified;
    const bool given_out = file.value < first_unknown;
    KeepId(file);
    const bool keep =
        !given_out || state.recovery_.MayBeForgotten(file, modified, known.settled_below);
    const Inode* inode = state.Find(file);
    if (!inode || inode->type != FileType::kRegular) {
      (keep ? unowned.aside : unowned.dropped).push_back(file);
    } else if (state.IsUncutDrop(file, node)) {
      // The order to drop it is given. The manager may have forgotten that it was carried out.
      if (keep) unowned.aside.push_back(file);
    } else if (inode->bytes && !inode->bytes->segments.empty() &&
               !state.NamedNodes(*inode->bytes).contains(node)) {
      // Its bytes are on other nodes by now, or the manager has forgotten that they are here.
      if (keep) {
        unowned.aside.push_back(file);
      } else {
        state.copy_.leftovers[file].insert(node);
        state.copy_.leftover_checks.insert(file);
      }
    } else if (modified && state.recovery_.HasForgottenChange(*modified) &&
               file.value < kept_below && ++changed <= kNamedMax) {
      state.effects_.log.push_back(
          fmt::format("node {} has bytes of file {} that are newer than its metadata ({} bytes): "
                      "the metadata has lost its last changes, check the file",
                      state.NameOf(node), file.value, inode->size_bytes));
    }
  }
  if (changed > kNamedMax)
    state.effects_.log.push_back(fmt::format("node {}: the same applies to {} more files",
                                             state.NameOf(node), changed - kNamedMax));
  // Everything it had of forgotten files is aside now, and it will get no more.
  if (unowned.aside.empty() && known.settled_below != kept_below) {
    known.settled_below = kept_below;
    state.WriteNode(known);
  }
  return unowned;
}

std::set<FileId> ManagerCore::State::RecoveryRules::TakeObjects(
    NodeId node, const NodeRegistration& registration) {
  Unowned unowned = FindUnowned(node, registration);
  if (!unowned.dropped.empty()) {
    state.effects_.log.push_back(fmt::format("node {} drops {} objects that no file owns",
                                             state.NameOf(node), unowned.dropped.size()));
    std::vector<FileId>& drops = state.drops_[node].files;
    drops.insert(drops.end(), unowned.dropped.begin(), unowned.dropped.end());
  }
  if (!unowned.aside.empty()) {
    state.effects_.log.push_back(fmt::format(
        "node {} puts aside {} objects that no known file owns: 'mosa adopt' lists them",
        state.NameOf(node), unowned.aside.size()));
    state.SendOrder(node, AsideOrder{AsideAction::kSetAside, std::move(unowned.aside)});
  }
  NoteAside(node, registration.aside);
  return PresentOn(node, registration);
}

// Returns true if the object cannot hold everything that was committed: it is shorter than the file
// requires, and even without holes would hold less than was allocated for it.
bool ManagerCore::State::RecoveryRules::IsShort(FileId file, const HeldSize& held,
                                                NodeId node) const {
  const Inode* inode = state.Find(file);
  if (!inode || !inode->bytes || inode->bytes->segments.empty()) return false;
  for (const NodeObject& object : inode->bytes->objects) {
    if (object.node != node) continue;
    return held.allocated_bytes < object.allocated_bytes &&
           RoundUpToUnit(held.size_bytes) < object.allocated_bytes &&
           held.size_bytes < EndOn(state.LayoutOf(*inode), inode->size_bytes, node);
  }
  return false;
}

std::set<FileId> ManagerCore::State::RecoveryRules::PresentOn(
    NodeId node, const NodeRegistration& registration) {
  std::set<FileId> present;
  const std::map<FileId, uint64_t> before = std::exchange(state.cut_objects_[node], {});
  std::map<FileId, uint64_t>& cut = state.cut_objects_[node];
  size_t short_objects = 0;
  for (size_t i = 0; i < registration.objects.size(); ++i) {
    const FileId file = registration.objects[i];
    if (i < registration.sizes.size() && IsShort(file, registration.sizes[i], node)) {
      if (++short_objects <= kNamedMax)
        state.effects_.log.push_back(
            fmt::format("node {} has only {} bytes of file {}: its object was truncated",
                        state.NameOf(node), registration.sizes[i].size_bytes, file.value));
      const uint64_t held_bytes = registration.sizes[i].size_bytes;
      if (const auto earlier = before.find(file); earlier != before.end()) {
        cut[file] = std::min(earlier->second, held_bytes);
      } else if (!IsLost(*state.Find(file)->bytes, node)) {
        cut[file] = held_bytes;
      }
      continue;
    }
    present.insert(present.end(), file);
  }
  for (const AsideObject& object : registration.aside) present.insert(object.file);
  return present;
}

bool ManagerCore::State::RecoveryRules::HoldsUpTo(FileId file, const Inode& inode,
                                                  uint64_t size_bytes, NodeId node) const {
  const auto cut = state.cut_objects_.find(node);
  if (cut == state.cut_objects_.end()) return false;
  const auto held = cut->second.find(file);
  return held != cut->second.end() &&
         held->second >= EndOn(state.LayoutOf(inode), size_bytes, node);
}

bool ManagerCore::State::RecoveryRules::WouldLack(FileId file, const Inode& inode,
                                                  uint64_t size_bytes) const {
  if (!inode.bytes || inode.size_bytes == 0 || inode.bytes->is_inline) return false;
  const Layout layout = state.LayoutOf(inode);
  const uint64_t kept_bytes = std::min(size_bytes, inode.size_bytes);
  return std::any_of(inode.bytes->objects.begin(), inode.bytes->objects.end(),
                     [&](const NodeObject& object) {
                       return object.lost && EndOn(layout, kept_bytes, object.node) > 0 &&
                              !HoldsUpTo(file, inode, size_bytes, object.node);
                     });
}

void ManagerCore::State::RecoveryRules::NoteShortened(FileId file, Inode& inode) {
  if (!inode.bytes || inode.bytes->segments.empty() || inode.bytes->is_inline) return;
  for (NodeObject& object : inode.bytes->objects) {
    if (!object.lost || !HoldsUpTo(file, inode, inode.size_bytes, object.node)) continue;
    object.lost = false;
    state.cut_objects_[object.node].erase(file);
    state.effects_.log.push_back(
        fmt::format("file {} was truncated like its object on node {}: no bytes are missing there",
                    file.value, state.NameOf(object.node)));
  }
}

// Only then the file has lost what was put aside. Anywhere else it would be read again in holes.
bool ManagerCore::State::RecoveryRules::HasCommittedBytes(const FileBytes& bytes, NodeId node) {
  return std::any_of(bytes.objects.begin(), bytes.objects.end(), [node](const NodeObject& object) {
    return object.node == node && object.allocated_bytes > 0 && !object.uncut;
  });
}

void ManagerCore::State::RecoveryRules::NoteAside(NodeId node,
                                                  const std::vector<AsideObject>& objects) {
  std::vector<FileId> known;
  for (const AsideObject& object : objects) {
    KeepId(object.file);
    const Inode* inode = state.Find(object.file);
    if (inode && inode->bytes && state.NamedNodes(*inode->bytes).contains(node) &&
        HasCommittedBytes(*inode->bytes, node))
      known.push_back(object.file);
  }
  state.recovery_.SetAside(node, objects);
  if (!known.empty()) state.SendOrder(node, AsideOrder{AsideAction::kRestore, std::move(known)});
}

// ---- adoption

std::optional<ManagerCore::State::RecoveryRules::AdoptedPlace>
ManagerCore::State::RecoveryRules::FindAdoptedPlace() const {
  for (size_t i = 0; i < kAdoptedPlacesMax; ++i) {
    const std::string name = Numbered(kAdoptedName, i);
    const auto known = state.ChildOf(kRootFile, name);
    if (!known) return AdoptedPlace{name, std::nullopt};
    const Inode* inode = state.Find(*known);
    if (inode && inode->type == FileType::kDirectory && inode->uid == 0 &&
        (inode->permissions & 077) == 0)
      return AdoptedPlace{name, known};
  }
  return std::nullopt;
}

std::optional<FileId> ManagerCore::State::RecoveryRules::AdoptedDirectory() {
  const auto place = FindAdoptedPlace();
  if (!place) return std::nullopt;
  if (place->directory) return place->directory;
  if (place->name != kAdoptedName)
    state.effects_.log.push_back(
        fmt::format("/{} is not a directory that only root may enter: adopted files go to /{}",
                    kAdoptedName, place->name));
  const FileId directory(state.cluster_.next_file_id++);
  state.cluster_dirty_ = true;
  auto inode = std::make_unique<Inode>();
  inode->type = FileType::kDirectory;
  inode->permissions = 0700;
  inode->link_count = 1;
  inode->access_time = inode->modify_time = inode->change_time = inode->birth_time = state.now_;
  state.inodes_.emplace(directory, std::move(inode));
  state.directories_.emplace(directory, std::make_unique<Directory>());
  state.AddEntry(kRootFile, place->name, directory);
  state.TouchDirectory(kRootFile, state.now_);
  state.Touch(directory);
  return directory;
}

// Terminates, since a directory has finitely many names.
std::string ManagerCore::State::RecoveryRules::FreeName(FileId directory,
                                                        std::string_view name) const {
  size_t number = 0;
  while (state.ChildOf(directory, Numbered(name, number))) ++number;
  return Numbered(name, number);
}

void ManagerCore::State::RecoveryRules::MakeAdopted(FileId file, FileId directory,
                                                    const std::string& name,
                                                    const JoinedParts& joined) {
  auto made = std::make_unique<Inode>();
  Inode& inode = *made;
  const auto parts = state.recovery_.PartsOf(file);
  inode.type = FileType::kRegular;
  inode.permissions = 0600;
  inode.link_count = 1;
  inode.size_bytes = joined.size_bytes;
  inode.access_time = inode.change_time = inode.birth_time = state.now_;
  inode.data_version =
      std::max(state.recovery_.record().version_floor, FirstAfterRecovery(state.now_));
  inode.hints = state.texts_.Hold(EncodeHints({}), 0);
  inode.task = state.texts_.Hold("", 0);
  inode.placement_seed = FileSeed(state.cluster_.cluster_seed, directory, name, file.value);
  FileBytes& bytes = state.BytesOf(inode);
  bytes.chunk_bytes = joined.layout.chunk_bytes;
  bytes.segments = joined.layout.segments;
  bytes.copies.resize(bytes.segments.size());
  bytes.generation = bytes.kept_since = inode.data_version;
  state.SetReason(bytes, "adopted: where the bytes were found");
  for (const NodeId node : joined.layout.Nodes()) {
    const AsideObject& part = *parts.at(node);
    bytes.objects.push_back(
        {.node = node, .allocated_bytes = part.allocated_bytes, .holds = ObjectHolds::kBoth});
    inode.modify_time = std::max(inode.modify_time, std::min(part.modified, state.now_));
  }
  state.inodes_.emplace(file, std::move(made));
  state.AddEntry(directory, name, file);
  state.TouchDirectory(directory, state.now_);
  state.FollowLifetime(file, inode, name);
  state.Touch(file);
}

AdoptOutcome ManagerCore::State::RecoveryRules::Adopt(FileId file) {
  const auto parts = state.recovery_.PartsOf(file);
  if (parts.empty())
    return {"", fmt::format("no node has put aside objects of file {}", file.value)};
  if (file.value <= kRootFile.value || file.value >= state.cluster_.next_file_id)
    return {"", fmt::format("file id {} was never allocated to a file: take the objects from "
                            "lost+found in the nodes' directories, or discard them",
                            file.value)};
  if (state.Find(file)) {
    const auto parent = state.Find(file)->named_in;
    return {"", fmt::format("file {} exists in directory '{}/', and its bytes are elsewhere: "
                            "remove that file first, or discard the objects that were put aside",
                            file.value, state.PathOf(parent))};
  }
  const auto joined = JoinParts(parts, state.options_.chunk_bytes, kPiecesMax);
  if (!joined)
    return {"", fmt::format("the bytes of file {} are in more than {} pieces: take the objects "
                            "from lost+found in the nodes' directories",
                            file.value, kPiecesMax)};
  const auto directory = AdoptedDirectory();
  if (!directory)
    return {"", fmt::format("there is no place for adopted files: none of /{0} and /{0}.1 to "
                            "/{0}.{1} is a directory that only root may enter; remove one of them",
                            kAdoptedName, kAdoptedPlacesMax - 1)};
  const std::string name = FreeName(*directory, fmt::format("#{}", file.value));
  MakeAdopted(file, *directory, name, *joined);
  for (const NodeId node : joined->layout.Nodes()) {
    state.SendOrder(node, AsideOrder{AsideAction::kRestore, {file}});
    state.recovery_.Forget(node, file);
  }
  return {fmt::format("{}/{}", state.PathOf(*directory), name), ""};
}

AdoptOutcome ManagerCore::State::RecoveryRules::Discard(FileId file) {
  const auto parts = state.recovery_.PartsOf(file);
  if (parts.empty())
    return {"", fmt::format("no node has put aside objects of file {}", file.value)};
  std::vector<NodeId> nodes;
  for (const auto& [node, object] : parts) nodes.push_back(node);
  for (const NodeId node : nodes) {
    state.SendOrder(node, AsideOrder{AsideAction::kDiscard, {file}});
    state.recovery_.Forget(node, file);
  }
  return {};
}

std::vector<AsideFile> ManagerCore::State::RecoveryRules::ListAside(size_t files_max,
                                                                    FileId after) const {
  std::vector<AsideFile> files;
  for (const FileId file : state.recovery_.ListAside(files_max, after)) {
    AsideFile& listed = files.emplace_back(AsideFile{.file = file, .parts = {}});
    for (const auto& [node, object] : state.recovery_.PartsOf(file))
      listed.parts.push_back({.node_name = state.NameOf(node),
                              .size_bytes = object->size_bytes,
                              .allocated_bytes = object->allocated_bytes,
                              .modified = object->modified});
  }
  return files;
}

void ManagerCore::State::Handle(const AdoptFiles& command) {
  if (grace_end_) return AnswerAdmin(StillRestarting());
  // A client that makes files there without asking would not know of the adopted ones.
  RecoveryRules rules{*this};
  const auto place = rules.FindAdoptedPlace();
  const FileId adopted = place ? place->directory.value_or(kRootFile) : kRootFile;
  for (const FileId directory : {kRootFile, adopted}) {
    if (command.discard || !delegations_.contains(directory)) continue;
    RecallDelegation(directory);
    return AnswerAdmin(AbortedError(fmt::format(
        "a mount must first return its delegation of directory {}: try again in a moment",
        directory.value)));
  }
  AdminReply reply{.status = OkStatus()};
  for (const FileId file : command.files)
    reply.adopted.push_back(command.discard ? rules.Discard(file) : rules.Adopt(file));
  effects_.admin_reply = std::move(reply);
}

void ManagerCore::State::Handle(const NodeReportedAside& command) {
  if (FindNode(command.node)) RecoveryRules{*this}.NoteAside(command.node, command.aside.objects);
}

}  // namespace mosa::manager
