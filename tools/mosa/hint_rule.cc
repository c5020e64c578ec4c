#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>

#include "manager/core/glob.h"
#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/console/xattr.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"
#include "tools/mosa/hint.h"

namespace mosa::cli {
namespace {

struct RuleOptions {
  std::string glob;
  std::vector<std::string> assignments;
  ManagerChoice manager;
};

struct Target {
  std::unique_ptr<sai::AdminClient> manager;
  std::string glob;  // From the root of the store.
};

// Users write globs below their mount or, as the manager does, below the root of the store.
Result<Target> Find(const RuleOptions& options) {
  const size_t wild = std::min(options.glob.find_first_of("*?[\\"), options.glob.size());
  const size_t slash = options.glob.rfind('/', wild);
  const std::string directory =
      slash == std::string::npos ? "." : options.glob.substr(0, std::max<size_t>(slash, 1));
  const auto place = FindMountOfNew(directory);
  if (place.ok()) {
    auto manager = ConnectManagerOf(options.manager, place->mount_point);
    if (manager.ok()) {
      const std::string name =
          slash == std::string::npos ? options.glob : options.glob.substr(slash + 1);
      const std::string above = place->path == "/" ? "" : manager::QuotedForGlob(place->path);
      return Target{*std::move(manager), fmt::format("{}/{}", above, name)};
    }
  }
  MOSA_ASSIGN_OR_RETURN(auto manager, ConnectManager(options.manager));
  return Target{std::move(manager), options.glob};
}

Status Add(const RuleOptions& options, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<HintValue> hints, ParseAssignments(options.assignments));
  MOSA_ASSIGN_OR_RETURN(const Target target, Find(options));
  MOSA_ASSIGN_OR_RETURN(const uint64_t rule, target.manager->AddHintRule(target.glob, hints));
  if (line.json) {
    nlohmann::json json = {{"id", rule}};
    PutBytes(json, "glob", target.glob);
    PrintJson(json);
  } else {
    fmt::print("Rule {} for {}\n", rule, target.glob);
  }
  return OkStatus();
}

nlohmann::json ToJson(const HintRule& rule) {
  nlohmann::json hints = nlohmann::json::object();
  for (const HintValue& hint : rule.hints) PutBytes(hints, hint.name, hint.value);
  nlohmann::json json = {{"id", rule.id}, {"hints", std::move(hints)}};
  PutBytes(json, "glob", rule.glob);
  if (rule.owner) json["owner_uid"] = *rule.owner;
  return json;
}

Status ListRules(const ManagerChoice& choice, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(choice));
  MOSA_ASSIGN_OR_RETURN(const std::vector<HintRule> rules, manager->ListHintRules());
  if (line.json) {
    nlohmann::json json = nlohmann::json::array();
    for (const HintRule& rule : rules) json.push_back(ToJson(rule));
    PrintJson(json);
    return OkStatus();
  }
  Table table({"ID", "FOR", "GLOB", "HINTS"});
  for (const HintRule& rule : rules) {
    std::string hints;
    for (const HintValue& hint : rule.hints)
      hints += fmt::format("{}{}={}", hints.empty() ? "" : " ", hint.name, hint.value);
    table.Add({std::to_string(rule.id), rule.owner ? fmt::format("uid {}", *rule.owner) : "all",
               rule.glob, hints});
  }
  table.Print();
  return OkStatus();
}

// A rule is named by its id or its glob.
Status Remove(const RuleOptions& options) {
  uint64_t id = 0;
  const char* const end = options.glob.data() + options.glob.size();
  if (const auto read = std::from_chars(options.glob.data(), end, id); read.ptr == end) {
    MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
    return manager->RemoveHintRule(id);
  }
  MOSA_ASSIGN_OR_RETURN(const Target target, Find(options));
  MOSA_ASSIGN_OR_RETURN(const std::vector<HintRule> rules, target.manager->ListHintRules());
  std::vector<uint64_t> ids;
  std::string names;
  for (const HintRule& rule : rules) {
    if (rule.glob != target.glob) continue;
    ids.push_back(rule.id);
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", rule.id,
                         rule.owner ? fmt::format("uid {}", *rule.owner) : "all");
  }
  if (ids.empty()) return NotFoundError(fmt::format("there is no rule for {}", target.glob));
  if (ids.size() > 1)
    return InvalidArgumentError(fmt::format("{} rules have the glob {}: give the id of one: {}",
                                            ids.size(), target.glob, names));
  return target.manager->RemoveHintRule(ids.front());
}

}  // namespace

void AddHintRules(CLI::App& noun, CommandLine& line) {
  CLI::App* rule =
      noun.add_subcommand("rule", "Manage rules that give hints to files that will be created");
  rule->require_subcommand(1);
  rule->fallthrough();

  auto added = std::make_shared<RuleOptions>();
  CLI::App* add = rule->add_subcommand(
      "add",
      std::string(
          "Add a rule: files created from now on get these hints if their path matches GLOB\n\n"
          "  mosa hint rule add \"$MOSA_MOUNT/parts/*.out\" pattern=reduce:merge\n"
          "  mosa hint rule add '/scratch/**' placement=local lifetime=temporary\n\n"
          "If several rules match, the most specific one wins, then the latest. In globs, *, ? "
          "and\n"
          "[a-z] match within a name, and ** matches any number of names.\n\n") +
          kHintHelp);
  add->add_option("glob", added->glob, "Glob below a mount, or from the root of the store")
      ->required();
  add->add_option("hints", added->assignments, "Hints, as NAME=VALUE");
  AddManagerChoice(*add, added->manager);
  add->callback([added, &line] { line.action = [added, &line] { return Add(*added, line); }; });

  auto choice = std::make_shared<ManagerChoice>();
  CLI::App* list = rule->add_subcommand("list",
                                        "List the rules in the order in which they were added\n\n"
                                        "  mosa hint rule list\n"
                                        "  mosa hint rule list --json");
  AddManagerChoice(*list, *choice);
  list->callback(
      [choice, &line] { line.action = [choice, &line] { return ListRules(*choice, line); }; });

  auto removed = std::make_shared<RuleOptions>();
  CLI::App* remove =
      rule->add_subcommand("remove",
                           "Remove a rule; files that it applied to keep their hints\n\n"
                           "  mosa hint rule remove 3\n"
                           "  mosa hint rule remove '/scratch/**'");
  remove->add_option("rule", removed->glob, "Id or glob of the rule")->required();
  AddManagerChoice(*remove, removed->manager);
  remove->callback([removed, &line] { line.action = [removed] { return Remove(*removed); }; });
}

}  // namespace mosa::cli
