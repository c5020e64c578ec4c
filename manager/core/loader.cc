#include "manager/core/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

constexpr size_t kLoadLogMax = 100;

Status Damaged(std::string_view what) {
  return DataLossError(
      fmt::format("the metadata is inconsistent: {}; keep the metadata directory as it is, and "
                  "start with a good copy of it",
                  what));
}

Status NoneOfOurs(std::string_view key) {
  return DataLossError(
      fmt::format("record {} is of an unknown kind: a newer program wrote it, or it is damaged; "
                  "keep the metadata directory as it is, and start the program that wrote it",
                  PrintableKey(key)));
}

}  // namespace

// Counts the files of each group of a freshly loaded image. A group without files is dropped.
void Loader::CountGroups() {
  std::map<uint32_t, std::string> group_of_hints;
  for (const auto& [file, inode] : files_.inodes) {
    if (!inode->bytes || inode->bytes->segments.empty()) continue;
    const auto [known, is_new] = group_of_hints.try_emplace(inode->hints);
    if (is_new) known->second = hints_.GroupOf(*inode);
    groups_.Join(known->second);
  }
  groups_.DropEmpty();
}

Status Loader::LoadRecord(std::string_view key, std::string_view value) {
  image_found_ = true;
  if (key.empty()) return NoneOfOurs(key);
  const char kind = key[0];
  if (std::string_view("CGKOPW").find(kind) != std::string_view::npos) return LoadNamed(key, value);
  const bool named = kind == 'D' || kind == 'X';
  const size_t fixed_bytes = kind == 'R' || kind == 'L' ? 17 : 9;
  if (key.size() < fixed_bytes || (!named && key.size() != fixed_bytes)) return NoneOfOurs(key);
  const uint64_t number = KeyNumber(key, 1);
  const std::string_view name = key.substr(fixed_bytes);
  if (kind == kInlineDataPrefix[0]) return OkStatus();
  if (kind == 'D') {
    MOSA_ASSIGN_OR_RETURN(const EntryRecord record, Decode<EntryRecord>(key, value));
    if (files_.CheckName(name)) return NoneOfOurs(key);
    auto& directory =
        files_.directories.try_emplace(files_.directories.end(), FileId(number))->second;
    if (!directory) directory = std::make_unique<Directory>();
    directory->entries.emplace_hint(directory->entries.end(), name, record.file);
    return OkStatus();
  }
  if (kind == 'I') {
    MOSA_ASSIGN_OR_RETURN(const InodeRecord record, Decode<InodeRecord>(key, value));
    return LoadInode(FileId(number), record);
  }
  if (kind == 'L') {
    MOSA_ASSIGN_OR_RETURN(const ReaderRecord record, Decode<ReaderRecord>(key, value));
    lifetimes_.LoadReader(FileId(number), KeyNumber(key, 9), record.counts);
    return OkStatus();
  }
  if (kind == 'T') {
    MOSA_ASSIGN_OR_RETURN(const StagedRecord record, Decode<StagedRecord>(key, value));
    staging_.Load(FileId(number), record.data_version);
    return OkStatus();
  }
  if (kind == 'H') return LoadRule(number, key, value);
  if (kind == 'X') {
    files_.xattrs[FileId(number)].Set(name, value);
    return OkStatus();
  }
  if (kind == 'R') {
    MOSA_RETURN_IF_ERROR(Decode<RepliesRecord>(key, value).status());
    reply_logs_.Load(ClientId(number), RequestId(KeyNumber(key, 9)), std::string(value));
    return OkStatus();
  }
  if (kind == 'S') return LoadSession(ClientId(number), key, value);
  if (kind == 'N' || kind == 'U') return LoadNode(number, key, value);
  if (kind == 'F') {
    MOSA_ASSIGN_OR_RETURN(const WriterBoundsRecord record, Decode<WriterBoundsRecord>(key, value));
    WriterFences::Bounds bounds;
    for (const WriterBound& bound : record.bounds) bounds.emplace(bound.client, bound.kept_since);
    fences_.Load(FileId(number), std::move(bounds));
    return OkStatus();
  }
  if (kind == 'Q') {
    MOSA_ASSIGN_OR_RETURN(const CutRepliesRecord record, Decode<CutRepliesRecord>(key, value));
    reply_logs_.LoadCut(ClientId(number), record.last);
    return OkStatus();
  }
  return NoneOfOurs(key);
}

Status Loader::LoadNamed(std::string_view key, std::string_view value) {
  if (key == ClusterKey()) {
    MOSA_ASSIGN_OR_RETURN(cluster_.record, Decode<ClusterRecord>(key, value));
    if (cluster_.record.cluster_name != cluster_.options.cluster_name)
      return FailedPreconditionError(
          fmt::format("the metadata belongs to cluster '{}', but this manager serves '{}'; choose "
                      "another directory or cluster name",
                      cluster_.record.cluster_name, cluster_.options.cluster_name));
    cluster_loaded_ = true;
    return OkStatus();
  }
  if (key == CountersKey()) {
    MOSA_ASSIGN_OR_RETURN(cluster_.counters, Decode<CountersRecord>(key, value));
    return OkStatus();
  }
  if (key == RecoveryKey()) {
    MOSA_ASSIGN_OR_RETURN(const RecoveryRecord record, Decode<RecoveryRecord>(key, value));
    cluster_.recovery.Load(record);
    return OkStatus();
  }
  if (key[0] == 'G') {
    MOSA_ASSIGN_OR_RETURN(const GroupRecord record, Decode<GroupRecord>(key, value));
    groups_.Load(key.substr(1), record.anchor);
    return OkStatus();
  }
  if (key[0] == 'W') {
    MOSA_RETURN_IF_ERROR(Decode<WorkflowRecord>(key, value).status());
    runs_.Begin(key.substr(1));
    return OkStatus();
  }
  if (key[0] == 'O') return LoadOwner(key, value);
  return NoneOfOurs(key);
}

Status Loader::LoadOwner(std::string_view key, std::string_view value) {
  MOSA_ASSIGN_OR_RETURN(const OwnerRecord record, Decode<OwnerRecord>(key, value));
  const std::string_view of = key.substr(1);
  if (of.size() == 9 && of[0] == 'H') {
    // A rule without hints known to this program was not loaded.
    const HintRule* const rule = rules_.Find(KeyNumber(of, 1));
    if (rule && rule->owner) return NoneOfOurs(key);
    if (rule) rules_.SetOwner(rule->id, record.uid);
    return OkStatus();
  }
  if (of.size() < 2 || of[0] != 'W') return NoneOfOurs(key);
  runs_.SetOwner(of.substr(1), record.uid);
  return OkStatus();
}

Status Loader::LoadSession(ClientId client, std::string_view key, std::string_view value) {
  MOSA_ASSIGN_OR_RETURN(const SessionRecord record, Decode<SessionRecord>(key, value));
  Session& session = sessions_.by_client[client];
  session.start.client = client;
  session.start.node_name = record.node_name;
  session.start.host_identity = record.host_identity;
  session.start.mount_point = record.mount_point;
  session.connected = false;
  session.awaited = true;
  return OkStatus();
}

Status Loader::LoadRule(uint64_t number, std::string_view key, std::string_view value) {
  MOSA_ASSIGN_OR_RETURN(const RuleRecord record, Decode<RuleRecord>(key, value));
  RuleRecord kept{record.glob, {}};
  for (const HintValue& hint : record.hints) {
    const bool known = ClassifyAttribute("user.mosa." + hint.name).kind == AttributeKind::kHint;
    if (known && !ParseHint(hint.name, false, hint.value).ok()) {
      NoteRefusedHint(fmt::format("rule {}", record.glob), hint);
    } else {
      kept.hints.push_back(hint);
    }
  }
  // A rule with no hints left stays in the image but has no effect.
  if (kept.hints.empty() && !record.hints.empty()) return OkStatus();
  auto rule = HintRules::Check(kept.glob, kept.hints);
  if (!rule.ok() || rule->hints != kept.hints || number == 0 || rules_.Find(number))
    return Damaged(fmt::format("rule {} is invalid", number));
  rule->id = number;
  rules_.Add(*std::move(rule));
  return OkStatus();
}

void Loader::NoteRefusedHint(std::string_view whose, const HintValue& hint) {
  if (cluster_.load_log.size() < kLoadLogMax)
    cluster_.load_log.push_back(fmt::format("{} has lost hint {}={}, which is no longer allowed",
                                            whose, hint.name, hint.value));
}

Status Loader::LoadNode(uint64_t number, std::string_view key, std::string_view value) {
  if (key[0] == 'U') {
    MOSA_ASSIGN_OR_RETURN(const NodeNotesRecord notes, Decode<NodeNotesRecord>(key, value));
    Node* const node = nodes_.Find(NodeId(static_cast<uint32_t>(number)));
    if (!node || node->address.node.value != number) return NoneOfOurs(key);
    node->came_empty = notes.came_empty;
    node->settled_below = notes.settled_below;
    return OkStatus();
  }
  MOSA_ASSIGN_OR_RETURN(const NodeRecord record, Decode<NodeRecord>(key, value));
  if (record.address.node.value != number)
    return Damaged(
        fmt::format("record {} belongs to node {}", PrintableKey(key), record.address.node.value));
  Node& node = nodes_.by_id[record.address.node];
  node.address = record.address;
  node.limit_bytes = record.limit_bytes;
  node.draining = record.draining;
  node.epoch = record.epoch;
  if (node.draining) node.address.state = NodeState::kDraining;
  if (!nodes_.by_name.try_emplace(record.address.name, record.address.node).second)
    return Damaged(fmt::format("two nodes are named '{}'", record.address.name));
  return OkStatus();
}

Status Loader::LoadInode(FileId file, const InodeRecord& record) {
  std::vector<HintValue> refused;
  const auto hints = DecodeHints(record.hints, &refused);
  if (!hints.ok())
    return DataLossError(
        fmt::format("record {}: {}", PrintableKey(InodeKey(file)), MessageOf(hints.status())));
  auto inode = std::make_unique<Inode>();
  const Attributes& a = record.attributes;
  inode->size_bytes = a.size_bytes;
  inode->access_time = a.access_time;
  inode->modify_time = a.modify_time;
  inode->change_time = a.change_time;
  cluster_.recovery.NoteStored(a.change_time);
  inode->birth_time = a.birth_time;
  inode->data_version = a.data_version;
  inode->placement_seed = record.placement_seed;
  inode->uid = a.uid;
  inode->gid = a.gid;
  inode->link_count = a.link_count;
  inode->device = a.device;
  inode->permissions = static_cast<uint16_t>(a.permissions);
  inode->type = a.type;
  inode->stream = record.stream;
  inode->task = texts_.Hold(record.task, a.uid);
  inode->hints = texts_.Hold(refused.empty() ? record.hints : EncodeHints(*hints), a.uid);
  for (const HintValue& hint : refused) NoteRefusedHint(fmt::format("file {}", file.value), hint);
  if (a.type == FileType::kSymlink)
    files_.symlinks.emplace_hint(files_.symlinks.end(), file, record.symlink_target);
  if (a.type == FileType::kDirectory) {
    auto& directory = files_.directories[file];
    if (!directory) directory = std::make_unique<Directory>();
  }
  if (record.layout.bound() || record.is_inline || !record.objects.empty() ||
      record.generation > 0) {
    FileBytes& bytes = BytesOf(*inode);
    bytes.chunk_bytes = record.layout.chunk_bytes;
    bytes.segments = record.layout.segments;
    bytes.reason = texts_.Hold(record.layout.reason, 0);
    bytes.objects = record.objects;
    bytes.copies = record.copies;
    // An image older than generations has bound files without one.
    const uint64_t first = record.layout.bound() ? 1 : 0;
    bytes.generation = std::max(record.generation, first);
    bytes.kept_since = std::max(record.kept_since, first);
    bytes.may_differ = record.may_differ;
    bytes.raised_uncommitted = record.raised_uncommitted;
    if (bytes.may_differ) copy_.marked.insert(file);
    bytes.is_inline = record.is_inline;
    bytes.inline_valid_bytes = record.is_inline ? record.inline_valid_bytes : 0;
    bytes.inline_node = record.inline_node;
  }
  if (record.abandoned) files_.abandoned.insert(file);
  if (record.uncommitted_by.value != 0) files_.uncommitted[file] = {record.uncommitted_by, {}, {}};
  lifetimes_.Follow(file, *inode, {});
  files_.inodes.insert_or_assign(files_.inodes.end(), file, std::move(inode));
  return OkStatus();
}

Status Loader::FinishLoad(Time now) {
  step_.now = std::max(step_.now, now);
  loaded_ = true;
  cluster_.recovery.Begin(step_.now);
  if (!image_found_) {
    recovery_rules_.BeginEmpty();
    auto root = std::make_unique<Inode>();
    root->type = FileType::kDirectory;
    root->permissions = 01777;
    root->link_count = 1;
    root->access_time = root->modify_time = root->change_time = root->birth_time = step_.now;
    files_.inodes.emplace(kRootFile, std::move(root));
    files_.directories.emplace(kRootFile, std::make_unique<Directory>()).first->second->parent =
        kRootFile;
    limits_.ChargeForAll();
    step_.dirty.insert(kRootFile);
    step_.cluster_dirty = true;
    return OkStatus();
  }
  if (!cluster_loaded_) return Damaged("the cluster's own record is missing");
  if (const auto glob = rules_.FindDoubled())
    return Damaged(fmt::format("one owner has two rules for {}", *glob));
  MOSA_RETURN_IF_ERROR(CheckTree());
  recovery_rules_.RecoverLoaded();
  for (auto& [id, node] : nodes_.by_id) {
    // Until it registers, a node counts as it was when last heard from.
    node.last_heard = step_.now;
    step_.Schedule(step_.now + kNodeDeadAfter);
    cluster_.record.next_node_id = std::max(cluster_.record.next_node_id, id.value + 1);
  }
  for (const auto& [file, inode] : files_.inodes) {
    if (!inode->bytes) continue;
    for (const NodeObject& object : inode->bytes->objects) {
      Node* node = nodes_.Find(object.node);
      if (node && !object.lost) node->used_bytes += object.allocated_bytes;
      if (node && object.uncut && !NamedNodes(*inode->bytes).contains(object.node))
        node->uncut[file] = {};
    }
  }
  // For an image older than the counter.
  cluster_.counters.next_rule_id = std::max(cluster_.counters.next_rule_id, rules_.last_id() + 1);
  limits_.ChargeForAll();
  CountGroups();
  lifetimes_.FinishLoad();
  for (auto& [client, session] : sessions_.by_client) {
    session.slot = recalls_.TakeSlot(client);
    session.heard = step_.now;
  }
  reply_logs_.FinishLoad();
  for (const auto& [file, holders] : files_.orphans) step_.orphan_checks.insert(file);
  if (!sessions_.by_client.empty()) {
    cluster_.grace_end = step_.now + kGracePeriod;
    step_.Schedule(*cluster_.grace_end);
  } else {
    generations_.EndMarkedOpens(/*all_are_back=*/false);
  }
  copy_queue_.StartScan();
  return OkStatus();
}

Status Loader::CheckTree() {
  const Inode* root = files_.Find(kRootFile);
  if (!root || root->type != FileType::kDirectory) return Damaged("there is no root directory");
  MOSA_RETURN_IF_ERROR(LinkEntries());
  files_.FindDirectory(kRootFile)->parent = kRootFile;
  for (auto& [file, inode] : files_.inodes) {
    // LinkEntries has stored the number of names there.
    const uint64_t names = std::exchange(inode->interest, 0);
    const uint64_t expected = file == kRootFile ? 0 : inode->link_count;
    if (names != expected)
      return Damaged(
          fmt::format("file {} has {} names and should have {}", file.value, names, expected));
    if (names == 0 && file != kRootFile) files_.orphans[file];
    if (file.value >= cluster_.record.next_file_id)
      return Damaged(fmt::format("file id {} has not been allocated yet", file.value));
  }
  for (const auto& [file, attributes] : files_.xattrs) {
    if (!files_.Find(file))
      return Damaged(fmt::format("file {} has attributes but does not exist", file.value));
  }
  // Every directory must lead up to the root: walk up from each until one known to be rooted.
  std::set<FileId> rooted = {kRootFile};
  for (const auto& [file, directory] : files_.directories) {
    std::vector<FileId> path;
    FileId at = file;
    while (!rooted.contains(at) && !files_.orphans.contains(at)) {
      path.push_back(at);
      if (path.size() > files_.directories.size())
        return Damaged(fmt::format("directory {} lies below itself", file.value));
      at = files_.FindDirectory(at)->parent;
    }
    rooted.insert(path.begin(), path.end());
  }
  return OkStatus();
}

// Sets the parents of directories, and counts each inode's names in `interest`, which is not in use
// yet.
Status Loader::LinkEntries() {
  for (auto& [file, directory] : files_.directories) {
    const Inode* inode = files_.Find(file);
    if (!inode || inode->type != FileType::kDirectory)
      return Damaged(fmt::format("file {} has {} entries but is not a directory", file.value,
                                 directory->entries.size()));
    for (const auto& [name, child] : directory->entries) {
      Inode* named = files_.Find(child);
      if (!named || child == kRootFile)
        return Damaged(
            fmt::format("directory {} has an invalid entry for file {}", file.value, child.value));
      ++named->interest;
      named->named_in = file;
      if (named->type == FileType::kDirectory) {
        files_.FindDirectory(child)->parent = file;
        files_.FindDirectory(child)->name = name;
        ++directory->subdirectories;
      }
      lifetimes_.NoteName(child, name);
      if (files_.uncommitted.empty()) continue;
      if (const auto found = files_.uncommitted.find(child); found != files_.uncommitted.end()) {
        found->second.parent = file;
        found->second.name = name;
      }
    }
  }
  return OkStatus();
}

}  // namespace mosa::manager
