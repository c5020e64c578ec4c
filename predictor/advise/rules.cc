#include "predictor/advise/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/base/utf8.h"
#include "manager/core/glob.h"
#include "manager/core/hint_rules.h"
#include "predictor/workflow/document.h"
#include "predictor/workflow/fields.h"

namespace mosa::predict {
namespace {

constexpr const char* kVersionName = "mosa_rules";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::vector<std::string_view> NamesOf(std::string_view path) {
  std::vector<std::string_view> names;
  for (;;) {
    const size_t slash = path.find('/');
    names.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return names;
    path.remove_prefix(slash + 1);
  }
}

// Replaces each number: "tile_12.fits" becomes "tile_0.fits".
std::string WithoutNumbers(std::string_view text) {
  std::string shape;
  for (const char c : text)
    if (!IsDigit(c))
      shape += c;
    else if (shape.empty() || shape.back() != '0')
      shape += '0';
  return shape;
}

// Directory and extension, without their numbers.
std::string KindOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view directory = slash == std::string_view::npos ? "" : path.substr(0, slash);
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const size_t dot = name.rfind('.');
  const std::string_view ending = dot == std::string_view::npos ? "" : name.substr(dot);
  return WithoutNumbers(directory) + "/" + WithoutNumbers(ending);
}

// Quotes text for a glob. Bytes that a text file cannot hold become '?'.
std::string Literal(std::string_view text) {
  const bool is_text = IsUtf8(text);
  std::string literal;
  for (const char c : manager::QuotedForGlob(text)) {
    const auto byte = static_cast<unsigned char>(c);
    literal += byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_text) ? '?' : c;
  }
  return literal;
}

// A continuation byte of UTF-8.
bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The common prefix and suffix of all names around one "*". Numbers and characters are not split.
std::string CommonName(const std::vector<std::string_view>& names) {
  const std::string_view first = names.front();
  size_t prefix = first.size(), suffix = first.size();
  for (const std::string_view name : names) {
    const auto [at, other] = std::mismatch(first.begin(), first.end(), name.begin(), name.end());
    prefix = std::min(prefix, static_cast<size_t>(at - first.begin()));
    const auto [back, other_back] =
        std::mismatch(first.rbegin(), first.rend(), name.rbegin(), name.rend());
    suffix = std::min(suffix, static_cast<size_t>(back - first.rbegin()));
  }
  if (prefix == first.size() &&
      std::all_of(names.begin(), names.end(), [&](auto name) { return name == first; }))
    return Literal(first);
  size_t shortest = first.size();
  for (const std::string_view name : names) shortest = std::min(shortest, name.size());
  while (prefix > 0 && prefix < first.size() && IsContinuation(first[prefix])) --prefix;
  while (prefix > 0 && IsDigit(first[prefix - 1])) --prefix;
  suffix = std::min(suffix, shortest - std::min(shortest, prefix));
  const auto is_cut = [](char c) { return IsDigit(c) || IsContinuation(c); };
  while (suffix > 0 && is_cut(first[first.size() - suffix])) --suffix;
  return Literal(first.substr(0, prefix)) + "*" + Literal(first.substr(first.size() - suffix));
}

// Makes globs that match given paths and none of the others.
class Covering {
 public:
  explicit Covering(std::vector<std::string_view> others) : others_(std::move(others)) {}

  std::vector<std::string> Of(const std::vector<std::string_view>& paths) const {
    std::vector<std::string> globs;
    for (const auto& [kind, of_kind] : Grouped(paths, KindOf)) {
      if (Emit(of_kind, globs)) continue;
      for (const auto& [shape, of_shape] : Grouped(of_kind, WithoutNumbers)) {
        if (Emit(of_shape, globs)) continue;
        for (const std::string_view path : of_shape) globs.push_back(Literal(path));
      }
    }
    return globs;
  }

 private:
  using Group = std::vector<std::string_view>;
  template <typename Key>
  static std::map<std::string, Group> Grouped(const Group& paths, Key key) {
    std::map<std::string, Group> groups;
    for (const std::string_view path : paths) groups[key(path)].push_back(path);
    return groups;
  }
  // Returns false, and adds nothing, if the glob would match others as well.
  bool Emit(const Group& group, std::vector<std::string>& globs) const {
    std::vector<std::vector<std::string_view>> columns;
    for (const std::string_view path : group) {
      const auto names = NamesOf(path);
      columns.resize(names.size());
      for (size_t i = 0; i < names.size(); ++i) columns[i].push_back(names[i]);
    }
    std::string text;
    for (const auto& column : columns) text += "/" + CommonName(column);
    const auto glob = manager::Glob::Parse(text);
    if (!glob.ok()) return false;
    for (const std::string_view other : others_)
      if (glob->Matches("/" + std::string(other))) return false;
    globs.push_back(text.substr(1));
    return true;
  }

  const std::vector<std::string_view> others_;
};

std::string InQuotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::vector<HintRuleText> RulesFor(const Workflow& workflow,
                                   const std::map<PathIndex, HintMap>& hints) {
  std::map<HintMap, std::vector<std::string_view>> wanted;
  for (const auto& [file, of_file] : hints) wanted[of_file].push_back(workflow.at(file).path);
  std::vector<HintRuleText> rules;
  for (const auto& [of_files, paths] : wanted) {
    std::vector<std::string_view> others;
    for (uint32_t i = 0; i < workflow.files.size(); ++i) {
      const auto found = hints.find(PathIndex{i});
      if (found == hints.end() || found->second != of_files)
        others.emplace_back(workflow.files[i].path);
    }
    std::set<std::string> globs;  // Names with unprintable bytes may share a glob.
    for (std::string& glob : Covering(std::move(others)).Of(paths))
      if (globs.insert(glob).second) rules.push_back({std::move(glob), of_files});
  }
  return rules;
}

std::vector<std::vector<HintRuleText>> RulesFor(const Workflow& workflow,
                                                const std::vector<HintClass>& classes,
                                                const HintChoice& choice) {
  std::vector<std::vector<HintRuleText>> rules;
  for (size_t i = 0; i < classes.size(); ++i)
    rules.push_back(RulesFor(workflow, classes[i].alternatives[choice[i]].hints));
  return rules;
}

std::string WriteRules(const std::vector<HintRuleText>& rules, std::string_view comment) {
  std::string text = "# ";
  for (const char c : comment) text += c == '\n' ? "\n# " : std::string(1, c);
  text +=
      fmt::format("\n{}: {}\nrules:{}\n", kVersionName, kRulesVersion, rules.empty() ? " {}" : "");
  std::set<std::string> lines;
  for (const HintRuleText& rule : rules) {
    std::string hints;
    for (const auto& [name, value] : rule.hints)
      hints += fmt::format("{}{}: {}", hints.empty() ? "" : ", ", name, InQuotes(value));
    const std::string line = fmt::format("  {}: {{{}}}\n", InQuotes(rule.glob), hints);
    if (lines.insert(line).second) text += line;
  }
  return text;
}

Result<std::vector<HintRuleText>> ReadRules(std::string_view text) {
  MOSA_ASSIGN_OR_RETURN(const Value root, ParseDocument(text));
  std::vector<std::string> faults;
  Fields fields(faults);
  if (root.kind != Value::Kind::kMap || root.Find(kVersionName) == nullptr)
    return InvalidArgumentError(
        fmt::format("not a rules file: it must begin with '{}: {}'", kVersionName, kRulesVersion));
  const std::string version = fields.Text(root, kVersionName, "the rules");
  if (version != fmt::format("{}", kRulesVersion))
    return InvalidArgumentError(fmt::format("unsupported rules version '{}': only {} can be read",
                                            version.substr(0, 80), kRulesVersion));
  fields.AllowOnly(root, {kVersionName, "rules"}, "the rules");
  std::vector<HintRuleText> rules;
  const Value* list = root.Find("rules");
  if (list == nullptr || list->kind != Value::Kind::kMap)
    fields.Fault(root.line, "'rules' must be a map of globs");
  else
    for (const auto& [glob, map] : list->fields) {
      HintRuleText rule{glob, {}};
      if (map.kind != Value::Kind::kMap)
        fields.Fault(map.line,
                     fmt::format("rule '{}' needs a map, such as {{pattern: pipeline}}", glob));
      for (const Field& hint : map.fields)
        rule.hints.emplace(hint.key, fields.Text(map, hint.key, fmt::format("rule '{}'", glob)));
      rules.push_back(std::move(rule));
    }
  if (!faults.empty()) return InvalidArgumentError(faults.front());
  return rules;
}

Result<std::vector<std::string>> ApplyRules(const std::vector<HintRuleText>& rules,
                                            Workflow& workflow) {
  manager::HintRules known;
  uint64_t id = 0;
  for (const HintRuleText& rule : rules) {
    std::vector<HintValue> hints;
    for (const auto& [name, value] : rule.hints) hints.push_back({name, value});
    auto checked = manager::HintRules::Check("/" + rule.glob, hints);
    if (!checked.ok()) {
      return InvalidArgumentError(
          fmt::format("rule '{}': {}", rule.glob, MessageOf(checked.status())));
    }
    checked->id = ++id;
    known.Add(*std::move(checked));
  }
  workflow.hints_are_whole = true;
  std::set<std::string> used;
  for (WorkflowFile& file : workflow.files) {
    if (!file.producer) continue;
    std::erase_if(file.hints, [](const auto& hint) { return IsForSpeed(hint.first); });
    for (const auto& [name, hint] : known.For("/" + file.path)) {
      file.hints.insert_or_assign(name, hint.value);
      used.insert(hint.origin.substr(1));
    }
  }
  std::vector<std::string> idle;
  for (const HintRuleText& rule : rules)
    if (!used.contains(rule.glob)) idle.push_back(rule.glob);
  return idle;
}

}  // namespace mosa::predict
