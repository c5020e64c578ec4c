// Processor time used: by the whole machine, as its kernel counts it, and by this process. The
// difference is what other processes used.
#ifndef MOSA_COMMON_OBSERVE_PROCESSOR_USE_H_
#define MOSA_COMMON_OBSERVE_PROCESSOR_USE_H_

#include <cstdint>

namespace mosa {

// Totals over all processors, which only grow. Compare two readings.
struct ProcessorUse {
  // Identifies the kernel's boot: equal for everything that runs under one kernel until it
  // restarts. It has 53 bits, so that JSON readers keep it exact. 0: the kernel does not say, and
  // the machine's totals are 0.
  uint64_t machine = 0;
  uint64_t processors = 0;
  // Work of processes and kernel threads. Excludes interrupts, which cannot be attributed: those of
  // shaped links belong to a run itself.
  uint64_t busy_ns = 0;
  uint64_t stolen_ns = 0;  // Given by the machine's hypervisor to others.
  uint64_t waited_ns = 0;  // Some process waited for a processor; 0: the kernel does not say.
  uint64_t own_ns = 0;     // This process, and its children that it has waited for.
};

// Reads /proc/stat (in hundredths of a second), /proc/pressure/cpu and getrusage. Thread-safe.
ProcessorUse ReadProcessorUse();

}  // namespace mosa

#endif  // MOSA_COMMON_OBSERVE_PROCESSOR_USE_H_
