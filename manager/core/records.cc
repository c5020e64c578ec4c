#include "manager/core/records.h"

#include <endian.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "manager/core/manager_core.h"

namespace mosa::manager {
namespace {

// Format versions. 2 adds the origin of inherited hints; version 1 is read unchanged. 3 adds
// copies; older records have none. 4 adds the number of copies that a close has waited for. 5 adds
// generations of layouts, sessions and nodes (older records have generation 0), copies that may
// differ from the first, and damaged objects.
constexpr uint8_t kCopiesVersion = 3;
constexpr uint8_t kCopiesWantedVersion = 4;
constexpr uint8_t kGenerationsVersion = 5;
// Version 6 adds objects that were not cut, 7 files that were abandoned and nodes with older bytes,
// 8 copies that were not cut, 9 copies that were the first ones.
constexpr uint8_t kUncutVersion = 6;
constexpr uint8_t kAbandonedVersion = 7;
constexpr uint8_t kUncutCopiesVersion = 8;
constexpr uint8_t kFirstCopiesVersion = 9;
constexpr uint8_t kStreamsVersion = 10;
constexpr uint8_t kRecordVersion = 10;

// Writer and Reader have the same interface, so one Visit() per type serves both directions.
class Writer {
 public:
  static constexpr bool kReads = false;

  template <typename Integer>
  requires std::is_integral_v<Integer>
  void Number(Integer& value) {
    const uint64_t little = htole64(static_cast<uint64_t>(value));
    std::memcpy(Room(sizeof(Integer)), &little, sizeof(Integer));
  }
  void Flag(bool& value) { *Room(1) = value ? '\1' : '\0'; }
  void Text(std::string& value) {
    auto size = static_cast<uint32_t>(value.size());
    Number(size);
    value.copy(Room(size), size);
  }
  uint32_t Count(size_t count) {
    auto size = static_cast<uint32_t>(count);
    Number(size);
    return size;
  }
  void Require(bool) {}
  bool ok() const { return true; }
  // The format version of the visited record.
  uint8_t version() const { return kRecordVersion; }
  std::string Take() {
    bytes_.resize(size_);
    return std::move(bytes_);
  }

 private:
  // Most records are smaller.
  static constexpr size_t kBytesAtFirst = 256;

  // Returns where the next bytes go.
  char* Room(size_t bytes) {
    const size_t at = std::exchange(size_, size_ + bytes);
    if (size_ > bytes_.size()) bytes_.resize(2 * size_);
    return bytes_.data() + at;
  }

  std::string bytes_ = std::string(kBytesAtFirst, '\0');
  size_t size_ = 0;
};

class Reader {
 public:
  static constexpr bool kReads = true;

  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename Integer>
  requires std::is_integral_v<Integer>
  void Number(Integer& value) {
    using Unsigned = std::make_unsigned_t<Integer>;
    if (!Has(sizeof(Integer))) return;
    uint64_t read = 0;
    for (size_t i = 0; i < sizeof(Integer); ++i)
      read |= uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
    value = static_cast<Integer>(static_cast<Unsigned>(read));
    rest_.remove_prefix(sizeof(Integer));
  }
  void Flag(bool& value) {
    uint8_t byte = 0;
    Number(byte);
    Require(byte <= 1);
    value = byte == 1;
  }
  void Text(std::string& value) {
    uint32_t size = 0;
    Number(size);
    if (!Has(size)) return;
    value = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  // Every item takes at least one byte, so a count above the remaining bytes is damage. This also
  // bounds memory.
  uint32_t Count(size_t) {
    uint32_t count = 0;
    Number(count);
    return Has(count) ? count : 0;
  }
  void Require(bool condition) { ok_ = ok_ && condition; }
  uint8_t version() const { return version_; }
  void ReadVersion() { Number(version_); }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  bool Has(size_t size) {
    Require(size <= rest_.size());
    return ok_;
  }
  std::string_view rest_;
  uint8_t version_ = 0;
  bool ok_ = true;
};

// ---- values

template <typename A, typename Integer>
requires std::is_integral_v<Integer>
void Visit(A& archive, Integer& value) {
  if constexpr (std::is_same_v<Integer, bool>) {
    archive.Flag(value);
  } else {
    archive.Number(value);
  }
}

template <typename A>
void Visit(A& archive, std::string& value) {
  archive.Text(value);
}

template <typename A, typename Tag, typename Integer>
void Visit(A& archive, StrongId<Tag, Integer>& id) {
  archive.Number(id.value);
}

template <typename A>
void Visit(A& archive, Time& time) {
  archive.Number(time.ns);
}

template <typename A, typename Enum>
void VisitEnum(A& archive, Enum& value, Enum first, Enum last) {
  auto number = static_cast<int32_t>(value);
  archive.Number(number);
  archive.Require(number >= static_cast<int32_t>(first) && number <= static_cast<int32_t>(last));
  if constexpr (A::kReads) {
    if (archive.ok()) value = static_cast<Enum>(number);
  }
}

template <typename A>
void Visit(A& archive, FileType& type) {
  VisitEnum(archive, type, FileType::kRegular, FileType::kBlockDevice);
}

template <typename A, typename... Values>
void All(A& archive, Values&... values);

template <typename A, typename T>
void Visit(A& archive, std::vector<T>& values) {
  const uint32_t count = archive.Count(values.size());
  if constexpr (A::kReads) {
    for (uint32_t i = 0; i < count && archive.ok(); ++i) All(archive, values.emplace_back());
  } else {
    for (T& value : values) All(archive, value);
  }
}

template <typename A, typename T>
void Visit(A& archive, std::optional<T>& value) {
  bool present = value.has_value();
  archive.Flag(present);
  if (!present) return;
  if constexpr (A::kReads) value.emplace();
  All(archive, *value);
}

template <typename A>
void Visit(A& archive, Attributes& a) {
  All(archive, a.type, a.permissions, a.uid, a.gid, a.link_count, a.device, a.size_bytes,
      a.allocated_bytes, a.access_time, a.modify_time, a.change_time, a.birth_time, a.data_version);
}

template <typename A>
void Visit(A& archive, Entry& entry) {
  All(archive, entry.file, entry.attributes);
}

template <typename A>
void Visit(A& archive, Segment& segment) {
  All(archive, segment.begin, segment.width, segment.nodes);
  archive.Require(segment.width > 0 && !segment.nodes.empty() &&
                  segment.nodes.size() % segment.width == 0);
}

template <typename A>
void Visit(A& archive, Layout& layout) {
  All(archive, layout.chunk_bytes, layout.segments, layout.reason);
  for (size_t i = 0; i < layout.segments.size(); ++i)
    archive.Require(layout.segments[i].begin % kSegmentUnit == 0 &&
                    (i == 0 ? layout.segments[i].begin == 0
                            : layout.segments[i].begin > layout.segments[i - 1].begin));
  archive.Require(layout.segments.empty() || layout.chunk_bytes > 0);
}

template <typename A>
void Visit(A& archive, DataAccess& access) {
  All(archive, access.layout, access.may_write, access.expires, access.capability, access.is_inline,
      access.inline_data, access.inline_valid_bytes, access.inline_bytes_max, access.lost,
      access.frozen);
  if (archive.version() >= kCopiesVersion) All(archive, access.copied_eagerly, access.close_copies);
  if (archive.version() >= kGenerationsVersion) All(archive, access.generation, access.empty_nodes);
}

template <typename A>
void Visit(A& archive, Lock& lock) {
  VisitEnum(archive, lock.type, LockType::kShared, LockType::kUnlock);
  All(archive, lock.begin, lock.last, lock.owner, lock.pid, lock.whole_file);
}

// ---- replies

template <typename A>
void VisitStream(A& archive, Attributes& attributes) {
  if (archive.version() >= kStreamsVersion)
    VisitEnum(archive, attributes.stream, StreamState::kNone, StreamState::kBroken);
}

template <typename A>
void Visit(A&, EmptyReply&) {}
template <typename A>
void Visit(A& archive, Failure& failure) {
  VisitEnum(archive, failure.code, StatusCode::kOk, StatusCode::kUnauthenticated);
  VisitEnum(archive, failure.reason, ErrorReason::kNone, kErrorReasonLast);
  All(archive, failure.message);
}
template <typename A>
void Visit(A& archive, EntryReply& reply) {
  All(archive, reply.entry);
  VisitStream(archive, reply.entry.attributes);
}
template <typename A>
void Visit(A& archive, AttributesReply& reply) {
  All(archive, reply.attributes);  // Who hears it again asks for the access.
  VisitStream(archive, reply.attributes);
}
template <typename A>
void Visit(A& archive, ListDirectoryReply::Item& item) {
  All(archive, item.name, item.entry);
}
template <typename A>
void Visit(A& archive, ListDirectoryReply& reply) {
  All(archive, reply.items, reply.more, reply.parent);
}
template <typename A>
void Visit(A& archive, MakeReply& reply) {
  All(archive, reply.entry, reply.parent_attributes, reply.access, reply.delegated);
  VisitStream(archive, reply.entry.attributes);
}
template <typename A>
void Visit(A& archive, RemoveReply& reply) {
  All(archive, reply.file, reply.links_left, reply.parent_attributes);
}
template <typename A>
void Visit(A& archive, RenameReply& reply) {
  All(archive, reply.moved, reply.replaced, reply.replaced_links_left);
}
template <typename A>
void Visit(A& archive, ReadSymlinkReply& reply) {
  All(archive, reply.target);
}
template <typename A>
void Visit(A& archive, OpenReply& reply) {
  All(archive, reply.attributes, reply.access);
  VisitStream(archive, reply.attributes);
}
template <typename A>
void Visit(A& archive, BindReply& reply) {
  All(archive, reply.access);
  if (archive.version() >= kAbandonedVersion) All(archive, reply.older);
}
template <typename A>
void Visit(A& archive, GrantReply& reply) {
  All(archive, reply.granted_bytes, reply.free_bytes, reply.limit_bytes);
}
template <typename A>
void Visit(A& archive, GetXattrReply& reply) {
  All(archive, reply.value);
}
template <typename A>
void Visit(A& archive, ListXattrsReply& reply) {
  All(archive, reply.names);
}
template <typename A>
void Visit(A& archive, GetLockReply& reply) {
  bool present = reply.conflict.has_value();
  archive.Flag(present);
  if constexpr (A::kReads) {
    if (present) reply.conflict.emplace();
  }
  if (reply.conflict) Visit(archive, *reply.conflict);
}
template <typename A>
void Visit(A& archive, StatFilesystemReply& reply) {
  All(archive, reply.limit_bytes, reply.free_bytes, reply.files);
}
template <typename A>
void Visit(A& archive, FileIdRangeReply& reply) {
  All(archive, reply.first, reply.count);
}
template <typename A>
void Visit(A& archive, AwaitCopiesReply& reply) {
  All(archive, reply.copies_valid, reply.copied_bytes, reply.more);
  if (archive.version() >= kCopiesWantedVersion) All(archive, reply.copies_wanted);
  if (archive.version() >= kGenerationsVersion) All(archive, reply.no_room, reply.reason);
  if (archive.version() >= kUncutVersion) All(archive, reply.open_for_writing);
}

// A variant is encoded as its index and the alternative, so the order of Reply's alternatives is
// part of the format.
template <typename A, size_t kIndex = 0>
void VisitAlternative(A& archive, Reply& reply, uint8_t index) {
  if constexpr (kIndex < std::variant_size_v<Reply>) {
    if (index != kIndex) return VisitAlternative<A, kIndex + 1>(archive, reply, index);
    if constexpr (A::kReads) reply.emplace<kIndex>();
    Visit(archive, std::get<kIndex>(reply));
  } else {
    archive.Require(false);
  }
}
template <typename A>
void Visit(A& archive, Reply& reply) {
  auto index = static_cast<uint8_t>(reply.index());
  archive.Number(index);
  VisitAlternative(archive, reply, index);
}

// ---- records

template <typename A>
void Visit(A& archive, ClusterRecord& record) {
  All(archive, record.cluster_name, record.cluster_seed, record.next_file_id, record.next_node_id);
  archive.Require(record.next_file_id > kRootFile.value && record.next_node_id > 0);
}
template <typename A>
void Visit(A& archive, NodeObject& object) {
  All(archive, object.node, object.lost, object.allocated_bytes);
  if (archive.version() >= kGenerationsVersion) All(archive, object.damaged);
  if (archive.version() >= kUncutVersion) All(archive, object.uncut);
  if (archive.version() >= kUncutCopiesVersion) {
    VisitEnum(archive, object.holds, ObjectHolds::kOwn, ObjectHolds::kBoth);
  } else {
    object.holds = ObjectHolds::kBoth;  // Nobody knows.
  }
}
template <typename A>
void Visit(A& archive, CopyCell& cell) {
  All(archive, cell.node, cell.data_version);
  if (archive.version() >= kUncutCopiesVersion) {
    All(archive, cell.uncut);
  } else {
    cell.uncut = cell.node != kNoNode;
  }
  if (archive.version() >= kFirstCopiesVersion) All(archive, cell.was_first);
}
template <typename A>
void Visit(A& archive, InodeRecord& record) {
  All(archive, record.attributes, record.placement_seed, record.task, record.hints,
      record.symlink_target, record.layout, record.objects, record.is_inline,
      record.inline_valid_bytes, record.inline_node, record.uncommitted_by);
  if (archive.version() >= kCopiesVersion) All(archive, record.copies);
  if (archive.version() >= kGenerationsVersion)
    All(archive, record.generation, record.kept_since, record.may_differ,
        record.raised_uncommitted);
  if (archive.version() >= kAbandonedVersion) All(archive, record.abandoned);
  if (archive.version() >= kStreamsVersion)
    VisitEnum(archive, record.stream, StreamPhase::kNone, StreamPhase::kBroken);
  archive.Require(record.kept_since <= record.generation);
  archive.Require(record.raised_uncommitted <= record.attributes.data_version);
  const std::vector<Segment>& segments = record.layout.segments;
  archive.Require(record.copies.empty() || record.copies.size() == segments.size());
  for (size_t i = 0; i < record.copies.size() && i < segments.size(); ++i)
    archive.Require(segments[i].width > 0 && record.copies[i].size() % segments[i].width == 0);
  const bool regular = record.attributes.type == FileType::kRegular;
  archive.Require(regular ||
                  (!record.layout.bound() && !record.is_inline && record.objects.empty()));
  archive.Require(record.attributes.permissions <= 07777 &&
                  record.attributes.size_bytes <= kFileBytesMax);
  for (size_t i = 1; i < record.objects.size(); ++i)
    archive.Require(record.objects[i - 1].node < record.objects[i].node);
}
template <typename A>
void Visit(A& archive, NodeRecord& record) {
  NodeAddress& address = record.address;
  All(archive, address.node, address.name, address.address, address.socket_path,
      address.host_identity, address.incarnation, record.limit_bytes);
  if (archive.version() >= kCopiesVersion) All(archive, record.draining);
  if (archive.version() >= kGenerationsVersion) All(archive, record.epoch);
  archive.Require(address.node != kNoNode);
}
template <typename A>
void Visit(A& archive, NodeNotesRecord& record) {
  All(archive, record.came_empty, record.settled_below);
}
template <typename A>
void Visit(A& archive, WriterBound& bound) {
  All(archive, bound.client, bound.kept_since);
}
template <typename A>
void Visit(A& archive, WriterBoundsRecord& record) {
  All(archive, record.bounds);
}
template <typename A>
void Visit(A& archive, CutRepliesRecord& record) {
  All(archive, record.last);
}
template <typename A>
void Visit(A& archive, SessionRecord& record) {
  All(archive, record.node_name, record.host_identity, record.mount_point);
}
template <typename A>
void Visit(A& archive, RepliesRecord& record) {
  All(archive, record.replies);
}
template <typename A>
void Visit(A& archive, EntryRecord& record) {
  All(archive, record.file);
}
template <typename A>
void Visit(A& archive, GroupRecord& record) {
  All(archive, record.anchor);
}
template <typename A>
void Visit(A& archive, HintValue& hint) {
  All(archive, hint.name, hint.value);
}
template <typename A>
void Visit(A& archive, RuleRecord& record) {
  All(archive, record.glob, record.hints);
}
template <typename A>
void Visit(A& archive, CountersRecord& record) {
  All(archive, record.next_rule_id);
  if (archive.version() >= kGenerationsVersion) All(archive, record.era, record.epoch);
}
template <typename A>
void Visit(A& archive, ReaderRecord& record) {
  All(archive, record.counts);
}
template <typename A>
void Visit(A& archive, WorkflowRecord& record) {
  All(archive, record.begun);
}
template <typename A>
void Visit(A& archive, OwnerRecord& record) {
  All(archive, record.uid);
}
template <typename A>
void Visit(A& archive, StagedRecord& record) {
  All(archive, record.data_version);
}

template <typename A>
void Visit(A& archive, RecoveryRecord& record) {
  uint64_t unused = 0;  // Older programs stored a time here.
  All(archive, record.kept_below, record.version_floor, unused);
}

template <typename A, typename... Values>
void All(A& archive, Values&... values) {
  (Visit(archive, values), ...);
}

template <typename T>
std::string EncodeRecord(const T& record) {
  Writer writer;
  uint8_t version = kRecordVersion;
  writer.Number(version);
  // Writer does not modify what it visits.
  Visit(writer, const_cast<T&>(record));
  return writer.Take();
}

void AppendBigEndian(std::string& key, uint64_t number) {
  const uint64_t big = htobe64(number);
  key.append(reinterpret_cast<const char*>(&big), sizeof(big));
}

std::string KeyOf(char kind, uint64_t number) {
  std::string key(1, kind);
  AppendBigEndian(key, number);
  return key;
}

}  // namespace

std::string Encode(const ClusterRecord& record) { return EncodeRecord(record); }
std::string Encode(const InodeRecord& record) { return EncodeRecord(record); }
std::string Encode(const NodeRecord& record) { return EncodeRecord(record); }
std::string Encode(const NodeNotesRecord& record) { return EncodeRecord(record); }
std::string Encode(const WriterBoundsRecord& record) { return EncodeRecord(record); }
std::string Encode(const CutRepliesRecord& record) { return EncodeRecord(record); }
std::string Encode(const SessionRecord& record) { return EncodeRecord(record); }
std::string Encode(const RepliesRecord& record) { return EncodeRecord(record); }
std::string Encode(const std::vector<Reply>& replies) { return EncodeRecord(replies); }
std::string Encode(const EntryRecord& record) { return EncodeRecord(record); }
std::string Encode(const GroupRecord& record) { return EncodeRecord(record); }
std::string Encode(const RuleRecord& record) { return EncodeRecord(record); }
std::string Encode(const CountersRecord& record) { return EncodeRecord(record); }
std::string Encode(const ReaderRecord& record) { return EncodeRecord(record); }
std::string Encode(const WorkflowRecord& record) { return EncodeRecord(record); }
std::string Encode(const OwnerRecord& record) { return EncodeRecord(record); }
std::string Encode(const StagedRecord& record) { return EncodeRecord(record); }
std::string Encode(const RecoveryRecord& record) { return EncodeRecord(record); }

template <typename T>
Result<T> Decode(std::string_view key, std::string_view value) {
  Reader reader(value);
  reader.ReadVersion();
  const uint8_t version = reader.version();
  if (reader.ok() && version > kRecordVersion)
    return FailedPreconditionError(
        fmt::format("record {} has format {}, but this program reads formats up to {}; start the "
                    "newer program that wrote it",
                    PrintableKey(key), version, kRecordVersion));
  T record;
  Visit(reader, record);
  if (!reader.ok() || !reader.at_end() || version == 0)
    return DataLossError(
        fmt::format("record {} of {} bytes is damaged; keep the metadata directory as it is, and "
                    "start with a good copy of it",
                    PrintableKey(key), value.size()));
  return record;
}

template Result<ClusterRecord> Decode<ClusterRecord>(std::string_view, std::string_view);
template Result<InodeRecord> Decode<InodeRecord>(std::string_view, std::string_view);
template Result<NodeRecord> Decode<NodeRecord>(std::string_view, std::string_view);
template Result<NodeNotesRecord> Decode<NodeNotesRecord>(std::string_view, std::string_view);
template Result<WriterBoundsRecord> Decode<WriterBoundsRecord>(std::string_view, std::string_view);
template Result<CutRepliesRecord> Decode<CutRepliesRecord>(std::string_view, std::string_view);
template Result<SessionRecord> Decode<SessionRecord>(std::string_view, std::string_view);
template Result<RepliesRecord> Decode<RepliesRecord>(std::string_view, std::string_view);
template Result<EntryRecord> Decode<EntryRecord>(std::string_view, std::string_view);
template Result<GroupRecord> Decode<GroupRecord>(std::string_view, std::string_view);
template Result<RuleRecord> Decode<RuleRecord>(std::string_view, std::string_view);
template Result<CountersRecord> Decode<CountersRecord>(std::string_view, std::string_view);
template Result<ReaderRecord> Decode<ReaderRecord>(std::string_view, std::string_view);
template Result<WorkflowRecord> Decode<WorkflowRecord>(std::string_view, std::string_view);
template Result<OwnerRecord> Decode<OwnerRecord>(std::string_view, std::string_view);
template Result<StagedRecord> Decode<StagedRecord>(std::string_view, std::string_view);
template Result<RecoveryRecord> Decode<RecoveryRecord>(std::string_view, std::string_view);

std::string PrintableKey(std::string_view key) {
  std::string text;
  for (const char c : key.substr(0, 64)) {
    const bool plain = c > ' ' && c < 0x7f && c != '\\';
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return "'" + text + (key.size() > 64 ? "...'" : "'");
}

std::string ClusterKey() { return "C"; }
std::string CountersKey() { return "K"; }
std::string CutRepliesKey(ClientId client) { return KeyOf('Q', client.value); }
std::string EntryKey(FileId parent, std::string_view name) {
  return KeyOf('D', parent.value).append(name);
}
std::string GroupKey(std::string_view group) { return std::string("G").append(group); }
std::string RuleKey(uint64_t rule) { return KeyOf('H', rule); }
std::string RuleOwnerKey(uint64_t rule) { return "O" + RuleKey(rule); }
std::string RunOwnerKey(std::string_view run) { return "O" + WorkflowKey(run); }
std::string InodeKey(FileId file) { return KeyOf('I', file.value); }
std::string NodeKey(NodeId node) { return KeyOf('N', node.value); }
std::string NodeNotesKey(NodeId node) { return KeyOf('U', node.value); }
std::string ReaderKey(FileId file, uint64_t reader) {
  std::string key = KeyOf('L', file.value);
  AppendBigEndian(key, reader);
  return key;
}
std::string RecoveryKey() { return "P"; }
std::string RepliesKey(ClientId client, RequestId request) {
  std::string key = KeyOf('R', client.value);
  AppendBigEndian(key, request.value);
  return key;
}
std::string SessionKey(ClientId client) { return KeyOf('S', client.value); }
std::string StagedKey(FileId file) { return KeyOf('T', file.value); }
std::string WorkflowKey(std::string_view run) { return std::string("W").append(run); }
std::string WriterBoundsKey(FileId file) { return KeyOf('F', file.value); }
std::string XattrKey(FileId file, std::string_view name) {
  return KeyOf('X', file.value).append(name);
}
std::string InlineDataKey(FileId file) { return KeyOf(kInlineDataPrefix[0], file.value); }

uint64_t KeyNumber(std::string_view key, size_t position) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i)
    number = (number << 8) | static_cast<unsigned char>(key[position + i]);
  return number;
}

}  // namespace mosa::manager
