// What local programs store without telling anybody: found by its bytes, told by a mount or by the
// node.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "common/base/rng.h"
#include "storage-node/store/object_store.h"
#include "tests/support/test_node.h"

namespace mosa {
namespace {

using sai::ObjectTarget;
using testing::kTestNode;
using testing::TemporaryDirectory;
using testing::TestNode;

constexpr FileId kFile{42};
constexpr uint64_t kBlock = kChecksumBlockBytes;

std::string Noise(size_t size, uint64_t seed) {
  Rng rng(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.Next());
  return bytes;
}

class LocalWrites : public ::testing::Test {
 protected:
  LocalWrites() {
    auto store = node::OpenDirectoryStore({.path = directory_.path() + "/o", .node_name = "n1"});
    MOSA_CHECK(store.ok());
    node_ = std::make_unique<TestNode>(*std::move(store));
    writer_ = node_->Seal(kFile, true);
  }
  ObjectTarget Writer() const { return {kTestNode, kFile, writer_}; }
  void Write(uint64_t offset, const std::string& data) {
    const Status status = node_->client().Write(Writer(), offset, std::as_bytes(std::span(data)));
    ASSERT_TRUE(status.ok()) << MessageOf(status);
  }
  // The node's own copy of a descriptor that it passed out lasts a moment longer than the client's.
  template <typename Look>
  static sai::LocalWrites LookWhenLeft(const Look& look) {
    sai::LocalWrites found = look();
    for (int i = 0; i < 500 && found.writers_left; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      found = look();
    }
    EXPECT_FALSE(found.writers_left);
    return found;
  }
  // What the node tells by itself, in the next heartbeats.
  std::vector<FileId> Told() {
    std::vector<FileId> files;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (files.empty() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      node_->SealAll();
      node_->engine().Account();
      files = node_->engine().TakeHeartbeat().untold_objects;
    }
    return files;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<TestNode> node_;
  std::string writer_;
};

TEST_F(LocalWrites, StoresIntoAMappingAreFoundByTheirBytes) {
  Write(0, Noise(5 * kBlock + 1, 11));
  node_->SealAll();
  auto fd = node_->client().OpenLocal(Writer(), true);
  ASSERT_TRUE(fd.ok());
  const size_t size = 5 * kBlock + 1;
  auto* const bytes =
      static_cast<char*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0));
  ASSERT_NE(static_cast<void*>(bytes), MAP_FAILED);
  fd->reset();
  const auto look = [&](bool while_written) {
    const auto found = node_->client().LookAtLocalWrites(Writer(), {0, while_written});
    EXPECT_TRUE(found.ok()) << MessageOf(found.status());
    EXPECT_TRUE(found->complete);
    return std::tuple(found->writers_left, found->changed, found->unknown);
  };
  EXPECT_EQ(look(true), std::tuple(true, false, false)) << "the node had sealed it";
  for (const size_t at : {size_t{0}, 3 * kBlock, size - 1}) {
    bytes[at] = static_cast<char>(bytes[at] + 1);
    EXPECT_EQ(look(false), std::tuple(true, false, false)) << "only who is at it is asked";
    EXPECT_EQ(look(true), std::tuple(true, true, false)) << at;
    EXPECT_EQ(look(true), std::tuple(true, false, false)) << at;
  }
  Write(kBlock, Noise(kBlock, 12));
  EXPECT_EQ(look(true), std::tuple(true, false, true)) << "another client's bytes are its to tell";
  bytes[kBlock] = static_cast<char>(bytes[kBlock] + 1);
  ::munmap(bytes, size);
  const sai::LocalWrites left = LookWhenLeft([&] {
    return *node_->client().LookAtLocalWrites(Writer(), {0, false});
  });
  EXPECT_TRUE(left.changed && !left.unknown);
  EXPECT_EQ(look(false), std::tuple(false, false, false));
  node_->SealAll();
  EXPECT_TRUE(node_->client().Stat(Writer())->sealed);
  ASSERT_TRUE(node_->client().FinishLocalWrites(Writer()).ok());
}

// The kernel may release a mount's descriptor some time after the mount has told of its writes.
TEST_F(LocalWrites, WhatWasToldBeforeTheDescriptorWentIsNotANewStore) {
  Write(0, Noise(2 * kBlock, 11));
  const auto write_and_tell = [&](const std::string& bytes) {
    node_->SealAll();
    auto fd = node_->client().OpenLocal(Writer(), true);
    EXPECT_TRUE(fd.ok());
    // It grows, too.
    EXPECT_EQ(::pwrite(fd->get(), bytes.data(), bytes.size(), 4 * kBlock),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(node_->client().FinishLocalWrites(Writer()).ok());
    return *std::move(fd);
  };
  const UniqueFd first = write_and_tell("stored longer");
  const auto second = node_->client().OpenLocal(Writer(), true);
  ASSERT_TRUE(second.ok());
  const auto found = node_->client().LookAtLocalWrites(Writer(), {0, true});
  ASSERT_TRUE(found.ok()) << MessageOf(found.status());
  EXPECT_FALSE(found->changed);
  EXPECT_TRUE(found->unknown) << "a store behind what was told would look alike";
}

TEST_F(LocalWrites, WhatWasToldBeforeTheDescriptorWentIsNotToldByTheNode) {
  Write(0, Noise(2 * kBlock, 11));
  for (const std::string bytes : {"stored", "stored longer"}) {
    node_->SealAll();
    auto fd = node_->client().OpenLocal(Writer(), true);
    ASSERT_TRUE(fd.ok());
    ASSERT_EQ(::pwrite(fd->get(), bytes.data(), bytes.size(), 4 * kBlock),
              static_cast<ssize_t>(bytes.size()));
    ASSERT_TRUE(node_->client().FinishLocalWrites(Writer()).ok());
    fd->reset();
    EXPECT_EQ(Told(), std::vector<FileId>()) << bytes;
  }
}

// Two mounts of a host: one has told of its changes, the other is killed.
TEST_F(LocalWrites, WhatAnotherMountStoresIsToldByTheNode) {
  Write(0, Noise(2 * kBlock, 11));
  node_->SealAll();
  auto first = node_->client().OpenLocal(Writer(), true);
  auto second = node_->client().OpenLocal(Writer(), true);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(node_->client().FinishLocalWrites(Writer()).ok());
  ASSERT_EQ(::pwrite(second->get(), "stored", 6, 0), 6);
  first->reset();
  second->reset();
  EXPECT_EQ(Told(), std::vector{kFile});
}

// The answers' fields, over the wire: where a look begins, where it goes on, and what is refused.
TEST_F(LocalWrites, ALookBeginsWhereItIsTold) {
  Write(0, Noise(4 * kBlock, 11));
  node_->SealAll();
  auto fd = node_->client().OpenLocal(Writer(), true);
  ASSERT_TRUE(fd.ok());
  ASSERT_EQ(::pwrite(fd->get(), "stored", 6, 0), 6);
  const auto look = [&](uint64_t from_bytes) {
    return node_->client().LookAtLocalWrites(Writer(), {from_bytes, true});
  };
  for (const uint64_t behind : {4 * kBlock, 9 * kBlock + 5, kFileBytesMax}) {
    const auto found = look(behind);
    ASSERT_TRUE(found.ok()) << MessageOf(found.status());
    EXPECT_TRUE(found->complete);
    EXPECT_EQ(std::tuple(found->writers_left, found->changed, found->unknown),
              std::tuple(true, false, false));
  }
  const auto late = look(kBlock);
  EXPECT_TRUE(late.ok() && !late->changed && late->next_bytes >= 4 * kBlock);
  const auto within = look(kBlock - 1);
  EXPECT_TRUE(within.ok() && within->changed && within->complete);
  EXPECT_EQ(look(kFileBytesMax + 1).status().code(), StatusCode::kInvalidArgument);
}

// What one look has found, the next one must not find again: its time of change would be later.
TEST_F(LocalWrites, ALookFindsAllThatHasChanged) {
  constexpr size_t kSize = 4 << 20;
  Write(0, Noise(kSize, 21));
  node_->SealAll();
  {
    auto fd = node_->client().OpenLocal(Writer(), true);
    ASSERT_TRUE(fd.ok());
    const std::string other = Noise(kSize, 22);
    ASSERT_EQ(::pwrite(fd->get(), other.data(), kSize, 0), static_cast<ssize_t>(kSize));
  }
  const auto look = [&] {
    sai::LocalWrites all{.complete = false};
    for (uint64_t from = 0; !all.complete;) {
      const auto step = node_->client().LookAtLocalWrites(Writer(), {from, false});
      EXPECT_TRUE(step.ok());
      if (!step.ok()) break;
      all.writers_left = step->writers_left;
      all.changed = all.changed || step->changed;
      all.complete = step->complete || step->writers_left;
      from = step->next_bytes;
    }
    return all;
  };
  EXPECT_TRUE(LookWhenLeft(look).changed);
  EXPECT_FALSE(look().changed);
}

// Its mount may have been killed.
TEST_F(LocalWrites, WhatNoMountAsksAboutIsToldByTheNode) {
  Write(0, Noise(2 * kBlock, 13));
  const auto store_through = [&](const std::string& bytes) {
    node_->SealAll();
    auto fd = node_->client().OpenLocal(Writer(), true);
    ASSERT_TRUE(fd.ok());
    ASSERT_EQ(::pwrite(fd->get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  };
  store_through("stored");
  EXPECT_EQ(Told(), std::vector{kFile});
  EXPECT_EQ(Told(), std::vector<FileId>()) << "once on each stream";
  node_->engine().RepeatReports();
  EXPECT_EQ(Told(), std::vector{kFile}) << "the stream may have lost it";
  store_through("stored");
  EXPECT_EQ(Told(), std::vector<FileId>()) << "the same bytes";
  store_through("another");
  const auto look = [&] { return *node_->client().LookAtLocalWrites(Writer(), {0, false}); };
  EXPECT_TRUE(LookWhenLeft(look).changed);
  ASSERT_TRUE(node_->client().FinishLocalWrites(Writer()).ok());
  EXPECT_EQ(Told(), std::vector<FileId>()) << "the mount has told it";
}

// Killed between the answer and its commit. What it was answered, nobody else can find any more.
TEST_F(LocalWrites, WhatWasAnsweredAndNotSaidToBeToldIsToldByTheNode) {
  Write(0, Noise(2 * kBlock, 13));
  node_->SealAll();
  auto fd = node_->client().OpenLocal(Writer(), true);
  ASSERT_TRUE(fd.ok());
  ASSERT_EQ(::pwrite(fd->get(), "stored", 6, 0), 6);
  const auto look = [&] {
    const auto found = node_->client().LookAtLocalWrites(Writer(), {0, true});
    return found.ok() && found->changed;
  };
  EXPECT_TRUE(look());
  fd->reset();
  EXPECT_EQ(Told(), std::vector{kFile}) << "answered while it had the file open";
  fd = node_->client().OpenLocal(Writer(), true);
  ASSERT_TRUE(fd.ok());
  ASSERT_EQ(::pwrite(fd->get(), "again!", 6, 0), 6);
  fd->reset();
  EXPECT_TRUE(look());
  EXPECT_EQ(Told(), std::vector{kFile}) << "answered when it had closed it";
  EXPECT_EQ(Told(), std::vector<FileId>()) << "once";
}

}  // namespace
}  // namespace mosa
