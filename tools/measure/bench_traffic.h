// What a benchmark's bytes went over: by path, as the mounts count them, and over each host's link;
// and what the daemons of each host computed meanwhile.
#ifndef MOSA_TOOLS_MEASURE_BENCH_TRAFFIC_H_
#define MOSA_TOOLS_MEASURE_BENCH_TRAFFIC_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

struct LinkBytes {
  uint64_t sent = 0;
  uint64_t received = 0;
};

struct Traffic {
  // "bytes_read_remote" and so on, over all mounts; without a mount that can be asked from here,
  // none.
  std::map<std::string, uint64_t> by_path;
  // By host; only of clusters of namespaces on this machine. Headers are counted.
  std::map<std::string, LinkBytes> links;
  // Processor seconds by host, the manager's too; only of clusters on this machine.
  std::map<std::string, double> daemon_seconds;

  // What a mount moved between itself and nodes elsewhere, and nodes between one another; without
  // links only what mounts moved.
  uint64_t NetworkBytes() const;
  // Bytes on the link and direction that carried most; 0 without links.
  uint64_t BusiestLinkBytes() const;
};

Traffic operator-(const Traffic& after, const Traffic& before);
nlohmann::json ToJson(const Traffic& traffic);

// What can be read here about a cluster on this machine, by host.
struct Meters {
  std::map<std::string, std::string> links;  // Devices whose other ends the hosts have.
  std::map<std::string, std::vector<pid_t>> daemons;
};

class TrafficMeter {
 public:
  TrafficMeter(const std::vector<RunHost>& hosts, Meters meters);

  Traffic Read() const;

 private:
  std::vector<std::string> mount_points_;
  Meters meters_;
};

// Without links if the cluster has no namespaces.
Result<Meters> MetersOfCluster(const std::string& directory, const std::string& name);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_TRAFFIC_H_
