// How a benchmark's bytes moved: by path, as the mounts count them, and over each host's link; and
// the processor time of each host's daemons meanwhile.
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
  // "bytes_read_remote" and so on, over all mounts; empty if no mount can be asked from here.
  std::map<std::string, uint64_t> by_path;
  // By host; only for clusters of namespaces on this machine. Includes headers.
  std::map<std::string, LinkBytes> links;
  // Processor seconds by host, including the manager's; only for clusters on this machine.
  std::map<std::string, double> daemon_seconds;

  // Bytes that mounts exchanged with nodes elsewhere, and nodes with each other; without links,
  // only what mounts moved.
  uint64_t NetworkBytes() const;
  // Bytes on the link and direction that carried most; 0 without links.
  uint64_t BusiestLinkBytes() const;
};

Traffic operator-(const Traffic& after, const Traffic& before);
nlohmann::json ToJson(const Traffic& traffic);

// What can be read here about a cluster on this machine, by host.
struct Meters {
  std::map<std::string, std::string> links;  // Devices at the other ends of the hosts' links.
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
