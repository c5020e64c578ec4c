// Hints of a workflow's outputs by globs, as people say them: written by `mosa advise`, and taken
// by `mosa run --rules` and `mosa predict --rules` instead of what the graph suggests. YAML or
// JSON:
//
//   mosa_rules: 1
//   rules:
//     "projected/*_area.fits": {pattern: pipeline}    # as `mosa hint rule add` takes them
//     "images.tbl": {pattern: "broadcast:4"}
//
// Globs are below the run's directory. If several match a file, the most specific one wins,
// then the later, hint by hint, as with rules of a store.
#ifndef MOSA_PREDICTOR_ADVISE_RULES_H_
#define MOSA_PREDICTOR_ADVISE_RULES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "predictor/advise/candidates.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {

inline constexpr int kRulesVersion = 1;

struct HintRuleText {
  std::string glob;
  HintMap hints;
  bool operator==(const HintRuleText&) const = default;
};

// Rules that give the files these hints, and no other output of the workflow any. Few: names are
// generalised as far as that holds.
std::vector<HintRuleText> RulesFor(const Workflow& workflow,
                                   const std::map<PathIndex, HintMap>& hints);
// The rules for each class; together they say what the choice says.
std::vector<std::vector<HintRuleText>> RulesFor(const Workflow& workflow,
                                                const std::vector<HintClass>& classes,
                                                const HintChoice& choice);

// `comment` is one line or more, without "#". A rule that is there twice is written once.
std::string WriteRules(const std::vector<HintRuleText>& rules, std::string_view comment);
// InvalidArgument: one sentence with the line.
Result<std::vector<HintRuleText>> ReadRules(std::string_view text);

// Gives the outputs these hints for speed and no others; returns the globs that say nothing of any
// output. InvalidArgument: a glob that is none, a hint that is none; nothing is changed then.
Result<std::vector<std::string>> ApplyRules(const std::vector<HintRuleText>& rules,
                                            Workflow& workflow);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ADVISE_RULES_H_
