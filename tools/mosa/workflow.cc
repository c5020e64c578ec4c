// `mosa workflow`: what a runner other than `mosa run` says of its tasks.
#include <fmt/format.h>

#include <memory>

#include "tools/mosa/command.h"
#include "tools/mosa/manager.h"

namespace mosa::cli {
namespace {

struct Options {
  std::string name, result;
  ManagerChoice manager;
};

Status Begin(const Options& options) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  return manager->BeginWorkflow(options.name);
}

Status TellTask(const Options& options) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  return manager->EndTask(options.name, options.result == "ok");
}

Status End(const Options& options, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(options.manager));
  MOSA_ASSIGN_OR_RETURN(const uint64_t files_left, manager->EndWorkflow(options.name));
  if (line.json) {
    PrintJson({{"files_left", files_left}});
  } else if (files_left > 0) {
    fmt::print("{} temporary files are open still: they go when they are closed\n", files_left);
  }
  return OkStatus();
}

}  // namespace

void AddWorkflow(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand(
      "workflow",
      "Tell the store of a workflow's tasks, so that it knows which files it can do without\n\n"
      "  mosa workflow begin r1             # MOSA_TASK of its tasks: r1/...\n"
      "  mosa workflow task r1/sort.3 ok    # it counts as a reader of readers:<n> files\n"
      "  mosa workflow end r1               # its lifetime=temporary files go");
  noun->require_subcommand(1);
  noun->fallthrough();

  auto begun = std::make_shared<Options>();
  CLI::App* begin = noun->add_subcommand(
      "begin", "From now on a task of this run is a reader only when it has succeeded");
  begin->add_option("run", begun->name, "What its tasks' MOSA_TASK have before the first /")
      ->required();
  AddManagerChoice(*begin, begun->manager);
  begin->callback([begun, &line] { line.action = [begun] { return Begin(*begun); }; });

  auto told = std::make_shared<Options>();
  CLI::App* task = noun->add_subcommand("task", "A task of a run that has begun has ended");
  task->add_option("task", told->name, "Its MOSA_TASK: RUN/...")->required();
  task->add_option("result", told->result, "ok or failed")
      ->required()
      ->check(CLI::IsMember({"ok", "failed"}));
  AddManagerChoice(*task, told->manager);
  task->callback([told, &line] { line.action = [told] { return TellTask(*told); }; });

  auto ended = std::make_shared<Options>();
  CLI::App* end = noun->add_subcommand(
      "end", "The run is over: what its tasks have written with lifetime=temporary goes");
  end->add_option("run", ended->name, "As it began; one that never did is as good")->required();
  AddManagerChoice(*end, ended->manager);
  end->callback([ended, &line] { line.action = [ended, &line] { return End(*ended, line); }; });
}

}  // namespace mosa::cli
