// What all parts of a history share: its options, what the seed decides of the store, what is known
// of each name, and what was found wrong.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_STATE_H_
#define MOSA_TESTS_SIMULATION_HISTORY_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/sync.h"
#include "tests/simulation/network.h"
#include "tests/simulation/simulated_mount.h"
#include "tests/simulation/store_history.h"

namespace mosa::simulation {

// Until this long after the end of a fault calls may fail for it: sessions and nodes return.
inline constexpr Duration kSettleMax = Seconds(20);

// What a history's seed decides of the store: its nodes, and the hints of all files.
struct Configuration {
  static constexpr uint64_t kNodeBytes = uint64_t{64} << 20;
  static constexpr uint64_t kSmallNodeBytes = uint64_t{1} << 20;  // At least; at most twice that.

  uint64_t node_bytes = kNodeBytes;
  uint32_t replicas = 1;
  bool eager = false;
  bool pessimistic = false;  // A close waits for all copies.

  static Configuration Draw(Rng& rng, uint32_t nodes) {
    Configuration drawn;
    if (rng.Chance(300)) drawn.node_bytes = kSmallNodeBytes + rng.Below(kSmallNodeBytes);
    if (rng.Chance(400)) return drawn;
    drawn.replicas = 2 + static_cast<uint32_t>(rng.Below(nodes - 1));
    drawn.eager = rng.Chance(400);
    drawn.pessimistic = rng.Chance(500);
    return drawn;
  }
  bool may_be_full() const { return node_bytes < kNodeBytes; }
};

// A host as a program sees it, which keeps the mount that it has begun with.
struct Host {
  HostId id = 0;
  std::shared_ptr<SimulatedMount> mount;
  sai::Filesystem& fs() const { return mount->fs(); }
};

// What is known of one name, and by whom it is used.
struct Name {
  Mutex used;
  bool certain = true;  // The rest is known. If not, a call that could change it has failed.
  bool exists = false;
  std::string content;
  uint64_t wipes = 0;       // Nodes that had lost everything before its content was written.
  bool has_copies = false;  // As many as the hints ask for.
  // Bytes of a write that failed may lie behind its end (docs/reference/limitations.md), so it gets
  // no holes until it is removed.
  bool has_remains = false;
  bool has_holes = false;
  // Counts the beginnings and ends of changes after which a reader beside them may find zeroes or
  // another file. Odd: there is one now.
  uint64_t replacements = 0;

  // For `with` the time of such a change.
  class Replacement {
   public:
    explicit Replacement(Name& name) : name_(name) { ++name_.replacements; }
    ~Replacement() { ++name_.replacements; }
    Replacement(const Replacement&) = delete;
    Replacement& operator=(const Replacement&) = delete;

   private:
    Name& name_;
  };
};

// A file to which all programs append, at the same time.
struct Log {
  std::vector<std::string> records;   // Whose close succeeded.
  std::vector<std::string> attempts;  // Whose append or close failed.
  uint32_t appenders = 0;             // That have it open now.
  bool has_copies = false;            // All its bytes have as many copies as the hints ask for.
  uint64_t wipes = 0;                 // Nodes that had lost everything when it got these.
  bool may_be_lost = false;
};

struct HistoryState {
  explicit HistoryState(const HistoryOptions& chosen)
      : options(chosen), scheduler(chosen.seed), network(chosen.trace), names(chosen.files) {
    Rng rng(chosen.seed);
    store = Configuration::Draw(rng, chosen.mounts);
  }

  // A call that began then may fail for a fault.
  bool MayFail(Time begun) const {
    return fault || (history.faults > 0 && begun < fault_ended + kSettleMax);
  }
  bool MayBeLost(const Name& name) const {
    return wipes - name.wipes >= (name.has_copies ? store.replicas : 1);
  }
  // Call it when a node loses everything.
  void NoteWipe() {
    ++wipes;
    if (!log.has_copies || wipes - log.wipes >= store.replicas) log.may_be_lost = true;
  }
  void Problem(const std::string& what) {
    network.Note("PROBLEM " + what);
    history.problems.push_back("at " + std::to_string(scheduler.now().ns / 1'000'000) +
                               " ms: " + what);
  }

  const HistoryOptions options;
  Configuration store;
  Scheduler scheduler;
  Network network;
  std::vector<Name> names;
  Log log;
  History history;
  bool fault = false;  // There is one now.
  Time fault_ended;
  uint64_t wipes = 0;
  uint64_t writes = 0;
  std::map<HostId, Duration> paused;  // In all.
  // By host and name: a kernel lets one program at a time write a file.
  std::map<std::pair<HostId, size_t>, Mutex> writing;
};

inline constexpr size_t kLog = SIZE_MAX;
inline std::string NameOf(size_t at) { return at == kLog ? "log" : "f" + std::to_string(at); }

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_STATE_H_
