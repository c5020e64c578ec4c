#include "manager/core/records.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/rng.h"
#include "manager/core/manager_core.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace mosa::manager {
namespace {

InodeRecord SomeInode() {
  InodeRecord record;
  record.attributes.size_bytes = 12345;
  record.attributes.modify_time = Time{-7};
  record.task = "task";
  record.hints = std::string("placement\0slocal\0", 17);
  record.layout = {65536, {{0, 2, {NodeId(1), NodeId(2)}}, {9 * 65536, 1, {NodeId(3)}}}, "because"};
  record.attributes.data_version = 9;
  record.objects = {{NodeId(1), false, 4096, true}, {NodeId(3), true, 8192}};
  record.copies = {{{NodeId(2), 7}, {NodeId(1), 6}}, {}};
  record.may_differ = true;
  record.raised_uncommitted = 2;
  return record;
}

RepliesRecord SomeReplies() {
  return {{EmptyReply{}, Failure{StatusCode::kNotFound, ErrorReason::kNoEntry, "no"},
           EntryReply{{FileId(3), {}}}, AttributesReply{},
           ListDirectoryReply{{{"a", {FileId(4), {}}}}, true, kRootFile},
           MakeReply{{FileId(5), {}}, {}, DataAccess{.inline_data = "x"}, true},
           RemoveReply{FileId(6), 1, {}}, RenameReply{FileId(7), FileId(8), 2},
           ReadSymlinkReply{"target"}, OpenReply{}, BindReply{}, GrantReply{9, 10, 11},
           GetXattrReply{"value"}, ListXattrsReply{{"user.a", "user.b"}},
           GetLockReply{Lock{.type = LockType::kExclusive}}, StatFilesystemReply{1, 2, 3},
           FileIdRangeReply{FileId(10), 11}, AwaitCopiesReply{2, 12, true, 3, true, "full", true}}};
}

TEST(Records, ComeBackAsTheyWere) {
  EXPECT_EQ(*Decode<InodeRecord>("k", Encode(SomeInode())), SomeInode());
  EXPECT_EQ(*Decode<RepliesRecord>("k", Encode(SomeReplies())), SomeReplies());
  EXPECT_EQ(Encode(SomeReplies().replies), Encode(SomeReplies()));
  EXPECT_EQ(SomeReplies().replies.size(), std::variant_size_v<Reply>);
  const ClusterRecord cluster{"c", 1, 77, 3};
  EXPECT_EQ(*Decode<ClusterRecord>("k", Encode(cluster)), cluster);
  const RecoveryRecord recovery{5, 6};
  EXPECT_EQ(*Decode<RecoveryRecord>("k", Encode(recovery)), recovery);
  const GroupRecord group{NodeId(3)};
  EXPECT_EQ(*Decode<GroupRecord>("k", Encode(group)), group);
  const RuleRecord rule{"/a/*", {{"placement", "local"}, {"strict", "1"}}};
  EXPECT_EQ(*Decode<RuleRecord>("k", Encode(rule)), rule);
  const NodeRecord node{{.node = NodeId(4), .name = "n4"}, 1 << 20, true};
  EXPECT_EQ(*Decode<NodeRecord>("k", Encode(node)), node);
  const NodeNotesRecord notes{true, 7};
  EXPECT_EQ(*Decode<NodeNotesRecord>("k", Encode(notes)), notes);
  const WriterBoundsRecord bounds{{{ClientId(1), 2}, {ClientId(3), 4}}};
  EXPECT_EQ(*Decode<WriterBoundsRecord>("k", Encode(bounds)), bounds);
  const CutRepliesRecord cut{RequestId(5)};
  EXPECT_EQ(*Decode<CutRepliesRecord>("k", Encode(cut)), cut);
  const SessionRecord session{"n", "h", "/m"};
  EXPECT_EQ(*Decode<SessionRecord>("k", Encode(session)), session);
}

TEST(Records, OfANewerVersionAreRefusedAndDamagedOnesNameTheirKey) {
  const std::string key = InodeKey(FileId(0x41));
  std::string encoded = Encode(SomeInode());
  const auto cut =
      Decode<InodeRecord>(key, std::string_view(encoded).substr(0, encoded.size() - 1));
  EXPECT_EQ(cut.status().code(), StatusCode::kDataLoss);
  EXPECT_NE(MessageOf(cut.status()).find("'I\\x00\\x00\\x00\\x00\\x00\\x00\\x00A'"),
            std::string::npos);
  EXPECT_EQ(Decode<InodeRecord>(key, encoded + "x").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(Decode<InodeRecord>(key, "").status().code(), StatusCode::kDataLoss);
  ++encoded[0];
  EXPECT_EQ(Decode<InodeRecord>(key, encoded).status().code(), StatusCode::kFailedPrecondition);
}

// Builds the earlier format byte by byte, by removing what it lacked.
TEST(Records, OfOlderVersionsLackWhatCameLater) {
  const NodeRecord node{{.node = NodeId(4), .name = "n4"}, 1 << 20, false};
  std::string encoded = Encode(node);
  encoded[0] = 2;
  encoded.resize(encoded.size() - 9);
  EXPECT_EQ(*Decode<NodeRecord>("k", encoded), node);
  InodeRecord inode = SomeInode();
  inode.objects.clear();  // Each has more bytes now, as copies have.
  inode.copies.clear();
  inode.may_differ = false;
  inode.raised_uncommitted = 0;
  encoded = Encode(inode);
  encoded[0] = 4;
  encoded.resize(encoded.size() - 26);
  EXPECT_EQ(*Decode<InodeRecord>("k", encoded), inode);
  encoded = Encode(inode);
  encoded[0] = 2;
  encoded.resize(encoded.size() - 30);
  EXPECT_EQ(*Decode<InodeRecord>("k", encoded), inode);
}

TEST(Records, OfVersion4HaveNoGenerations) {
  std::string encoded;
  const CountersRecord counters{7};
  encoded = Encode(counters);
  encoded[0] = 4;
  encoded.resize(encoded.size() - 16);
  EXPECT_EQ(*Decode<CountersRecord>("k", encoded), counters);
}

TEST(Records, OfVersion6AreOfNoAbandonedFile) {
  InodeRecord inode = SomeInode();
  inode.objects.clear();
  inode.copies.clear();
  std::string encoded = Encode(inode);
  encoded[0] = 6;
  encoded.resize(encoded.size() - 5);
  EXPECT_EQ(*Decode<InodeRecord>("k", encoded), inode);
  inode.abandoned = true;
  EXPECT_EQ(*Decode<InodeRecord>("k", Encode(inode)), inode);
}

// The index of the first byte that tells two records apart.
template <typename Record>
size_t DifferenceOf(const Record& a, const Record& b) {
  const std::string encoded_a = Encode(a);
  const std::string encoded_b = Encode(b);
  const auto at = std::ranges::mismatch(encoded_a, encoded_b).in1;
  return static_cast<size_t>(at - encoded_a.begin());
}

TEST(Records, OfVersion7MayHoldAnyBytes) {
  InodeRecord inode = SomeInode();
  inode.layout.segments = {{0, 1, {NodeId(1)}}};
  inode.objects = {{.node = NodeId(1), .allocated_bytes = 4096}};
  inode.copies = {{{NodeId(2), 5}}};
  InodeRecord other = inode;
  other.objects[0].holds = ObjectHolds::kBoth;
  other.copies[0][0].uncut = true;
  std::string encoded = Encode(inode);
  InodeRecord cell = inode;
  cell.copies[0][0].was_first = true;
  encoded.erase(DifferenceOf(inode, cell), 1);
  cell.copies = inode.copies;
  cell.copies[0][0].uncut = true;
  encoded.erase(DifferenceOf(inode, cell), 1);
  encoded.erase(DifferenceOf(inode, other), 4);
  encoded.resize(encoded.size() - 4);
  encoded[0] = 7;
  EXPECT_EQ(*Decode<InodeRecord>("k", encoded), other);
}

TEST(Records, KeepStreams) {
  InodeRecord inode = SomeInode();
  inode.stream = StreamPhase::kBroken;
  std::string encoded = Encode(inode);
  EXPECT_EQ(*Decode<InodeRecord>("k", encoded), inode);
  encoded.resize(encoded.size() - 4);
  encoded[0] = 9;
  EXPECT_EQ(*Decode<InodeRecord>("k", encoded), SomeInode());
  OpenReply open;
  open.attributes.stream = StreamState::kOpen;
  MakeReply made;
  made.entry.attributes.stream = StreamState::kEnded;
  const RepliesRecord replies{{open, made}};
  EXPECT_EQ(*Decode<RepliesRecord>("k", Encode(replies)), replies);
}

TEST(Records, KeepWhatMayHoldOtherBytes) {
  InodeRecord inode = SomeInode();
  inode.objects.front().holds = ObjectHolds::kBoth;
  inode.copies[0].front().uncut = true;
  inode.copies[0].front().was_first = true;
  EXPECT_EQ(*Decode<InodeRecord>("k", Encode(inode)), inode);
}

TEST(Records, KeepGenerations) {
  InodeRecord inode = SomeInode();
  inode.generation = 9;
  inode.kept_since = 8;
  EXPECT_EQ(*Decode<InodeRecord>("k", Encode(inode)), inode);
  inode.kept_since = 10;
  EXPECT_FALSE(Decode<InodeRecord>("k", Encode(inode)).ok()) << "from the future";
  const NodeRecord node{{.node = NodeId(4), .name = "n4"}, 1 << 20, true, 6};
  EXPECT_EQ(*Decode<NodeRecord>("k", Encode(node)), node);
  const CountersRecord counters{7, 8, 9};
  EXPECT_EQ(*Decode<CountersRecord>("k", Encode(counters)), counters);
  const RepliesRecord replies{
      {OpenReply{.access = {.generation = 5, .empty_nodes = {NodeId(1), NodeId(2)}}}}};
  EXPECT_EQ(*Decode<RepliesRecord>("k", Encode(replies)), replies);
}

TEST(Records, ThatMakeNoSenseAreDamaged) {
  InodeRecord record = SomeInode();
  record.copies.pop_back();
  EXPECT_FALSE(Decode<InodeRecord>("k", Encode(record)).ok());
  record = SomeInode();
  record.copies[0].pop_back();
  EXPECT_FALSE(Decode<InodeRecord>("k", Encode(record)).ok());
  record = SomeInode();
  record.layout.segments[0].nodes.pop_back();
  EXPECT_FALSE(Decode<InodeRecord>("k", Encode(record)).ok());
  record = SomeInode();
  record.layout.segments[0].width = 0;
  EXPECT_FALSE(Decode<InodeRecord>("k", Encode(record)).ok());
  record = SomeInode();
  record.layout.chunk_bytes = 0;
  EXPECT_FALSE(Decode<InodeRecord>("k", Encode(record)).ok());
  record = SomeInode();
  record.attributes.type = FileType::kDirectory;
  EXPECT_FALSE(Decode<InodeRecord>("k", Encode(record)).ok());
}

// Every image is loaded or refused: truncated, changed or random records never crash the loader.
TEST(Records, OfAnyBytesAreReadOrRefused) {
  const uint64_t seed = 4711;
  RecordProperty("seed", std::to_string(seed));
  Rng rng(seed);
  const std::string sources[] = {Encode(SomeInode()),
                                 Encode(SomeReplies()),
                                 Encode(ClusterRecord{"c", 1, 77, 3}),
                                 Encode(SessionRecord{"n", "h", "/"}),
                                 Encode(GroupRecord{NodeId(3)}),
                                 Encode(RuleRecord{"/a/*", {{"placement", "local"}}})};
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = sources[rng.Below(6)];
    if (rng.Chance(300)) {
      bytes.assign(rng.Below(64), '\0');
      for (char& c : bytes) c = static_cast<char>(rng.Next());
    }
    for (uint64_t flips = rng.Below(4); flips > 0 && !bytes.empty(); --flips)
      bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Next());
    if (rng.Chance(200)) bytes.resize(rng.Below(bytes.size() + 1));
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
}

Status LoadAll(const std::vector<std::pair<std::string, std::string>>& records) {
  ManagerCore core{ManagerOptions{}};
  for (const auto& [key, value] : records) MOSA_RETURN_IF_ERROR(core.LoadRecord(key, value));
  return core.FinishLoad(Time{1});
}

TEST(Records, ThatDoNotHoldTogetherAreRefused) {
  InodeRecord directory;
  directory.attributes.type = FileType::kDirectory;
  directory.attributes.link_count = 1;
  InodeRecord file;
  file.attributes.link_count = 1;
  const std::pair<std::string, std::string> cluster{ClusterKey(),
                                                    Encode(ClusterRecord{"mosa", 1, 100, 1})};
  const std::pair<std::string, std::string> root{InodeKey(kRootFile), Encode(directory)};
  const auto inode = [](uint64_t id, const InodeRecord& record) {
    return std::pair{InodeKey(FileId(id)), Encode(record)};
  };
  const auto entry = [](uint64_t parent, std::string name, uint64_t child) {
    return std::pair{EntryKey(FileId(parent), name), Encode(EntryRecord{FileId(child)})};
  };
  EXPECT_TRUE(LoadAll({cluster, entry(1, "f", 2), root, inode(2, file)}).ok());
  EXPECT_EQ(LoadAll({root}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(LoadAll({cluster}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(LoadAll({cluster, entry(1, "f", 2), root}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(LoadAll({cluster, root, inode(2, file)}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(LoadAll({cluster, entry(1, "f", 200), root, inode(200, file)}).code(),
            StatusCode::kDataLoss);
  EXPECT_EQ(LoadAll({cluster, entry(1, "a/b", 2), root, inode(2, file)}).code(),
            StatusCode::kDataLoss);
  EXPECT_EQ(LoadAll({cluster, entry(2, "d", 3), entry(3, "d", 2), root, inode(2, directory),
                     inode(3, directory)})
                .code(),
            StatusCode::kDataLoss);
  const auto rule = [](uint64_t id, const RuleRecord& record) {
    return std::pair{RuleKey(id), Encode(record)};
  };
  const RuleRecord good{"/a/*", {{"placement", "local"}}};
  EXPECT_TRUE(LoadAll({cluster, rule(1, good), root}).ok());
  for (const RuleRecord& bad :
       {RuleRecord{"a", good.hints}, RuleRecord{"/a", {}}, RuleRecord{"/a", {{"colour", "blue"}}},
        RuleRecord{"/a", {{"chunk_size", "1M"}}}})
    EXPECT_EQ(LoadAll({cluster, rule(1, bad), root}).code(), StatusCode::kDataLoss) << bad.glob;
  // An older version may have allowed it.
  EXPECT_TRUE(LoadAll({cluster, rule(1, {"/a", {{"placement", "near"}}}), root}).ok());
  EXPECT_EQ(LoadAll({cluster, rule(0, good), root}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(LoadAll({cluster, rule(1, good), rule(2, good), root}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(LoadAll({{"Q", ""}}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(LoadAll({{ClusterKey(), Encode(ClusterRecord{"other", 1, 100, 1})}}).code(),
            StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace mosa::manager
