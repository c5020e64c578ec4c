// `mosa workflow`: lets a runner other than `mosa run` report its tasks.
#include <fmt/format.h>

#include <memory>

#include "tools/console/manager.h"
#include "tools/console/output.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {
namespace {

struct WorkflowOptions {
  std::string name, result;
  ManagerChoice manager;
};

Status Begin(const WorkflowOptions& options) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  return manager->BeginWorkflow(options.name);
}

Status TellTask(const WorkflowOptions& options) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  return manager->EndTask(options.name, options.result == "ok");
}

Status End(const WorkflowOptions& options, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  MOSA_ASSIGN_OR_RETURN(const uint64_t files_left, manager->EndWorkflow(options.name));
  if (line.json) {
    PrintJson({{"files_left", files_left}});
  } else if (files_left > 0) {
    fmt::print("{} temporary files are still open: they are removed when they are closed\n",
               files_left);
  }
  return OkStatus();
}

}  // namespace

void AddWorkflow(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand(
      "workflow",
      "Tell the store about a workflow's run and tasks, so that it can remove unneeded files\n\n"
      "  mosa workflow begin r1             # its tasks have MOSA_TASK=r1/...\n"
      "  mosa workflow task r1/sort.3 ok    # counts as a reader of lifetime=readers:N files\n"
      "  mosa workflow end r1               # removes its lifetime=temporary files");
  noun->require_subcommand(1);
  noun->fallthrough();

  auto begun = std::make_shared<WorkflowOptions>();
  CLI::App* begin = noun->add_subcommand(
      "begin", "Begin a run, whose tasks count as readers only when they have succeeded");
  begin
      ->add_option("run", begun->name,
                   "Name of the run: the part of its tasks' MOSA_TASK before the first /")
      ->required();
  AddManagerChoice(*begin, begun->manager);
  begin->callback([begun, &line] { line.action = [begun] { return Begin(*begun); }; });

  auto told = std::make_shared<WorkflowOptions>();
  CLI::App* task = noun->add_subcommand("task", "Report the result of a task whose run has begun");
  task->add_option("task", told->name, "MOSA_TASK of the task, RUN/...")->required();
  task->add_option("result", told->result, "Result of the task: ok or failed")
      ->required()
      ->check(CLI::IsMember({"ok", "failed"}));
  AddManagerChoice(*task, told->manager);
  task->callback([told, &line] { line.action = [told] { return TellTask(*told); }; });

  auto ended = std::make_shared<WorkflowOptions>();
  CLI::App* end = noun->add_subcommand(
      "end", "End a run and remove what its tasks wrote with lifetime=temporary");
  end->add_option("run", ended->name, "Name of the run; it need not have begun")->required();
  AddManagerChoice(*end, ended->manager);
  end->callback([ended, &line] { line.action = [ended, &line] { return End(*ended, line); }; });
}

}  // namespace mosa::cli
