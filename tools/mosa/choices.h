// Options that several subcommands share: the cluster, its manager, hosts, and predictions.
#ifndef MOSA_TOOLS_MOSA_CHOICES_H_
#define MOSA_TOOLS_MOSA_CHOICES_H_

#include <CLI/CLI.hpp>

#include "tools/console/cluster_choice.h"
#include "tools/console/manager.h"
#include "tools/forecast/compare_runs.h"
#include "tools/forecast/envelope_profile.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

// --name and --dir.
void AddClusterChoice(CLI::App& command, ClusterChoice& choice);

// --manager and --secret, and --name and --dir for a cluster on this machine.
void AddManagerChoice(CLI::App& command, ManagerChoice& choice);

// --cluster (or --name) and --dir, and instead of them --mount, --hosts and --exec.
void AddHostChoice(CLI::App& command, ClusterChoice& cluster, HostsRequest& hosts);

// --workload, --operations, --rules, --config, --draws and --platform. Returns the last.
CLI::Option* AddPredictionWords(CLI::App& command, PredictionWords& words);

// --workload, --operations and --stage.
void AddApplicationFiles(CLI::App& command, ApplicationFiles& files);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MOSA_CHOICES_H_
