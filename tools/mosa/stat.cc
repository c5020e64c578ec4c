#include <fmt/format.h>
#include <sys/stat.h>

#include <memory>

#include "common/base/units.h"
#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/console/xattr.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

struct StatOptions {
  std::string path;
  ManagerChoice manager;
};

std::string ToLine(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Prints "KEY  value", and nested objects as "outer.inner".
void PrintFields(const nlohmann::json& object, const std::string& prefix = "") {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      PrintFields(value, prefix + key + ".");
    } else {
      fmt::print("{:<32} {}\n", prefix + key, ToLine(value));
    }
  }
}

// The path as the mount's manager knows it; empty if there is no manager to ask.
Result<nlohmann::json> FromManager(const StatOptions& options, const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  MOSA_ASSIGN_OR_RETURN(const FileStatus file, manager->GetFileStatus(path));
  return ToJson(file);
}

Status ShowFile(const StatOptions& options, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const MountedPath place, FindMount(options.path));
  nlohmann::json answer;
  PutBytes(answer, "path", options.path);
  PutBytes(answer, "mount_point", place.mount_point);
  MOSA_ASSIGN_OR_RETURN(const auto mount, MosaJsonAttribute(place.mount_point, "mount"));
  if (place.path == "/") {
    answer["mount"] = mount;
  } else {
    struct stat file {};
    if (lstat(options.path.c_str(), &file) != 0) return NotFoundError(options.path);
    answer["size_bytes"] = file.st_size;
    if (S_ISREG(file.st_mode)) {
      MOSA_ASSIGN_OR_RETURN(const std::string location, MosaAttribute(options.path, "location"));
      answer["location"] = SplitNames(location);
      MOSA_ASSIGN_OR_RETURN(answer["layout"], MosaJsonAttribute(options.path, "layout"));
    }
    const auto known = FromManager(options, place.path);
    if (known.ok()) {
      answer["manager"] = *known;
    } else {
      fmt::print(stderr, "mosa: showing only the mount's view: {}\n", MessageOf(known.status()));
    }
  }
  if (line.json) {
    PrintJson(answer);
  } else {
    PrintFields(answer);
  }
  return OkStatus();
}

}  // namespace

void AddStat(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<StatOptions>();
  CLI::App* command = app.add_subcommand(
      "stat",
      "Show where a file's bytes are stored and why, or the counters of a mount\n\n"
      "  mosa stat $MOSA_MOUNT/result.tsv\n"
      "  mosa stat $MOSA_MOUNT");
  command->add_option("path", options->path, "File on a Mosa mount, or the mount itself")
      ->required();
  AddManagerChoice(*command, options->manager);
  command->callback(
      [options, &line] { line.action = [options, &line] { return ShowFile(*options, line); }; });
}

}  // namespace mosa::cli
