// What every subcommand shares: how it enters the command line, how it prints, how it fails.
//
// A subcommand's file adds itself to a CLI::App with a callback that sets CommandLine::action; the
// action runs after the whole line was understood. Data goes to standard output, messages to
// standard error.
#ifndef MOSA_TOOLS_MOSA_COMMAND_H_
#define MOSA_TOOLS_MOSA_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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
void AddTrace(CLI::App& app, CommandLine& line);
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

void PrintJson(const nlohmann::json& value);

// A path (or any bytes) under `key`; with `key`_b64 too if it is not UTF-8, as JSON cannot hold it.
void PutBytes(nlohmann::json& object, const std::string& key, const std::string& bytes);
// A list of these; with `key`_b64 a list of all too, if one of them is not UTF-8.
void PutBytes(nlohmann::json& object, const std::string& key,
              const std::vector<std::string>& several);

// Rows under a heading: aligned for a terminal, separated by tabs for a program.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void Print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_COMMAND_H_
