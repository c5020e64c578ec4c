// Tests what a mount tells the manager when programs end their use of a file.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "client-sai/sai/cluster_fixture.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// Keeps the releases that a mount sends.
class Releases {
 public:
  explicit Releases(LocalMount& mount) {
    mount.OnSend([this](const std::vector<Request>& requests) {
      for (const Request& request : requests)
        if (const auto* release = std::get_if<ReleaseRequest>(&request)) {
          const MutexLock lock(mutex_);
          sent_.push_back(*release);
        }
    });
  }
  // Waits for the next one.
  std::optional<ReleaseRequest> Next() {
    std::optional<ReleaseRequest> next;
    Eventually([&] {
      const MutexLock lock(mutex_);
      if (sent_.empty()) return false;
      next = sent_.front();
      sent_.erase(sent_.begin());
      return true;
    });
    return next;
  }

 private:
  Mutex mutex_;
  std::vector<ReleaseRequest> sent_;
};

// While the manager takes a mount for a writer, it makes no copies, and closes that wait for them
// fail.
TEST(Releases, AMountWhoseProgramsOnlyReadAnyMoreIsNoWriter) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", Pattern(kMiB, 1))));
  auto reader = cluster.a().Open("/f", O_RDONLY);
  ASSERT_TRUE(Ok(reader));
  // The manager asks whether the file is open.
  ASSERT_TRUE(Ok(cluster.b().WriteFile("/f", Pattern(kMiB, 2))));
  Releases releases(cluster.a());
  auto writer = cluster.a().Open("/f", O_RDWR);
  ASSERT_TRUE(Ok(writer));
  ASSERT_TRUE(Ok(cluster.a().Close(writer->handle)));
  const auto of_writer = releases.Next();
  ASSERT_TRUE(of_writer);
  EXPECT_TRUE(of_writer->holds_open);
  ASSERT_TRUE(Ok(cluster.a().Truncate("/f", kPageBytes)));
  const auto of_cut = releases.Next();
  ASSERT_TRUE(of_cut);
  EXPECT_TRUE(of_cut->holds_open);
  ASSERT_TRUE(Ok(cluster.a().Close(reader->handle)));
  const auto of_reader = releases.Next();
  ASSERT_TRUE(of_reader);
  EXPECT_FALSE(of_reader->holds_open);
  cluster.a().OnSend(nullptr);
}

// The release that a writer's close has queued must not end what an answer to a recall has begun.
TEST(Releases, AReaderKeepsAFileThatIsRemovedRightAfterAWriterHasClosedIt) {
  Cluster cluster;
  const std::string content = Pattern(kMiB, 1);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", content)));
  ASSERT_TRUE(Ok(cluster.b().Stat("/f")));
  auto reader = cluster.a().Open("/f", O_RDONLY);
  auto writer = cluster.a().Open("/f", O_RDWR);
  ASSERT_TRUE(Ok(reader));
  ASSERT_TRUE(Ok(writer));
  ASSERT_TRUE(Ok(cluster.a().Close(writer->handle)));
  ASSERT_TRUE(Ok(cluster.b().Unlink("/f")));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto read = cluster.a().Read(reader->handle, 0, kMiB);
  ASSERT_TRUE(Ok(read));
  EXPECT_TRUE(*read == content);
}

// A truncation that failed left the end that it had stored up to, and the mount showed the file as
// longer than others had made it.
TEST(Releases, WhatATruncationStoredInVainIsForgotten) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", Pattern(1000, 1))));
  ASSERT_TRUE(Ok(cluster.a().Stat("/f")));
  // Its content is moved to nodes, but the manager does not hear of that.
  std::atomic<bool> commits = false;
  cluster.a().OnSend([&](const std::vector<Request>& requests) {
    commits = commits || std::holds_alternative<CommitRequest>(requests.front());
  });
  std::thread hears;
  cluster.a().OnAnswer([&](const std::vector<Request>& requests) {
    if (!std::holds_alternative<GrantRequest>(requests.front()) || hears.joinable()) return;
    cluster.a().SetUnheard(true);
    hears = std::thread([&] {
      EXPECT_TRUE(Eventually([&] { return commits.load(); }));
      cluster.a().SetUnheard(false);
    });
  });
  EXPECT_FALSE(Ok(cluster.a().Truncate("/f", kMiB)));
  ASSERT_TRUE(hears.joinable());
  hears.join();
  cluster.a().OnAnswer(nullptr);
  cluster.a().OnSend(nullptr);
  ASSERT_TRUE(Ok(cluster.b().Truncate("/f", 10)));
  const auto status = cluster.a().Stat("/f");
  ASSERT_TRUE(Ok(status));
  EXPECT_EQ(status->size_bytes, 10U);
  const auto read = cluster.a().ReadFile("/f");
  ASSERT_TRUE(Ok(read));
  EXPECT_EQ(*read, Pattern(1000, 1).substr(0, 10));
}

}  // namespace
}  // namespace mosa::sai
