// HintRules: hints for paths whose files do not exist yet. If several rules match a path, the most
// specific one that sets a hint wins. Among equally specific rules the maker's own beats a rule for
// everybody; then the later rule wins. Not thread-safe.
//
// Cost: a make matches each rule whose glob is not exact and may match in that directory. So there
// may be many exact rules, but few others.
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
inline constexpr size_t kWildRulesMax = 256;  // Rules with "*", "?" or "[", of kHintRulesMax.
// The same limits for one user.
inline constexpr size_t kRulesPerOwnerMax = 16'384;
inline constexpr size_t kWildRulesPerOwnerMax = 64;

class HintRules {
 public:
  // Returns the rule with canonical values, sorted by name. InvalidArgument states the fault.
  static Result<HintRule> Check(std::string_view glob, const std::vector<HintValue>& hints);

  // ResourceExhausted if there is no room for another rule of this kind.
  Status CheckRoomFor(const HintRule& rule) const;
  // Precondition: Check returned the rule, and no other has its id, or its glob and owner.
  void Add(HintRule rule);
  // Returns false if there is none.
  bool Remove(uint64_t id);
  // Precondition: the rule exists and has no owner. While rules are loaded and their owners are not
  // known yet, several rules without owner may have the same glob.
  void SetOwner(uint64_t id, uint32_t owner);
  // Returns the glob of two rules with the same owner, if there are any. That is a corrupt image.
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

  // Returns the hints of a file or directory that user `maker` makes at `path`. Origins are the
  // rules' globs.
  Hints For(std::string_view path, std::optional<uint32_t> maker = std::nullopt) const;
  // Returns true if a rule may settle the placement of a file made directly in `directory`. Then
  // mounts must not make files there without asking.
  bool MaySettleIn(std::string_view directory) const;
  // The same for one rule. Returns false if there is no rule with this id.
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
  // The rules whose globs are not exact and may match names directly in one directory.
  struct Candidates {
    std::vector<const Compiled*> rules;
    bool settle = false;  // At least one of them may settle placement.
  };
  const Candidates& CandidatesIn(std::string_view directory) const;
  void Count(const Compiled& compiled, size_t change);

  std::map<uint64_t, Compiled> rules_;
  std::map<std::string, std::set<uint64_t>, std::less<>> by_glob_;  // At most one per owner.
  std::map<std::string, std::set<uint64_t>, std::less<>> exact_;  // By path; "/a" and "/\a" differ.
  // Number of such rules by directory.
  std::map<std::string, uint64_t, std::less<>> exact_settling_;
  std::map<std::string, std::set<uint64_t>, std::less<>> wild_;  // By literal directory.
  size_t wild_count_ = 0;
  std::map<uint32_t, Owned> owned_;
  // By directory. Filled on first use; cleared when rules change.
  mutable std::map<std::string, Candidates, std::less<>> candidates_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_HINT_RULES_H_
