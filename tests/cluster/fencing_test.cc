// A storage node refuses who knows an older state of things: a capability of an earlier
// incarnation, a store by a session or a layout that has been replaced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "storage-node/store/object_store.h"
#include "tests/support/test_node.h"

namespace mosa {
namespace {

using sai::ObjectTarget;
using ::testing::HasSubstr;
using testing::kTestNode;
using testing::TestNode;

constexpr FileId kFile{42};

class Fencing : public ::testing::Test {
 protected:
  std::string Writer(uint64_t era, uint64_t generation, uint64_t epoch = 5,
                     ClientId client = ClientId{7}) const {
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
  Status Read(const std::string& capability) {
    std::string out(4, '?');
    return node_.client().Read({kTestNode, kFile, capability}, 0,
                               std::as_writable_bytes(std::span(out)));
  }

  TestNode node_{node::NewMemoryStore("n1"), {.epoch = 5}};
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
  EXPECT_TRUE(Write(Writer(1, 1, 5, ClientId{8})).ok()) << "of another client";
}

TEST_F(Fencing, AStoreByAnOlderLayoutIsRefused) {
  EXPECT_TRUE(Write(Writer(1, 3), "old1").ok());
  EXPECT_TRUE(Write(Writer(1, 4, 5, ClientId{8}), "new!").ok());
  const std::string old = Writer(1, 3);
  const ObjectTarget target{kTestNode, kFile, old};
  const std::string data = "late";
  auto& client = node_.client();
  for (const Status& late :
       {Write(old, data), client.Truncate(target, 0), client.Allocate(target, 0, 0, 4096),
        client.Append(target, std::as_bytes(std::span(data))).status(),
        client.OpenLocal(target, true).status()}) {
    EXPECT_EQ(late.code(), StatusCode::kAborted) << late;
    EXPECT_THAT(MessageOf(late), HasSubstr("generation 4"));
  }
  std::string out(4, '?');
  EXPECT_TRUE(client.Read(target, 0, std::as_writable_bytes(std::span(out))).ok());
  EXPECT_EQ(out, "new!");
}

TEST_F(Fencing, TheFirstStoreCountsAlready) {
  EXPECT_TRUE(Write(Writer(1, 4)).ok());
  EXPECT_EQ(Write(Writer(1, 3, 5, ClientId{8})).code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace mosa
