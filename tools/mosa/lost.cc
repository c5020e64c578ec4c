#include <fmt/format.h>

#include <memory>

#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

constexpr uint32_t kFilesMax = 10'000;

Status ShowLost(const ManagerChoice& choice, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(choice));
  MOSA_ASSIGN_OR_RETURN(const std::vector<FileStatus> files, manager->ListLostFiles(kFilesMax));
  if (line.json) {
    nlohmann::json json = nlohmann::json::array();
    for (const FileStatus& file : files) json.push_back(ToJson(file));
    PrintJson(json);
  } else {
    Table table({"BYTES", "STATE", "WRITTEN BY", "PATH"});
    for (const FileStatus& file : files) {
      table.Add({fmt::format("{}", file.entry.attributes.size_bytes),
                 file.lost ? "lost" : "damaged", file.task.empty() ? "-" : file.task, file.path});
    }
    table.Print();
  }
  if (files.size() == kFilesMax) {
    fmt::print(stderr, "These are the first {}; there may be more.\n", kFilesMax);
  }
  return OkStatus();
}

}  // namespace

void AddLost(CLI::App& app, CommandLine& line) {
  auto choice = std::make_shared<ManagerChoice>();
  CLI::App* command = app.add_subcommand(
      "lost",
      "List files whose only copy is lost or damaged, with the task that wrote each\n\n"
      "  mosa lost\n"
      "  mosa lost --json | jq -r '.[].task' | sort -u");
  AddManagerChoice(*command, *choice);
  command->callback(
      [choice, &line] { line.action = [choice, &line] { return ShowLost(*choice, line); }; });
}

}  // namespace mosa::cli
