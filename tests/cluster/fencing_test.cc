// A storage node refuses who knows an older state of things: a capability of an earlier
// incarnation, a store by a session or a layout that has been replaced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "common/model/checksum_blocks.h"
#include "proto/convert/bulk_hello.h"
#include "storage-node/store/object_store.h"
#include "tests/support/test_node.h"

namespace mosa {
namespace {

using sai::ObjectTarget;
using ::testing::HasSubstr;
using testing::kTestNode;
using testing::TestNode;

constexpr FileId kFile{42};
constexpr ClientId kOther{8};

Time Soon() { return SystemClock().Monotonic() + Seconds(20); }

class Fencing : public ::testing::Test {
 protected:
  std::string Writer(uint64_t era, uint64_t generation, uint64_t epoch = 5,
                     ClientId client = testing::kTestClient) const {
    return node_.Seal({.file = kFile,
                       .client = client,
                       .may_write = true,
                       .expires = {},
                       .era = era,
                       .generation = generation,
                       .epoch = epoch});
  }
  Status Write(const std::string& capability, const std::string& data = "data") {
    return node_.client().Write({kTestNode, kFile, capability}, 0, std::as_bytes(std::span(data)));
  }
  // By another mount.
  Status WriteAsOther(uint64_t era, uint64_t generation, const std::string& data = "data") {
    const std::string capability = Writer(era, generation, 5, kOther);
    return other_->Write({kTestNode, kFile, capability}, 0, std::as_bytes(std::span(data)));
  }
  Status Read(const std::string& capability) {
    std::string out(4, '?');
    return node_.client().Read({kTestNode, kFile, capability}, 0,
                               std::as_writable_bytes(std::span(out)));
  }

  TestNode node_{node::NewMemoryStore("n1"), {.epoch = 5}};
  const std::unique_ptr<sai::BulkNodeApi> other_ = node_.NewClient({}, kOther);
};

TEST_F(Fencing, ACapabilityOfAnEarlierIncarnationIsRefused) {
  const std::string current = Writer(1, 1, 5);
  EXPECT_TRUE(Write(current).ok());
  EXPECT_TRUE(Read(current).ok());
  EXPECT_TRUE(Read(Writer(1, 1, 9)).ok()) << "another node has come since";
  const Status old = Read(Writer(1, 1, 4));
  EXPECT_EQ(old.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(old), HasSubstr("epoch 4"));
  node_.Register(6);
  EXPECT_EQ(Read(current).code(), StatusCode::kPermissionDenied) << "on the same connection, too";
  EXPECT_EQ(Write(current).code(), StatusCode::kPermissionDenied);
}

TEST_F(Fencing, AStoreByASessionThatWasReplacedIsRefused) {
  const std::string first = Writer(1, 1);
  EXPECT_TRUE(Write(first).ok());
  EXPECT_TRUE(Write(Writer(2, 1)).ok());
  const Status late = Write(first);
  EXPECT_EQ(late.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(late), HasSubstr("session 1"));
  EXPECT_TRUE(Read(first).ok()) << "what is read is checked by who reads";
  EXPECT_TRUE(WriteAsOther(1, 1).ok()) << "of another client";
}

TEST_F(Fencing, AStoreByARightFromBeforeTheProcessIsRefused) {
  const auto writer = [this](Duration ago) {
    return node_.Seal({.file = kFile,
                       .client = testing::kTestClient,
                       .may_write = true,
                       .expires = {},
                       .era = 1,
                       .generation = 1,
                       .epoch = 5},
                      kCapabilityLifetime - ago);
  };
  const std::string before = writer(Seconds(40));
  const Status late = Write(before);
  EXPECT_EQ(late.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(late), HasSubstr("before this node's process registered"));
  EXPECT_EQ(node_.client().OpenLocal({kTestNode, kFile, before}, true).status().code(),
            StatusCode::kPermissionDenied);
  EXPECT_TRUE(Write(writer({})).ok());
  EXPECT_TRUE(Read(before).ok()) << "no drop was forgotten that a read could undo";

  const std::string between = writer({});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  node_.Register(5);
  EXPECT_TRUE(Write(between).ok()) << "the process is the same";
  node_.Register(5, Seconds(30));
  EXPECT_TRUE(Write(writer(Seconds(30))).ok()) << "a manager's time that was set back";
}

TEST_F(Fencing, AStoreByAnOlderLayoutIsRefused) {
  EXPECT_TRUE(Write(Writer(1, 3), "old1").ok());
  EXPECT_TRUE(WriteAsOther(1, 4, "new!").ok());
  const std::string old = Writer(1, 3);
  const ObjectTarget target{kTestNode, kFile, old};
  const std::string data = "late";
  auto& client = node_.client();
  for (const Status& late :
       {Write(old, data), client.Truncate(target, 0), client.Allocate(target, 0, 0, 4096),
        client.OpenLocal(target, true).status()}) {
    EXPECT_EQ(late.code(), StatusCode::kAborted) << late;
    EXPECT_THAT(MessageOf(late), HasSubstr("generation 4"));
  }
  std::string out(4, '?');
  EXPECT_TRUE(client.Read(target, 0, std::as_writable_bytes(std::span(out))).ok());
  EXPECT_EQ(out, "new!");
}

TEST_F(Fencing, TheFirstChangeCountsAlreadyWhateverItIs) {
  const std::string writer = Writer(1, 4);
  const ObjectTarget target{kTestNode, kFile, writer};
  auto& client = node_.client();
  for (int way = 0; way < 3; ++way) {
    SCOPED_TRACE(way);
    const Status first = way == 0   ? Write(writer)
                         : way == 1 ? client.Allocate(target, 0, 0, 4096)
                                    : client.OpenLocal(target, true).status();
    EXPECT_TRUE(first.ok()) << first;
    EXPECT_EQ(WriteAsOther(1, 3).code(), StatusCode::kAborted);
    node_.engine().Drop(std::span(&kFile, 1));
  }
}

// The file was cut while another node was silent, and is stored here anew.
TEST_F(Fencing, AStoreByALayoutFromBeforeTheDropDoesNotMakeTheObjectAgain) {
  const std::string old = Writer(1, 4);
  EXPECT_TRUE(Write(old, "old1").ok());
  node_.engine().RefuseStoresUpTo(kFile, 5);
  node_.engine().Drop(std::span(&kFile, 1));
  const ObjectTarget target{kTestNode, kFile, old};
  auto& client = node_.client();
  for (const Status& late :
       {Write(old, "late"), WriteAsOther(1, 5, "late"), client.Truncate(target, 0),
        client.Allocate(target, 0, 0, 4096), client.OpenLocal(target, true).status()}) {
    EXPECT_EQ(late.code(), StatusCode::kAborted) << late;
    EXPECT_THAT(MessageOf(late), HasSubstr("dropped file 42 at layout generation 5"));
  }
  EXPECT_TRUE(node_.engine().ListObjects().empty());
  EXPECT_TRUE(WriteAsOther(1, 6, "new!").ok());
  EXPECT_EQ(Write(old, "late").code(), StatusCode::kAborted);
}

// Its link came back after somebody else was told that his bytes are safe.
TEST_F(Fencing, WhatArrivesOfAStoreAfterALaterLayoutHasStoredIsNotStored) {
  const std::string old(8 * kChecksumBlockBytes, 'o'), later(old.size(), 'n');
  const auto bytes = std::as_bytes(std::span(old));
  v1::BulkRequest request;
  request.set_id(1);
  request.set_file_id(kFile.value);
  request.set_capability(Writer(1, 3));
  for (const uint32_t crc : BlockChecksums(0, bytes)) request.mutable_write()->add_crc32c(crc);
  const std::string frame = EncodeFrameStart(request, old.size()) + old;
  const size_t half = frame.size() - 2 * kChecksumBlockBytes;
  FrameSocket socket = testing::Connect(node_);
  ASSERT_TRUE(Introduce(socket, node_.Identity(), "n1", Soon()).ok());
  ASSERT_TRUE(socket.SendPayload(std::as_bytes(std::span(frame)).first(half), Soon()).ok());
  const auto stored = [&] {
    const auto description = node_.engine().Describe(kFile);
    return description.ok() && description->stat.size_bytes > 0;
  };
  while (!stored()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(WriteAsOther(1, 4, later).ok());
  ASSERT_TRUE(socket.SendPayload(std::as_bytes(std::span(frame)).subspan(half), Soon()).ok());
  v1::BulkReply reply;
  ASSERT_TRUE(socket.ReceiveStart(reply, Soon()).ok());
  EXPECT_EQ(reply.code(), static_cast<int>(StatusCode::kAborted)) << reply.message();
  EXPECT_THAT(reply.message(), HasSubstr("generation 4"));
  const std::string reader = Writer(1, 4);
  std::string out(later.size(), '?');
  ASSERT_TRUE(node_.client()
                  .Read({kTestNode, kFile, reader}, 0, std::as_writable_bytes(std::span(out)))
                  .ok());
  EXPECT_TRUE(out == later);
}

}  // namespace
}  // namespace mosa
