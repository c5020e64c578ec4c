// Needs root: only root acts for others.
#include "tools/wrap/acting.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace mosa::wrap {
namespace {

constexpr uid_t kUser = 65534;
constexpr gid_t kProject = 4242;
constexpr gid_t kRoots = 4343;  // Root is in it, the user is not.

// A process of the user, in these supplementary groups, until this ends.
class Program {
 public:
  explicit Program(const std::vector<gid_t>& groups) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const bool done = syscall(SYS_setgroups, groups.size(), groups.data()) == 0 &&
                        setresgid(kUser, kUser, kUser) == 0 && setresuid(kUser, kUser, kUser) == 0;
      const char byte = 1;
      if (done && write(ready[1], &byte, 1) == 1) pause();
      _exit(1);
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  ~Program() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

class ActingForTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    std::string name = ::testing::TempDir() + "/acting-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
    ASSERT_EQ(syscall(SYS_setgroups, 1, &kRoots), 0);
  }
  void TearDown() override {
    if (!root_.empty()) std::filesystem::remove_all(root_);
  }
  std::string Directory(const std::string& name, gid_t group, mode_t mode) {
    const std::string path = root_ + "/" + name;
    EXPECT_EQ(mkdir(path.c_str(), 0700), 0);
    EXPECT_EQ(chown(path.c_str(), 0, group), 0);
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  // Makes a set-group-id program there. Whether the bit has stayed, as it does for a member of the
  // directory's group.
  static bool KeepsSetGroupId(const std::string& directory) {
    const std::string path = directory + "/f";
    unlink(path.c_str());
    const mode_t mask = umask(0);
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY, 02775);
    umask(mask);
    EXPECT_GE(file, 0) << path;
    struct stat made {};
    EXPECT_EQ(fstat(file, &made), 0);
    close(file);
    return (made.st_mode & S_ISGID) != 0;
  }
  static std::vector<gid_t> Groups() {
    std::vector<gid_t> groups(64);
    groups.resize(static_cast<size_t>(getgroups(64, groups.data())));
    return groups;
  }
  std::string root_;
};

TEST_F(ActingForTest, AMemberOfAProjectMakesItsProgramsInItsDirectory) {
  const std::string project = Directory("project", kProject, 02775);
  const Program member({7, kProject, 9});
  {
    const ActingFor caller({kUser, kUser, member.pid()});
    EXPECT_TRUE(KeepsSetGroupId(project));
  }
  struct stat made {};
  ASSERT_EQ(stat((project + "/f").c_str(), &made), 0);
  EXPECT_EQ(made.st_uid, kUser);
  EXPECT_EQ(made.st_gid, kProject);
  EXPECT_EQ(Groups(), std::vector<gid_t>{kRoots});
}

TEST_F(ActingForTest, NobodyActsInTheGroupsOfRoot) {
  const std::string roots = Directory("roots", kRoots, 02777);
  const Program stranger({});
  for (const pid_t pid : {stranger.pid(), pid_t{0}, pid_t{0x3fffffff}}) {
    const ActingFor caller({kUser, kUser, pid});
    EXPECT_FALSE(KeepsSetGroupId(roots));
    EXPECT_TRUE(Groups().empty());
  }
  EXPECT_EQ(Groups(), std::vector<gid_t>{kRoots});
}

}  // namespace
}  // namespace mosa::wrap
