// One random history of a whole store in virtual time, and what was wrong with it.
//
// Programs on several mounts use some files while hosts, links and processes fail. What a program
// was told is compared with what others see: bytes, names, and how long a call took. A history
// depends on its seed alone. docs/internals/virtual-time.md lists what programs do and what is
// checked.
#ifndef MOSA_TESTS_SIMULATION_STORE_HISTORY_H_
#define MOSA_TESTS_SIMULATION_STORE_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/time.h"

namespace mosa::simulation {

struct HistoryOptions {
  uint64_t seed = 1;
  uint32_t mounts = 3;
  uint32_t programs = 2;  // Per mount.
  uint32_t files = 4;
  uint32_t operations = 20;  // Per program.
  bool faults = true;
  bool trace = false;  // Prints each operation and fault.
};
struct History {
  std::vector<std::string> problems;  // Empty: all is well.
  uint64_t operations = 0;
  uint64_t failed = 0;  // Operations that failed during a fault, as they may.
  uint64_t faults = 0;
  uint64_t digest = 0;
  Duration duration;
  Duration longest;  // The longest call.
  std::string longest_call;
};
History RunHistory(const HistoryOptions& options);

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_STORE_HISTORY_H_
