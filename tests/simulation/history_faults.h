// The faults of a history: hosts, links and processes that fail, one at a time or two.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_FAULTS_H_
#define MOSA_TESTS_SIMULATION_HISTORY_FAULTS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/sync.h"
#include "tests/simulation/history_state.h"
#include "tests/simulation/simulated_manager.h"
#include "tests/simulation/simulated_node.h"

namespace mosa::simulation {

class HistoryFaults {
 public:
  struct Store {
    SimulatedManager& manager;
    SimulatedNodes& nodes;
    std::vector<Host>& hosts;
    // Kills the mount of a host, and makes another one.
    std::function<void(const Host& host)> kill_mount;
    std::function<void(Host& host)> mount_again;
  };
  HistoryFaults(HistoryState& state, Store store) : state_(state), store_(std::move(store)) {}

  // Lets faults happen until `is_over` says so, and waits for the end of the last one.
  void Run(const std::function<bool()>& is_over);

 private:
  // What only one fault at a time can concern.
  enum class Part : uint8_t { kProcessor, kLink, kNode, kMount, kPair };
  using Place = std::pair<Part, uint64_t>;
  struct Fault {
    FaultKind kind = FaultKind::kPauseHost;
    Duration length;
    Duration down;  // How long a process is.
    Host* mount = nullptr;
    HostId host = 0;  // Also of a node.
    HostId other = 0;
    Place place;
  };

  void RunOne(const std::function<bool()>& is_over);
  Fault Draw();
  bool MayBegin(const Fault& fault) const;
  static bool MaySilenceNodes(const Fault& fault);
  void Inject(const Fault& fault);
  void InjectInProcess(const Fault& fault);
  void InjectInNetwork(const Fault& fault);
  void DrainAndReplace(const Fault& fault);
  // Waits for a change by a program that is under way, and names its host; 0: there is none.
  HostId AwaitChange();
  void Note(const std::string& what) const { state_.network.Note(what); }

  HistoryState& state_;
  Store store_;
  std::set<Place> places_;  // Where there are faults now.
  bool alone_ = false;      // There is one beside which there must be no other.
  uint32_t running_ = 0;
  WaitList ended_;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_FAULTS_H_
