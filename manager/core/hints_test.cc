#include "manager/core/hints.h"

#include <gtest/gtest.h>

#include <string>

namespace mosa::manager {
namespace {

struct Row {
  std::string attribute, value;
  std::string canonical;  // Empty: refused.
};

void Check(const Row& row) {
  SCOPED_TRACE(row.attribute + "=" + row.value);
  const AttributeName name = ClassifyAttribute(row.attribute);
  ASSERT_EQ(name.kind, AttributeKind::kHint);
  const auto parsed = ParseHint(name.hint, name.alias, row.value);
  ASSERT_EQ(parsed.ok(), !row.canonical.empty());
  if (parsed.ok()) {
    EXPECT_EQ(*parsed, row.canonical);
    if (name.alias) {
      EXPECT_EQ(AliasValue(name.hint, *parsed), row.value);
    }
  } else {
    EXPECT_NE(MessageOf(parsed.status()).find("'" + row.value + "'"), std::string::npos);
    EXPECT_NE(MessageOf(parsed.status()).find("allowed are"), std::string::npos);
  }
}

TEST(Hints, HaveTheValuesOfTheSpecificationAndNoOthers) {
  const Row rows[] = {
      {"user.mosa.pattern", "pipeline", "pipeline"},
      {"user.mosa.pattern", "pipeline:1", ""},
      {"user.mosa.pattern", "reduce", "reduce"},
      {"user.mosa.pattern", "reduce:g1", "reduce:g1"},
      {"user.mosa.pattern", "reduce:", ""},
      {"user.mosa.pattern", "broadcast:8", "broadcast:8"},
      {"user.mosa.pattern", "broadcast:0", ""},
      {"user.mosa.pattern", "scatter:64K", "scatter:65536"},
      {"user.mosa.pattern", "gather:1000", ""},
      {"user.mosa.pattern", "default", "default"},
      {"user.mosa.pattern", "fold", ""},
      {"user.mosa.placement", "stripe", "stripe"},
      {"user.mosa.placement", "local", "local"},
      {"user.mosa.placement", "local:x", ""},
      {"user.mosa.placement", "collocate:g", "collocate:g"},
      {"user.mosa.placement", "collocate", ""},
      {"user.mosa.placement", "scatter:4", "scatter:4"},
      {"user.mosa.placement", "scatter:x", ""},
      {"user.mosa.placement", "node:n1", "node:n1"},
      {"user.mosa.placement", "", ""},
      {"user.mosa.replicas", "3", "3"},
      {"user.mosa.replicas", "auto", "auto"},
      {"user.mosa.replicas", "0", ""},
      {"user.mosa.replicas", "65", ""},
      {"user.mosa.replicate", "eager", "eager"},
      {"user.mosa.replicate", "later", ""},
      {"user.mosa.ack", "pessimistic", "pessimistic"},
      {"user.mosa.ack", "2", "2"},
      {"user.mosa.ack", "-2", ""},
      {"user.mosa.chunk_size", "1M", "1048576"},
      {"user.mosa.chunk_size", "2G", ""},
      {"user.mosa.chunk_size", "4097", ""},
      {"user.mosa.stripe_width", "4", "4"},
      {"user.mosa.stripe_width", "four", ""},
      {"user.mosa.lifetime", "keep", "keep"},
      {"user.mosa.lifetime", "readers:3", "readers:3"},
      {"user.mosa.lifetime", "readers:", ""},
      {"user.mosa.strict", "1", "1"},
      {"user.mosa.strict", "yes", ""},
      {"user.DP", "local", "local"},
      {"user.DP", "collocation g", "collocate:g"},
      {"user.DP", "scatter 8", "scatter:8"},
      {"user.DP", "stripe", ""},
      {"user.Replication", "2", "2"},
      {"user.RepSmntc", "optimistic", "optimistic"},
      {"user.RepSmntc", "2", ""},
      {"user.BlockSize", "65536", "65536"},
      {"user.BlockSize", "0", ""},
  };
  for (const Row& row : rows) Check(row);
}

TEST(Hints, AreToldFromOtherAttributesByName) {
  const struct {
    std::string attribute;
    AttributeKind kind;
  } rows[] = {{"user.colour", AttributeKind::kOrdinary},
              {"user.mosaic", AttributeKind::kOrdinary},
              {"user.mosa.location", AttributeKind::kReadOnly},
              {"user.mosa.location.chunks", AttributeKind::kReadOnly},
              {"user.location", AttributeKind::kReadOnly},
              {"user.mosa.hints", AttributeKind::kReadOnly},
              {"user.mosa.colour", AttributeKind::kUnknownHint},
              {"user.mosa.", AttributeKind::kUnknownHint},
              {"user.", AttributeKind::kUnsupported},
              {"", AttributeKind::kUnsupported},
              {"security.selinux", AttributeKind::kUnsupported},
              {"system.posix_acl_access", AttributeKind::kUnsupported}};
  for (const auto& row : rows)
    EXPECT_EQ(ClassifyAttribute(row.attribute).kind, row.kind) << row.attribute;
}

TEST(Hints, ComeBackFromTheirEncodingAndDamageIsNoticed) {
  const Hints hints = {{"placement", {"local", true}}, {"strict", {"0", false}}};
  const std::string encoded = EncodeHints(hints);
  EXPECT_EQ(*DecodeHints(encoded), hints);
  EXPECT_TRUE(DecodeHints("")->empty());
  for (size_t size = 1; size < encoded.size(); ++size) {
    const auto cut = DecodeHints(std::string_view(encoded).substr(0, size));
    if (cut.ok()) {
      EXPECT_EQ(cut->size(), 1U);
    }
  }
  EXPECT_FALSE(DecodeHints(encoded + encoded).ok());
  EXPECT_FALSE(DecodeHints(std::string("placement\0slocally\0", 19)).ok());
}

TEST(Hints, ComeToPlacementChunksAndWhetherBytesMayStayInline) {
  const HintDefaults defaults{"stripe", 1 << 20, 0};
  const EffectiveHints none = Evaluate({}, defaults);
  EXPECT_EQ(none.placement, "stripe");
  EXPECT_TRUE(none.may_be_inline && !none.settles_placement);
  const EffectiveHints local =
      Evaluate({{"placement", {"local", false}}, {"chunk_size", {"65536", true}}}, defaults);
  EXPECT_EQ(local.placement, "local");
  EXPECT_EQ(local.chunk_bytes, 65536U);
  EXPECT_TRUE(!local.may_be_inline && local.settles_placement);
  EXPECT_EQ(Evaluate({{"pattern", {"pipeline", false}}}, defaults).placement, "local");
  EXPECT_EQ(Evaluate({{"stripe_width", {"3", false}}}, defaults).stripe_width, 3U);
  EXPECT_FALSE(Evaluate({{"strict", {"1", false}}}, defaults).may_be_inline);
  EXPECT_FALSE(Evaluate({{"replicas", {"1", false}}}, defaults).may_be_inline);
  EXPECT_TRUE(InheritedHints({{"ack", {"1", false}}}).at("ack").inherited);
}

}  // namespace
}  // namespace mosa::manager
