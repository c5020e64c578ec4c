#include "manager/core/hints.h"

#include <gtest/gtest.h>

#include <string>

namespace mosa::manager {
namespace {

struct HintRow {
  std::string attribute, value;
  std::string canonical;  // Empty: refused.
};

void CheckHint(const HintRow& row) {
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
  const HintRow rows[] = {
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
      {"user.mosa.placement", "scatter:0", ""},
      {"user.mosa.placement", "scatter:1048576", "scatter:1048576"},
      {"user.mosa.placement", "scatter:1048577", ""},
      {"user.mosa.placement", "collocate:", ""},
      {"user.mosa.placement", "collocate:two words", ""},
      {"user.mosa.placement", "collocate:a\nb", ""},
      {"user.mosa.placement", "collocate:a\x7f", ""},
      {"user.mosa.placement", "collocate:/out/\xc3\xa4\xff", "collocate:/out/\xc3\xa4\xff"},
      {"user.mosa.placement", "collocate:" + std::string(200, 'g'),
       "collocate:" + std::string(200, 'g')},
      {"user.mosa.placement", "collocate:" + std::string(201, 'g'), ""},
      {"user.mosa.placement", "node:", ""},
      {"user.mosa.pattern", "reduce:two words", ""},
      {"user.mosa.pattern", "broadcast:1025", ""},
      {"user.mosa.pattern", "scatter:0", ""},
      {"user.mosa.placement", "node:n1", "node:n1"},
      {"user.mosa.placement", "", ""},
      {"user.mosa.replicas", "3", "3"},
      {"user.mosa.replicas", "auto", "auto"},
      {"user.mosa.replicas", "0", ""},
      {"user.mosa.replicas", "65", ""},
      {"user.mosa.replicas", "10000", ""},
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
  for (const HintRow& row : rows) CheckHint(row);
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
  const Hints hints = {{"ack", {"2", HintSource::kDirectory, ""}},
                       {"lifetime", {"keep", HintSource::kDirectory, "17"}},
                       {"placement", {"local", HintSource::kRule, "/a/*"}},
                       {"strict", {"0"}}};
  const std::string encoded = EncodeHints(hints);
  EXPECT_EQ(*DecodeHints(encoded), hints);
  EXPECT_TRUE(DecodeHints("")->empty());
  for (size_t size = 1; size < encoded.size(); ++size) {
    const auto cut = DecodeHints(std::string_view(encoded).substr(0, size));
    if (cut.ok()) {
      EXPECT_LT(cut->size(), hints.size());
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
      Evaluate({{"placement", {"local"}}, {"chunk_size", {"65536"}}}, defaults);
  EXPECT_EQ(local.placement, "local");
  EXPECT_EQ(local.chunk_bytes, 65536U);
  EXPECT_TRUE(!local.may_be_inline && local.settles_placement);
  EXPECT_EQ(Evaluate({{"pattern", {"pipeline"}}}, defaults).placement, "local");
  EXPECT_EQ(Evaluate({{"stripe_width", {"3"}}}, defaults).stripe_width, 3U);
  EXPECT_FALSE(Evaluate({{"strict", {"1"}}}, defaults).may_be_inline);
  EXPECT_FALSE(Evaluate({{"replicas", {"1"}}}, defaults).may_be_inline);
}

// Returns the evaluated `hints` as "name=value<source", without defaults.
std::string Say(const Hints& hints) {
  std::string text;
  for (const ExplainedHint& hint : Explain(hints, {"stripe", 1 << 20, 0})) {
    if (hint.source == HintSource::kDefault) continue;
    text += (text.empty() ? "" : " ") + hint.name + "=" + hint.value + "<" +
            (hint.source == HintSource::kOwn ? "own" : hint.origin);
  }
  return text;
}

TEST(Patterns, StandForWhatThePapersDo) {
  const struct {
    std::string pattern, meaning;
  } rows[] = {
      {"pipeline", "placement=local<pipeline replicas=1<pipeline"},
      {"reduce:g", "placement=collocate:g<reduce:g"},
      {"broadcast:8",
       "ack=pessimistic<broadcast:8 replicas=8<broadcast:8 replicate=eager<broadcast:8"},
      {"broadcast", "ack=pessimistic<broadcast replicas=auto<broadcast replicate=eager<broadcast"},
      {"scatter", "chunk_size=1048576<scatter placement=scatter:1<scatter"},
      {"gather:65536", "chunk_size=65536<gather:65536 placement=scatter:1<gather:65536"},
      {"default", ""},
  };
  for (const auto& row : rows) {
    std::string said = Say({{"pattern", {row.pattern}}});
    const std::string itself = "pattern=" + row.pattern + "<own";
    ASSERT_NE(said.find(itself), std::string::npos) << said;
    said.erase(said.find(itself), itself.size() + 1);
    if (said.ends_with(' ')) said.pop_back();
    EXPECT_EQ(said.substr(said.starts_with(' ') ? 1 : 0), row.meaning);
  }
}

TEST(Patterns, WithoutAGroupTakeTheDirectory) {
  Hints hints = {{"pattern", {"reduce"}}};
  EXPECT_EQ(Evaluate(hints, {"stripe", 1 << 20, 0}).placement, "stripe");
  SettleGroup(hints, FileId(17));
  EXPECT_EQ(Evaluate(hints, {"stripe", 1 << 20, 0}).placement, "collocate:directory 17");
  EXPECT_EQ(*DecodeHints(EncodeHints(hints)), hints);
  // Users cannot ask for such a group.
  EXPECT_FALSE(ParseHint("placement", false, "collocate:directory 17").ok());
  EXPECT_FALSE(DecodeHints(std::string("group\0pg\0", 9)).ok());
  Hints named = hints;
  SetOwn(named, "pattern", "reduce:g");
  EXPECT_EQ(Evaluate(named, {"stripe", 1 << 20, 0}).placement, "collocate:g");
  EraseHint(hints, "pattern");
  EXPECT_TRUE(hints.empty());
}

TEST(Hints, OfANearerSourceWinAndTheirPatternTakesThePlaceOfWhatItStandsFor) {
  const auto rule = [](std::string value) {
    return Hint{std::move(value), HintSource::kRule, "/r"};
  };
  const Hints above = {{"placement", {"node:n1"}}, {"chunk_size", {"65536"}}, {"ack", {"1"}}};
  Hints hints = InheritedHints(above, "5");
  EXPECT_EQ(Say(hints), "ack=1<5 chunk_size=65536<5 placement=node:n1<5");
  // Inherited through another directory: the first one remains the origin.
  EXPECT_EQ(InheritedHints(hints, "6"), hints);
  Overlay(hints, {{"pattern", rule("reduce:g")}});
  EXPECT_EQ(Say(hints),
            "ack=1<5 chunk_size=65536<5 pattern=reduce:g</r placement=collocate:g<reduce:g");
  Overlay(hints, {{"pattern", rule("default")}});
  EXPECT_EQ(Say(hints), "pattern=default</r");
  // A hint set beside a pattern by the same source wins over it, in any order.
  Hints own;
  SetOwn(own, "placement", "local");
  SetOwn(own, "pattern", "scatter:65536");
  EXPECT_EQ(Say(own),
            "chunk_size=65536<scatter:65536 pattern=scatter:65536<own placement=local<own");
}

TEST(Hints, OfRunsMakeALargerUnitOfTheLayout) {
  const EffectiveHints runs =
      Evaluate({{"placement", {"scatter:4"}}, {"chunk_size", {"65536"}}}, {"stripe", 1 << 20, 0});
  EXPECT_EQ(runs.run_chunks, 4U);
  EXPECT_EQ(runs.run_bytes(), 4U * 65536);
}

}  // namespace
}  // namespace mosa::manager
