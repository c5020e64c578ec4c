// Directories in which two mounts make files at once.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "client-sai/core/shared_names.h"
#include "client-sai/sai/cluster_fixture.h"

namespace mosa::sai {
namespace {

// Two mounts make files in one directory in turns, until it is shared.
void Share(Cluster& cluster) {
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/a" + std::to_string(i), "x")));
    ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/b" + std::to_string(i), "x")));
  }
}

TEST(SharedDirectories, AFileThatIsBeingMadeIsFoundWithWhatItHas) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  Share(cluster);
  const auto made = cluster.a().Open("/d/new", O_WRONLY | O_CREAT | O_EXCL);
  ASSERT_TRUE(Ok(made));
  ASSERT_TRUE(Ok(cluster.a().Write(made->handle, 0, "half")));
  EXPECT_EQ(cluster.a().Stat("/d/new")->size_bytes, 4u);  // Known here only.
  EXPECT_EQ(ReasonOf(cluster.b().Open("/d/new", O_WRONLY | O_CREAT | O_EXCL)),
            ErrorReason::kExists);
  EXPECT_EQ(*cluster.b().ReadFile("/d/new"), "half");
  ASSERT_TRUE(Ok(cluster.a().Write(made->handle, 4, " whole")));
  ASSERT_TRUE(Ok(cluster.a().Close(made->handle)));
  EXPECT_EQ(*cluster.b().ReadFile("/d/new"), "half whole");
}

TEST(SharedDirectories, AListingHasWhatOthersAreMaking) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  Share(cluster);
  const auto by_a = cluster.a().Open("/d/of a", O_WRONLY | O_CREAT);
  const auto by_b = cluster.b().Open("/d/of b", O_WRONLY | O_CREAT);
  ASSERT_TRUE(Ok(by_a) && Ok(by_b));
  for (LocalMount* mount : {&cluster.a(), &cluster.b()}) {
    const auto names = mount->List("/d");
    ASSERT_TRUE(Ok(names));
    EXPECT_EQ(std::ranges::count(*names, "of a"), 1);
    EXPECT_EQ(std::ranges::count(*names, "of b"), 1);
  }
  ASSERT_TRUE(Ok(cluster.a().Close(by_a->handle)));
  ASSERT_TRUE(Ok(cluster.b().Close(by_b->handle)));
}

// Its own changes at once; those of others after a tenth of a second at most.
TEST(SharedDirectories, TheirAttributesFollow) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  Share(cluster);
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  const uint64_t before = cluster.a().Stat("/d")->size_bytes;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/mine", "x")));
  EXPECT_EQ(cluster.a().Stat("/d")->size_bytes, before + 1);
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/theirs", "x")));
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  EXPECT_EQ(cluster.a().Stat("/d")->size_bytes, before + 2);
  const auto result = cluster.a().fs().GetAttributes(*cluster.a().Find("/d"));
  ASSERT_TRUE(Ok(result));
  EXPECT_LE(result->attributes_valid, kSharedAttributesFor);
  ASSERT_TRUE(Ok(cluster.a().Unlink("/d/mine")));
  EXPECT_EQ(cluster.a().Stat("/d")->size_bytes, before + 1);
}

TEST(SharedDirectories, TheKernelKeepsNoNameOfThem) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  Share(cluster);
  const FileId directory = *cluster.a().Find("/d");
  EXPECT_EQ(cluster.a().fs().Lookup(directory, "b0")->entry_valid, Duration{});
  EXPECT_EQ(cluster.a().fs().Lookup(directory, "none")->entry_valid, Duration{});
  ASSERT_TRUE(Ok(cluster.b().Rename("/d/b0", "/d/none")));
  EXPECT_EQ(cluster.a().fs().Lookup(directory, "b0")->entry.file, FileId{});
  EXPECT_NE(cluster.a().fs().Lookup(directory, "none")->entry.file, FileId{});
}

// What was seen is believed only while nobody else has changed the file, however it is known since.
TEST(SharedDirectories, ASeenNameEndsWithAnyChangeByOthers) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  Share(cluster);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d/sub")));
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/sub/f", "x")));
  const FileId a0 = *cluster.a().Find("/d/a0");
  ASSERT_TRUE(Ok(cluster.a().Find("/d/sub")));
  // Renamed, and seen again under its new name.
  ASSERT_TRUE(Ok(cluster.b().Rename("/d/a0", "/d/moved")));
  EXPECT_EQ(*cluster.a().Find("/d/moved"), a0);
  EXPECT_EQ(ReasonOf(cluster.a().Find("/d/a0")), ErrorReason::kNoEntry);
  // Another file has the name.
  ASSERT_TRUE(Ok(cluster.a().Find("/d/a1")));
  ASSERT_TRUE(Ok(cluster.b().Rename("/d/moved", "/d/a1")));
  EXPECT_EQ(*cluster.a().Find("/d/a1"), a0);
  // One of two names is gone, and the attributes are known by the other.
  const FileId d = *cluster.a().Find("/d");
  ASSERT_TRUE(Ok(cluster.b().fs().Link(a0, d, "second")));
  EXPECT_EQ(*cluster.a().Find("/d/a1"), a0);
  ASSERT_TRUE(Ok(cluster.b().Unlink("/d/a1")));
  EXPECT_EQ(*cluster.a().Find("/d/second"), a0);
  EXPECT_EQ(ReasonOf(cluster.a().Find("/d/a1")), ErrorReason::kNoEntry);
  // A directory.
  ASSERT_TRUE(Ok(cluster.b().Rename("/d/sub", "/d/other")));
  EXPECT_EQ(ReasonOf(cluster.a().Find("/d/sub/f")), ErrorReason::kNoEntry);
  EXPECT_TRUE(Ok(cluster.a().Find("/d/other/f")));
  // Its own changes count, too.
  ASSERT_TRUE(Ok(cluster.a().Rename("/d/second", "/d/third")));
  EXPECT_EQ(ReasonOf(cluster.a().Find("/d/second")), ErrorReason::kNoEntry);
  ASSERT_TRUE(Ok(cluster.a().Unlink("/d/third")));
  EXPECT_EQ(ReasonOf(cluster.a().Find("/d/third")), ErrorReason::kNoEntry);
}

// The mount that makes a file finds it, though it had listed the directory before.
TEST(SharedDirectories, AReservedNameOfAListedDirectoryIsFound) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/other")));
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/other/t", "t")));
  Share(cluster);
  EXPECT_FALSE(cluster.a().Stat("/d/z").ok());              // Reserved.
  ASSERT_TRUE(Ok(cluster.a().Rename("/other/t", "/d/t")));  // Gives interest.
  ASSERT_TRUE(Ok(cluster.a().List("/d")));                  // All names are known.
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/z", "z")));
  EXPECT_EQ(*cluster.a().ReadFile("/d/z"), "z");
  EXPECT_EQ(std::ranges::count(*cluster.a().List("/d"), "z"), 1);
  EXPECT_EQ(*cluster.b().ReadFile("/d/z"), "z");
}

// Nobody is told when a shared directory is renamed, so its name is not kept.
TEST(SharedDirectories, TheNameOfOneInAnotherIsAskedForEachTime) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  Share(cluster);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d/d")));
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/d/a" + std::to_string(i), "x")));
    ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/d/b" + std::to_string(i), "x")));
  }
  const FileId inner = *cluster.a().Find("/d/d");
  ASSERT_TRUE(Ok(cluster.b().Rename("/d/d", "/d/e")));
  std::this_thread::sleep_for(std::chrono::milliseconds(2200));  // It is not shared any more.
  ASSERT_TRUE(Ok(cluster.a().fs().GetAttributes(inner)));
  EXPECT_EQ(ReasonOf(cluster.a().Find("/d/d")), ErrorReason::kNoEntry);
}

// The mount that renames a file need not have interest in it.
TEST(SharedDirectories, ANameThatTheMountGaveIsOthersToTake) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  Share(cluster);
  const FileId file = *cluster.a().Find("/d/b0");
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/b0", "longer")));  // Ends a's interest.
  ASSERT_TRUE(Ok(cluster.a().Rename("/d/b0", "/d/y")));
  ASSERT_TRUE(Ok(cluster.b().Rename("/d/y", "/d/z")));
  EXPECT_EQ(*cluster.a().Find("/d/z"), file);
  EXPECT_EQ(ReasonOf(cluster.a().Find("/d/y")), ErrorReason::kNoEntry);
}

TEST(SharedNames, LateAnswersDoNotUndoWhatCameAfter) {
  SharedNames names;
  names.Note(true);
  names.Reserve("x", 7, 10);
  EXPECT_FALSE(names.Take("x", 8));
  EXPECT_TRUE(names.Take("x", 7));
  EXPECT_FALSE(names.IsFree("x"));
  EXPECT_TRUE(names.taken().contains("x"));
  names.End("x", 20);  // It was made.
  names.Reserve("x", 7, 15);
  names.Saw("x", {FileId{3}, 15}, 15);
  EXPECT_FALSE(names.IsFree("x"));
  EXPECT_EQ(names.LastSeen("x").file, FileId{});
  names.Saw("x", {FileId{3}, 20}, 20);
  EXPECT_EQ(names.LastSeen("x").file, FileId{3});
  names.Saw("x", {FileId{}, 25}, 25);  // That there is none is not kept.
  EXPECT_FALSE(names.LastSeen("x").log_mark);
  // Nor when so many names have ended that they are not all remembered.
  for (uint64_t i = 0; i < 3000; ++i) names.End(std::to_string(i), 30 + i);
  names.Reserve("x", 7, 1000);
  EXPECT_FALSE(names.IsFree("x"));
  names.Reserve("x", 7, 3030);
  EXPECT_TRUE(names.IsFree("x"));
  names.Clear();
  EXPECT_FALSE(names.IsFree("x"));
}

// A removal that meets nothing, or another file, says nothing of later files of the name.
TEST(SharedDirectories, ANameThatWasGoneIsFoundWhenItIsBack) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  Share(cluster);
  const FileId d = *cluster.a().Find("/d");
  ASSERT_TRUE(Ok(cluster.a().Find("/d/b0")));
  ASSERT_TRUE(Ok(cluster.b().Unlink("/d/b0")));
  EXPECT_EQ(ReasonOf(cluster.a().fs().Unlink(d, "b0")), ErrorReason::kNoEntry);
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/b0", "again")));
  EXPECT_EQ(*cluster.a().ReadFile("/d/b0"), "again");
  ASSERT_TRUE(Ok(cluster.b().Rename("/d/b1", "/d/b0")));
  EXPECT_TRUE(Ok(cluster.a().fs().Unlink(d, "b0")));
  EXPECT_EQ(ReasonOf(cluster.b().Find("/d/b0")), ErrorReason::kNoEntry);
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/b0", "third")));
  EXPECT_EQ(*cluster.a().ReadFile("/d/b0"), "third");
}

// A name that a mount had reserved and did not use is another's.
TEST(SharedDirectories, AFailedCreateLeavesTheNameToOthers) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  Share(cluster);
  EXPECT_FALSE(cluster.a().Stat("/d/x").ok());
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/d/x", "b")));
  EXPECT_EQ(ReasonOf(cluster.a().Open("/d/x", O_WRONLY | O_CREAT | O_EXCL)), ErrorReason::kExists);
  EXPECT_EQ(*cluster.a().ReadFile("/d/x"), "b");
  // Nor does it stand in the way of other kinds of files, or of a rename.
  EXPECT_FALSE(cluster.a().Stat("/d/y").ok());
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d/y")));
  EXPECT_FALSE(cluster.a().Stat("/d/z").ok());
  ASSERT_TRUE(Ok(cluster.a().Rename("/d/x", "/d/z")));
  EXPECT_EQ(*cluster.b().ReadFile("/d/z"), "b");
}

// It works beside others from the start.
TEST(Names, AMountThatFindsADirectoryOfAnotherKeepsNoNames) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d/e")));
  EXPECT_GT(cluster.a().fs().Lookup(*cluster.a().Find("/d"), "e")->entry_valid, Duration{});
  const FileId directory = *cluster.b().Find("/d");
  EXPECT_EQ(cluster.b().fs().Lookup(directory, "e")->entry_valid, Duration{});
  EXPECT_EQ(cluster.b().fs().Lookup(directory, "absent")->entry_valid, Duration{});
}

}  // namespace
}  // namespace mosa::sai
