#include "predictor/compare/suspect.h"

#include <fmt/format.h>

namespace mosa::predict {

const char* ToText(Part part) {
  static constexpr const char* kNames[] = {"processor", "link",      "storage node", "page cache",
                                           "mount",     "computing", "network",      "mounts",
                                           "manager",   "launch",    "placement"};
  return kNames[static_cast<size_t>(part)];
}

std::string Describe(const Suspect& suspect) {
  switch (suspect.part) {
    case Part::kProcessor:
      return fmt::format("the processor of {}", suspect.host);
    case Part::kLink:
      return fmt::format("the link of {}", suspect.host);
    case Part::kNode:
      return fmt::format("the storage node of {}", suspect.host);
    case Part::kPageCache:
      return fmt::format("the page cache of {}", suspect.host);
    case Part::kComputing:
      return "computing on all hosts";
    case Part::kNetwork:
      return "the network between all hosts";
    case Part::kMounts:
      return "moving bytes in mounts or storage nodes, on all hosts";
    case Part::kManager:
      return "the manager";
    case Part::kLaunch:
      return "the start of tasks, on all hosts";
    case Part::kMount:
      return fmt::format("the mount of {}", suspect.host);
    case Part::kPlaces:
      return "where files lie";
  }
  return "";
}

std::string OpenFirst(const Suspect& suspect) {
  const std::string& host = suspect.host;
  switch (suspect.part) {
    case Part::kProcessor:
      return fmt::format("{}: 'top' there: what else runs, stolen time, the processor's frequency",
                         host);
    case Part::kLink:
      return fmt::format(
          "{}: 'ip -s link' and 'tc -s qdisc' there (rate, drops, errors), then the switch's port",
          host);
    case Part::kNode:
      return fmt::format("{}: the log of its storage node, and whether its RAM disk swaps ('free')",
                         host);
    case Part::kPageCache:
      return fmt::format(
          "{}: 'free' and /proc/vmstat there (whether the kernel lacks memory for pages, and what "
          "uses it), then who else writes the files that are read there, and whether a trace with "
          "--cold is running",
          host);
    case Part::kComputing:
      return "the machines' load during the runs ('top', /proc/pressure/cpu): what else ran there; "
             "then the workload's runtimes: 'mosa trace workload' of this run shows how long tasks "
             "compute";
    case Part::kNetwork:
      return "the switch between the hosts; then 'mosa identify' again: whether links have changed";
    case Part::kMounts:
      return "'mosa stat MOUNT': whether the kernel reads and writes directly, and if not, why";
    case Part::kManager:
      return "the manager's host: 'top' there, then the manager's log";
    case Part::kLaunch:
      return "one task, started by hand in a mount: how long its program takes to start";
    case Part::kMount:
      return fmt::format("{}: the log of its mount, then 'mosa stat' of the mount and 'top' there",
                         host);
    case Part::kPlaces:
      return "'mosa where' and 'mosa hint explain' of the stage's files: a rule or a hint has put "
             "them there, or has set the size of their chunks";
  }
  return "";
}

}  // namespace mosa::predict
