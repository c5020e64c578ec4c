// `mosa stage`: copies files into the store and out of it.
#include "tools/stage/stage.h"

#include <memory>
#include <string>
#include <vector>

#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"
#include "tools/mosa/hint.h"
#include "tools/stage/workers.h"

namespace mosa::cli {
namespace {

constexpr size_t kCopiesMax = 64;

Status Copy(CopyRequest request, const std::vector<std::string>& hints, const CommandLine& line) {
  if (!hints.empty()) {
    MOSA_ASSIGN_OR_RETURN(request.request.hints, ParseAssignments(hints));
  }
  return RunCopy(std::move(request), line.json);
}

void AddCopy(CLI::App& noun, CommandLine& line, bool out) {
  auto options = std::make_shared<CopyRequest>();
  auto hints = std::make_shared<std::vector<std::string>>();
  options->request.out = out;
  CLI::App* command =
      out ? noun.add_subcommand(
                "out",
                "Copy files out of the store, from the hosts that hold them, and mark them "
                "staged\n\n"
                "  mosa stage out $MOSA_MOUNT/results /archive/run7\n"
                "  mosa stage out --unstaged /archive/run7    # all files with lifetime=keep\n\n"
                "The target must be the same directory on all hosts. Files that it already has are "
                "not\n"
                "copied again.")
          : noun.add_subcommand(
                "in",
                "Copy files into the store, on all hosts in parallel\n\n"
                "  mosa stage in /archive/input $MOSA_MOUNT\n"
                "  mosa stage in /archive/db/. $MOSA_MOUNT/db --hint pattern=broadcast:4\n\n"
                "Sources must be the same on all hosts. Files that the store already has are not "
                "copied\n"
                "again.");
  command
      ->add_option("paths", options->paths,
                   "Files and directories to copy, followed by the target directory. If a single "
                   "file goes into a new directory, end its name with '/'")
      ->required();
  if (out) {
    command->add_flag(
        "--unstaged", options->request.unstaged,
        "Copy each file with lifetime=keep that is not staged out, under one of its paths");
  } else {
    command->add_option("--hint", *hints, "Hint for every copied file, NAME=VALUE; repeatable")
        ->allow_extra_args(false);
  }
  command->add_flag("--compare", options->request.compare,
                    "Compare the contents of files that are already there, whatever their times");
  command
      ->add_option("--jobs", options->request.jobs,
                   "Number of files that each host copies at a time")
      ->check(CLI::Range(size_t{1}, kCopiesMax))
      ->capture_default_str();
  command->add_option("--manifest", options->request.manifest,
                      "File to append a line of JSON to for each file, with its checksum");
  command->add_option(
      "--mount", options->hosts.mount,
      "Directory mounted on all hosts and here, instead of a cluster; may contain {host}");
  command
      ->add_option("--hosts", options->hosts.names,
                   "Comma-separated host names, with --mount; default: this machine alone")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option(
      "--exec", options->hosts.exec,
      "Command to run a script on {host}, such as 'ssh {host}'; the script is appended");
  AddManagerChoice(*command, options->manager);
  command->callback([options, hints, &line] {
    line.action = [options, hints, &line] { return Copy(*options, *hints, line); };
  });
}

}  // namespace

void AddStage(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand(
      "stage", "Copy files into the store and out of it, and check that results are out");
  noun->require_subcommand(1);
  noun->fallthrough();
  AddCopy(*noun, line, /*out=*/false);
  AddCopy(*noun, line, /*out=*/true);
  auto choice = std::make_shared<ManagerChoice>();
  CLI::App* check = noun->add_subcommand(
      "check",
      "Check that all files with lifetime=keep are staged out; exit code 3 if not\n\n"
      "  mosa stage check || mosa stage out --unstaged /archive/run7");
  AddManagerChoice(*check, *choice);
  check->callback([choice, &line] {
    line.action = [choice, &line] { return ShowUnstaged(*choice, line.json); };
  });
  auto parent = std::make_shared<pid_t>(0);
  auto probe = std::make_shared<std::string>();
  CLI::App* worker = noun->add_subcommand("worker", "Copy on one host for 'mosa stage' (internal)");
  worker->group("");  // Internal: hidden from --help.
  worker->add_option("--parent", *parent);
  worker->add_option("--probe", *probe);
  worker->callback([parent, probe, &line] {
    line.action = [parent, probe] { return ServeAsStageWorker(*parent, *probe); };
  });
}

}  // namespace mosa::cli
