// What programs do in a history, and what they compare.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_PROGRAMS_H_
#define MOSA_TESTS_SIMULATION_HISTORY_PROGRAMS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/history_bursts.h"
#include "tests/simulation/history_calls.h"
#include "tests/simulation/history_locks.h"
#include "tests/simulation/history_shared.h"
#include "tests/simulation/history_state.h"
#include "tests/simulation/history_takeover.h"

namespace mosa::simulation {

// A file that a program keeps open between its steps.
struct Kept {
  size_t at = 0;
  sai::HandleId handle;
  std::shared_ptr<SimulatedMount> mount;  // Null if it has none open.
};

class HistoryPrograms {
 public:
  explicit HistoryPrograms(HistoryState& state)
      : state_(state),
        calls_(state),
        shared_(state),
        locks_(state, shared_),
        bursts_(state),
        takeovers_(state) {}

  // Makes the directory of a mount. Call it for one after the other, before the first step.
  void MakeDirectory(const Host& host);
  // Does something to a random file.
  void Step(const Host& host, Rng& rng, Kept& kept);
  // Closes what the program has kept.
  void Leave(const Host& host, Kept& kept);
  // Call at the end, when nothing else runs: all `hosts` must read the same of each name, and what
  // is known of it.
  void CheckAll(const std::vector<Host>& hosts);

 private:
  size_t ChooseName(const Host& host, Rng& rng) const;
  void StepOn(const Host& host, size_t at, Action action, Rng& rng);
  void Rewrite(const Host& host, size_t at, Rng& rng);
  void Change(const Host& host, size_t at, Rng& rng);
  // Writes, cuts and reads one open file for some time.
  void Work(const Host& host, size_t at, Rng& rng);
  Outcome<Done> WriteAt(const Host& host, size_t at, sai::HandleId handle, uint64_t offset,
                        std::string& content, OpenChange& change, Rng& rng);
  Outcome<Done> ResizeOnce(const Host& host, size_t at, sai::HandleId handle, std::string& content,
                           OpenChange& change, Rng& rng);
  Outcome<Done> WorkOnce(const Host& host, size_t at, sai::HandleId handle, std::string& content,
                         OpenChange& change, Rng& rng);
  void Truncate(const Host& host, size_t at, Rng& rng);
  void Remove(const Host& host, size_t at);
  void Rename(const Host& host, size_t at, Rng& rng);
  // Gives a file a second name, changes it, and removes one of the two.
  void Link(const Host& host, size_t at, Rng& rng);
  void ChangeLinked(const Host& host, size_t at, size_t other, Rng& rng);
  // Sets an attribute of a directory, or looks whether it is what was set last.
  void UseNote(const Host& host, Rng& rng);
  void Read(const Host& host, size_t at);
  // Reads a file while others may be writing to it.
  void Peek(const Host& host, size_t at);
  // Opens a file and keeps it, or looks at what was kept.
  void Keep(const Host& host, size_t at, Rng& rng, Kept& kept);
  void List(const Host& host, Rng& rng);
  void CheckUncertain(const std::vector<Host>& hosts, size_t at);

  void NoteCopies(Name& name, uint64_t wipes) const;
  // False if it is not there, and should be, or the other way round.
  bool CheckFound(const Host& host, size_t at, const Outcome<FileId>& file);
  void CheckFailure(const Host& host, size_t at, Time begun, const Failure& failure);

  HistoryState& state_;
  HistoryCalls calls_;
  SharedFilePrograms shared_;
  LockPrograms locks_;
  BurstPrograms bursts_;
  Takeovers takeovers_;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_PROGRAMS_H_
