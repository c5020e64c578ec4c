#include "manager/core/hint_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"

namespace mosa::manager {
namespace {

// At this size the cache is cleared.
constexpr size_t kCandidatesMax = 4096;

// Returns "/a" for "/a/b", "" for "/a".
std::string_view DirectoryOf(std::string_view path) { return path.substr(0, path.rfind('/')); }

}  // namespace

Result<HintRule> HintRules::Check(std::string_view glob, const std::vector<HintValue>& hints) {
  MOSA_RETURN_IF_ERROR(Glob::Parse(glob).status());
  if (hints.empty())
    return InvalidArgumentError(
        fmt::format("rule {} has no hints: give at least one NAME=VALUE", glob));
  HintRule rule{0, std::string(glob), {}};
  for (const HintValue& hint : hints) {
    auto canonical = ParseHint(hint.name, false, hint.value);
    if (!canonical.ok()) return canonical.status();
    rule.hints.push_back({hint.name, *std::move(canonical)});
  }
  std::sort(rule.hints.begin(), rule.hints.end(),
            [](const HintValue& a, const HintValue& b) { return a.name < b.name; });
  for (size_t i = 1; i < rule.hints.size(); ++i) {
    if (rule.hints[i].name == rule.hints[i - 1].name)
      return InvalidArgumentError(
          fmt::format("rule {} gives hint '{}' twice", glob, rule.hints[i].name));
  }
  return rule;
}

Status HintRules::CheckRoomFor(const HintRule& rule) const {
  if (rules_.size() >= kHintRulesMax)
    return ResourceExhaustedError(
        fmt::format("the store has {} rules, which is the limit: remove some", rules_.size()));
  const auto glob = Glob::Parse(rule.glob);
  if (glob.ok() && !glob->is_exact() && wild_count_ >= kWildRulesMax)
    return ResourceExhaustedError(
        fmt::format("the store has {} rules with wild cards, which is the limit: remove some, or "
                    "name the paths one by one",
                    wild_count_));
  const auto owned = rule.owner ? owned_.find(*rule.owner) : owned_.end();
  if (owned == owned_.end()) return OkStatus();
  const bool is_wild = glob.ok() && !glob->is_exact();
  if (owned->second.rules >= kRulesPerOwnerMax ||
      (is_wild && owned->second.wild >= kWildRulesPerOwnerMax)) {
    return ResourceExhaustedError(
        fmt::format("user {} has {} rules, {} of them with wild cards, and the limits for one user "
                    "are {} and {}: remove some",
                    *rule.owner, owned->second.rules, owned->second.wild, kRulesPerOwnerMax,
                    kWildRulesPerOwnerMax));
  }
  return OkStatus();
}

// `change` is 1, or -1 by wrapping around.
void HintRules::Count(const Compiled& compiled, size_t change) {
  if (!compiled.rule.owner) return;
  Owned& owned = owned_[*compiled.rule.owner];
  owned.rules += change;
  if (!compiled.glob.is_exact()) owned.wild += change;
  if (owned.rules == 0) owned_.erase(*compiled.rule.owner);
}

void HintRules::SetOwner(uint64_t id, uint32_t owner) {
  const auto found = rules_.find(id);
  MOSA_CHECK(found != rules_.end() && !found->second.rule.owner);
  found->second.rule.owner = owner;
  Count(found->second, 1);
}

void HintRules::Add(HintRule rule) {
  auto glob = Glob::Parse(rule.glob);
  MOSA_CHECK(glob.ok());
  const uint64_t id = rule.id;
  Compiled compiled{std::move(rule), *std::move(glob), {}, false};
  for (const HintValue& hint : compiled.rule.hints) {
    compiled.hints.insert_or_assign(hint.name,
                                    Hint{hint.value, HintSource::kRule, compiled.rule.glob});
    compiled.settles = compiled.settles || MaySettle(hint.name);
  }
  by_glob_[compiled.rule.glob].insert(id);
  if (compiled.glob.is_exact()) {
    const std::string& path = compiled.glob.exact_path();
    exact_[path].insert(id);
    if (compiled.settles) ++exact_settling_[std::string(DirectoryOf(path))];
  } else {
    wild_[compiled.glob.literal_directory()].insert(id);
    ++wild_count_;
  }
  candidates_.clear();
  Count(compiled, 1);
  MOSA_CHECK(rules_.emplace(id, std::move(compiled)).second);
}

bool HintRules::Remove(uint64_t id) {
  const auto found = rules_.find(id);
  if (found == rules_.end()) return false;
  const Compiled& compiled = found->second;
  Count(compiled, static_cast<size_t>(-1));
  const auto namesakes = by_glob_.find(compiled.rule.glob);
  namesakes->second.erase(id);
  if (namesakes->second.empty()) by_glob_.erase(namesakes);
  auto& index = compiled.glob.is_exact() ? exact_ : wild_;
  const auto place = index.find(compiled.glob.literal_directory());
  place->second.erase(id);
  if (place->second.empty()) index.erase(place);
  if (!compiled.glob.is_exact()) --wild_count_;
  candidates_.clear();
  if (compiled.glob.is_exact() && compiled.settles) {
    const auto settling = exact_settling_.find(DirectoryOf(compiled.glob.exact_path()));
    if (--settling->second == 0) exact_settling_.erase(settling);
  }
  rules_.erase(found);
  return true;
}

const HintRule* HintRules::Find(uint64_t id) const {
  const auto found = rules_.find(id);
  return found == rules_.end() ? nullptr : &found->second.rule;
}

const HintRule* HintRules::FindByGlob(std::string_view glob, std::optional<uint32_t> owner) const {
  const auto found = by_glob_.find(glob);
  if (found == by_glob_.end()) return nullptr;
  for (const uint64_t id : found->second)
    if (const HintRule& rule = rules_.at(id).rule; rule.owner == owner) return &rule;
  return nullptr;
}

std::optional<std::string> HintRules::FindDoubled() const {
  for (const auto& [glob, ids] : by_glob_) {
    std::set<std::optional<uint32_t>> owners;
    for (const uint64_t id : ids)
      if (!owners.insert(rules_.at(id).rule.owner).second) return glob;
  }
  return std::nullopt;
}

std::vector<HintRule> HintRules::List() const {
  std::vector<HintRule> list;
  list.reserve(rules_.size());
  for (const auto& [id, compiled] : rules_) list.push_back(compiled.rule);
  return list;
}

const HintRules::Candidates& HintRules::CandidatesIn(std::string_view directory) const {
  static const Candidates kNone;
  if (wild_.empty()) return kNone;
  if (const auto known = candidates_.find(directory); known != candidates_.end())
    return known->second;
  Candidates candidates;
  for (std::string_view at = directory;; at = DirectoryOf(at)) {
    if (const auto found = wild_.find(at); found != wild_.end()) {
      for (const uint64_t id : found->second) {
        const Compiled& compiled = rules_.at(id);
        if (!compiled.glob.MayMatchIn(directory)) continue;
        candidates.rules.push_back(&compiled);
        candidates.settle = candidates.settle || compiled.settles;
      }
    }
    if (at.empty()) break;
  }
  if (candidates_.size() >= kCandidatesMax) candidates_.clear();
  return candidates_.emplace(directory, std::move(candidates)).first->second;
}

Hints HintRules::For(std::string_view path, std::optional<uint32_t> maker) const {
  std::vector<const Compiled*> matching;
  const auto concerns = [maker](const Compiled& compiled) {
    return !compiled.rule.owner || compiled.rule.owner == maker;
  };
  if (const auto exact = exact_.find(path); exact != exact_.end()) {
    for (const uint64_t id : exact->second)
      if (concerns(rules_.at(id))) matching.push_back(&rules_.at(id));
  }
  for (const Compiled* compiled : CandidatesIn(DirectoryOf(path)).rules) {
    if (concerns(*compiled) && compiled->glob.Matches(path)) matching.push_back(compiled);
  }
  std::sort(matching.begin(), matching.end(), [](const Compiled* a, const Compiled* b) {
    if (b->glob.MoreSpecificThan(a->glob)) return true;
    if (a->glob.MoreSpecificThan(b->glob)) return false;
    if (a->rule.owner.has_value() != b->rule.owner.has_value()) return b->rule.owner.has_value();
    return a->rule.id < b->rule.id;
  });
  Hints hints;
  for (const Compiled* compiled : matching) Overlay(hints, compiled->hints);
  return hints;
}

bool HintRules::MaySettleIn(std::string_view directory) const {
  return exact_settling_.contains(directory) || CandidatesIn(directory).settle;
}

bool HintRules::MaySettleIn(uint64_t id, std::string_view directory) const {
  const auto found = rules_.find(id);
  if (found == rules_.end() || !found->second.settles) return false;
  const Glob& glob = found->second.glob;
  return glob.is_exact() ? DirectoryOf(glob.exact_path()) == directory : glob.MayMatchIn(directory);
}

}  // namespace mosa::manager
