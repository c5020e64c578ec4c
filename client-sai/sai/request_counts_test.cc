// How often a mount asks the manager, operation by operation: each question is a round trip that a
// program waits for.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client-sai/sai/cluster_fixture.h"
#include "common/base/mutex.h"
#include "common/model/request_kinds.h"

namespace mosa::sai {
namespace {

class RequestCounts : public ::testing::Test {
 protected:
  RequestCounts() {
    EXPECT_TRUE(Ok(cluster_.a().MakeDirectory("/d")));
    cluster_.a().OnSend([this](const std::vector<Request>& requests) {
      std::string names;
      for (const Request& request : requests) {
        if (std::holds_alternative<ReleaseRequest>(request)) return;  // Nobody waits for it.
        names += fmt::format("{}{}", names.empty() ? "" : "+", kRequestNames[request.index()]);
      }
      const SystemMutexLock lock(mutex_);
      sent_ += fmt::format("{}{}", sent_.empty() ? "" : " ", names);
    });
  }
  ~RequestCounts() override { cluster_.a().OnSend({}); }

  // The envelopes that `operation` sends; their requests are joined by '+'.
  std::string SentBy(const std::function<void()>& operation) {
    operation();
    const SystemMutexLock lock(mutex_);
    return std::exchange(sent_, {});
  }
  std::string SentToWrite(const std::string& path, size_t size_bytes) {
    return SentBy(
        [&] { EXPECT_TRUE(Ok(cluster_.a().WriteFile(path, std::string(size_bytes, 'x')))); });
  }
  std::string SentToRead(const std::string& path) {
    return SentBy([&] { EXPECT_TRUE(Ok(cluster_.a().ReadFile(path))); });
  }

  Cluster cluster_;
  SystemMutex mutex_;
  std::string sent_;  // Guarded by mutex_.
};

TEST_F(RequestCounts, OfASmallFile) {
  EXPECT_EQ(SentToWrite("/d/f", 1000), "make+commit");
  EXPECT_EQ(SentToRead("/d/f"), "");
  EXPECT_EQ(SentBy([&] { EXPECT_TRUE(Ok(cluster_.a().Stat("/d/f"))); }), "");
  EXPECT_EQ(SentToWrite("/d/f", 500), "open set_attributes commit");
  EXPECT_EQ(SentBy([&] { EXPECT_TRUE(Ok(cluster_.a().Unlink("/d/f"))); }), "remove");
  EXPECT_EQ(SentBy([&] { EXPECT_FALSE(cluster_.a().Stat("/d/f").ok()); }), "");
}

TEST_F(RequestCounts, OfALargerFile) {
  EXPECT_EQ(SentToWrite("/d/f", 300'000), "make+bind grant commit");
  // Room is asked for ahead, once for each node.
  EXPECT_EQ(SentToWrite("/d/g", 300'000), "make+bind grant commit");
  EXPECT_EQ(SentToWrite("/d/h", 300'000), "make+bind commit");
  EXPECT_EQ(SentToRead("/d/f"), "");
  EXPECT_EQ(SentToWrite("/d/f", 200'000), "open set_attributes commit");
  EXPECT_EQ(SentBy([&] { EXPECT_TRUE(Ok(cluster_.a().Unlink("/d/f"))); }), "remove");
}

// Another mount makes files there as well. A name is asked for before it is made, and nobody waits
// for the other mount.
TEST_F(RequestCounts, OfASmallFileInASharedDirectory) {
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(Ok(cluster_.a().WriteFile("/d/a" + std::to_string(i), "x")));
    ASSERT_TRUE(Ok(cluster_.b().WriteFile("/d/b" + std::to_string(i), "x")));
  }
  SentBy([] {});
  EXPECT_EQ(SentToWrite("/d/f", 1000), "lookup make+commit");
  ASSERT_TRUE(Ok(cluster_.b().WriteFile("/d/g", "x")));
  EXPECT_EQ(SentToWrite("/d/h", 1000), "lookup make+commit");
  EXPECT_EQ(SentBy([&] { EXPECT_EQ(*cluster_.a().ReadFile("/d/g"), "x"); }), "lookup open");
  // A name is kept while nobody else changes the file.
  EXPECT_EQ(SentToRead("/d/g"), "");
  EXPECT_EQ(SentToRead("/d/h"), "");
  EXPECT_EQ(SentBy([&] { EXPECT_TRUE(Ok(cluster_.a().Unlink("/d/h"))); }), "remove");
  EXPECT_EQ(SentToWrite("/d/i", 300'000), "lookup make+bind grant commit");
}

}  // namespace
}  // namespace mosa::sai
