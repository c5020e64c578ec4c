// Files that programs of several hosts make in a row in one directory, under names that nobody has
// used before, as many tasks of a workflow do. Other programs look for them, and list them, from
// the moment at which their create returns.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_BURSTS_H_
#define MOSA_TESTS_SIMULATION_HISTORY_BURSTS_H_

#include <cstddef>
#include <deque>
#include <list>
#include <optional>
#include <vector>

#include "tests/simulation/history_calls.h"
#include "tests/simulation/history_state.h"

namespace mosa::simulation {

class BurstPrograms {
 public:
  explicit BurstPrograms(HistoryState& state) : state_(state), calls_(state) {}

  // Makes, looks for, waits for, lists or removes some of them.
  void Step(const Host& host, Rng& rng);
  // Call at the end, when nothing else runs.
  void CheckAll(const std::vector<Host>& hosts);

 private:
  struct Maker {
    Host host;
    Time begun;
    bool opens = true;  // Its open has not returned.
  };
  struct File {
    uint64_t changes = 0;               // Counts changes of what follows.
    std::optional<bool> there = false;  // Nothing: a call that could change it runs.
    bool is_lost = false;               // Whoever made it may have failed: nothing is known.
    std::list<Maker> makers;            // Those whose close has not returned.
    bool is_removed = false;            // A program removes it.
  };
  size_t ChooseNewest(Rng& rng) const;  // One of the newest files, of which there is one.
  size_t ChooseToMake(Rng& rng);
  // Looks for a file until another program has made it, and makes others meanwhile.
  void Await(const Host& host, Rng& rng);
  void Make(const Host& host, size_t number, Rng& rng);
  void Remove(const Host& host, size_t number);
  void Find(const Host& host, size_t number);
  void List(const Host& host);
  // What is known of it, if it is the same since `changes`. While a program makes a file, others on
  // its host may not see it, although other hosts do.
  std::optional<bool> Known(const Host& host, size_t number, uint64_t changes) const;
  // A file that no mount has committed goes with the mount that has made it, and a mount that is
  // silent for long may lose what it has not told the manager.
  bool MayBeLost(const Maker& maker) const;
  void Set(File& file, std::optional<bool> there) {
    ++file.changes;
    file.there = there;
  }

  HistoryState& state_;
  HistoryCalls calls_;
  std::deque<File> files_;
  std::optional<size_t> awaited_;  // The newest that a program waits for, if nobody makes it yet.
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_BURSTS_H_
