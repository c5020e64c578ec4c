// The program mosa-manager: flags, exit codes, signals, and kill -9 under load.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "manager/service/test_client.h"
#include "tests/support/process_cluster.h"

namespace mosa::manager {
namespace {

using testing::DaemonProcess;
using ::testing::HasSubstr;

class ManagerProgramTest : public ::testing::Test {
 protected:
  ManagerProgramTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "mosa_program_test.XXXXXX";
    MOSA_CHECK(::mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
  }
  ~ManagerProgramTest() override { std::filesystem::remove_all(directory_); }

  DaemonProcess Manager(std::vector<std::string> flags) {
    std::vector<std::string> command = {MOSA_BINARY_DIR "/mosa-manager"};
    command.insert(command.end(), flags.begin(), flags.end());
    return {command, directory_ / "log", directory_ / "ready"};
  }
  // Runs a manager that must refuse to start.
  void Refuses(const std::vector<std::string>& flags, int exit_code, const std::string& text) {
    std::string line = MOSA_BINARY_DIR "/mosa-manager";
    for (const std::string& flag : flags) line += " '" + flag + "'";
    const std::string out = directory_ / "refusal";
    const int status = std::system(("timeout 20 " + line + " >" + out + " 2>&1").c_str());
    SCOPED_TRACE(line);
    EXPECT_EQ(WEXITSTATUS(status), exit_code);
    std::ifstream in(out);
    EXPECT_THAT(std::string(std::istreambuf_iterator<char>(in), {}), HasSubstr(text));
  }

  std::filesystem::path directory_;
};

TEST_F(ManagerProgramTest, RefusesBadFlagsBeforeItDoesAnything) {
  const std::string store = directory_ / "store";
  const auto refuses = [&](std::vector<std::string> flags, const std::string& text) {
    flags.insert(flags.end(), {"--data-dir", store});
    Refuses(flags, 2, text);
    EXPECT_FALSE(std::filesystem::exists(store));
  };
  refuses({"--no-such-flag"}, "--no-such-flag");
  refuses({"--listen", "0.0.0.0:7400"}, "--secret");
  refuses({"--listen", "127.0.0.1"}, "HOST:PORT");
  refuses({"--chunk-size", "65537"}, "multiple of 4K");
  refuses({"--chunk-size", "-1"}, "--chunk-size");
  refuses({"--chunk-size", "2K"}, "--chunk-size");
  refuses({"--stripe-width", "-1"}, "--stripe-width");
  refuses({"--default-placement", "somewhere"}, "--default-placement");
  refuses({"--grant-size", "0"}, "--grant-size");
  refuses({"--inline-size", "17K"}, "--inline-size");
  refuses({"--log-level", "loud"}, "loud");
  refuses({"--cluster-name", ""}, "--cluster-name");
  const std::string forecasts = directory_ / "forecasts.json";
  std::ofstream(forecasts) << R"({"mosa_forecasts": 99})";
  refuses({"--forecasts", forecasts}, forecasts + ": the forecasts have version 99");
  std::ofstream(forecasts) << "no forecasts";
  refuses({"--forecasts", forecasts}, "--forecasts " + forecasts);
  Refuses({"--forecasts", "/no/such/file", "--data-dir", store}, 3, "/no/such/file");
}

TEST_F(ManagerProgramTest, ReadsItsFlagsFromAFileToo) {
  const std::filesystem::path config = directory_ / "manager.conf";
  std::ofstream(config) << "chunk-size = \"65537\"\n";
  Refuses({"--config", config, "--data-dir", directory_ / "store"}, 2, "multiple of 4K");
  std::ofstream(config) << "no-such-key = 1\n";
  Refuses({"--config", config, "--data-dir", directory_ / "store"}, 2, "no-such-key");
  std::ofstream(config) << "cluster-name = \"blue\"\nlisten = \"127.0.0.1:0\"\n";
  DaemonProcess manager = Manager({"--config", config, "--data-dir", directory_ / "store"});
  ASSERT_TRUE(manager.Start().ok()) << manager.LogText();
  EXPECT_THAT(manager.LogText(), HasSubstr("cluster blue is served"));
  EXPECT_EQ(manager.Stop().value(), 0);
}

TEST_F(ManagerProgramTest, RefusesASecretThatOthersCanRead) {
  const std::filesystem::path secret = directory_ / "secret";
  std::ofstream(secret) << IssueSecret(CreateAuthority().value(),
                                       {.role = Role::kManager, .node = {}, .uid = {}}, 1)
                               .value();
  ASSERT_EQ(::chmod(secret.c_str(), 0644), 0);
  Refuses({"--secret", secret, "--data-dir", directory_ / "store"}, 3, "chmod 600");
}

TEST_F(ManagerProgramTest, SaysWhatIsWrongWithPortOrDatabase) {
  DaemonProcess manager = Manager({"--listen", "127.0.0.1:0", "--data-dir", directory_ / "store"});
  const auto ready = manager.Start();
  ASSERT_TRUE(ready.ok()) << manager.LogText();
  const std::string address = ready->at("address").get<std::string>();
  EXPECT_EQ(ready->at("pid").get<int>(), manager.pid());
  Refuses({"--listen", address, "--data-dir", directory_ / "second"}, 3, "cannot listen");
  Refuses({"--listen", "127.0.0.1:0", "--data-dir", directory_ / "store"}, 5, "another manager");
  EXPECT_EQ(manager.Stop().value(), 0);
  Refuses({"--listen", "127.0.0.1:0", "--data-dir", directory_ / "store", "--cluster-name", "x"}, 3,
          "belongs to cluster 'mosa'");
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "store")) {
    if (entry.path().filename().string().starts_with("MANIFEST")) {
      std::ofstream(entry.path(), std::ios::trunc) << "damage";
    }
  }
  Refuses({"--listen", "127.0.0.1:0", "--data-dir", directory_ / "store"}, 6,
          "put a good copy in another one");
}

// One client's work: makes files f0, f1, ... and counts the acknowledged ones.
void MakeFiles(TestClient& client, FileId directory, std::atomic<bool>& stop,
               std::vector<FileId>& acknowledged, std::string& trouble) {
  while (!stop && trouble.empty()) {
    MakeRequest make = client.MakeOf(directory, fmt::format("f{}", acknowledged.size()));
    CommitRequest commit;
    commit.file = make.file;
    commit.size_bytes = 3;
    commit.inline_data = "abc";
    commit.last_close = true;
    const FileId file = make.file;
    make.open = true;
    const auto replies = client.api().Call({std::move(make), std::move(commit)}, kWaitMax);
    if (const auto* const failure = std::get_if<Failure>(&replies.back())) {
      trouble = failure->message;
    } else {
      acknowledged.push_back(file);
    }
  }
}

TEST_F(ManagerProgramTest, LosesNothingAndDoesNothingTwiceWhenItIsKilled) {
  constexpr size_t kClients = 3;
  constexpr int kKills = 3;
  DaemonProcess manager = Manager({"--listen", "127.0.0.1:0", "--data-dir", directory_ / "store"});
  const auto ready = manager.Start();
  ASSERT_TRUE(ready.ok()) << manager.LogText();
  const std::string address = ready->at("address").get<std::string>();
  manager.Replace("--listen", address);

  std::vector<std::unique_ptr<TestClient>> clients;
  std::vector<FileId> directories;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<TestClient>(100 + i, address));
    ASSERT_TRUE(clients.back()->Start().ok());
    const MakeRequest make =
        clients.back()->MakeOf(kRootFile, fmt::format("d{}", i), FileType::kDirectory);
    directories.push_back(make.file);
    ASSERT_TRUE(std::holds_alternative<MakeReply>(clients.back()->Ask(make)));
  }
  std::atomic<bool> stop = false;
  std::vector<std::vector<FileId>> acknowledged(kClients);
  std::vector<std::string> trouble(kClients);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kClients; ++i) {
    threads.emplace_back(
        [&, i] { MakeFiles(*clients[i], directories[i], stop, acknowledged[i], trouble[i]); });
  }
  for (int kill = 0; kill < kKills; ++kill) {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    manager.Kill();
    ASSERT_TRUE(manager.Start().ok()) << manager.LogText();
    // A client that has not come back by the next kill would miss a session.
    for (const auto& client : clients) EXPECT_TRUE(client->WaitForSessions(kill + 2));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  stop = true;
  for (std::thread& thread : threads) thread.join();

  for (size_t i = 0; i < kClients; ++i) {
    EXPECT_EQ(trouble[i], "") << "client " << i;
    EXPECT_TRUE(clients[i]->WaitForSessions(kKills + 1));
    std::set<uint64_t> listed;
    std::string after;
    while (true) {
      const Reply reply =
          clients[i]->Ask(ListDirectoryRequest{.directory = directories[i], .after_name = after});
      ASSERT_TRUE(std::holds_alternative<ListDirectoryReply>(reply));
      const auto& page = std::get<ListDirectoryReply>(reply);
      for (const auto& item : page.items) {
        EXPECT_TRUE(listed.insert(item.entry.file.value).second) << item.name;
        EXPECT_EQ(item.entry.attributes.size_bytes, 3u) << item.name;
        after = item.name;
      }
      if (!page.more) break;
    }
    EXPECT_GT(acknowledged[i].size(), 10u);
    EXPECT_EQ(listed.size(), acknowledged[i].size());
    for (const FileId file : acknowledged[i]) EXPECT_TRUE(listed.contains(file.value));
  }
  clients.clear();
  EXPECT_EQ(manager.Stop().value(), 0);
}

}  // namespace
}  // namespace mosa::manager
