// Files that programs of all hosts change at the same time: a log to which they append, and a grid
// of which each writes parts.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_SHARED_H_
#define MOSA_TESTS_SIMULATION_HISTORY_SHARED_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/history_calls.h"
#include "tests/simulation/history_state.h"

namespace mosa::simulation {

class SharedFilePrograms {
 public:
  explicit SharedFilePrograms(HistoryState& state) : state_(state), calls_(state) {}

  HistoryCalls& calls() { return calls_; }
  // Runs `change` on the open file, and closes it. Makes it if it is absent.
  Outcome<Done> ChangeShared(const Host& host, SharedFile& file, size_t at, uint32_t flags,
                             const std::function<Outcome<Done>(sai::HandleId)>& change);

  void Append(const Host& host, Rng& rng);
  void WritePart(const Host& host, Rng& rng);
  // Reads a part while others may be written.
  void CheckPart(const Host& host, Rng& rng);
  // Call at the end, when nothing else runs.
  void CheckAll(const std::vector<Host>& hosts);

 private:
  void Renew(const Host& host, SharedFile& file, size_t at);
  // Nothing if it cannot be read, which is a problem unless there is a fault.
  std::optional<std::string> ReadShared(const Host& host, const SharedFile& file, size_t at);
  void CheckLog(const Host& host);
  void CheckPartIn(const Host& host, const std::string& content, size_t part);

  HistoryState& state_;
  HistoryCalls calls_;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_SHARED_H_
