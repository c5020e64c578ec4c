#include "tools/mosa/hint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/console/xattr.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

struct HintOptions {
  std::string path, name;
  std::vector<std::string> assignments;
  bool in_store = false;
  ManagerChoice manager;
};

bool Exists(const std::string& path) {
  struct stat file {};
  return lstat(path.c_str(), &file) == 0;
}

// In the format of the attribute user.mosa.hints.
nlohmann::json ToJson(const HintExplanation& explanation) {
  nlohmann::json hints = nlohmann::json::object();
  for (const ExplainedHint& hint : explanation.hints) {
    nlohmann::json item = {{"source", ToText(hint.source)}};
    PutBytes(item, "value", hint.value);
    if (!hint.origin.empty()) PutBytes(item, "origin", hint.origin);
    if (!hint.note.empty()) item["note"] = hint.note;
    hints[hint.name] = std::move(item);
  }
  return hints;
}

// {"path", "exists", "hints": {NAME: {"value", "source", "origin", "note"}}}. Asks the mount for a
// file on a mount: the manager may not know the file yet.
Result<nlohmann::json> Ask(const HintOptions& options) {
  nlohmann::json answer;
  PutBytes(answer, "path", options.path);
  if (!options.in_store && Exists(options.path)) {
    answer["exists"] = true;
    MOSA_ASSIGN_OR_RETURN(answer["hints"], MosaJsonAttribute(options.path, "hints"));
    return answer;
  }
  std::unique_ptr<sai::AdminClient> manager;
  std::string path = options.path;
  if (options.in_store) {
    MOSA_ASSIGN_OR_RETURN(manager, ConnectManager(options.manager));
  } else {
    MOSA_ASSIGN_OR_RETURN(const MountedPath place, FindMountOfNew(options.path));
    MOSA_ASSIGN_OR_RETURN(manager, ConnectManagerOf(options.manager, place.mount_point));
    path = place.path;
  }
  MOSA_ASSIGN_OR_RETURN(const HintExplanation explanation, manager->ExplainHints(path));
  answer["exists"] = explanation.exists;
  answer["hints"] = ToJson(explanation);
  return answer;
}

Status Get(const HintOptions& options, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const nlohmann::json answer, Ask(options));
  if (!answer.at("exists").get<bool>())
    return NotFoundError(fmt::format(
        "{}: no such file; 'mosa hint explain' shows the hints that it would get", options.path));
  const nlohmann::json& hints = answer.at("hints");
  if (!options.name.empty() && !hints.contains(options.name))
    return InvalidArgumentError(fmt::format("there is no hint '{}'", options.name));
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, hint] : hints.items()) {
    if (options.name.empty() || name == options.name) values[name] = hint.at("value");
  }
  if (line.json) {
    PrintJson(values);
  } else if (!options.name.empty()) {
    fmt::print("{}\n", values.at(options.name).get<std::string>());
  } else {
    for (const auto& [name, value] : values.items())
      fmt::print("{}={}\n", name, value.get<std::string>());
  }
  return OkStatus();
}

Status ExplainPath(const HintOptions& options, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const nlohmann::json answer, Ask(options));
  if (line.json) {
    PrintJson(answer);
    return OkStatus();
  }
  Table table({"HINT", "VALUE", "FROM"});
  for (const auto& [name, hint] : answer.at("hints").items()) {
    std::string from = hint.at("source").get<std::string>();
    if (from == "own") from = "set on the path";
    if (hint.contains("origin")) from += " " + hint.at("origin").get<std::string>();
    std::string value = hint.at("value").get<std::string>();
    if (hint.contains("note")) value += " (" + hint.at("note").get<std::string>() + ")";
    table.Add({name, value, from});
  }
  table.Print();
  if (!answer.at("exists").get<bool>())
    fmt::print(stderr, "{} does not exist; if created now, it would get these hints.\n",
               options.path);
  return OkStatus();
}

// Files and directories take a directory's hints when they are created; existing ones keep theirs.
void SayWhatKeepsItsHints(const std::string& path) {
  constexpr size_t kLookedAtMax = 100'000;
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(path, error))) return;
  size_t files = 0, directories = 0;
  for (fs::directory_iterator at(path, error), end;
       !error && at != end && files + directories < kLookedAtMax; at.increment(error))
    ++(fs::is_directory(at->symlink_status(error)) ? directories : files);
  if (files + directories == 0) return;
  fmt::print(stderr,
             "Applies to files and directories created in {} from now on; existing ones keep their "
             "hints: {}{}, {}\n",
             path, files + directories < kLookedAtMax ? "" : "more than ", Counted(files, "file"),
             Counted(directories, "directory"));
}

Status Set(const HintOptions& options) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<HintValue> hints, ParseAssignments(options.assignments));
  if (!options.in_store) {
    for (const HintValue& hint : hints)
      MOSA_RETURN_IF_ERROR(SetMosaAttribute(options.path, hint.name, hint.value));
    SayWhatKeepsItsHints(options.path);
    return OkStatus();
  }
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  for (const HintValue& hint : hints) MOSA_RETURN_IF_ERROR(manager->SetHint(options.path, hint));
  return OkStatus();
}

void AddPath(CLI::App& command, HintOptions& options) {
  command.add_option("path", options.path, "Path on a Mosa mount")->required();
  command.add_flag("--in-store", options.in_store,
                   "Take paths from the root of the store, so that no mount is needed");
  AddManagerChoice(command, options.manager);
}

}  // namespace

Result<std::vector<HintValue>> ParseAssignments(const std::vector<std::string>& words) {
  std::vector<HintValue> hints;
  if (words.empty())
    return InvalidArgumentError("no hint given: write NAME=VALUE, such as placement=local");
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos)
      return InvalidArgumentError(
          fmt::format("'{}' is not a hint: write NAME=VALUE, such as placement=local", word));
    hints.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  return hints;
}

void AddHint(CLI::App& app, CommandLine& line) {
  CLI::App* noun =
      app.add_subcommand("hint", "Set, show and explain hints: how files will be used");
  noun->require_subcommand(1);
  noun->fallthrough();

  auto got = std::make_shared<HintOptions>();
  CLI::App* get = noun->add_subcommand("get",
                                       "Show the hints in force for a file or directory\n\n"
                                       "  mosa hint get $MOSA_MOUNT/result.tsv\n"
                                       "  mosa hint get $MOSA_MOUNT/parts placement");
  AddPath(*get, *got);
  get->add_option("hint", got->name, "Hint to show; default: all");
  get->callback([got, &line] { line.action = [got, &line] { return Get(*got, line); }; });

  auto set = std::make_shared<HintOptions>();
  CLI::App* setter = noun->add_subcommand(
      "set",
      std::string("Set hints on a file, or on a directory for what is created in it\n\n"
                  "  mosa hint set $MOSA_MOUNT/parts pattern=reduce:merge\n"
                  "  mosa hint set $MOSA_MOUNT/scratch placement=local lifetime=temporary\n\n") +
          kHintHelp);
  AddPath(*setter, *set);
  setter->add_option("hints", set->assignments, "Hints, as NAME=VALUE");
  setter->callback([set, &line] { line.action = [set] { return Set(*set); }; });

  auto explained = std::make_shared<HintOptions>();
  CLI::App* explain =
      noun->add_subcommand("explain",
                           "Show which rule, directory or attribute gives each hint of a path\n\n"
                           "  mosa hint explain $MOSA_MOUNT/parts/17.out\n"
                           "  mosa hint explain --in-store /parts/17.out --json\n\n"
                           "The path need not exist.");
  AddPath(*explain, *explained);
  explain->callback([explained, &line] {
    line.action = [explained, &line] { return ExplainPath(*explained, line); };
  });

  AddHintRules(*noun, line);
}

}  // namespace mosa::cli
