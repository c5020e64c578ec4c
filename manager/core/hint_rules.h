// HintRules: what is said about paths before there are files. If several rules match a path, the
// most specific one that speaks of a hint wins; among equals one of the maker's own beats one for
// everybody, and then the later one wins. One owner, one thread.
//
// Limits: a make in a directory costs a match for each rule whose glob is not exact and may match
// there. So there may be many exact rules, and few others.
#ifndef MOSA_MANAGER_CORE_HINT_RULES_H_
#define MOSA_MANAGER_CORE_HINT_RULES_H_

#include <cstdint>
#include <map>
#include <optional>
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
inline constexpr size_t kWildRulesMax = 256;  // How many of those may have "*", "?" or "[".
// Per-user limits on both, for a user who may change only what is his own.
inline constexpr size_t kRulesPerOwnerMax = 16'384;
inline constexpr size_t kWildRulesPerOwnerMax = 64;

class HintRules {
 public:
  // The rule with canonical values, by name. InvalidArgument says what is wrong.
  static Result<HintRule> Check(std::string_view glob, const std::vector<HintValue>& hints);

  // ResourceExhausted if there are so many of the rule's kind that none is added.
  Status CheckRoomFor(const HintRule& rule) const;
  // Precondition: the rule is as Check gives it; no other has its id, or its glob and owner.
  void Add(HintRule rule);
  // False if there is none.
  bool Remove(uint64_t id);
  // Precondition: there is such a rule, and it has no owner. While rules are loaded, before their
  // owners are known, several may have one glob and no owner.
  void SetOwner(uint64_t id, uint32_t owner);
  // The glob of two rules with one owner; nothing if there are no such rules, as it must be.
  std::optional<std::string> FindDoubled() const;
  // Null if there is none.
  const HintRule* Find(uint64_t id) const;
  const HintRule* FindByGlob(std::string_view glob, std::optional<uint32_t> owner) const;
  // Ascending by id.
  std::vector<HintRule> List() const;
  size_t size() const { return rules_.size(); }
  bool empty() const { return rules_.empty(); }
  // 0 if there is none.
  uint64_t last_id() const { return rules_.empty() ? 0 : rules_.rbegin()->first; }

  // What a file or directory made at `path` by user `maker` is given, with the rules' globs as
  // origins.
  Hints For(std::string_view path, std::optional<uint32_t> maker = std::nullopt) const;
  // True if a rule may settle the place of a file made directly in `directory`: then nobody can
  // make files there without asking.
  bool MaySettleIn(std::string_view directory) const;
  // The same of one rule. False if there is none with this id.
  bool MaySettleIn(uint64_t id, std::string_view directory) const;

 private:
  struct Owned {
    size_t rules = 0, wild = 0;
  };
  struct Compiled {
    HintRule rule;
    Glob glob;
    Hints hints;
    bool settles = false;
  };
  // The rules whose globs are not exact and may match names directly in a directory.
  struct Candidates {
    std::vector<const Compiled*> rules;
    bool settle = false;  // One of them does.
  };
  const Candidates& CandidatesIn(std::string_view directory) const;
  void Count(const Compiled& compiled, size_t change);

  std::map<uint64_t, Compiled> rules_;
  std::map<std::string, std::set<uint64_t>, std::less<>> by_glob_;  // One of each owner.
  std::map<std::string, std::set<uint64_t>, std::less<>> exact_;  // By path; "/a" and "/\a" differ.
  std::map<std::string, uint64_t, std::less<>> exact_settling_;   // Rules in that directory.
  std::map<std::string, std::set<uint64_t>, std::less<>> wild_;   // By the literal directory.
  size_t wild_count_ = 0;
  std::map<uint32_t, Owned> owned_;
  // By directory; found out when it is first asked for, forgotten when a rule comes or goes.
  mutable std::map<std::string, Candidates, std::less<>> candidates_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_HINT_RULES_H_
