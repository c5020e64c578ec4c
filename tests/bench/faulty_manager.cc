// mosa-manager with two faults of the paper's manager (Provisioning, section 5.1), for trials of
// `mosa compare`. The linker puts these functions in the place of the real ones (--wrap).
//
//  MOSA_FAULT_HOLD_US   P2: the lock held too wide: for so long after each request of a client is
//                       decided nobody else's is.
//  MOSA_FAULT_ONE_SEED  P1: one seed for all: every file begins at the same node.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <variant>

#include "manager/core/manager_core.h"
#include "manager/placement/policy.h"

namespace mosa::manager {

#define STEP                                                                                     \
  "_ZN4mosa7manager11ManagerCore4StepERKSt7variantIJNS0_12StartSessionENS0_14SessionRequestENS"  \
  "0_11SessionLostENS0_13SessionClosedENS0_12RegisterNodeENS0_10NodeReportENS0_14NodeStreamLos"  \
  "tENS0_17NodeReportedAsideENS0_14NodeCopyReportENS0_11AddHintRuleENS0_14RemoveHintRuleENS0_"   \
  "11SetFileHintENS0_13Begin"                                                                    \
  "WorkflowENS0_7EndTaskENS0_11EndWorkflowENS0_9DrainNodeENS0_10MarkStagedENS0_17SetCopiesFore"  \
  "castENS0_10AdoptFilesENS0_12RecallMakersENS0_4TickENS0_7StalledENS0_16SetStorePressureEEENS_" \
  "4TimeE"
#define SEED                                                                                     \
  "_ZN4mosa7manager8FileSeedEmNS_8StrongIdINS_9FileIdTagEmEESt17basic_string_viewIcSt11char_tra" \
  "itsIcEEm"

// A member function is called as a free one whose first argument is the object.
Effects RealStep(ManagerCore* core, const Command& command, Time now) asm("__real_" STEP);
Effects FaultyStep(ManagerCore* core, const Command& command, Time now) asm("__wrap_" STEP);
uint64_t RealSeed(uint64_t cluster_seed, FileId parent, std::string_view name,
                  uint64_t generation) asm("__real_" SEED);
uint64_t FaultySeed(uint64_t cluster_seed, FileId parent, std::string_view name,
                    uint64_t generation) asm("__wrap_" SEED);

Effects FaultyStep(ManagerCore* core, const Command& command, Time now) {
  static const char* const hold_us = std::getenv("MOSA_FAULT_HOLD_US");
  const auto* const asked = std::get_if<SessionRequest>(&command);
  Effects effects = RealStep(core, command, now);
  if (hold_us != nullptr && asked != nullptr && !asked->envelope.requests.empty())
    std::this_thread::sleep_for(std::chrono::microseconds(std::atol(hold_us)));
  return effects;
}

uint64_t FaultySeed(uint64_t cluster_seed, FileId parent, std::string_view name,
                    uint64_t generation) {
  static const char* const one_seed = std::getenv("MOSA_FAULT_ONE_SEED");
  return one_seed != nullptr ? 0 : RealSeed(cluster_seed, parent, name, generation);
}

}  // namespace mosa::manager
