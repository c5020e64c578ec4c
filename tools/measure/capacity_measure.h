// Measures what a store carries of one load: fio on every host, with as many clients on each.
//
// Each client is a thread that does one operation after the other (ioengine psync), at random
// places of a file of its own, all of whose bytes were written once by another host, if there are
// two. Hosts are told to begin at the same time, and what is counted begins after a ramp; when they
// do begin is not measured, so that samples must be long beside that.
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
  int64_t sample_ms = 2000;  // That are counted.
  bool direct = true;        // O_DIRECT: past the page cache of the client's host.
  bool stored = true;        // O_DSYNC: a write is done when the store has it.
  uint64_t seed = 1;         // Chooses the places.
};

// What each client does; clients go to the hosts in turn. InvalidArgument if shares of
// clients are not whole clients, fio cannot do the shares of operations, or an operation is
// larger than the files.
Result<std::vector<predict::CapacityLoad>> ClientLoads(const predict::CapacityLoad& load,
                                                       uint32_t clients, uint64_t file_bytes);
// fio's words for a client that does this.
std::vector<std::string> FioJob(const predict::CapacityLoad& load, uint64_t seed);

// One thread.
class CapacityMeasure {
 public:
  // `directory`: as StoreWorkers has it.
  CapacityMeasure(MeasuredStore store, std::string directory, CapacityClients clients)
      : workers_({std::move(store)}, std::move(directory)), clients_(clients) {}

  Status Start() { return workers_.Start(workers_.hosts().size()); }
  Result<std::vector<nlohmann::json>> Facts() { return workers_.Facts(0); }
  // FailedPrecondition names a host without fio, with one that is too old, or two that differ.
  Result<std::string> FioVersion();
  // Makes the directory and the files. ResourceExhausted: they do not fit.
  Status LayFiles();
  // Unavailable: a host or its fio is gone.
  Result<predict::OperationRates> Sample(const predict::CapacityLoad& load, uint64_t number);
  // Removes all of it; what is left, as words.
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
