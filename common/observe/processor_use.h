// How long processors have worked: all of a machine's, as its kernel counts them, and for this
// process. What others do there is what is left of the first.
#ifndef MOSA_COMMON_OBSERVE_PROCESSOR_USE_H_
#define MOSA_COMMON_OBSERVE_PROCESSOR_USE_H_

#include <cstdint>

namespace mosa {

// Totals that only grow, over all processors; the difference of two readings counts.
struct ProcessorUse {
  // All that runs under one kernel has the same, until it is started again; it has 53 bits, so that
  // whoever reads JSON keeps it whole. 0: the kernel does not say, and the machine's totals are 0.
  uint64_t machine = 0;
  uint64_t processors = 0;
  // At the work of processes and of the kernel's threads. Not at interrupts, of which nobody knows
  // whose they are: those of links that are shaped are a run's own.
  uint64_t busy_ns = 0;
  uint64_t stolen_ns = 0;  // Taken by the machine's host for others.
  uint64_t waited_ns = 0;  // In which some process waited for a processor; 0: it does not say.
  uint64_t own_ns = 0;     // This process, and the children that it has waited for.
};

// From /proc/stat (which counts in hundredths of a second), /proc/pressure/cpu and getrusage.
// Thread-safe.
ProcessorUse ReadProcessorUse();

}  // namespace mosa

#endif  // MOSA_COMMON_OBSERVE_PROCESSOR_USE_H_
