// `mosa identify`: measures a deployment and writes its platform file; also its workers on hosts.
#include "tools/measure/identify.h"

#include <memory>

#include "tools/measure/identify_worker.h"
#include "tools/mosa/choices.h"
#include "tools/mosa/command.h"

namespace mosa::cli {

void AddIdentify(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<IdentifyRequest>();
  CLI::App* command = app.add_subcommand(
      "identify",
      "Measure a deployment and write the platform file that predictions need\n\n"
      "  mosa identify -o lab.json                # the cluster of 'mosa cluster up'\n"
      "  mosa identify --mount /mnt/mosa --hosts a,b,c --exec 'ssh {host}'\n"
      "  mosa identify --path /mnt/nfs            # any other store\n\n"
      "Measures file operations and links on at most three hosts, until each measurement's 95 %\n"
      "interval is within 5 % or the budget is spent. The store should be idle otherwise.");
  AddHostChoice(*command, options->cluster, options->hosts);
  command->add_option("--path", options->paths,
                      "Any directory to measure instead; repeatable, for places of one store");
  command->add_option("--hosts-max", options->hosts_max, "Maximum number of hosts to use")
      ->check(CLI::Range(1U, kIdentifyHostsMax))
      ->capture_default_str();
  command->add_option("--budget", options->budget_seconds, "Time limit in seconds, 2 to 120")
      ->capture_default_str();
  command->add_option("-o,--output", options->out, "Platform file to write")->capture_default_str();
  command->callback([options, &line] {
    line.action = [options, &line] { return RunIdentify(*options, line.json); };
  });
}

void AddIdentifyWorker(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<std::pair<pid_t, std::string>>();
  auto& [parent, net_namespace] = *options;
  CLI::App* command =
      app.add_subcommand("identify-worker", "Measure on one host for 'mosa identify' (internal)");
  command->group("");  // Internal: hidden from --help.
  command->add_option("--parent", parent);
  command->add_option("--net-namespace", net_namespace);
  command->callback([options, &line] {
    line.action = [options] { return ServeAsIdentifyWorker(options->first, options->second); };
  });
}

}  // namespace mosa::cli
