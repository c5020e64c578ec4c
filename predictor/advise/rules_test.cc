#include "predictor/advise/rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {
namespace {

// Outputs of one task; those that begin with "+" get a hint. Returns the globs for them.
std::string Globs(const std::vector<std::string>& paths) {
  WorkflowMaker maker;
  std::vector<std::string> outputs, hinted;
  for (const std::string& path : paths) {
    const bool is_hinted = path.starts_with('+');
    outputs.push_back(path.substr(is_hinted ? 1 : 0));
    if (is_hinted) hinted.push_back(outputs.back());
    maker.File(outputs.back(), 1);
  }
  Workflow workflow = maker.Task("t", {}, outputs).Build();
  std::map<PathIndex, HintMap> hints;
  for (uint32_t i = 0; i < workflow.files.size(); ++i)
    if (std::find(hinted.begin(), hinted.end(), workflow.files[i].path) != hinted.end())
      hints.emplace(PathIndex{i}, HintMap{{"placement", "local"}});
  const auto rules = RulesFor(workflow, hints);
  std::string globs;
  for (const HintRuleText& rule : rules) globs += (globs.empty() ? "" : " ") + rule.glob;
  const auto read = ReadRules(WriteRules(rules, ""));
  EXPECT_TRUE(read.ok() && *read == rules) << globs << ": " << read.status();
  // Whatever the rules are, applied they must give each output its hints.
  const auto idle = ApplyRules(rules, workflow);
  EXPECT_TRUE(idle.ok() && idle->empty()) << globs;
  for (uint32_t i = 0; i < workflow.files.size(); ++i)
    EXPECT_EQ(workflow.files[i].hints.empty(), !hints.contains(PathIndex{i}))
        << workflow.files[i].path << " by " << globs;
  return globs;
}

TEST(RulesFor, GeneralisesNamesAsFarAsThatHolds) {
  struct Row {
    std::vector<std::string> paths;
    std::string globs;
  };
  const Row rows[] = {
      {{"+a", "b"}, "a"},
      {{"+part.0", "+part.1", "+part.12", "sum"}, "part.*"},
      {{"+p/t-1.fits", "+p/t-2.fits", "q/t-1.fits"}, "p/t-*.fits"},
      {{"+p/x.fits", "+p/y.fits", "p/x.txt"}, "p/*.fits"},
      {{"+p/1.fits", "+p/2.fits", "p/1_area.fits", "p/2_area.fits"}, "p/1.fits p/2.fits"},
      {{"p/1.fits", "p/2.fits", "+p/1_area.fits", "+p/2_area.fits"}, "p/*_area.fits"},
      {{"+run1/a.out", "+run22/a.out", "run1/b.out"}, "run*/a.out"},
      {{"+a/x.o", "+b/x.o", "c/x.o"}, "a/x.o b/x.o"},
      {{"+odd[1]*.x", "odd1.x", "odd[1]y.x"}, "odd\\[1]\\*.x"},
      {{"+tab\there", "other"}, "tab?here"},
      {{"+12", "+13", "2"}, "12 13"},
      {{"+\xc3\xa4.o", "+\xc3\xb6.o", "u.o"}, "\xc3\xa4.o \xc3\xb6.o"},
      {{"+\xc3\xa4.o", "+\xc3\xb6.o", "u.x"}, "*.o"},
      {{"+a\xc3\xa4.o", "+a\xc4\xa4.o", "b.o", "a.x"}, "a*.o"},
      {{"+\xe2\x80\xa8\xc2\x85\xef\xbb\xbf", "u"}, "\xe2\x80\xa8\xc2\x85\xef\xbb\xbf"},
      {{"+\xff\x01.o", "+\xff\x02.o", "u.o"}, "??.o"},
  };
  for (const Row& row : rows) EXPECT_EQ(Globs(row.paths), row.globs);
}

TEST(RulesFor, AreOfEachGroup) {
  const Workflow workflow = Reduce(2, kMiB);
  const auto classes = CandidatesOf(workflow, {4, 4});
  const auto rules = RulesFor(workflow, classes, ByItself(classes));
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0], (std::vector<HintRuleText>{{"part.*", {{"pattern", "reduce:reduce"}}}}));
  EXPECT_TRUE(rules[1].empty());
}

TEST(ReadRules, ReadsWhatWasWritten) {
  const std::vector<HintRuleText> rules = {
      {"a b/*.fits", {{"pattern", "broadcast:4"}, {"lifetime", "keep"}}},
      {"odd\"\\[1]", {{"placement", "local"}}}};
  const auto read = ReadRules(WriteRules(rules, "two\nlines"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, rules);
  EXPECT_TRUE(ReadRules(WriteRules({}, ""))->empty());
  EXPECT_EQ(*ReadRules(WriteRules({rules[0], rules[0], rules[1]}, "")), rules);
}

TEST(ReadRules, RefusesWhatIsNone) {
  const std::pair<const char*, const char*> rows[] = {
      {"tasks: []", "not a rules file: it must begin with 'mosa_rules: 1'"},
      {"", "the text is empty"},
      {"mosa_rules: 2\nrules: {}", "unsupported rules version '2': only 1 can be read"},
      {"mosa_rules: 1", "'rules' must be a map of globs"},
      {"mosa_rules: 1\nrules:\n  a: local", "line 3: rule 'a' needs a map"},
      {"mosa_rules: 1\nrules: {}\nmore: 1", "line 3"},
      {"mosa_rules: 1\nrules: {a: {}, a: {}}", "'a' occurs twice"},
  };
  for (const auto& [text, fault] : rows) {
    const auto read = ReadRules(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(MessageOf(read.status()).find(fault), std::string::npos) << read.status();
  }
}

TEST(ApplyRules, TakesThePlaceOfWhatTheWorkflowAndTheGraphSay) {
  Workflow workflow = Broadcast(2, kMiB, {{"pattern", "broadcast:2"}, {"lifetime", "keep"}});
  const auto idle = ApplyRules({{"*", {{"chunk_size", "64K"}, {"stripe_width", "1"}}},
                                {"out.0", {{"stripe_width", "2"}}},
                                {"nothing/*", {{"placement", "local"}}}},
                               workflow);
  ASSERT_TRUE(idle.ok()) << idle.status();
  EXPECT_EQ(*idle, std::vector<std::string>{"nothing/*"});
  EXPECT_EQ(workflow.files[0].hints,
            (HintMap{{"chunk_size", "65536"}, {"lifetime", "keep"}, {"stripe_width", "1"}}));
  EXPECT_EQ(workflow.files[1].hints, (HintMap{{"chunk_size", "65536"}, {"stripe_width", "2"}}));
}

TEST(ApplyRules, RefusesGlobsAndHintsThatAreNone) {
  const std::pair<HintRuleText, const char*> rows[] = {
      {{"a[", {{"placement", "local"}}}, "rule 'a[': '/a[' is not a glob"},
      {{"a", {}}, "rule 'a': rule /a has no hints"},
      {{"a", {{"colour", "red"}}}, "rule 'a': unknown hint 'colour'"},
      {{"a", {{"replicas", "many"}}}, "rule 'a': 'many' is not a value of hint 'replicas'"},
  };
  for (const auto& [rule, fault] : rows) {
    Workflow workflow = Broadcast(2, kMiB);
    const auto applied = ApplyRules({rule}, workflow);
    ASSERT_FALSE(applied.ok());
    EXPECT_NE(MessageOf(applied.status()).find(fault), std::string::npos) << applied.status();
    EXPECT_FALSE(workflow.hints_are_whole);
  }
}

}  // namespace
}  // namespace mosa::predict
