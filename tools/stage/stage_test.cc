#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tools/stage/copy.h"
#include "tools/stage/plan.h"
#include "tools/stage/tree.h"
#include "tools/stage/workers.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// ---- which host copies what

TEST(ShareOut, GivesAFileToItsHolderAndBalancesTheRest) {
  const struct {
    std::vector<StageShare> files;
    size_t hosts;
    std::vector<size_t> expected;
  } rows[] = {
      {{}, 2, {}},
      {{{10, {1}}, {10, {1}}, {10, {0}}}, 2, {1, 1, 0}},
      // Striped over both: to the one with less to do, the larger first.
      {{{1 << 20, {0, 1}}, {9 << 20, {0, 1}}, {2 << 20, {0, 1}}}, 2, {1, 0, 1}},
      // Nobody holds them, and they are empty: still shared out.
      {{{0, {}}, {0, {}}, {0, {}}}, 3, {0, 1, 2}},
      {{{5 << 20, {0}}, {1 << 20, {}}}, 2, {0, 1}},
  };
  for (const auto& row : rows) EXPECT_EQ(ShareOut(row.files, row.hosts), row.expected);
}

TEST(RefusalFor, SaysHowManyWhichAndWhatToDo) {
  UnstagedFiles unstaged{.files = 5, .bytes = 3 << 20, .first = {}};
  unstaged.first = {{"/a", FileId{2}, 1}, {"/b/c", FileId{3}, 1}};
  EXPECT_EQ(RefusalFor(unstaged, "cluster 'x'", "mosa stage out --unstaged DIR", "--discard"),
            "cluster 'x' holds 5 files of lifetime=keep, 3.0 MiB, that are nowhere else (/a, /b/c, "
            "...): copy them out with 'mosa stage out --unstaged DIR', or give them up with "
            "--discard");
  unstaged = {.files = 1, .bytes = 7, .first = {{"/a", FileId{2}, 7}}};
  EXPECT_EQ(RefusalFor(unstaged, "the store", "mosa", ""),
            "the store holds a file of lifetime=keep, 7 B, that is nowhere else (/a): copy it out "
            "with 'mosa'");
}

TEST(WarningFor, SaysWhatGoesWhereNobodyWantsAnythingKept) {
  UnstagedFiles unstaged{.files = 0, .bytes = 0, .first = {}};
  EXPECT_EQ(WarningFor(unstaged), "");
  unstaged.all_files = 19;
  unstaged.all_bytes = 130 << 20;
  EXPECT_EQ(WarningFor(unstaged),
            "No file was marked to be kept: 19 files, 130.0 MiB, end with the store; copy results "
            "out, or mark them with lifetime=keep before they are written");
  unstaged.kept_files = 1;
  EXPECT_EQ(WarningFor(unstaged),
            "18 of 19 files are not marked to be kept, and end with the store");
  unstaged.kept_files = 18;
  EXPECT_EQ(WarningFor(unstaged),
            "1 of 19 files is not marked to be kept, and ends with the store");
  unstaged.kept_files = 19;
  EXPECT_EQ(WarningFor(unstaged), "");
}

// ---- one file

class StageFiles : public testing::Test {
 protected:
  StageFiles() {
    std::string name = fs::temp_directory_path() / "mosa-stage-test-XXXXXX";
    root_ = mkdtemp(name.data());
    fs::create_directories(root_ + "/in");
    fs::create_directories(root_ + "/out");
  }
  ~StageFiles() override { fs::remove_all(root_); }

  std::string In(const std::string& name) const { return root_ + "/in/" + name; }
  std::string Out(const std::string& name) const { return root_ + "/out/" + name; }
  void Write(const std::string& path, const std::string& text) const {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string Read(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  CopyJob JobOf(const std::string& name) const {
    return {.source = In(name),
            .target = Out(name),
            .temporary = Out(".mosa-stage-x-y-0"),
            .hints = {},
            .sync = true,
            .compare = false};
  }
  std::vector<std::string> Names(const std::string& directory) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory))
      names.push_back(entry.path().filename());
    return names;
  }
  std::string root_;
};

TEST_F(StageFiles, ACopyHasBytesModeAndTimesOfItsSource) {
  Write(In("f"), std::string(3'000'003, 'x'));
  chmod(In("f").c_str(), 04751);
  const timespec times[] = {{1'000'000'001, 123'456'789}, {1'000'000'002, 987'654'321}};
  utimensat(AT_FDCWD, In("f").c_str(), times, 0);
  const auto copied = CopyFile(JobOf("f"));
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_FALSE(copied->skipped);
  EXPECT_EQ(copied->size_bytes, 3'000'003U);
  EXPECT_EQ(Read(Out("f")), Read(In("f")));
  struct stat status {};
  ASSERT_EQ(stat(Out("f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 04751U);
  EXPECT_EQ(status.st_mtim.tv_sec, 1'000'000'002);
  EXPECT_EQ(status.st_mtim.tv_nsec, 987'654'321);
  EXPECT_THAT(Names(root_ + "/out"), ElementsAre("f"));
}

TEST_F(StageFiles, HolesStayHoles) {
  const int fd = open(In("f").c_str(), O_WRONLY | O_CREAT, 0644);
  ASSERT_EQ(pwrite(fd, "a", 1, 5 << 20), 1);
  ASSERT_EQ(ftruncate(fd, 9 << 20), 0);
  close(fd);
  const auto copied = CopyFile(JobOf("f"));
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(Read(Out("f")), Read(In("f")));
  struct stat from {
  }, to{};
  stat(In("f").c_str(), &from);
  stat(Out("f").c_str(), &to);
  EXPECT_LE(to.st_blocks, from.st_blocks + 64);
}

TEST_F(StageFiles, WhatIsEqualIsSkippedAndWhatIsNotIsReplaced) {
  Write(In("f"), "one");
  ASSERT_TRUE(CopyFile(JobOf("f")).ok());
  auto again = CopyFile(JobOf("f"));
  EXPECT_TRUE(again->skipped);
  Write(In("f"), "two");
  again = CopyFile(JobOf("f"));
  EXPECT_FALSE(again->skipped);
  EXPECT_EQ(Read(Out("f")), "two");
  chmod(In("f").c_str(), 0600);
  again = CopyFile(JobOf("f"));
  EXPECT_TRUE(again->skipped);
  struct stat status {};
  stat(Out("f").c_str(), &status);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
}

TEST_F(StageFiles, OnlyACopyOfTheSameStateIsBelievedUnread) {
  Write(In("f"), "one");
  const auto first = CopyFile(JobOf("f"));
  struct stat status {};
  stat(In("f").c_str(), &status);
  EXPECT_EQ(first->inode, status.st_ino);
  auto again = CopyFile(JobOf("f"));
  EXPECT_TRUE(again->skipped && !again->crc32c);
  EXPECT_EQ(again->inode, status.st_ino);
  // Other bytes with the same size and time. Two changes within one tick of the kernel's clock have
  // one time.
  constexpr useconds_t kTickUs = 20'000;
  usleep(kTickUs);
  const timespec times[] = {status.st_atim, status.st_mtim};
  Write(In("f"), "two");
  utimensat(AT_FDCWD, In("f").c_str(), times, 0);
  EXPECT_FALSE(CopyFile(JobOf("f"))->skipped);
  EXPECT_EQ(Read(Out("f")), "two");
  // Another state with the same bytes is read once.
  usleep(kTickUs);
  chmod(In("f").c_str(), 0640);
  again = CopyFile(JobOf("f"));
  EXPECT_TRUE(again->skipped && again->crc32c);
  again = CopyFile(JobOf("f"));
  EXPECT_TRUE(again->skipped && !again->crc32c);
}

// As root of a container, or on a backend that takes root for nobody: runs `body` without the right
// to give files away.
void WithoutChown(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    syscall(SYS_capget, &header, data);
    data[0].effective &= ~(1U << CAP_CHOWN);
    syscall(SYS_capset, &header, data);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(StageFiles, AnotherOwnerGetsNoRightsOfTheSourcesOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make somebody else's files";
  Write(In("f"), "#!/bin/sh");
  fs::create_directory(In("d"));
  for (const std::string& path : {In("f"), In("d")}) {
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    chmod(path.c_str(), 06755);
  }
  WithoutChown([&] {
    const auto copied = CopyFile(JobOf("f"));
    EXPECT_TRUE(copied.ok()) << copied.status();
    EXPECT_TRUE(CopyFile(JobOf("f"))->skipped);
    StageTree tree(".mosa-stage-run-", ".mosa-stage-run-own-", 0);
    tree.Add(In("d"), Out("d"));
    tree.FinishDirectories();
    EXPECT_TRUE(tree.failures().empty());
    for (const std::string& path : {Out("f"), Out("d")}) {
      struct stat status {};
      stat(path.c_str(), &status);
      EXPECT_EQ(status.st_uid, 0U);
      EXPECT_EQ(status.st_mode & 07777, 0755U);
    }
  });
  ASSERT_TRUE(CopyFile(JobOf("f"))->skipped);
  struct stat status {};
  stat(Out("f").c_str(), &status);
  EXPECT_EQ(status.st_uid, 12345U);
  EXPECT_EQ(status.st_mode & 07777, 06755U);
}

TEST_F(StageFiles, ComparingFindsOtherBytesBehindEqualTimes) {
  Write(In("f"), "one");
  ASSERT_TRUE(CopyFile(JobOf("f")).ok());
  struct stat status {};
  stat(In("f").c_str(), &status);
  Write(Out("f"), "bad");
  const timespec times[] = {status.st_ctim, status.st_mtim};
  utimensat(AT_FDCWD, Out("f").c_str(), times, 0);
  EXPECT_TRUE(CopyFile(JobOf("f"))->skipped);
  CopyJob job = JobOf("f");
  job.compare = true;
  EXPECT_FALSE(CopyFile(job)->skipped);
  EXPECT_EQ(Read(Out("f")), "one");
  EXPECT_TRUE(CopyFile(job)->skipped);
}

TEST_F(StageFiles, LinksAreCopiedAsLinks) {
  fs::create_symlink("no/where", In("l"));
  ASSERT_TRUE(CopyFile(JobOf("l")).ok());
  EXPECT_EQ(fs::read_symlink(Out("l")), "no/where");
  EXPECT_TRUE(CopyFile(JobOf("l"))->skipped);
}

TEST_F(StageFiles, AFailureNamesTheFileAndLeavesNothing) {
  const auto fails = [&](const CopyJob& job, StatusCode code, const std::string& file) {
    const auto copied = CopyFile(job);
    EXPECT_EQ(copied.status().code(), code) << copied.status();
    EXPECT_THAT(MessageOf(copied.status()), HasSubstr(file));
  };
  fails(JobOf("none"), StatusCode::kNotFound, In("none"));
  mkfifo(In("pipe").c_str(), 0600);
  fails(JobOf("pipe"), StatusCode::kFailedPrecondition, In("pipe"));
  Write(In("dir"), "x");
  fs::create_directory(Out("dir"));
  fails(JobOf("dir"), StatusCode::kFailedPrecondition, Out("dir"));
  Write(In("f"), "x");
  CopyJob full = JobOf("f");
  full.target = "/dev/full/f";
  full.temporary = "/dev/full/t";
  fails(full, StatusCode::kFailedPrecondition, "/dev/full/f");
  CopyJob hinted = JobOf("f");
  hinted.hints = {{std::string(300, 'n'), "no attribute has such a name"}};
  EXPECT_FALSE(CopyFile(hinted).ok());
  EXPECT_THAT(Names(root_ + "/out"), ElementsAre("dir"));
}

TEST_F(StageFiles, AJobTravels) {
  CopyJob job = JobOf("a\xff\n");
  job.hints = {{"placement", "local"}};
  job.compare = true;
  const CopyJob back = CopyJobFrom(ToJson(job));
  EXPECT_EQ(back.source, job.source);
  EXPECT_EQ(back.target, job.target);
  EXPECT_EQ(back.temporary, job.temporary);
  EXPECT_EQ(back.hints, job.hints);
  EXPECT_EQ(back.sync, job.sync);
  EXPECT_TRUE(back.compare);
}

// ---- trees

TEST_F(StageFiles, ATreeHasItsDirectoriesAndNamesItsFiles) {
  fs::create_directories(In("d/empty"));
  Write(In("d/f"), "12345");
  Write(In("d/.mosa-stage-left"), "ours");
  fs::create_symlink("f", In("d/l"));
  chmod(In("d/empty").c_str(), 0500);
  const timespec times[] = {{7, 0}, {8, 9}};
  utimensat(AT_FDCWD, In("d").c_str(), times, 0);
  Write(Out(".mosa-stage-run-old-1"), "left behind");
  Write(Out(".mosa-stage-other-old-1"), "somebody else's");

  StageTree tree(".mosa-stage-run-", ".mosa-stage-run-own-", 0);
  tree.Open(root_ + "/out", {});
  tree.Add(In("d"), Out("d"));
  EXPECT_TRUE(tree.failures().empty());
  std::vector<std::string> targets;
  for (const StageFile& file : tree.files()) targets.push_back(file.target);
  EXPECT_THAT(targets, UnorderedElementsAre(Out("d/f"), Out("d/l")));
  tree.FinishDirectories();
  struct stat status {};
  stat(Out("d/empty").c_str(), &status);
  EXPECT_EQ(status.st_mode & 07777, 0500U);
  stat(Out("d").c_str(), &status);
  EXPECT_EQ(status.st_mtim.tv_nsec, 9);
  EXPECT_THAT(Names(root_ + "/out"), UnorderedElementsAre("d", ".mosa-stage-other-old-1"));
}

TEST_F(StageFiles, ADirectoryDoesNotTakeAFilesPlace) {
  fs::create_directories(In("d"));
  Write(In("d/f"), "x");
  Write(Out("d"), "a file");
  StageTree tree(".mosa-stage-run-", ".mosa-stage-run-own-", 0);
  tree.Add(In("d"), Out("d"));
  ASSERT_EQ(tree.failures().size(), 1U);
  EXPECT_THAT(MessageOf(tree.failures()[0].status), AllOf(HasSubstr(Out("d")), HasSubstr(In("d"))));
  EXPECT_TRUE(tree.files().empty());
}

TEST_F(StageFiles, TwoSourcesDoNotBecomeOneFile) {
  fs::create_directories(In("a/sub"));
  fs::create_directories(In("b/sub"));
  for (const char* name : {"a/sub/x", "b/sub/x", "b/sub/y"}) Write(In(name), name);
  StageTree tree(".mosa-stage-run-", ".mosa-stage-run-own-", 0);
  tree.Open(root_ + "/out", {});
  tree.Add(In("a"), root_ + "/out");
  tree.Add(In("b"), root_ + "/out");
  EXPECT_EQ(tree.files().size(), 2U);
  ASSERT_EQ(tree.failures().size(), 1U);
  EXPECT_THAT(MessageOf(tree.failures()[0].status),
              AllOf(HasSubstr(In("b/sub/x")), HasSubstr(Out("sub/x"))));
}

TEST_F(StageFiles, ATargetThatWasThereStaysAsItIs) {
  fs::create_directories(In("d/sub"));
  chmod(In("d").c_str(), 0700);
  chmod(Out("").c_str(), 0751);
  const auto stage = [&](const std::string& target) {
    const auto fresh = MakeDirectories(target);
    StageTree tree(".mosa-stage-run-", ".mosa-stage-run-own-", 0);
    tree.Open(target, *fresh);
    tree.Add(In("d"), target);
    tree.FinishDirectories();
    EXPECT_TRUE(tree.failures().empty());
    struct stat status {};
    stat(target.c_str(), &status);
    return std::pair(status.st_mode & 07777, tree.directories());
  };
  const auto [mode, directories] = stage(root_ + "/out");
  EXPECT_EQ(mode, 0751U);
  // Nothing is synced that got no new entry: the copying user need not be allowed to read it.
  EXPECT_THAT(directories, ElementsAre(root_ + "/out", Out("sub")));
  const auto [fresh_mode, fresh_directories] = stage(Out("fresh"));
  EXPECT_EQ(fresh_mode, 0700U);
  EXPECT_THAT(fresh_directories, ElementsAre(root_ + "/out", Out("fresh"), Out("fresh/sub")));
}

TEST_F(StageFiles, ALinkInADirectorysPlaceIsNotFollowed) {
  fs::create_directories(In("d"));
  fs::create_directories(In("victim"));
  chmod(In("d").c_str(), 0777);
  chmod(In("victim").c_str(), 0700);
  StageTree tree(".mosa-stage-run-", ".mosa-stage-run-own-", 0);
  tree.Add(In("d"), Out("d"));
  fs::remove(Out("d"));
  fs::create_directory_symlink(In("victim"), Out("d"));
  tree.FinishDirectories();
  EXPECT_EQ(tree.failures().size(), 1U);
  struct stat status {};
  stat(In("victim").c_str(), &status);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
}

TEST_F(StageFiles, TemporariesOfOthersAreNamed) {
  fs::create_directories(In("d"));
  Write(In("d/.mosa-stage-left"), "x");
  StageTree tree(".mosa-stage-run-", ".mosa-stage-run-own-", 0);
  tree.Add(In("d"), Out("d"));
  EXPECT_THAT(tree.passed_over(), ElementsAre(In("d/.mosa-stage-left")));
}

TEST_F(StageFiles, AFileIsPutBelowTheSameDirectories) {
  fs::create_directories(In("a/b"));
  chmod(In("a").c_str(), 0750);
  Write(In("a/b/f"), "x");
  StageTree tree(".mosa-stage-run-", ".mosa-stage-run-own-", 0);
  tree.AddBelow(root_ + "/in", root_ + "/out", "/a/b/f");
  ASSERT_EQ(tree.files().size(), 1U);
  EXPECT_EQ(tree.files()[0].source, In("a/b/f"));
  EXPECT_EQ(tree.files()[0].target, Out("a/b/f"));
  tree.FinishDirectories();
  struct stat status {};
  stat(Out("a").c_str(), &status);
  EXPECT_EQ(status.st_mode & 07777, 0750U);
}

TEST_F(StageFiles, TheStoreItselfIsNoSource) {
  struct stat status {};
  stat(root_.c_str(), &status);
  StageTree tree(".mosa-stage-run-", ".mosa-stage-run-own-", status.st_dev);
  tree.Add(root_ + "/in", Out("in"));
  ASSERT_EQ(tree.failures().size(), 1U);
  EXPECT_EQ(tree.failures()[0].status.code(), StatusCode::kInvalidArgument);
}

// ---- the processes that copy

// What a host says that is no worker's: each job fails with it, or goes to another host.
TEST_F(StageFiles, AHostThatTalksNonsenseHoldsNobodyUp) {
  const std::string greeting = "printf '\\nmosa stage worker 1\\n'; ";
  const struct {
    const char* what;
    std::string script;
  } rows[] = {
      {"ends", "exit 0"},
      {"is silent", "exec sleep 100"},
      {"has a long banner", "head -c 100000 /dev/zero; exec sleep 100"},
      {"answers without a question",
       greeting + "printf '\\001\\0\\0\\0\\0\\0\\0\\0\\200'; exec sleep 100"},
      {"answers something else",
       greeting + "head -c 9 >&2; printf '\\001\\0\\0\\0\\0\\0\\0\\0\\200'; exec sleep 100"},
      {"answers without end", greeting + "head -c 9 >&2; exec yes"},
  };
  for (const auto& row : rows) {
    RunHost host;
    host.name = "odd";
    host.exec = {"sh", "-c", "exec 2>/dev/null; " + row.script, "sh"};
    auto workers = StageWorkers::Start({host}, {1}, {"task", "", Milliseconds(500)});
    ASSERT_TRUE(workers.ok());
    std::vector<std::string> failures;
    const Status run = workers->Run(
        {0, 0}, [&](size_t, size_t) { return JobOf("f"); },
        [&](size_t, size_t, const Result<CopyResult>& result) {
          EXPECT_EQ(result.status().code(), StatusCode::kUnavailable) << row.what;
          failures.push_back(MessageOf(result.status()));
        },
        [] {});
    EXPECT_TRUE(run.ok()) << row.what;
    EXPECT_EQ(failures.size(), 2U) << row.what;
  }
}

}  // namespace
}  // namespace mosa::cli
