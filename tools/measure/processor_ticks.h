// How busy the processors of a machine were, as its kernel counts it.
#ifndef MOSA_TOOLS_MEASURE_PROCESSOR_TICKS_H_
#define MOSA_TOOLS_MEASURE_PROCESSOR_TICKS_H_

#include <cstdint>
#include <fstream>
#include <string>

namespace mosa::cli {

// Since boot, over all processors, in clock ticks (sysconf).
struct ProcessorTicks {
  uint64_t busy = 0;  // With anything.
  uint64_t all = 0;

  ProcessorTicks operator-(const ProcessorTicks& before) const {
    return {busy - before.busy, all - before.all};
  }
};

// All 0 if the kernel reports nothing.
inline ProcessorTicks ReadProcessorTicks() {
  std::ifstream file("/proc/stat");
  std::string name;
  uint64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0;
  file >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft;
  const uint64_t busy = user + nice + system + interrupts + soft;
  return {busy, busy + idle + waiting};
}

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_PROCESSOR_TICKS_H_
