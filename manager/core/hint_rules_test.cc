#include "manager/core/hint_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/rng.h"

namespace mosa::manager {
namespace {

// ---- globs

struct GlobRow {
  std::string glob;
  std::vector<std::string> matches, misses;
};

void CheckGlob(const GlobRow& row) {
  SCOPED_TRACE(row.glob);
  const auto glob = Glob::Parse(row.glob);
  ASSERT_TRUE(glob.ok()) << glob.status();
  for (const std::string& path : row.matches) {
    EXPECT_TRUE(glob->Matches(path)) << path;
    EXPECT_TRUE(glob->MayMatchIn(path.substr(0, path.rfind('/')))) << path;
  }
  for (const std::string& path : row.misses) EXPECT_FALSE(glob->Matches(path)) << path;
}

TEST(Glob, MatchesPathsNameByName) {
  const GlobRow rows[] = {
      {"/a", {"/a"}, {"/b", "/a/b", "/aa"}},
      {"/*", {"/a", "/.b"}, {"/a/b"}},
      {"/a/*.dat", {"/a/x.dat", "/a/.dat"}, {"/a/x.data", "/a/b/x.dat", "/x.dat"}},
      {"/a/**", {"/a/b", "/a/b/c/d"}, {"/a", "/b/a"}},
      {"/**/x", {"/x", "/a/x", "/a/b/x"}, {"/a/x/b", "/ax"}},
      {"/a/**/b/*", {"/a/b/c", "/a/x/y/b/c"}, {"/a/b", "/a/b/c/d", "/b/c"}},
      {"/**/**", {"/a", "/a/b"}, {}},
      {"/a?c", {"/abc", "/a?c"}, {"/ac", "/abbc"}},
      {"/[a-c]x[!0-9]", {"/axy", "/cx-"}, {"/dxy", "/ax5", "/ax"}},
      {"/[]]", {"/]"}, {"/["}},
      {"/[!]]", {"/["}, {"/]"}},
      {"/[a-]", {"/a", "/-"}, {"/b"}},
      {"/\\*", {"/*"}, {"/a"}},
      {"/\xc3\xa4*\xff", {"/\xc3\xa4\xff", "/\xc3\xa4z\xff"}, {"/\xc3\xa4"}},
      {"/*a*b*c", {"/abc", "/xaxbxc", "/aabbcc"}, {"/acb", "/abcd"}},
      {"/a**b", {"/ab", "/axb"}, {"/a/b"}},
  };
  for (const GlobRow& row : rows) CheckGlob(row);
}

TEST(Glob, KnowsInWhichDirectoriesItMayMatch) {
  const auto may = [](const std::string& glob, const std::string& directory) {
    return Glob::Parse(glob)->MayMatchIn(directory);
  };
  EXPECT_TRUE(may("/a/*.dat", "/a"));
  EXPECT_FALSE(may("/a/*.dat", ""));
  EXPECT_FALSE(may("/a/*.dat", "/a/b"));
  EXPECT_TRUE(may("/**/x", ""));
  EXPECT_TRUE(may("/**/x", "/a/b"));
  EXPECT_TRUE(may("/a/**", "/a"));
  EXPECT_FALSE(may("/a/**", ""));
  EXPECT_FALSE(may("/*/b/c", "/a"));
  EXPECT_TRUE(may("/*/b/c", "/a/b"));
}

TEST(Glob, RefusesWhatNoPathCouldMatch) {
  for (const std::string& text :
       {std::string(""), std::string("a"), std::string("/"), std::string("//a"), std::string("/a/"),
        std::string("/a/../b"), std::string("/./a"), std::string("/[a"), std::string("/a\\"),
        std::string("/[a/b]"), std::string("/a\0b", 4), "/" + std::string(4096, 'a')}) {
    const auto glob = Glob::Parse(text);
    ASSERT_FALSE(glob.ok()) << text;
    EXPECT_EQ(glob.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(MessageOf(glob.status()).find("is not a glob: it"), std::string::npos)
        << MessageOf(glob.status());
  }
}

TEST(Glob, OfManyStarsIsDoneSoon) {
  std::string text = "/";
  for (int i = 0; i < 100; ++i) text += "*a";
  EXPECT_FALSE(Glob::Parse(text)->Matches("/" + std::string(254, 'a') + "b"));
  std::string deep, below;
  for (int i = 0; i < 100; ++i) deep += "/**/a";
  for (int i = 0; i < 2000; ++i) below += "/a";
  EXPECT_FALSE(Glob::Parse(deep + "/b")->Matches(below));
}

TEST(Glob, OfAnyBytesIsReadOrRefused) {
  const uint64_t seed = 815;
  RecordProperty("seed", std::to_string(seed));
  Rng rng(seed);
  const std::string bytes = "/*?[]!-\\ab.\xff";
  for (int i = 0; i < 20000; ++i) {
    std::string text = "/", path = "/";
    for (uint64_t n = rng.Below(12); n > 0; --n) text += bytes[rng.Below(bytes.size())];
    for (uint64_t n = rng.Below(8); n > 0; --n) path += bytes[rng.Below(bytes.size())];
    const auto glob = Glob::Parse(text);
    if (!glob.ok()) continue;
    if (glob->Matches(path)) {
      EXPECT_TRUE(glob->MayMatchIn(path.substr(0, path.rfind('/')))) << text << " " << path;
    }
    if (glob->is_exact()) {
      EXPECT_TRUE(glob->Matches(glob->exact_path())) << text;
    }
  }
}

// ---- rules

class Rules : public ::testing::Test {
 protected:
  void Add(const std::string& glob, const std::vector<HintValue>& hints,
           std::optional<uint32_t> owner = std::nullopt) {
    auto rule = HintRules::Check(glob, hints);
    ASSERT_TRUE(rule.ok()) << rule.status();
    rule->id = rules_.last_id() + 1;
    rule->owner = owner;
    rules_.Add(*std::move(rule));
  }
  std::string For(const std::string& path, std::optional<uint32_t> maker = std::nullopt) {
    std::string text;
    for (const auto& [name, hint] : rules_.For(path, maker))
      text += (text.empty() ? "" : " ") + name + "=" + hint.value + "<" + hint.origin;
    return text;
  }
  HintRules rules_;
};

TEST_F(Rules, OfThoseThatMatchTheMostSpecificWinsThenTheLater) {
  Add("/a/*.dat", {{"placement", "local"}});
  Add("/**", {{"placement", "stripe"}, {"lifetime", "temporary"}});
  Add("/a/x.dat", {{"placement", "node:n1"}});
  Add("/a/*.da?", {{"chunk_size", "64K"}});
  Add("/a/y*dat", {{"placement", "node:n3"}});
  EXPECT_EQ(For("/a/x.dat"),
            "chunk_size=65536</a/*.da? lifetime=temporary</** placement=node:n1</a/x.dat");
  EXPECT_EQ(For("/a/z.dat"),
            "chunk_size=65536</a/*.da? lifetime=temporary</** placement=local</a/*.dat");
  EXPECT_EQ(For("/b"), "lifetime=temporary</** placement=stripe</**");
  // As specific as the first, and later.
  EXPECT_EQ(For("/a/y.dat"),
            "chunk_size=65536</a/*.da? lifetime=temporary</** placement=node:n3</a/y*dat");
  EXPECT_TRUE(rules_.Remove(3));
  EXPECT_FALSE(rules_.Remove(3));
  EXPECT_EQ(For("/a/x.dat"), For("/a/z.dat"));
}

TEST_F(Rules, APatternTakesThePlaceOfWhatALessSpecificRuleSays) {
  Add("/a/**", {{"placement", "local"}, {"strict", "1"}});
  Add("/a/x", {{"pattern", "reduce:g"}});
  EXPECT_EQ(For("/a/x"), "pattern=reduce:g</a/x strict=1</a/**");
}

TEST_F(Rules, KnowWhereTheyMaySettleWhatIsMade) {
  Add("/**/*.log", {{"lifetime", "temporary"}, {"chunk_size", "4K"}});
  EXPECT_FALSE(rules_.MaySettleIn("/a"));
  Add("/a/*.dat", {{"placement", "local"}});
  Add("/b/c", {{"strict", "1"}});
  EXPECT_TRUE(rules_.MaySettleIn("/a") && rules_.MaySettleIn("/b"));
  EXPECT_FALSE(rules_.MaySettleIn("") || rules_.MaySettleIn("/a/b") || rules_.MaySettleIn("/b/c"));
  rules_.Remove(3);
  EXPECT_FALSE(rules_.MaySettleIn("/b"));
}

TEST_F(Rules, AreFoundByIdAndGlob) {
  Add("/a", {{"placement", "local"}});
  Add("/\\a", {{"placement", "stripe"}});  // Another glob for the same path.
  EXPECT_EQ(For("/a"), "placement=stripe</\\a");
  EXPECT_EQ(rules_.FindByGlob("/a", std::nullopt)->id, 1U);
  EXPECT_EQ(rules_.FindByGlob("/a", 1000), nullptr);
  EXPECT_EQ(rules_.Find(2)->glob, "/\\a");
  EXPECT_EQ(rules_.List().size(), 2U);
  rules_.Remove(2);
  EXPECT_EQ(For("/a"), "placement=local</a");
  rules_.Remove(1);
  EXPECT_TRUE(rules_.empty() && For("/a").empty() && !rules_.MaySettleIn(""));
}

TEST_F(Rules, OfTheMakersOwnBeatThoseForEverybodyWithEquallySpecificGlobs) {
  Add("/*.dat", {{"placement", "local"}}, 1000);
  Add("/*.dat", {{"placement", "stripe"}, {"strict", "1"}});
  Add("/x*.dat", {{"strict", "0"}});
  EXPECT_EQ(For("/a.dat", 1000), "placement=local</*.dat strict=1</*.dat");
  EXPECT_EQ(For("/a.dat", 1001), "placement=stripe</*.dat strict=1</*.dat");
  // A more specific rule beats the maker's own.
  Add("/*.dat", {{"strict", "1"}}, 1001);
  EXPECT_EQ(For("/x.dat", 1001), "placement=stripe</*.dat strict=0</x*.dat");
}

TEST_F(Rules, OfOneGlobAreOnePerOwner) {
  Add("/a", {{"placement", "local"}});
  Add("/a", {{"placement", "stripe"}}, 1000);
  Add("/a", {{"placement", "stripe"}});  // As while rules are loaded.
  EXPECT_EQ(rules_.FindDoubled(), "/a");
  rules_.SetOwner(3, 1001);
  EXPECT_EQ(rules_.FindDoubled(), std::nullopt);
  EXPECT_EQ(rules_.FindByGlob("/a", std::nullopt)->id, 1U);
  EXPECT_EQ(rules_.FindByGlob("/a", 1000)->id, 2U);
  EXPECT_EQ(rules_.FindByGlob("/a", 1001)->id, 3U);
  rules_.Remove(2);
  EXPECT_EQ(rules_.FindByGlob("/a", 1000), nullptr);
  EXPECT_EQ(rules_.FindByGlob("/a", 1001)->id, 3U);
}

TEST_F(Rules, ThatMakeNoSenseAreRefused) {
  const struct {
    std::string glob;
    std::vector<HintValue> hints;
    std::string why;
  } rows[] = {
      {"a", {{"placement", "local"}}, "'a' is not a glob: it must begin with '/'"},
      {"/a", {}, "has no hints"},
      {"/a", {{"colour", "blue"}}, "unknown hint 'colour'"},
      {"/a", {{"replicas", "10000"}}, "'10000' is not a value of hint 'replicas'"},
      {"/a", {{"strict", "1"}, {"strict", "0"}}, "gives hint 'strict' twice"},
  };
  for (const auto& row : rows) {
    const auto rule = HintRules::Check(row.glob, row.hints);
    ASSERT_FALSE(rule.ok());
    EXPECT_EQ(rule.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(MessageOf(rule.status()).find(row.why), std::string::npos)
        << MessageOf(rule.status());
  }
}

}  // namespace
}  // namespace mosa::manager
