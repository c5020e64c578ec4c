#include "tools/mosa/choices.h"

#include <cstdint>

namespace mosa::cli {
namespace {

constexpr uint32_t kDrawsMax = 10'000;

}  // namespace

void AddClusterChoice(CLI::App& command, ClusterChoice& choice) {
  command.add_option("--name", choice.name, "Name of the local cluster")
      ->capture_default_str()
      ->envname("MOSA_CLUSTER");
  command
      .add_option("--dir", choice.directory, "Directory in which local clusters keep their files")
      ->capture_default_str()
      ->envname("MOSA_CLUSTER_DIR");
}

void AddManagerChoice(CLI::App& command, ManagerChoice& choice) {
  command
      .add_option("--manager", choice.address,
                  "Address of the manager, HOST:PORT; default: the local cluster's")
      ->envname("MOSA_MANAGER");
  command
      .add_option("--secret", choice.secret,
                  "Secret file of the role admin or user (see 'mosa secret')")
      ->envname("MOSA_SECRET");
  AddClusterChoice(command, choice.cluster);
}

void AddHostChoice(CLI::App& command, ClusterChoice& cluster, HostsRequest& hosts) {
  command.add_option("--cluster,--name", cluster.name, "Name of the local cluster")
      ->capture_default_str()
      ->envname("MOSA_CLUSTER");
  command
      .add_option("--dir", cluster.directory, "Directory in which local clusters keep their files")
      ->capture_default_str()
      ->envname("MOSA_CLUSTER_DIR");
  command.add_option(
      "--mount", hosts.mount,
      "Directory mounted on all hosts and here, instead of a cluster; may contain {host}");
  command
      .add_option("--hosts", hosts.names,
                  "Comma-separated host names, with --mount; default: this machine alone")
      ->delimiter(',');
  command.add_option(
      "--exec", hosts.exec,
      "Command to run a script on {host}, such as 'ssh {host}'; the script is appended");
}

CLI::Option* AddPredictionWords(CLI::App& command, PredictionWords& words) {
  command.add_option(
      "--workload", words.workload,
      "Workflow file with runtimes and sizes; default: the workflow of the run, if any");
  command.add_option("--operations", words.operations,
                     "Operations of the workload's tasks: a file written by 'mosa trace workload'");
  command.add_option("--plan", words.plan,
                     "Plan (see 'mosa plan'); default: that of the run, if any");
  command
      .add_option("--rules", words.rules,
                  "Rules file (see 'mosa advise'); default: that of the run, if any")
      ->excludes("--plan");
  command.add_option(
      "--config", words.configuration,
      "Configuration (see 'mosa predict --help'); hosts, slots, system default to the run's");
  command
      .add_option("--draws", words.draws,
                  "Number of draws, at least 19; default: 40, down to 24 above 6,000 tasks")
      ->check(CLI::Range(1U, kDrawsMax));
  return command.add_option("--platform", words.platform,
                            "Platform file written by 'mosa identify'");
}

void AddApplicationFiles(CLI::App& command, ApplicationFiles& files) {
  command
      .add_option("--workload", files.workload,
                  "Workflow file with sizes: WfFormat 1.3 to 1.6, or Mosa's own form")
      ->required();
  command.add_option("--operations", files.operations,
                     "Operations of the workload's tasks: a file written by 'mosa trace workload'");
  command.add_option("--stage", files.stages, "Stage to include; repeatable; default: all");
}

}  // namespace mosa::cli
