// HintRules: what is said about paths before there are files. Of the rules that match a path, the
// most specific one that speaks of a hint wins, and among equals the later one. One owner, one
// thread.
#ifndef MOSA_MANAGER_CORE_HINT_RULES_H_
#define MOSA_MANAGER_CORE_HINT_RULES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/model/hints.h"
#include "manager/core/glob.h"
#include "manager/core/hints.h"

namespace mosa::manager {

inline constexpr size_t kHintRulesMax = 65'536;

class HintRules {
 public:
  // The rule with canonical values, by name. InvalidArgument says what is wrong.
  static Result<HintRule> Check(std::string_view glob, const std::vector<HintValue>& hints);

  // Precondition: the rule is as Check gives it; no other has its id or its glob.
  void Add(HintRule rule);
  // False if there is none.
  bool Remove(uint64_t id);
  // Null if there is none.
  const HintRule* Find(uint64_t id) const;
  const HintRule* FindByGlob(std::string_view glob) const;
  // Ascending by id.
  std::vector<HintRule> List() const;
  size_t size() const { return rules_.size(); }
  bool empty() const { return rules_.empty(); }
  // 0 if there is none.
  uint64_t last_id() const { return rules_.empty() ? 0 : rules_.rbegin()->first; }

  // What a file or directory made at `path` is given, with the rules' globs as origins.
  Hints For(std::string_view path) const;
  // True if a rule may settle the place of a file made directly in `directory`: then nobody can
  // make files there without asking.
  bool MaySettleIn(std::string_view directory) const;

 private:
  struct Compiled {
    HintRule rule;
    Glob glob;
    Hints hints;
    bool settles = false;
  };
  // Calls `visit` with every rule whose glob is not exact and may match below `directory`.
  template <typename Visit>
  void VisitAbove(std::string_view directory, const Visit& visit) const;

  std::map<uint64_t, Compiled> rules_;
  std::map<std::string, uint64_t, std::less<>> by_glob_;
  std::map<std::string, std::set<uint64_t>, std::less<>> exact_;  // By path; "/a" and "/\a" differ.
  std::map<std::string, uint64_t, std::less<>> exact_settling_;   // Rules in that directory.
  std::map<std::string, std::set<uint64_t>, std::less<>> wild_;   // By the literal directory.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_HINT_RULES_H_
