// The namespace: POSIX rules, one sentence each.
#include <gtest/gtest.h>

#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

class CoreNames : public CoreFixture {
 protected:
  CoreNames() { Start(kAnna); }

  RemoveRequest Unlink(FileId parent, std::string name) {
    return {parent, std::move(name), false, false};
  }
  RemoveRequest Rmdir(FileId parent, std::string name) {
    return {parent, std::move(name), true, false};
  }
  RenameRequest Rename(FileId old_parent, std::string old_name, FileId new_parent,
                       std::string new_name) {
    return {.old_parent = old_parent,
            .old_name = std::move(old_name),
            .new_parent = new_parent,
            .new_name = std::move(new_name)};
  }
  Attributes AttributesOf(FileId file) {
    return Ok<AttributesReply>(kAnna, GetAttributesRequest{file}).attributes;
  }
};

TEST_F(CoreNames, EveryTypeOfFileCanBeMadeAndFound) {
  for (const FileType type :
       {FileType::kRegular, FileType::kDirectory, FileType::kSymlink, FileType::kFifo,
        FileType::kSocket, FileType::kCharacterDevice, FileType::kBlockDevice}) {
    const std::string name = "t" + std::to_string(static_cast<int>(type));
    MakeRequest request = MakeOf(kAnna, kRootFile, name, type);
    request.device = 77;
    const auto made = Ok<MakeReply>(kAnna, request);
    const auto found = Ok<EntryReply>(kAnna, LookupRequest{kRootFile, name});
    EXPECT_EQ(found.entry, made.entry);
    EXPECT_EQ(found.entry.attributes.type, type);
    const bool device = type == FileType::kCharacterDevice || type == FileType::kBlockDevice;
    EXPECT_EQ(found.entry.attributes.device, device ? 77U : 0U);
    EXPECT_EQ(found.entry.attributes.link_count, type == FileType::kDirectory ? 2U : 1U);
  }
  EXPECT_EQ(AttributesOf(kRootFile).size_bytes, 7U);
  EXPECT_EQ(AttributesOf(kRootFile).link_count, 3U);
}

TEST_F(CoreNames, BadNamesAreRefused) {
  const struct {
    std::string name;
    ErrorReason expected;
  } rows[] = {{"", ErrorReason::kInvalid},
              {"a/b", ErrorReason::kInvalid},
              {std::string("a\0b", 3), ErrorReason::kInvalid},
              {std::string(256, 'x'), ErrorReason::kNameTooLong},
              {".", ErrorReason::kExists},
              {"..", ErrorReason::kExists},
              {std::string(255, '\xff'), ErrorReason::kNone},
              {"\n", ErrorReason::kNone}};
  for (const auto& row : rows)
    EXPECT_EQ(Refused(kAnna, MakeOf(kAnna, kRootFile, row.name)), row.expected) << row.name.size();
}

TEST_F(CoreNames, DotAndDotDotAreAnswered) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  EXPECT_EQ(Ok<EntryReply>(kAnna, LookupRequest{d, "."}).entry.file, d);
  EXPECT_EQ(Ok<EntryReply>(kAnna, LookupRequest{d, ".."}).entry.file, kRootFile);
  EXPECT_EQ(Ok<EntryReply>(kAnna, LookupRequest{kRootFile, ".."}).entry.file, kRootFile);
}

TEST_F(CoreNames, AnExistingNameOrUnknownIdIsNotMade) {
  Make(kAnna, kRootFile, "f");
  EXPECT_EQ(Refused(kAnna, MakeOf(kAnna, kRootFile, "f")), ErrorReason::kExists);
  MakeRequest request = MakeOf(kAnna, kRootFile, "g");
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    request.file = FileId(id);
    EXPECT_EQ(Refused(kAnna, request), ErrorReason::kInvalid);
  }
  EXPECT_EQ(Refused(kAnna, MakeOf(kAnna, FileId(999), "g")), ErrorReason::kStale);
  const FileId f = Make(kAnna, kRootFile, "h");
  EXPECT_EQ(Refused(kAnna, MakeOf(kAnna, f, "g")), ErrorReason::kNotDirectory);
}

TEST_F(CoreNames, SetGidOfADirectoryIsInherited) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  Ok<AttributesReply>(kAnna, SetAttributesRequest{.file = d, .permissions = 02775, .gid = 42});
  EXPECT_EQ(AttributesOf(Make(kAnna, d, "f")).gid, 42U);
  EXPECT_EQ(AttributesOf(Make(kAnna, d, "f2")).permissions, 0644U);
  const Attributes sub = AttributesOf(Make(kAnna, d, "e", FileType::kDirectory));
  EXPECT_EQ(sub.gid, 42U);
  EXPECT_EQ(sub.permissions, 02755U);
}

TEST_F(CoreNames, TimesComeFromTheMakerButNotFromTheFutureOrBeforeTime) {
  MakeRequest request = MakeOf(kAnna, kRootFile, "late");
  request.now = now_ + Seconds(100);
  EXPECT_EQ(Ok<MakeReply>(kAnna, request).entry.attributes.birth_time, now_);
  request = MakeOf(kAnna, kRootFile, "deferred");
  request.now = now_ - Nanoseconds(123'456'789);
  EXPECT_EQ(Ok<MakeReply>(kAnna, request).entry.attributes.modify_time, request.now);
  request = MakeOf(kAnna, kRootFile, "early");
  request.now = Time{-5};
  const auto early = Ok<MakeReply>(kAnna, request);
  EXPECT_EQ(early.entry.attributes.birth_time, Time{0});
  EXPECT_EQ(early.parent_attributes.modify_time, now_);
}

TEST_F(CoreNames, LinksShareTheFileUntilTheLastIsGone) {
  const FileId f = Make(kAnna, kRootFile, "f");
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  EXPECT_EQ(Ok<EntryReply>(kAnna, LinkRequest{f, d, "g"}).entry.attributes.link_count, 2U);
  EXPECT_EQ(Refused(kAnna, LinkRequest{f, d, "g"}), ErrorReason::kExists);
  EXPECT_EQ(Refused(kAnna, LinkRequest{d, kRootFile, "h"}), ErrorReason::kNotPermitted);
  EXPECT_EQ(Ok<RemoveReply>(kAnna, Unlink(kRootFile, "f")).links_left, 1U);
  EXPECT_EQ(AttributesOf(f).link_count, 1U);
  EXPECT_EQ(Ok<RemoveReply>(kAnna, Unlink(d, "g")).links_left, 0U);
  EXPECT_EQ(Refused(kAnna, GetAttributesRequest{f}), ErrorReason::kStale);
}

TEST_F(CoreNames, RemovingRespectsTypesAndContents) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  Make(kAnna, d, "f");
  EXPECT_EQ(Refused(kAnna, Unlink(kRootFile, "d")), ErrorReason::kIsDirectory);
  EXPECT_EQ(Refused(kAnna, Rmdir(kRootFile, "d")), ErrorReason::kNotEmpty);
  EXPECT_EQ(Refused(kAnna, Rmdir(d, "f")), ErrorReason::kNotDirectory);
  EXPECT_EQ(Refused(kAnna, Unlink(d, "absent")), ErrorReason::kNoEntry);
  Ok<RemoveReply>(kAnna, Unlink(d, "f"));
  Ok<RemoveReply>(kAnna, Rmdir(kRootFile, "d"));
  EXPECT_EQ(AttributesOf(kRootFile).link_count, 2U);
  EXPECT_EQ(Refused(kAnna, MakeOf(kAnna, d, "x")), ErrorReason::kStale);
}

TEST_F(CoreNames, RenameReplacesWhatMayBeReplaced) {
  const FileId f = Make(kAnna, kRootFile, "f");
  const FileId g = Make(kAnna, kRootFile, "g");
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  const FileId e = Make(kAnna, kRootFile, "e", FileType::kDirectory);
  const auto reply = Ok<RenameReply>(kAnna, Rename(kRootFile, "f", kRootFile, "g"));
  EXPECT_EQ(reply.moved, f);
  EXPECT_EQ(reply.replaced, g);
  EXPECT_EQ(reply.replaced_links_left, 0U);
  EXPECT_EQ(Refused(kAnna, Rename(kRootFile, "g", kRootFile, "d")), ErrorReason::kIsDirectory);
  EXPECT_EQ(Refused(kAnna, Rename(kRootFile, "d", kRootFile, "g")), ErrorReason::kNotDirectory);
  Make(kAnna, e, "inside");
  EXPECT_EQ(Refused(kAnna, Rename(kRootFile, "d", kRootFile, "e")), ErrorReason::kNotEmpty);
  EXPECT_EQ(Ok<RenameReply>(kAnna, Rename(kRootFile, "e", kRootFile, "d")).replaced, d);
  EXPECT_EQ(Refused(kAnna, Rename(kRootFile, "d", e, "below")), ErrorReason::kInvalid);
  EXPECT_EQ(Refused(kAnna, Rename(kRootFile, "absent", kRootFile, "x")), ErrorReason::kNoEntry);
  EXPECT_EQ(AttributesOf(kRootFile).link_count, 3U);
}

TEST_F(CoreNames, RenameKnowsItsFlags) {
  const FileId f = Make(kAnna, kRootFile, "f");
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  const FileId g = Make(kAnna, d, "g", FileType::kDirectory);
  RenameRequest request = Rename(kRootFile, "f", d, "g");
  request.no_replace = true;
  EXPECT_EQ(Refused(kAnna, request), ErrorReason::kExists);
  request.exchange = true;
  EXPECT_EQ(Refused(kAnna, request), ErrorReason::kInvalid);
  request.no_replace = false;
  Ok<RenameReply>(kAnna, request);
  EXPECT_EQ(Ok<EntryReply>(kAnna, LookupRequest{d, "g"}).entry.file, f);
  EXPECT_EQ(Ok<EntryReply>(kAnna, LookupRequest{kRootFile, "f"}).entry.file, g);
  EXPECT_EQ(Ok<EntryReply>(kAnna, LookupRequest{g, ".."}).entry.file, kRootFile);
  EXPECT_EQ(AttributesOf(d).link_count, 2U);
  request = Rename(kRootFile, "d", d, "g");
  request.exchange = true;
  EXPECT_EQ(Refused(kAnna, request), ErrorReason::kInvalid);
}

TEST_F(CoreNames, RenameBetweenNamesOfOneFileChangesNothing) {
  const FileId f = Make(kAnna, kRootFile, "f");
  Ok<EntryReply>(kAnna, LinkRequest{f, kRootFile, "g"});
  EXPECT_EQ(Ok<RenameReply>(kAnna, Rename(kRootFile, "f", kRootFile, "g")).replaced, f);
  EXPECT_EQ(AttributesOf(f).link_count, 2U);
}

TEST_F(CoreNames, DirectoriesAreListedInPages) {
  for (int i = 0; i < 25; ++i) Make(kAnna, kRootFile, "f" + std::to_string(100 + i));
  std::string after;
  size_t seen = 0;
  while (true) {
    const auto page = Ok<ListDirectoryReply>(kAnna, ListDirectoryRequest{kRootFile, after, 10});
    for (const auto& item : page.items) {
      EXPECT_LT(after, item.name);
      after = item.name;
      ++seen;
    }
    if (!page.more) break;
  }
  EXPECT_EQ(seen, 25U);
}

TEST_F(CoreNames, AttributesAreSetAsAsked) {
  const FileId f = Make(kAnna, kRootFile, "f");
  now_ = now_ + Seconds(1);
  SetAttributesRequest request{.file = f, .permissions = 0107777, .uid = 5, .gid = 6};
  request.access_time = Time{-1'000'000'001};
  request.modify_time_now = true;
  const Attributes a = Ok<AttributesReply>(kAnna, request).attributes;
  EXPECT_EQ(a.permissions, 07777U);
  EXPECT_EQ(a.access_time, Time{-1'000'000'001});
  EXPECT_EQ(a.modify_time, now_);
  EXPECT_EQ(a.change_time, now_);
  EXPECT_EQ(Refused(kAnna, SetAttributesRequest{.file = f, .size_bytes = kFileBytesMax + 1}),
            ErrorReason::kTooBig);
  EXPECT_EQ(Refused(kAnna, SetAttributesRequest{.file = kRootFile, .size_bytes = 0}),
            ErrorReason::kIsDirectory);
  const FileId link = Make(kAnna, kRootFile, "l", FileType::kSymlink);
  EXPECT_EQ(Ok<ReadSymlinkReply>(kAnna, ReadSymlinkRequest{link}).target, "target");
  EXPECT_EQ(Refused(kAnna, ReadSymlinkRequest{f}), ErrorReason::kInvalid);
}

TEST_F(CoreNames, ABatchStopsAtItsFirstFailureAndWhatCameBeforeStands) {
  const auto replies = Call(kAnna, {MakeOf(kAnna, kRootFile, "a"), MakeOf(kAnna, kRootFile, "a"),
                                    MakeOf(kAnna, kRootFile, "b")});
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<MakeReply>(replies[0]));
  EXPECT_EQ(std::get<Failure>(replies[1]).reason, ErrorReason::kExists);
  EXPECT_EQ(Refused(kAnna, LookupRequest{kRootFile, "b"}), ErrorReason::kNoEntry);
}

// A message of a few kilobytes must not cause an answer of gigabytes.
TEST_F(CoreNames, ABatchStopsWhereItsRepliesGrowTooLarge) {
  const std::string name(200, 'n');
  for (int i = 0; i < 2000; ++i) Make(kAnna, kRootFile, name + std::to_string(i));
  const std::vector<Request> lists(4096, ListDirectoryRequest{kRootFile, "", 4096});
  const auto replies = Call(kAnna, lists);
  ASSERT_LT(replies.size(), 100U);
  ASSERT_GT(replies.size(), 2U);
  EXPECT_EQ(std::get<Failure>(replies.back()).reason, ErrorReason::kArgumentTooBig);
  EXPECT_EQ(std::get<ListDirectoryReply>(replies.front()).items.size(), 2000U);
}

TEST_F(CoreNames, StatusIsFoundByPath) {
  const FileId d = Make(kAnna, kRootFile, "d", FileType::kDirectory);
  const FileId f = Make(kAnna, d, "f");
  EXPECT_EQ(core_->GetFileStatus("/d/f")->entry.file, f);
  EXPECT_EQ(core_->GetFileStatus("//d/./../d/")->entry.file, d);
  EXPECT_NE(MessageOf(core_->GetFileStatus("/d/x/y").status()).find("'/d/x'"), std::string::npos);
  EXPECT_FALSE(core_->GetFileStatus("/d/f/g").ok());
  EXPECT_FALSE(core_->GetFileStatus("d").ok());
}

}  // namespace
}  // namespace mosa::manager
