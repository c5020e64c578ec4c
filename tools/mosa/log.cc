// `mosa log`: controls the request log of every daemon; `mosa follow`: shows the path of one
// request through these logs.
#include <memory>

#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"
#include "tools/observe/request_logs.h"

namespace mosa::cli {

void AddLog(CLI::App& app, CommandLine& line) {
  struct Options {
    ManagerChoice manager;
    ResidenceQuery query;
  };
  CLI::App* noun = app.add_subcommand(
      "log",
      "Make all daemons log their requests, so that single ones can be followed\n\n"
      "  mosa log on /var/tmp/requests; snakemake; mosa log off\n"
      "  mosa follow /var/tmp/requests/*.requests");
  noun->require_subcommand(1);
  noun->fallthrough();
  const auto add = [&](const char* name, const char* what, RequestLogOrder order) {
    auto options = std::make_shared<Options>();
    options->query.log_order = order;
    CLI::App* command = noun->add_subcommand(name, what);
    if (order == RequestLogOrder::kBegin)
      command
          ->add_option("directory", options->query.log_directory,
                       "Directory that exists on each host; each daemon creates a file in it")
          ->required();
    AddManagerChoice(*command, options->manager);
    command->callback([options, &line] {
      line.action = [options, &line] {
        return OrderLogs(options->manager, options->query, line.json);
      };
    });
  };
  add("on", "Start the request logs while the daemons run", RequestLogOrder::kBegin);
  add("off", "Stop the request logs and complete their files", RequestLogOrder::kEnd);
  add("status", "Show which request logs are being written, and where", RequestLogOrder::kNone);
}

void AddFollow(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<FollowRequest>();
  CLI::App* command = app.add_subcommand(
      "follow",
      "Follow one request from the program's call to the object, and show where time went\n\n"
      "  mosa follow /var/tmp/requests/*.requests                 # the longest read\n"
      "  mosa follow *.requests --class fuse.create --list 20\n"
      "  mosa follow *.requests --trace 52c18b0e7fd0a1b3");
  command->add_option("files", options->files, "Request logs that daemons wrote (see 'mosa log')")
      ->required();
  command->add_option("--trace", options->trace,
                      "Id of the request to show, as printed by --list; default: the longest one");
  command->add_option("--class", options->name, "Class of requests to choose from; '': all classes")
      ->capture_default_str();
  command->add_option("--host", options->host,
                      "Host whose mount's requests to choose from; default: all");
  command->add_option("--list", options->list,
                      "List this many of the longest requests instead of showing one");
  command->callback(
      [options, &line] { line.action = [options, &line] { return Follow(*options, line.json); }; });
}

}  // namespace mosa::cli
