#include "proto/convert/bulk_hello.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/convert/capability.h"

namespace mosa {
namespace {

using ::testing::HasSubstr;

constexpr ClientId kClient{77};
const std::string kKey(kCapabilityKeyBytes, 'k');
const std::string kNonceA(kBulkNonceBytes, 'a');
const std::string kNonceB(kBulkNonceBytes, 'b');

BulkIdentity Identity(ClientId client = kClient, uint64_t era = 3) {
  return {.client = client, .era = era, .key = BulkKeyOf(kKey, client, era)};
}

TEST(BulkHello, BothSidesProveThemselves) {
  const v1::BulkRequest hello = HelloOf(Identity(), kNonceA);
  ASSERT_TRUE(CheckHello(hello).ok());
  const Greeting greeting = Greet(hello.hello(), BulkKeyOf(kKey, kClient, 3), "n1", kNonceB);
  const auto proof = ProofFor(Identity(), hello.hello(), greeting.reply, "n1");
  ASSERT_TRUE(proof.ok()) << MessageOf(proof.status());
  EXPECT_TRUE(CheckProof(*proof, greeting.proof_expected).ok());
}

TEST(BulkHello, KeysDifferByClientEraAndCluster) {
  EXPECT_NE(BulkKeyOf(kKey, ClientId{1}, 0), BulkKeyOf(kKey, ClientId{2}, 0));
  EXPECT_NE(BulkKeyOf(kKey, ClientId{1}, 0), BulkKeyOf(kKey, ClientId{1}, 1));
  EXPECT_NE(BulkKeyOf(kKey, ClientId{1}, 0), BulkKeyOf(std::string(32, 'q'), ClientId{1}, 0));
  EXPECT_EQ(BulkKeyOf(kKey, ClientId{1}, 0).size(), kBulkProofBytes);
}

TEST(BulkHello, AnotherClientsKeyProvesNothing) {
  v1::BulkRequest hello = HelloOf(Identity(ClientId{78}), kNonceA);
  hello.mutable_hello()->set_client_id(kClient.value);  // Says that it is another one.
  const Greeting greeting = Greet(hello.hello(), BulkKeyOf(kKey, kClient, 3), "n1", kNonceB);
  const auto refused = ProofFor(Identity(ClientId{78}), hello.hello(), greeting.reply, "n1");
  EXPECT_EQ(refused.status().code(), StatusCode::kUnauthenticated);
  v1::BulkRequest forged;
  forged.mutable_proof()->set_proof(std::string(kBulkProofBytes, 'x'));
  for (const v1::BulkRequest& request : {forged, hello, v1::BulkRequest()}) {
    EXPECT_EQ(CheckProof(request, greeting.proof_expected).code(), StatusCode::kPermissionDenied);
  }
}

TEST(BulkHello, AProofIsGoodForOneConnectionAtOneNode) {
  const v1::BulkRequest hello = HelloOf(Identity(), kNonceA);
  const std::string key = BulkKeyOf(kKey, kClient, 3);
  const Greeting greeting = Greet(hello.hello(), key, "n1", kNonceB);
  const auto overheard = ProofFor(Identity(), hello.hello(), greeting.reply, "n1");
  ASSERT_TRUE(overheard.ok());
  const Greeting later = Greet(hello.hello(), key, "n1", std::string(kBulkNonceBytes, 'c'));
  EXPECT_FALSE(CheckProof(*overheard, later.proof_expected).ok());
  const Greeting elsewhere = Greet(hello.hello(), key, "n2", kNonceB);
  EXPECT_FALSE(CheckProof(*overheard, elsewhere.proof_expected).ok());
  // Nor does the node's own proof pass for the client's.
  v1::BulkRequest mirrored;
  mirrored.mutable_proof()->set_proof(greeting.reply.greeting().proof());
  EXPECT_FALSE(CheckProof(mirrored, greeting.proof_expected).ok());
}

TEST(BulkHello, AnImpostorInANodesPlaceIsToldNothing) {
  const v1::BulkRequest hello = HelloOf(Identity(), kNonceA);
  Greeting greeting = Greet(hello.hello(), std::string(32, 'q'), "n1", kNonceB);
  const auto refused = ProofFor(Identity(), hello.hello(), greeting.reply, "n1");
  EXPECT_EQ(refused.status().code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("failed to authenticate as node n1"));
  greeting.reply.mutable_greeting()->set_nonce("short");
  EXPECT_FALSE(ProofFor(Identity(), hello.hello(), greeting.reply, "n1").ok());
}

TEST(BulkHello, OtherVersionsAreRefusedInOneSentence) {
  v1::BulkRequest hello = HelloOf(Identity(), kNonceA);
  hello.mutable_hello()->set_version(9);
  EXPECT_TRUE(CheckHello(hello).ok());  // It also speaks this one.
  EXPECT_EQ(Greet(hello.hello(), kKey, "n1", kNonceB).reply.greeting().version(), kBulkVersion);
  hello.mutable_hello()->set_version_min(8);
  EXPECT_EQ(MessageOf(CheckHello(hello)),
            "this node speaks versions 2 to 2 of the bulk protocol, the peer 8 to 9: upgrade the "
            "older one of the two");
  EXPECT_EQ(CheckHello(hello).code(), StatusCode::kFailedPrecondition);
  hello.mutable_hello()->set_version(1);
  hello.mutable_hello()->set_version_min(1);
  EXPECT_EQ(CheckHello(hello).code(), StatusCode::kFailedPrecondition);
  v1::BulkRequest old;
  old.mutable_read();
  EXPECT_THAT(MessageOf(CheckHello(old)), HasSubstr("upgrade the peer"));

  v1::BulkReply reply;
  reply.mutable_greeting()->set_version(5);
  EXPECT_EQ(ProofFor(Identity(), hello.hello(), reply, "n1").status().code(),
            StatusCode::kFailedPrecondition);
}

TEST(BulkHello, AMalformedHelloIsRefused) {
  v1::BulkRequest hello = HelloOf(Identity(), "short");
  EXPECT_EQ(CheckHello(hello).code(), StatusCode::kInvalidArgument);
  hello = HelloOf(Identity(), kNonceA);
  hello.mutable_hello()->set_version_min(2);
  hello.mutable_hello()->set_version(2);
  EXPECT_TRUE(CheckHello(hello).ok());
  EXPECT_LE(hello.ByteSizeLong(), kHelloBytesMax);
}

}  // namespace
}  // namespace mosa
