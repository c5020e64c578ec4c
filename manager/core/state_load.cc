// Loading and writing the durable image: one record per inode, entry, attribute, node, session,
// rule, group and recorded reply.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "manager/core/state.h"
#include "manager/core/state_recovery.h"

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

Status ManagerCore::State::LoadRecord(std::string_view key, std::string_view value) {
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
    if (CheckName(name)) return NoneOfOurs(key);
    auto& directory = directories_.try_emplace(directories_.end(), FileId(number))->second;
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
    lifetimes_[FileId(number)].readers.insert_or_assign(KeyNumber(key, 9), record.counts);
    return OkStatus();
  }
  if (kind == 'T') {
    MOSA_ASSIGN_OR_RETURN(const StagedRecord record, Decode<StagedRecord>(key, value));
    staged_[FileId(number)] = record.data_version;
    return OkStatus();
  }
  if (kind == 'H') return LoadRule(number, key, value);
  if (kind == 'X') {
    xattrs_[FileId(number)].Set(name, value);
    return OkStatus();
  }
  if (kind == 'R') {
    MOSA_RETURN_IF_ERROR(Decode<RepliesRecord>(key, value).status());
    reply_logs_[ClientId(number)].Put(&reply_log_bytes_, RequestId(KeyNumber(key, 9)),
                                      std::string(value));
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
    reply_logs_[ClientId(number)].cut = record.last;
    return OkStatus();
  }
  return NoneOfOurs(key);
}

Status ManagerCore::State::LoadNamed(std::string_view key, std::string_view value) {
  if (key == ClusterKey()) {
    MOSA_ASSIGN_OR_RETURN(cluster_, Decode<ClusterRecord>(key, value));
    if (cluster_.cluster_name != options_.cluster_name)
      return FailedPreconditionError(
          fmt::format("the metadata belongs to cluster '{}', but this manager serves '{}'; choose "
                      "another directory or cluster name",
                      cluster_.cluster_name, options_.cluster_name));
    cluster_loaded_ = true;
    return OkStatus();
  }
  if (key == CountersKey()) {
    MOSA_ASSIGN_OR_RETURN(counters_, Decode<CountersRecord>(key, value));
    return OkStatus();
  }
  if (key == RecoveryKey()) {
    MOSA_ASSIGN_OR_RETURN(const RecoveryRecord record, Decode<RecoveryRecord>(key, value));
    recovery_.Load(record);
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

Status ManagerCore::State::LoadOwner(std::string_view key, std::string_view value) {
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

Status ManagerCore::State::LoadSession(ClientId client, std::string_view key,
                                       std::string_view value) {
  MOSA_ASSIGN_OR_RETURN(const SessionRecord record, Decode<SessionRecord>(key, value));
  Session& session = sessions_[client];
  session.start.client = client;
  session.start.node_name = record.node_name;
  session.start.host_identity = record.host_identity;
  session.start.mount_point = record.mount_point;
  session.connected = false;
  session.awaited = true;
  return OkStatus();
}

Status ManagerCore::State::LoadRule(uint64_t number, std::string_view key, std::string_view value) {
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

void ManagerCore::State::NoteRefusedHint(std::string_view whose, const HintValue& hint) {
  if (load_log_.size() < kLoadLogMax)
    load_log_.push_back(fmt::format("{} has lost hint {}={}, which is no longer allowed", whose,
                                    hint.name, hint.value));
}

Status ManagerCore::State::LoadNode(uint64_t number, std::string_view key, std::string_view value) {
  if (key[0] == 'U') {
    MOSA_ASSIGN_OR_RETURN(const NodeNotesRecord notes, Decode<NodeNotesRecord>(key, value));
    Node* const node = FindNode(NodeId(static_cast<uint32_t>(number)));
    if (!node || node->address.node.value != number) return NoneOfOurs(key);
    node->came_empty = notes.came_empty;
    node->settled_below = notes.settled_below;
    return OkStatus();
  }
  MOSA_ASSIGN_OR_RETURN(const NodeRecord record, Decode<NodeRecord>(key, value));
  if (record.address.node.value != number)
    return Damaged(
        fmt::format("record {} belongs to node {}", PrintableKey(key), record.address.node.value));
  Node& node = nodes_[record.address.node];
  node.address = record.address;
  node.limit_bytes = record.limit_bytes;
  node.draining = record.draining;
  node.epoch = record.epoch;
  if (node.draining) node.address.state = NodeState::kDraining;
  if (!node_names_.try_emplace(record.address.name, record.address.node).second)
    return Damaged(fmt::format("two nodes are named '{}'", record.address.name));
  return OkStatus();
}

Status ManagerCore::State::LoadInode(FileId file, const InodeRecord& record) {
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
  recovery_.NoteStored(a.change_time);
  inode->birth_time = a.birth_time;
  inode->data_version = a.data_version;
  inode->placement_seed = record.placement_seed;
  inode->uid = a.uid;
  inode->gid = a.gid;
  inode->link_count = a.link_count;
  inode->device = a.device;
  inode->permissions = static_cast<uint16_t>(a.permissions);
  inode->type = a.type;
  inode->task = texts_.Hold(record.task, a.uid);
  inode->hints = texts_.Hold(refused.empty() ? record.hints : EncodeHints(*hints), a.uid);
  for (const HintValue& hint : refused) NoteRefusedHint(fmt::format("file {}", file.value), hint);
  if (a.type == FileType::kSymlink)
    symlinks_.emplace_hint(symlinks_.end(), file, record.symlink_target);
  if (a.type == FileType::kDirectory) {
    auto& directory = directories_[file];
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
  if (record.abandoned) abandoned_.insert(file);
  if (record.uncommitted_by.value != 0) uncommitted_[file] = {record.uncommitted_by, {}, {}};
  FollowLifetime(file, *inode, {});
  inodes_.insert_or_assign(inodes_.end(), file, std::move(inode));
  return OkStatus();
}

Status ManagerCore::State::FinishLoad(Time now) {
  now_ = std::max(now_, now);
  loaded_ = true;
  recovery_.Begin(now_);
  if (!image_found_) {
    RecoveryRules{*this}.BeginEmpty();
    auto root = std::make_unique<Inode>();
    root->type = FileType::kDirectory;
    root->permissions = 01777;
    root->link_count = 1;
    root->access_time = root->modify_time = root->change_time = root->birth_time = now_;
    inodes_.emplace(kRootFile, std::move(root));
    directories_.emplace(kRootFile, std::make_unique<Directory>()).first->second->parent =
        kRootFile;
    ChargeForAll();
    dirty_.insert(kRootFile);
    cluster_dirty_ = true;
    return OkStatus();
  }
  if (!cluster_loaded_) return Damaged("the cluster's own record is missing");
  if (const auto glob = rules_.FindDoubled())
    return Damaged(fmt::format("one owner has two rules for {}", *glob));
  MOSA_RETURN_IF_ERROR(CheckTree());
  RecoveryRules{*this}.FinishLoad();
  for (auto& [id, node] : nodes_) {
    // Until it registers, a node counts as it was when last heard from.
    node.last_heard = now_;
    Schedule(now_ + kNodeDeadAfter);
    cluster_.next_node_id = std::max(cluster_.next_node_id, id.value + 1);
  }
  for (const auto& [file, inode] : inodes_) {
    if (!inode->bytes) continue;
    for (const NodeObject& object : inode->bytes->objects) {
      Node* node = FindNode(object.node);
      if (node && !object.lost) node->used_bytes += object.allocated_bytes;
      if (node && object.uncut && !NamedNodes(*inode->bytes).contains(object.node))
        node->uncut[file] = {};
    }
  }
  // For an image older than the counter.
  counters_.next_rule_id = std::max(counters_.next_rule_id, rules_.last_id() + 1);
  ChargeForAll();
  CountGroups();
  FinishLifetimes();
  for (auto& [client, session] : sessions_) {
    session.slot = TakeSlot(client);
    session.heard = now_;
  }
  for (auto& [client, log] : reply_logs_) {
    if (sessions_.contains(client)) continue;
    log.drop_at = now_ + kRepliesKeptFor;
    Schedule(*log.drop_at);
  }
  for (const auto& [file, holders] : orphans_) orphan_checks_.insert(file);
  if (!sessions_.empty()) {
    grace_end_ = now_ + kGracePeriod;
    Schedule(*grace_end_);
  } else {
    EndMarkedOpens();
  }
  StartCopyScan();
  return OkStatus();
}

Status ManagerCore::State::CheckTree() {
  const Inode* root = Find(kRootFile);
  if (!root || root->type != FileType::kDirectory) return Damaged("there is no root directory");
  MOSA_RETURN_IF_ERROR(LinkEntries());
  FindDirectory(kRootFile)->parent = kRootFile;
  for (auto& [file, inode] : inodes_) {
    // LinkEntries has stored the number of names there.
    const uint64_t names = std::exchange(inode->interest, 0);
    const uint64_t expected = file == kRootFile ? 0 : inode->link_count;
    if (names != expected)
      return Damaged(
          fmt::format("file {} has {} names and should have {}", file.value, names, expected));
    if (names == 0 && file != kRootFile) orphans_[file];
    if (file.value >= cluster_.next_file_id)
      return Damaged(fmt::format("file id {} has not been allocated yet", file.value));
  }
  for (const auto& [file, attributes] : xattrs_) {
    if (!Find(file))
      return Damaged(fmt::format("file {} has attributes but does not exist", file.value));
  }
  // Every directory must lead up to the root: walk up from each until one known to be rooted.
  std::set<FileId> rooted = {kRootFile};
  for (const auto& [file, directory] : directories_) {
    std::vector<FileId> path;
    FileId at = file;
    while (!rooted.contains(at) && !orphans_.contains(at)) {
      path.push_back(at);
      if (path.size() > directories_.size())
        return Damaged(fmt::format("directory {} lies below itself", file.value));
      at = FindDirectory(at)->parent;
    }
    rooted.insert(path.begin(), path.end());
  }
  return OkStatus();
}

// Sets the parents of directories, and counts each inode's names in `interest`, which is not in use
// yet.
Status ManagerCore::State::LinkEntries() {
  for (auto& [file, directory] : directories_) {
    const Inode* inode = Find(file);
    if (!inode || inode->type != FileType::kDirectory)
      return Damaged(fmt::format("file {} has {} entries but is not a directory", file.value,
                                 directory->entries.size()));
    for (const auto& [name, child] : directory->entries) {
      Inode* named = Find(child);
      if (!named || child == kRootFile)
        return Damaged(
            fmt::format("directory {} has an invalid entry for file {}", file.value, child.value));
      ++named->interest;
      named->named_in = file;
      if (named->type == FileType::kDirectory) {
        FindDirectory(child)->parent = file;
        FindDirectory(child)->name = name;
        ++directory->subdirectories;
      }
      if (!lifetimes_.empty()) {
        if (const auto found = lifetimes_.find(child); found != lifetimes_.end())
          found->second.name = name;
      }
      if (uncommitted_.empty()) continue;
      if (const auto found = uncommitted_.find(child); found != uncommitted_.end()) {
        found->second.parent = file;
        found->second.name = name;
      }
    }
  }
  return OkStatus();
}

InodeRecord ManagerCore::State::RecordOf(FileId file, const Inode& inode) const {
  InodeRecord record;
  record.attributes = {.type = inode.type,
                       .permissions = inode.permissions,
                       .uid = inode.uid,
                       .gid = inode.gid,
                       .link_count = inode.link_count,
                       .device = inode.device,
                       .size_bytes = inode.size_bytes,
                       .allocated_bytes = 0,
                       .access_time = inode.access_time,
                       .modify_time = inode.modify_time,
                       .change_time = inode.change_time,
                       .birth_time = inode.birth_time,
                       .data_version = inode.data_version};
  record.placement_seed = inode.placement_seed;
  record.task = texts_.TextOf(inode.task);
  record.hints = texts_.TextOf(inode.hints);
  if (const auto link = symlinks_.find(file); link != symlinks_.end())
    record.symlink_target = link->second;
  if (inode.bytes) {
    const FileBytes& bytes = *inode.bytes;
    record.layout = {bytes.chunk_bytes, bytes.segments, texts_.TextOf(bytes.reason)};
    record.objects = bytes.objects;
    record.copies = bytes.copies;
    record.generation = bytes.generation;
    record.kept_since = bytes.kept_since;
    record.may_differ = bytes.may_differ;
    record.raised_uncommitted = bytes.raised_uncommitted;
    record.is_inline = bytes.is_inline;
    record.inline_valid_bytes = bytes.inline_valid_bytes;
    record.inline_node = bytes.inline_node;
  }
  if (const auto found = uncommitted_.find(file); found != uncommitted_.end())
    record.uncommitted_by = found->second.maker;
  record.abandoned = abandoned_.contains(file);
  return record;
}

void ManagerCore::State::WriteCluster() { effects_.writes.Put(ClusterKey(), Encode(cluster_)); }

void ManagerCore::State::WriteNode(const Node& node) {
  const NodeId id = node.address.node;
  effects_.writes.Put(
      NodeKey(id), Encode(NodeRecord{node.address, node.limit_bytes, node.draining, node.epoch}));
  const NodeNotesRecord notes{node.came_empty, node.settled_below};
  if (notes == NodeNotesRecord{}) {
    effects_.writes.Delete(NodeNotesKey(id));
  } else {
    effects_.writes.Put(NodeNotesKey(id), Encode(notes));
  }
}

void ManagerCore::State::WriteWriterBounds(FileId file) {
  WriterBoundsRecord record;
  for (const auto& [client, kept_since] : fences_.BoundsOf(file))
    record.bounds.push_back({client, kept_since});
  if (record.bounds.empty()) {
    effects_.writes.Delete(WriterBoundsKey(file));
  } else {
    effects_.writes.Put(WriterBoundsKey(file), Encode(record));
  }
}

}  // namespace mosa::manager
