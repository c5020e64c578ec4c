#include "common/base/private_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mosa {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PrivateDirectory : public ::testing::Test {
 protected:
  PrivateDirectory() { fs::create_directories(At("a/b")); }
  ~PrivateDirectory() override { fs::remove_all(directory_); }
  std::string At(const std::string& name) const { return directory_ + "/" + name; }
  void Refuses(const std::string& path, StatusCode code, const char* why) const {
    const auto opened = OpenPrivateDirectory(path);
    ASSERT_EQ(opened.status().code(), code) << path;
    EXPECT_THAT(MessageOf(opened.status()), HasSubstr(why));
  }

  const std::string directory_ =
      fs::canonical(testing::TempDir()).string() + "/private-directory-" + std::to_string(getpid());
};

TEST_F(PrivateDirectory, IsOpened) {
  EXPECT_TRUE(OpenPrivateDirectory(At("a/b")).ok());
  EXPECT_TRUE(OpenPrivateDirectory(At("a//./b/")).ok());
  EXPECT_TRUE(OpenWithoutLinks("/").ok());
}

TEST_F(PrivateDirectory, IsNoneBehindALink) {
  fs::create_directory_symlink(At("a"), At("link"));
  fs::create_directory_symlink(At("a/b"), At("a/last"));
  std::ofstream(At("a/file")) << "x";
  Refuses(At("link"), StatusCode::kFailedPrecondition, "symbolic link");
  Refuses(At("link/b"), StatusCode::kFailedPrecondition, "symbolic link");
  Refuses(At("a/last"), StatusCode::kFailedPrecondition, "symbolic link");
  Refuses(At("a/file"), StatusCode::kFailedPrecondition, "not a directory");
  Refuses(At("a/none"), StatusCode::kNotFound, "there is no");
  Refuses("a/b", StatusCode::kFailedPrecondition, "absolute");
  Refuses("", StatusCode::kFailedPrecondition, "absolute");
}

TEST_F(PrivateDirectory, IsNoneWhereOthersMakeFiles) {
  for (const mode_t mode : {0777u, 01777u, 0775u, 0757u}) {
    ASSERT_EQ(::chmod(At("a/b").c_str(), mode), 0);
    Refuses(At("a/b"), StatusCode::kPermissionDenied, "writable for nobody else");
    EXPECT_TRUE(OpenWithoutLinks(At("a/b")).ok());
  }
  ASSERT_EQ(::chmod(At("a/b").c_str(), 0755), 0);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(At("a/b").c_str(), 65534, 65534), 0);
  Refuses(At("a/b"), StatusCode::kPermissionDenied, "user 65534");
}

}  // namespace
}  // namespace mosa
