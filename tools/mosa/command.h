// What all subcommands share: how they register on the command line, and how they report errors.
//
// A subcommand's file adds itself to a CLI::App with a callback that sets CommandLine::action; the
// action runs once the whole line has been parsed. Data goes to standard output, messages to
// standard error.
#ifndef MOSA_TOOLS_MOSA_COMMAND_H_
#define MOSA_TOOLS_MOSA_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>

#include "common/base/status.h"

namespace mosa::cli {

struct CommandLine {
  bool json = false;
  int exit_code = 0;  // For an action that succeeds.
  std::function<Status()> action;
};

// Each adds one command (or one noun with its verbs).
void AddCluster(CLI::App& app, CommandLine& line);
void AddClusterUp(CLI::App& noun, CommandLine& line);
void AddClusterDown(CLI::App& noun, CommandLine& line);
void AddClusterRestart(CLI::App& noun, CommandLine& line);
void AddClusterStatus(CLI::App& noun, CommandLine& line);
void AddClusterExec(CLI::App& noun, CommandLine& line);
void AddStatus(CLI::App& app, CommandLine& line);
void AddNode(CLI::App& app, CommandLine& line);
void AddStat(CLI::App& app, CommandLine& line);
void AddWhere(CLI::App& app, CommandLine& line);
void AddHint(CLI::App& app, CommandLine& line);
void AddHintRules(CLI::App& noun, CommandLine& line);
void AddLost(CLI::App& app, CommandLine& line);
void AddAdopt(CLI::App& app, CommandLine& line);
void AddWorkflow(CLI::App& app, CommandLine& line);
void AddStage(CLI::App& app, CommandLine& line);
void AddPredict(CLI::App& app, CommandLine& line);
void AddExplore(CLI::App& app, CommandLine& line);
void AddCompare(CLI::App& app, CommandLine& line);
void AddReport(CLI::App& app, CommandLine& line);
void AddAdvise(CLI::App& app, CommandLine& line);
void AddPlan(CLI::App& app, CommandLine& line);
void AddTrace(CLI::App& app, CommandLine& line);
void AddForecast(CLI::App& app, CommandLine& line);
void AddIdentify(CLI::App& app, CommandLine& line);
void AddIdentifyWorker(CLI::App& app, CommandLine& line);
void AddRun(CLI::App& app, CommandLine& line);
void AddResidence(CLI::App& app, CommandLine& line);
void AddLog(CLI::App& app, CommandLine& line);
void AddFollow(CLI::App& app, CommandLine& line);
void AddWatch(CLI::App& app, CommandLine& line);
void AddBench(CLI::App& app, CommandLine& line);
void AddSecret(CLI::App& app, CommandLine& line);
void AddVersion(CLI::App& app, CommandLine& line);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_COMMAND_H_
