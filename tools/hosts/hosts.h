// The hosts of a run: where their mounts are, how a process gets there, how many tasks each takes.
#ifndef MOSA_TOOLS_HOSTS_HOSTS_H_
#define MOSA_TOOLS_HOSTS_HOSTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace mosa::cli {

struct HostsRequest {
  // A cluster of `mosa cluster up`, or, if `mount` is given, any mounted directory.
  std::string cluster;
  std::string cluster_directory;
  std::string mount;               // "{host}" stands for the host's name.
  std::vector<std::string> names;  // With `mount`; none: this machine alone.
  std::string exec;  // How a script runs on a host, as its last word; "{host}" as above. Empty:
                     // here.
  std::string directory;  // Below the mount, where tasks run; empty: the mount itself.
  std::string link;       // "1gbit": what a host's link carries; empty: as the cluster is shaped.
  uint32_t slots = 0;     // 0: cores of this machine over the hosts on it, at least one.
  std::string memory;     // "64G": what tasks may take on each host; empty: not known.
};

struct RunHost {
  std::string name;
  std::string mount_point;
  std::string directory;          // Where tasks run.
  std::string net_namespace;      // Empty: ours.
  std::string address;            // At which others reach it; empty: not known.
  std::vector<std::string> exec;  // Empty: a child of ours.
  std::map<std::string, std::string> environment;
  uint32_t slots = 1;
  uint64_t memory_bytes = 0;  // For tasks; 0: not known.
  uint64_t link_bytes_per_second = 0;
  bool mosa = false;  // It is a Mosa mount: it takes hints and says where bytes are.
};

struct FoundHosts {
  std::vector<RunHost> hosts;
  // Hosts whose mounts do not answer, or which no command reaches: left out.
  std::vector<std::string> silent;
};

// InvalidArgument for what does not fit together, NotFound for a cluster or mount that is not
// there, Unavailable if no host answers.
Result<FoundHosts> FindHosts(const HostsRequest& request);

// `text` with the host's name for every "{host}".
std::string ForHost(std::string text, const std::string& host);

// "200mbit" in bytes per second.
Result<uint64_t> ParseRate(const std::string& text);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_HOSTS_HOSTS_H_
