// What programs do in a history, and what they compare.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_PROGRAMS_H_
#define MOSA_TESTS_SIMULATION_HISTORY_PROGRAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/history_calls.h"
#include "tests/simulation/history_state.h"

namespace mosa::simulation {

class HistoryPrograms {
 public:
  explicit HistoryPrograms(HistoryState& state) : state_(state), calls_(state) {}

  // Does something to a random file.
  void Step(const Host& host, Rng& rng);
  // Call at the end, when nothing else runs: all `hosts` must read the same of each name, and what
  // is known of it.
  void CheckAll(const std::vector<Host>& hosts);

 private:
  void Rewrite(const Host& host, size_t at, Rng& rng);
  void Change(const Host& host, size_t at, Rng& rng);
  void Truncate(const Host& host, size_t at, Rng& rng);
  void Remove(const Host& host, size_t at);
  void Rename(const Host& host, size_t at, Rng& rng);
  void Read(const Host& host, size_t at);
  // Reads a file while others may be writing to it.
  void Peek(const Host& host, size_t at);
  void List(const Host& host);
  void Append(const Host& host, Rng& rng);
  void CheckLog(const Host& host);
  void CheckUncertain(const std::vector<Host>& hosts, size_t at);

  // False if it is not there, and should be, or the other way round.
  bool CheckFound(const Host& host, size_t at, const Outcome<FileId>& file);
  void CheckFailure(const Host& host, size_t at, Time begun, const Failure& failure);
  // Bytes that no other write has; none is 0.
  std::string Fresh(uint64_t length);

  HistoryState& state_;
  HistoryCalls calls_;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_PROGRAMS_H_
