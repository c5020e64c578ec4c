// The stores that `mosa bench` compares, and where each has its files on each host.
#ifndef MOSA_TOOLS_MEASURE_BENCH_SYSTEMS_H_
#define MOSA_TOOLS_MEASURE_BENCH_SYSTEMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "predictor/workflow/synthetic.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

enum class SystemKind : uint8_t {
  kDss,    // The store without hints and locations.
  kWass,   // With both.
  kLocal,  // A directory of each host's own.
  kPath,   // Any other mounted directory.
};

struct BenchSystem {
  SystemKind kind = SystemKind::kDss;
  std::string name;
  std::string directory;  // kLocal, kPath; "{host}" stands for the host's name.
};

// "dss", "wass", "local", "local=DIR", "path=NAME:DIR". InvalidArgument names the word that is none
// of these, or that repeats a system.
Result<std::vector<BenchSystem>> ParseSystems(const std::vector<std::string>& words);

// The hosts, with the place of that system: their `directory` is where a run's files go, and may
// not exist yet. `workdir` names a directory of our own, which runs create and remove.
std::vector<RunHost> HostsOf(const BenchSystem& system, const std::vector<RunHost>& hosts,
                             const std::string& workdir);

// Checks that the system's place exists, holds nothing in `workdir` that a run would remove, and
// has room for `bytes` at a time. NotFound, FailedPrecondition and ResourceExhausted name the
// system, the host, what is there and what is needed.
Status CheckPlace(const BenchSystem& system, const std::vector<RunHost>& hosts,
                  const std::string& workdir, uint64_t bytes);

// A workload on one system, measured repeatedly.
struct Cell {
  predict::Pattern pattern = predict::Pattern::kPipeline;
  predict::WorkloadSize size = predict::WorkloadSize::kSmall;
  uint64_t scale_millionths = predict::kScaleOne;
  BenchSystem system;
  uint32_t copies = 0;  // For broadcast files; 0: not requested.

  // "wass-8": distinguishes the cells of one pattern and size.
  std::string name() const;
};

// Whether the pattern can run there: a host's own directory has no other readers.
bool Applies(predict::Pattern pattern, SystemKind kind);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_BENCH_SYSTEMS_H_
