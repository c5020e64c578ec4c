// mosa-storage as people run it: what it refuses, with which exit code, and that it works with the
// real manager, also when that is killed and comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/base/exit_code.h"
#include "proto/convert/credentials.h"
#include "tests/support/process_cluster.h"
#include "tests/support/test_node.h"

namespace mosa {
namespace {

using testing::DaemonProcess;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

class StorageProgram : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  DaemonProcess Storage(const std::string& manager, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {MOSA_BINARY_DIR "/mosa-storage",
                                        "--name",
                                        "n1",
                                        "--manager",
                                        manager,
                                        "--dir",
                                        Path("objects"),
                                        "--limit",
                                        "64M"};
    command.insert(command.end(), more.begin(), more.end());
    return {command, Path("node.log"), Path("node.json")};
  }
  static void ExpectEnds(DaemonProcess storage, int code, const std::string& because) {
    const auto started = storage.Start();
    EXPECT_THAT(MessageOf(started.status()),
                HasSubstr(" ended with " + std::to_string(code) + " "));
    EXPECT_THAT(storage.LogText(), HasSubstr(because));
  }
  void ExpectRefused(const std::vector<std::string>& flags, int code, const std::string& because) {
    SCOPED_TRACE(because);
    ExpectEnds(Storage("127.0.0.1:1", flags), code, because);
    EXPECT_FALSE(std::filesystem::exists(Path("objects")));
  }

  const TemporaryDirectory directory_;
};

TEST_F(StorageProgram, RefusesBadFlagsBeforeItDoesAnything) {
  ExpectRefused({"--nonsense", "1"}, 2, "nonsense");
  ExpectRefused({"--scrub-rate", "fast"}, 2, "--scrub-rate: 'fast' is not a size");
  ExpectRefused({"--log-level", "loud"}, 2, "loud");
  ExpectRefused({"--listen", "127.0.0.1"}, 2, "127.0.0.1");
  ExpectRefused({"--listen", "0.0.0.0:0"}, 2, "without a cluster secret");
  ExpectRefused({"--secret", Path("none.pem")}, 3, "none.pem");
  std::ofstream(Path("conf")) << "scrub-rate = 1M\nunknown-key = 1\n";
  ExpectRefused({"--config", Path("conf")}, 2, "unknown-key");
}

TEST_F(StorageProgram, SaysThatNoManagerAnswersOrThatTheLimitIsTooHigh) {
  ExpectEnds({{MOSA_BINARY_DIR "/mosa-storage", "--name", "n1", "--manager", "127.0.0.1:1", "--dir",
               Path("objects"), "--limit", "999T"},
              Path("huge.log"),
              Path("huge.json")},
             2, "the limit 999.0 TiB is more than there is");
  ExpectEnds(Storage("127.0.0.1:1"), 5, "the manager at 127.0.0.1:1 did not accept node n1");

  std::filesystem::remove_all(Path("objects"));
  std::filesystem::create_directory(Path("objects"));
  std::ofstream(Path("objects/thesis.tex")) << "x";
  ExpectEnds(Storage("127.0.0.1:1"), 3, "'thesis.tex'");
}

TEST_F(StorageProgram, SaysAtOnceThatTheSecretIsWrong) {
  const auto write = [&](const char* name, Role role) {
    std::ofstream(Path(name))
        << IssueSecret(CreateAuthority().value(), {.role = role, .node = {}, .uid = {}}, 1).value();
    std::filesystem::permissions(Path(name), std::filesystem::perms::owner_read);
  };
  write("ours.pem", Role::kNode);
  write("theirs.pem", Role::kManager);
  DaemonProcess manager({MOSA_BINARY_DIR "/mosa-manager", "--listen", "127.0.0.1:0", "--data-dir",
                         Path("manager"), "--secret", Path("theirs.pem")},
                        Path("manager.log"), Path("manager.json"));
  const auto ready = manager.Start();
  ASSERT_TRUE(ready.ok()) << MessageOf(ready.status());
  const auto begin = std::chrono::steady_clock::now();
  ExpectEnds(Storage((*ready)["address"].get<std::string>(), {"--secret", Path("ours.pem")}),
             ToExitCode(StatusCode::kUnauthenticated),
             "the manager has a different cluster secret");
  // It waits 15 s for a manager that is only late.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(StorageProgram, EndsAtOnceWhileItWaitsForTheManager) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  Path("node.sock").copy(name.sun_path, sizeof name.sun_path - 1);
  using Clock = std::chrono::steady_clock;
  Clock::time_point told;
  std::thread teller([&] {
    // When its socket is there, only the manager is waited for.
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    while (::connect(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ucred peer{};
    socklen_t size = sizeof peer;
    ASSERT_EQ(::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    told = Clock::now();
    ASSERT_EQ(::kill(peer.pid, SIGTERM), 0);
  });
  ExpectEnds(Storage("127.0.0.1:1", {"--socket", Path("node.sock")}), 0, "stopping on a signal");
  teller.join();
  EXPECT_LT(Clock::now() - told, std::chrono::seconds(5));
  EXPECT_FALSE(std::filesystem::exists(Path("node.sock")));
}

TEST_F(StorageProgram, WorksWithTheManagerAndOutlivesIt) {
  DaemonProcess manager(
      {MOSA_BINARY_DIR "/mosa-manager", "--listen", "127.0.0.1:0", "--data-dir", Path("manager")},
      Path("manager.log"), Path("manager.json"));
  const auto manager_ready = manager.Start();
  ASSERT_TRUE(manager_ready.ok()) << MessageOf(manager_ready.status());
  const auto address = (*manager_ready)["address"].get<std::string>();
  DaemonProcess storage = Storage(address);
  const auto ready = storage.Start();
  ASSERT_TRUE(ready.ok()) << MessageOf(ready.status());
  EXPECT_EQ((*ready)["pid"].get<pid_t>(), storage.pid());
  EXPECT_TRUE(std::filesystem::is_socket((*ready)["socket"].get<std::string>()));
  struct stat status {};
  ASSERT_EQ(::stat((*ready)["socket"].get<std::string>().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);

  manager.Kill();
  manager.Replace("--listen", address);
  ASSERT_TRUE(manager.Start().ok()) << manager.LogText();
  const auto registered_twice = [&] {
    const std::string log = storage.LogText();
    const size_t first = log.find("registered as node 1");
    return first != std::string::npos &&
           log.find("registered as node 1", first + 1) != std::string::npos;
  };
  for (int i = 0; i < 100 && !registered_twice(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(registered_twice()) << storage.LogText();
  EXPECT_EQ(*storage.Stop(), 0) << storage.LogText();
  EXPECT_FALSE(std::filesystem::exists((*ready)["socket"].get<std::string>()));
  EXPECT_EQ(*manager.Stop(), 0);
}

}  // namespace
}  // namespace mosa
