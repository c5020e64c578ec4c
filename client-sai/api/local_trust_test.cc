#include "client-sai/api/local_trust.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

namespace mosa::sai {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

class LocalTrust : public ::testing::Test {
 protected:
  LocalTrust() {
    char name[] = "/dev/shm/mosa-trust-XXXXXX";
    directory_ = ::mkdtemp(name);
    ::close(::open(Path("object").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }
  ~LocalTrust() override { std::filesystem::remove_all(directory_); }
  std::string Path(const char* name) const { return directory_ + "/" + name; }

  UniqueFd Listen(const std::string& path, mode_t mode = 0600) const {
    UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(static_cast<char*>(name.sun_path), sizeof name.sun_path - 1);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(::listen(listener.get(), 8), 0);
    return listener;
  }

  void Refuses(const std::string& path, int flags, bool write, const char* why) const {
    SCOPED_TRACE(path);
    const UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC));
    ASSERT_TRUE(fd);
    const auto taken = CheckObjectDescriptor(fd.get(), {.owner = ::geteuid(), .write = write});
    ASSERT_EQ(taken.status().code(), StatusCode::kUnauthenticated);
    EXPECT_THAT(MessageOf(taken.status()), HasSubstr(why));
  }

  std::string directory_;
};

TEST_F(LocalTrust, TakesAnObjectAsItWasAskedFor) {
  for (const bool write : {false, true}) {
    const UniqueFd fd(
        ::open(Path("object").c_str(), (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW));
    const auto device = CheckObjectDescriptor(fd.get(), {.owner = ::geteuid(), .write = write});
    ASSERT_TRUE(device.ok()) << MessageOf(device.status());
    EXPECT_TRUE(
        CheckObjectDescriptor(fd.get(), {.owner = ::geteuid(), .write = write, .device = *device})
            .ok());
    const auto elsewhere = CheckObjectDescriptor(
        fd.get(), {.owner = ::geteuid(), .write = write, .device = *device + 1});
    EXPECT_THAT(MessageOf(elsewhere.status()), HasSubstr("other objects"));
  }
}

TEST_F(LocalTrust, RefusesWhatIsNoObject) {
  Refuses(directory_, O_RDONLY, false, "a directory");
  Refuses("/dev/null", O_RDONLY, false, "a device");
  Refuses("/dev/null", O_RDWR, true, "a device");
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  Refuses(Path("pipe"), O_RDWR, true, "a pipe");
  Refuses(Path("object"), O_PATH, false, "flags");
  Refuses(Path("object"), O_PATH, true, "flags");
  Refuses(Path("object"), O_RDWR, false, "O_RDONLY");
  Refuses(Path("object"), O_RDONLY, true, "O_RDWR");
  Refuses(Path("object"), O_WRONLY, true, "O_RDWR");
  Refuses(Path("object"), O_RDWR | O_APPEND, true, "O_RDWR");
  Refuses("/proc/self/mem", O_RDONLY, false, "store objects");
  for (const mode_t mode : {0644u, 0620u, 0601u, 0700u, 04600u, 02600u}) {
    ASSERT_EQ(::chmod(Path("object").c_str(), mode), 0);
    Refuses(Path("object"), O_RDONLY, false, "mode");
  }
  ASSERT_EQ(::chmod(Path("object").c_str(), 0600), 0);
  ASSERT_EQ(::link(Path("object").c_str(), Path("other").c_str()), 0);
  Refuses(Path("object"), O_RDONLY, false, "2 hard links");
  int pipe[2];
  ASSERT_EQ(::pipe2(static_cast<int*>(pipe), O_CLOEXEC), 0);
  const UniqueFd reader(pipe[0]);
  const UniqueFd writer(pipe[1]);
  EXPECT_FALSE(CheckObjectDescriptor(reader.get(), {.owner = ::geteuid()}).ok());
  EXPECT_FALSE(CheckObjectDescriptor(-1, {.owner = ::geteuid()}).ok());
}

TEST_F(LocalTrust, RefusesTheFileOfAnotherUser) {
  const UniqueFd fd(::open(Path("object").c_str(), O_RDONLY | O_CLOEXEC));
  const auto taken = CheckObjectDescriptor(fd.get(), {.owner = ::geteuid() + 1});
  EXPECT_EQ(taken.status().code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(MessageOf(taken.status()), HasSubstr("belongs to user"));
}

TEST_F(LocalTrust, RefusesSocketFilesThatOthersReachOrThatAreNone) {
  const UniqueFd good = Listen(Path("good"));
  const auto opened = OpenSocketFile(Path("good"));
  EXPECT_TRUE(opened.ok()) << MessageOf(opened.status());
  const UniqueFd open_to_all = Listen(Path("open"), 0666);
  EXPECT_THAT(MessageOf(OpenSocketFile(Path("open")).status()), HasSubstr("mode 0666"));
  std::filesystem::create_symlink(Path("good"), Path("link"));
  EXPECT_THAT(MessageOf(OpenSocketFile(Path("link")).status()), HasSubstr("symbolic link"));
  EXPECT_THAT(MessageOf(OpenSocketFile(Path("object")).status()), HasSubstr("regular file"));
  EXPECT_EQ(OpenSocketFile(Path("none")).status().code(), StatusCode::kNotFound);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(Path("good").c_str(), kNobody, kNobody), 0);
  EXPECT_THAT(MessageOf(OpenSocketFile(Path("good")).status()), HasSubstr("user 65534"));
}

TEST_F(LocalTrust, TrustsItselfAndNoOtherUserThatListens) {
  const auto connect = [&](const char* path) {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    Path(path).copy(static_cast<char*>(name.sun_path), sizeof name.sun_path - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    return socket;
  };
  const UniqueFd own = Listen(Path("own"));
  EXPECT_EQ(TrustedPeer(connect("own").get()).value(), ::geteuid());
  if (::geteuid() != 0) return;
  // Another user listens, and root gives the socket file to root.
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(1);
    const UniqueFd listener = Listen(Path("theirs"), 0666);
    ::pause();
    ::_exit(0);
  }
  while (::access(Path("theirs").c_str(), W_OK) != 0) ::usleep(1000);
  ::usleep(50'000);
  ASSERT_EQ(::chown(Path("theirs").c_str(), 0, 0), 0);
  const auto peer = TrustedPeer(connect("theirs").get());
  EXPECT_EQ(peer.status().code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(MessageOf(peer.status()), HasSubstr("user 65534 listens"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace mosa::sai
