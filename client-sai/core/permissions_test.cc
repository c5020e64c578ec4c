#include "client-sai/core/permissions.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "gtest/gtest.h"

namespace mosa::sai {
namespace {

constexpr uint32_t kUser = 1000, kGroup = 100, kOther = 1001, kExtraGroup = 200, kFarGroup = 300;

Attributes FileOf(uint32_t mode, uint32_t uid, uint32_t gid) {
  Attributes file;
  file.type = FileType::kRegular;
  file.permissions = mode;
  file.uid = uid;
  file.gid = gid;
  return file;
}

Credentials User() {
  return {kUser, kGroup, [](uint32_t gid) { return gid == kExtraGroup; }};
}

TEST(Permissions, TheFirstClassThatMatchesDecides) {
  EXPECT_FALSE(MayAccess(FileOf(0077, kUser, kGroup), User(),
                         kRead));  // The owner, although group and others may.
  EXPECT_FALSE(MayAccess(FileOf(0707, kOther, kGroup), User(), kRead));
  EXPECT_FALSE(MayAccess(FileOf(0707, kOther, kExtraGroup), User(), kRead));
  EXPECT_TRUE(MayAccess(FileOf(0704, kOther, kFarGroup), User(), kRead));
  EXPECT_FALSE(MayAccess(FileOf(0704, kOther, kFarGroup), User(), kRead | kWrite));
}

TEST(Permissions, RootMayDoAllButExecuteWhatNobodyMay) {
  const Credentials root{0, 0, nullptr};
  EXPECT_TRUE(MayAccess(FileOf(0000, kOther, kGroup), root, kRead | kWrite));
  EXPECT_FALSE(MayAccess(FileOf(0666, kOther, kGroup), root, kExecute));
  EXPECT_TRUE(MayAccess(FileOf(0001, kOther, kGroup), root, kExecute));
  Attributes directory = FileOf(0000, kOther, kGroup);
  directory.type = FileType::kDirectory;
  EXPECT_TRUE(MayAccess(directory, root, kExecute));
}

TEST(Permissions, GroupsAreAskedForOnlyIfTheyDecide) {
  int asked = 0;
  const Credentials who{kUser, kGroup, [&](uint32_t) { return ++asked > 0; }};
  MayAccess(FileOf(0700, kUser, kFarGroup), who, kRead);
  MayAccess(FileOf(0755, kOther, kFarGroup), who, kRead);
  MayAccess(FileOf(0750, kOther, kGroup), who, kRead);
  EXPECT_EQ(asked, 0);
  EXPECT_TRUE(MayAccess(FileOf(0750, kOther, kFarGroup), who, kRead));
  EXPECT_EQ(asked, 1);
}

TEST(Permissions, OneTimeAloneSetToNowIsTheOwners) {
  AttributeChanges one;
  one.modify_time_now = true;
  EXPECT_EQ(CheckChanges(FileOf(0666, kOther, kGroup), User(), false, one), Denial::kOwner);
  AttributeChanges both;
  both.access_time_now = both.modify_time_now = true;
  EXPECT_EQ(CheckChanges(FileOf(0666, kOther, kGroup), User(), false, both), Denial::kNone);
  EXPECT_EQ(CheckChanges(FileOf(0644, kOther, kGroup), User(), false, both), Denial::kAccess);
}

// ---- against the kernel, on a file system that it checks itself

struct Case {
  uint32_t mode = 0, uid = 0, gid = 0;
  bool is_directory = false;
};

// What the kernel answers a process of the user, as errno values, one for each question.
struct Question {
  std::string name;
  std::function<bool(const char* path)> ask;     // False: errno says why.
  std::function<int(Attributes file)> expected;  // By this library.
  bool of_files_only = false;
};

int ErrnoOf(Denial denial) {
  return denial == Denial::kNone ? 0 : denial == Denial::kAccess ? EACCES : EPERM;
}

int ErrnoOfChange(const Attributes& file, AttributeChanges changes) {
  return ErrnoOf(CheckChanges(file, User(), false, changes));
}

Question Opens(int flags, uint32_t access) {
  return {"open",
          [flags](const char* path) {
            const int fd = open(path, flags);
            if (fd >= 0) close(fd);
            return fd >= 0;
          },
          [access](const Attributes& file) { return MayAccess(file, User(), access) ? 0 : EACCES; },
          /*of_files_only=*/flags != O_RDONLY};
}

Question Checks(int mask) {
  return {"access", [mask](const char* path) { return access(path, mask) == 0; },
          [mask](const Attributes& file) {
            return MayAccess(file, User(), static_cast<uint32_t>(mask)) ? 0 : EACCES;
          }};
}

Question ChangesOwner(uid_t uid, gid_t gid) {
  AttributeChanges changes;
  if (uid != static_cast<uid_t>(-1)) changes.uid = uid;
  if (gid != static_cast<gid_t>(-1)) changes.gid = gid;
  return {"chown", [=](const char* path) { return chown(path, uid, gid) == 0; },
          [changes](const Attributes& file) { return ErrnoOfChange(file, changes); }};
}

Question SetsTimesTo(int64_t access_ns, int64_t modify_ns) {
  AttributeChanges changes;
  const auto note = [](int64_t ns, std::optional<Time>& time, bool& now) {
    if (ns == UTIME_NOW)
      now = true;
    else if (ns != UTIME_OMIT)
      time = Time{ns};
  };
  note(access_ns, changes.access_time, changes.access_time_now);
  note(modify_ns, changes.modify_time, changes.modify_time_now);
  return {"utimensat",
          [=](const char* path) {
            const timespec times[2] = {{0, access_ns}, {0, modify_ns}};
            return utimensat(AT_FDCWD, path, times, 0) == 0;
          },
          [changes](const Attributes& file) { return ErrnoOfChange(file, changes); }};
}

std::vector<Question> Questions() {
  std::vector<Question> questions = {Opens(O_RDONLY, kRead),
                                     Opens(O_WRONLY, kWrite),
                                     Opens(O_RDWR, kRead | kWrite),
                                     SetsTimesTo(UTIME_NOW, UTIME_NOW),
                                     SetsTimesTo(UTIME_NOW, UTIME_OMIT),
                                     SetsTimesTo(1, 2),
                                     SetsTimesTo(UTIME_OMIT, 3)};
  for (int mask = 1; mask <= 7; ++mask) questions.push_back(Checks(mask));
  for (const gid_t gid : {kGroup, kExtraGroup, kFarGroup})
    questions.push_back(ChangesOwner(static_cast<uid_t>(-1), gid));
  questions.push_back(ChangesOwner(kUser, static_cast<gid_t>(-1)));
  questions.push_back(ChangesOwner(kOther, static_cast<gid_t>(-1)));
  AttributeChanges size;
  size.size_bytes = 0;
  questions.push_back({"truncate", [](const char* path) { return truncate(path, 0) == 0; },
                       [size](const Attributes& file) { return ErrnoOfChange(file, size); },
                       /*of_files_only=*/true});
  return questions;
}

void Make(const std::string& path, const Case& each) {
  std::filesystem::remove(path);
  if (each.is_directory)
    std::filesystem::create_directory(path);
  else
    std::ofstream(path) << "x";
  ASSERT_EQ(chown(path.c_str(), each.uid, each.gid), 0);
  ASSERT_EQ(chmod(path.c_str(), each.mode), 0);
}

Attributes AttributesOf(const Case& each) {
  Attributes file = FileOf(each.mode, each.uid, each.gid);
  if (each.is_directory) file.type = FileType::kDirectory;
  return file;
}

// Asks as the user; the exit code of a child is the errno.
int AskAsUser(const std::function<bool()>& ask) {
  const pid_t child = fork();
  if (child == 0) {
    const gid_t groups[] = {kExtraGroup};
    if (setgroups(1, groups) != 0 || setgid(kGroup) != 0 || setuid(kUser) != 0) _exit(255);
    _exit(ask() ? 0 : errno);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 254;
  return WEXITSTATUS(status);
}

TEST(Permissions, AreThoseOfTheKernel) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can act as other users";
  const std::filesystem::path directory =
      std::filesystem::path("/dev/shm") / ("mosa_permissions_" + std::to_string(getpid()));
  std::filesystem::create_directory(directory);
  ASSERT_EQ(chmod(directory.c_str(), 0755), 0);
  const std::string path = directory / "it";
  const std::vector<Question> questions = Questions();
  Rng rng(1);
  for (int i = 0; i < 2000; ++i) {
    Case each;
    each.mode = static_cast<uint32_t>(rng.Below(010000));
    each.uid = rng.Below(2) == 0 ? kUser : kOther;
    each.gid = std::vector{kGroup, kExtraGroup, kFarGroup}[rng.Below(3)];
    each.is_directory = rng.Below(3) == 0;
    const Question& question = questions[rng.Below(questions.size())];
    if (question.of_files_only && each.is_directory) continue;
    Make(path, each);
    const int answer = AskAsUser([&] { return question.ask(path.c_str()); });
    EXPECT_EQ(answer, question.expected(AttributesOf(each)))
        << question.name << " of mode " << std::oct << each.mode << std::dec << ", owner "
        << each.uid << ", group " << each.gid << (each.is_directory ? ", a directory" : "");
  }
  std::filesystem::remove_all(directory);
}

TEST(Permissions, ChmodTakesOutTheGroupBitAsTheKernelDoes) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can act as other users";
  const std::string path = "/dev/shm/mosa_chmod_" + std::to_string(getpid());
  for (const uint32_t gid : {kGroup, kExtraGroup, kFarGroup}) {
    const Case each{0644, kUser, gid, false};
    Make(path, each);
    EXPECT_EQ(AskAsUser([&] { return chmod(path.c_str(), 02755) == 0; }), 0);
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    AttributeChanges changes;
    changes.permissions = 02755;
    EXPECT_EQ(CheckChanges(AttributesOf(each), User(), false, changes), Denial::kNone);
    EXPECT_EQ(*changes.permissions, status.st_mode & 07777) << gid;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace mosa::sai
