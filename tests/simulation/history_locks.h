// Programs that change one file only while they hold a lock on it, as counters and databases are
// changed. Each finds what the one before has written, without closing or opening the file.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_LOCKS_H_
#define MOSA_TESTS_SIMULATION_HISTORY_LOCKS_H_

#include <cstdint>
#include <list>

#include "tests/simulation/history_calls.h"
#include "tests/simulation/history_shared.h"
#include "tests/simulation/history_state.h"

namespace mosa::simulation {

class LockPrograms {
 public:
  LockPrograms(HistoryState& state, SharedFilePrograms& shared)
      : state_(state), calls_(shared.calls()), shared_(shared) {}

  // Locks the file, reads and perhaps writes it, and unlocks it.
  void Step(const Host& host, Rng& rng);

 private:
  // A program between its lock and its unlock, or its close if the unlock has failed.
  struct Holder {
    Host host;
    Time since;
    bool writes = false;
    bool is_alone = true;     // No other one has begun to write meanwhile.
    bool is_leaving = false;  // It unlocks the file.
  };
  using Holders = std::list<Holder>;

  Outcome<Done> Acquire(const Host& host, sai::HandleId handle, const Lock& lock, Rng& rng);
  Holders::iterator Enter(const Host& host, bool writes);
  void Stay(Holder& holder);  // Its unlock has failed.
  Outcome<Done> Use(const Host& host, sai::HandleId handle, Holder& holder, Rng& rng);
  Outcome<Done> Overwrite(const Host& host, sai::HandleId handle, const Holder& holder, Rng& rng);

  HistoryState& state_;
  HistoryCalls& calls_;  // It knows what ChangeShared has opened.
  SharedFilePrograms& shared_;
  Holders holders_;
  uint64_t owners_ = 0;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_LOCKS_H_
