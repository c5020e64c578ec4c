// Measures the throughput of a store under one load: fio runs on every host, with the same number
// of clients on each.
//
// Each client is a thread that does one operation after the other (ioengine psync), at random
// offsets of its own file. If there are two hosts, another host has written all bytes of that file
// once. Hosts are told to begin at the same time, and counting begins after a ramp. When they
// actually begin is not measured, so samples must be long compared with that.
#ifndef MOSA_TOOLS_MEASURE_CAPACITY_MEASURE_H_
#define MOSA_TOOLS_MEASURE_CAPACITY_MEASURE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "predictor/capacity/capacity.h"
#include "tools/measure/store_workers.h"

namespace mosa::cli {

struct CapacityClients {
  uint32_t jobs = 4;  // On each host.
  uint64_t file_bytes = 16 << 20;
  int64_t sample_ms = 2000;  // Counted length.
  bool direct = true;        // O_DIRECT: past the page cache of the client's host.
  bool stored = true;        // O_DSYNC: a write is done when the store has it.
  uint64_t seed = 1;         // Chooses the offsets.
};

// The load of each client; clients go to the hosts in turn. InvalidArgument if shares of clients
// are not whole clients, fio cannot do the shares of operations, or an operation is larger than the
// files.
Result<std::vector<predict::CapacityLoad>> ClientLoads(const predict::CapacityLoad& load,
                                                       uint32_t clients, uint64_t file_bytes);
// The arguments of fio for such a client.
std::vector<std::string> FioJob(const predict::CapacityLoad& load, uint64_t seed);

// One thread.
class CapacityMeasure {
 public:
  // `directory`: as in StoreWorkers.
  CapacityMeasure(MeasuredStore store, std::string directory, CapacityClients clients)
      : workers_({std::move(store)}, std::move(directory)), clients_(clients) {}

  Status Start() { return workers_.Start(workers_.hosts().size()); }
  Result<std::vector<nlohmann::json>> Facts() { return workers_.Facts(0); }
  // FailedPrecondition names a host without fio or with one that is too old, or two hosts that
  // differ.
  Result<std::string> FioVersion();
  // Makes the directory and the files. ResourceExhausted if they do not fit.
  Status LayFiles();
  // Unavailable: a host or its fio is gone.
  Result<predict::OperationRates> Sample(const predict::CapacityLoad& load, uint64_t number);
  // Removes everything. Returns what is left, in words.
  std::string Clear() { return workers_.Clear(); }

  uint32_t clients() const {
    return clients_.jobs * static_cast<uint32_t>(workers_.hosts().size());
  }

 private:
  std::string PathOf(size_t client, size_t host) const;
  Status CheckRoom();

  StoreWorkers workers_;
  const CapacityClients clients_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_CAPACITY_MEASURE_H_
