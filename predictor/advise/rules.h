// Hints for a workflow's outputs by globs. `mosa advise` writes them; `mosa run --rules` and `mosa
// predict --rules` use them instead of what the graph suggests. YAML or JSON:
//
//   mosa_rules: 1
//   rules:
//     "projected/*_area.fits": {pattern: pipeline}    # as `mosa hint rule add` takes them
//     "images.tbl": {pattern: "broadcast:4"}
//
// Globs are relative to the run's directory. If several match a file, the most specific one wins,
// then the later one, hint by hint, as with a store's rules.
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

// Returns rules that give these files their hints, and other outputs none. Names are generalised as
// far as that holds, to keep the rules few.
std::vector<HintRuleText> RulesFor(const Workflow& workflow,
                                   const std::map<PathIndex, HintMap>& hints);
// Returns the rules for each class; together they express the choice.
std::vector<std::vector<HintRuleText>> RulesFor(const Workflow& workflow,
                                                const std::vector<HintClass>& classes,
                                                const HintChoice& choice);

// `comment` is one or more lines without "#". Duplicate rules are written once.
std::string WriteRules(const std::vector<HintRuleText>& rules, std::string_view comment);
// InvalidArgument: one sentence with the line.
Result<std::vector<HintRuleText>> ReadRules(std::string_view text);

// Gives the outputs exactly these hints for speed. Returns the globs that match no output.
// InvalidArgument: a malformed glob or hint; the workflow is then unchanged.
Result<std::vector<std::string>> ApplyRules(const std::vector<HintRuleText>& rules,
                                            Workflow& workflow);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_ADVISE_RULES_H_
