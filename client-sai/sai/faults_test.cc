// Tests failing and silent nodes: somebody gets the error, and nothing is left half done where this
// can be prevented.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <thread>

#include "client-sai/sai/cluster_fixture.h"

namespace mosa::sai {
namespace {

TEST(Faults, ASilentNodeIsAnErrorAndNotZeroes) {
  Cluster cluster;
  const std::string content = Pattern(4 * kMiB, 6);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", content)));
  cluster.nodes().Get(cluster.node_b).reachable = false;
  cluster.manager().SilenceNode(cluster.node_b);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(ReasonOf(cluster.a().ReadFile("/f")), ErrorReason::kNodeLost);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(12));
  const auto again = std::chrono::steady_clock::now();
  EXPECT_EQ(ReasonOf(cluster.a().ReadFile("/f")), ErrorReason::kNodeLost);
  EXPECT_LT(std::chrono::steady_clock::now() - again, std::chrono::seconds(1)) << "at once";
}

// Otherwise the other nodes truncate their parts, and the rest of the file is zeroes.
TEST(Faults, ACutThatASilentNodeCannotTakePartInChangesNothing) {
  Cluster cluster;
  const std::string content = Pattern(4 * kMiB, 6);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", content)));
  auto handle = cluster.a().Open("/f", O_RDWR);
  ASSERT_TRUE(Ok(handle));
  cluster.nodes().Get(cluster.node_b).reachable = false;
  cluster.manager().SilenceNode(cluster.node_b);
  ASSERT_EQ(ReasonOf(cluster.a().ReadFile("/f")), ErrorReason::kNodeLost);
  AttributeChanges cut;
  cut.size_bytes = kPageBytes;
  const FileId file = *cluster.a().Find("/f");
  EXPECT_EQ(ReasonOf(cluster.a().fs().SetAttributes(file, cut)), ErrorReason::kNodeLost);
  EXPECT_EQ(
      ReasonOf(cluster.a().fs().Allocate(handle->handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                         kPageBytes, 4 * kMiB - kPageBytes)),
      ErrorReason::kNodeLost);
  EXPECT_EQ(ReasonOf(cluster.a().fs().Allocate(handle->handle, FALLOC_FL_ZERO_RANGE, 0, 4 * kMiB)),
            ErrorReason::kNodeLost);
  uint64_t read_bytes = 0;
  for (uint64_t offset = 0; offset < content.size(); offset += kPageBytes) {
    const auto page = cluster.a().Read(handle->handle, offset, kPageBytes);
    if (!page.ok()) continue;
    ASSERT_EQ(*page, content.substr(offset, kPageBytes)) << offset;
    read_bytes += page->size();
  }
  EXPECT_GE(read_bytes, kMiB) << "what node a has";
}

// The kernel keeps a page although its writeback has failed, so this mount would read bytes that no
// other mount reads.
TEST(Faults, PagesThatCouldNotBeStoredAreDropped) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", Pattern(4 * kMiB, 6))));
  auto handle = cluster.a().Open("/f", O_RDWR);
  ASSERT_TRUE(Ok(handle));
  const std::string page = Pattern(2 * kMiB, 7);
  cluster.nodes().FailEvery(1, StatusCode::kDataLoss);
  const uint64_t before = cluster.a().notifier().files;
  const auto written =
      cluster.a().fs().WritePages(handle->handle, 0, std::as_bytes(std::span(page)));
  EXPECT_TRUE(!written.ok() || !cluster.a().fs().Fsync(handle->handle).ok());
  EXPECT_TRUE(Eventually([&] { return cluster.a().notifier().files > before; }));
  cluster.nodes().FailOperation(0, 0);
}

// It would read what the file was before, and learn of the error only when it closes the file.
TEST(Faults, WhoHasWrittenWhatCouldNotBeStoredDoesNotReadTheOldBytes) {
  Cluster cluster;
  const std::string content = Pattern(4 * kMiB, 6);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/f", content)));
  auto writer = cluster.a().Open("/f", O_RDWR);
  auto reader = cluster.a().Open("/f", O_RDONLY);
  auto idle = cluster.a().Open("/f", O_RDWR);
  ASSERT_TRUE(Ok(writer));
  ASSERT_TRUE(Ok(reader));
  ASSERT_TRUE(Ok(idle));
  // On the other host's node, so that it is buffered.
  const Layout layout = cluster.manager().StatusOf("/f")->layout;
  uint64_t offset = 0;
  while (layout.NodeAt(offset) != cluster.node_b) offset += kPageBytes;
  ASSERT_TRUE(Ok(cluster.a().Write(writer->handle, offset, Pattern(kPageBytes, 7))));
  cluster.nodes().FailEvery(1, StatusCode::kDataLoss);
  // What is buffered is stored first, which fails.
  EXPECT_FALSE(Ok(cluster.a().Read(reader->handle, offset, kPageBytes)));
  cluster.nodes().FailOperation(0, 0);
  EXPECT_FALSE(Ok(cluster.a().Read(writer->handle, offset, kPageBytes)));
  EXPECT_TRUE(Ok(cluster.a().Read(reader->handle, offset, kPageBytes))) << "it has written nothing";
  EXPECT_TRUE(Ok(cluster.a().Read(idle->handle, offset, kPageBytes))) << "nor has it";
  EXPECT_FALSE(Ok(cluster.a().fs().Fsync(writer->handle)));
  EXPECT_TRUE(Ok(cluster.a().Read(writer->handle, offset, kPageBytes))) << "the program knows";
}

// Writes, overwrites, truncates and closes a file while node operations fail. Either an error is
// reported, or another mount reads the right bytes once nothing fails. Returns the number of
// operations.
uint64_t CheckNothingFailsSilently(const std::function<void(LocalNodes&)>& fail,
                                   const std::string& what) {
  Cluster cluster(64 * kMiB, 64 * kMiB);
  std::string model = Pattern(2 * kMiB + 4321, 1);
  fail(cluster.nodes());
  bool told = !cluster.a().WriteFile("/f", model).ok();
  auto handle = cluster.a().Open("/f", O_RDWR);
  if (handle.ok()) {
    const std::string more = Pattern(kMiB, 2);
    told = !cluster.a().Write(handle->handle, kMiB / 2, more).ok() || told;
    model.replace(kMiB / 2, more.size(), more);
    told = !cluster.a().fs().Fsync(handle->handle).ok() || told;
    AttributeChanges cut;
    cut.size_bytes = 2 * kMiB - 99;
    told = !cluster.a().fs().SetAttributes(*cluster.a().Find("/f"), cut).ok() || told;
    model.resize(2 * kMiB - 99);
    told = !cluster.a().Close(handle->handle).ok() || told;
  }
  told = told || !handle.ok();
  const uint64_t operations = cluster.nodes().operations();
  cluster.nodes().FailOperation(0, 0);
  if (!told) {
    const auto read = cluster.b().ReadFile("/f");
    EXPECT_TRUE(Ok(read)) << what;
    EXPECT_TRUE(read.ok() && *read == model) << what;
  }
  return operations;
}

TEST(Faults, NoNodeOperationFailsSilently) {
  for (const StatusCode code :
       {StatusCode::kDataLoss, StatusCode::kUnavailable, StatusCode::kResourceExhausted}) {
    const std::string name = "code " + std::to_string(static_cast<int>(code));
    uint64_t operations = 1;
    for (uint64_t number = 1; number <= operations && number < 60; ++number)
      operations = CheckNothingFailsSilently(
          [&](LocalNodes& nodes) { nodes.FailOperation(number, 0, code); },
          name + " of operation " + std::to_string(number));
    for (const uint64_t period : {2U, 3U, 5U, 7U})
      CheckNothingFailsSilently([&](LocalNodes& nodes) { nodes.FailEvery(period, code); },
                                name + " of every operation of " + std::to_string(period));
  }
}

// The other node has a copy, with the bytes that were punched out of the first one.
TEST(Spill, WhatWasPunchedOutDoesNotComeBackFromACopy) {
  Cluster cluster(6 * kMiB, 64 * kMiB);
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d", "user.mosa.placement", "local")));
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d/copied")));
  ASSERT_TRUE(Ok(cluster.a().SetXattr("/d/copied", "user.mosa.replicas", "2")));
  std::string content = Pattern(4 * kMiB, 1);
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/copied/f", content)));
  const auto copies = [&] { return cluster.manager().StatusOf("/d/copied/f")->copies_valid; };
  for (int i = 0; i < 500 && copies() < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_EQ(copies(), 2U);
  auto handle = cluster.a().Open("/d/copied/f", O_RDWR);
  ASSERT_TRUE(Ok(cluster.a().fs().Allocate(
      handle->handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kMiB, 2 * kMiB)));
  std::fill_n(content.begin() + kMiB, 2 * kMiB, '\0');
  ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/filler", Pattern(5 * kMiB, 2))));
  const std::string page = Pattern(4096, 3);
  content.replace(2 * kMiB, page.size(), page);
  ASSERT_TRUE(Ok(cluster.a().Write(handle->handle, 2 * kMiB, page)));
  EXPECT_TRUE(*cluster.a().Read(handle->handle, 0, content.size()) == content);
  ASSERT_TRUE(Ok(cluster.a().Close(handle->handle)));
  EXPECT_TRUE(*cluster.b().ReadFile("/d/copied/f") == content);
  EXPECT_EQ(cluster.manager().StatusOf("/d/copied/f")->layout.NodeAt(2 * kMiB), cluster.node_b);
}

}  // namespace
}  // namespace mosa::sai
