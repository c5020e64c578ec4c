// What all parts of a history share: its options, what the seed decides of the store, what is known
// of each name, and what was found wrong.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_STATE_H_
#define MOSA_TESTS_SIMULATION_HISTORY_STATE_H_

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/sync.h"
#include "tests/simulation/history_bytes.h"
#include "tests/simulation/history_plan.h"
#include "tests/simulation/network.h"
#include "tests/simulation/simulated_mount.h"
#include "tests/simulation/store_history.h"

namespace mosa::simulation {

// Until this long after the end of a fault calls may fail for it: sessions and nodes return.
inline constexpr Duration kSettleMax = Seconds(20);

// A host as a program sees it, which keeps the mount that it has begun with.
struct Host {
  HostId id = 0;
  uint32_t number = 0;
  std::shared_ptr<SimulatedMount> mount;
  SimulatedKernel& kernel() const { return mount->kernel(); }
  sai::Filesystem& fs() const { return mount->fs(); }
};

class OpenChange;

// What is known of one name, and by whom it is used.
struct Name {
  Mutex used;
  OpenChange* change = nullptr;  // The lock holder's, if it writes the file.
  uint32_t takeovers = 0;        // Programs that go on with the file beside that one.
  bool certain = true;  // The rest is known. If not, a call that could change it has failed.
  bool exists = false;
  std::string content;
  uint64_t wipes = 0;       // Nodes that had lost everything before its content was written.
  bool has_copies = false;  // As many as the hints ask for.
  // A call that failed may have made it another name of a file that has one: it is not used again.
  bool is_tangled = false;
  // Bytes of a write that failed may lie behind its end (docs/reference/limitations.md), so it gets
  // no holes until it is removed.
  bool has_remains = false;
  bool has_holes = false;
  // Counts the beginnings and ends of changes after which a reader beside them may find zeroes or
  // another file. Odd: there is one now.
  uint64_t replacements = 0;

  // It names the same file now.
  void NoteFileOf(const Name& other) {
    certain = other.certain;
    exists = true;
    content = other.content;
    wipes = other.wipes;
    has_copies = other.has_copies;
    has_remains = other.has_remains;
    has_holes = other.has_holes;
  }

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

// A file that programs change at the same time.
struct SharedFile {
  virtual ~SharedFile() = default;
  // Forgets what was written: it begins anew.
  virtual void Clear() {
    ++renewals;
    is_made = has_copies = may_be_lost = false;
  }

  bool is_made = false;           // A program has begun to make it.
  uint32_t writers = 0;           // Programs that have it open.
  std::multiset<HostId> openers;  // Hosts of programs that are opening it, which may make it.
  bool is_renewed = false;        // It is being removed.
  uint64_t renewals = 0;
  bool has_copies = false;  // All its bytes have as many copies as the hints ask for.
  uint64_t wipes = 0;       // Nodes that had lost everything when the copies were made.
  bool may_be_lost = false;
};

// All append to it.
struct Log : SharedFile {
  void Clear() override {
    SharedFile::Clear();
    records.clear();
    attempts.clear();
  }
  std::vector<std::string> records;   // Whose close succeeded.
  std::vector<std::string> attempts;  // Whose append or close failed.
};

// Each writes some part of it; parts do not end where pages or stripes do.
struct Grid : SharedFile {
  static constexpr uint64_t kPartBytes = 90'001;
  struct Part {
    Mutex used;
    bool certain = true;
    bool is_written = false;  // At least once.
    std::string content = std::string(kPartBytes, '\0');
  };
  void Clear() override {
    SharedFile::Clear();
    for (Part& part : parts) {
      part.certain = true;
      part.is_written = false;
      part.content.assign(kPartBytes, '\0');
    }
  }
  std::vector<Part> parts = std::vector<Part>(6);
};

// Each changes it only under a lock.
struct Guarded : SharedFile {
  static constexpr uint64_t kBytes = 20'001;
  void Clear() override {
    SharedFile::Clear();
    is_certain = true;
    content.clear();
  }
  bool is_certain = true;  // `content` is what whoever has locked it reads.
  std::string content;
};

// An attribute of a directory. Nobody else uses it meanwhile.
struct Note {
  Mutex used;
  bool is_certain = true;
  std::string value;
};

// So many names are in each mount's own directory.
inline constexpr size_t kNamesEach = 2;
inline constexpr size_t kLog = SIZE_MAX;
inline constexpr size_t kGrid = SIZE_MAX - 1;
inline constexpr size_t kGuarded = SIZE_MAX - 2;
inline constexpr size_t kBurst = SIZE_MAX / 2;  // The first file of BurstPrograms.
inline std::string NameOf(size_t at) {
  if (at == kGuarded) return "guarded";
  if (at >= kBurst && at < kGuarded) return "n" + std::to_string(at - kBurst);
  return at == kLog ? "log" : at == kGrid ? "grid" : "f" + std::to_string(at);
}

struct HistoryState {
  explicit HistoryState(const HistoryOptions& chosen)
      : options(chosen),
        scheduler(chosen.seed),
        network(chosen.trace),
        names(chosen.files + kNamesEach * chosen.mounts) {
    Rng rng(chosen.seed);
    store = Configuration::Draw(rng, chosen.mounts);
    work = Workload::Draw(rng);
    plan = FaultPlan::Draw(rng);
    work.DrawBursts(rng);
  }

  // While it exists, nothing of what a host says reaches the manager.
  class Absence {
   public:
    Absence(HistoryState& state, HostId host) : state_(state), host_(host) {
      state_.absent_since.emplace(host, state.scheduler.now());
    }
    ~Absence() { state_.absent_since.erase(host_); }
    Absence(const Absence&) = delete;
    Absence& operator=(const Absence&) = delete;

   private:
    HistoryState& state_;
    const HostId host_;
  };

  // A call that began then may fail for a fault.
  bool MayFail(const Host& host, Time begun) const {
    return faults_now > 0 || host.mount->is_killed() ||
           (history.faults > 0 && begun < fault_ended + kSettleMax);
  }
  bool MayBeLost(const Name& name) const {
    return wipes - name.wipes >= (name.has_copies ? store.replicas : 1);
  }
  // A file that a node has not lost can be read then, unless other nodes are silent.
  bool MayMissNodes(Time begun) const {
    return silences_now > 0 || wiped_at >= begun ||
           (silence_ended != Time{} && begun < silence_ended + kSettleMax);
  }
  // The directory of a name, in `directories`: the one of the i-th mount is the (i + 1)-th.
  size_t DirectoryOf(size_t at) const {
    return at < options.files || at >= names.size() ? 0 : 1 + (at - options.files) / kNamesEach;
  }
  std::string PathOf(size_t at) const {
    const size_t directory = DirectoryOf(at);
    return (directory == 0 ? "/" : fmt::format("/d{}/", directory)) + NameOf(at);
  }
  // Call it when a node loses everything.
  void NoteWipe() {
    ++wipes;
    wiped_at = scheduler.now();
    for (SharedFile* const file : std::initializer_list<SharedFile*>{&log, &grid, &guarded})
      if (!file->has_copies || wipes - file->wipes >= store.replicas) file->may_be_lost = true;
  }
  // Bytes that no other write has.
  std::string Fresh(uint64_t length) { return BytesOf(++writes, length); }
  void Problem(const std::string& what) {
    if (Scheduler::Current() != nullptr) network.Note("PROBLEM " + what);
    history.problems.push_back("at " + std::to_string(scheduler.now().ns / 1'000'000) +
                               " ms: " + what);
  }

  const HistoryOptions options;
  Configuration store;
  Workload work;
  FaultPlan plan;
  Scheduler scheduler;
  Network network;
  std::vector<Name> names;  // The first `files` of them are in the root directory.
  // The root, and one for each mount, which has made it.
  std::vector<FileId> directories = {kRootFile};
  Log log;
  Grid grid;
  Guarded guarded;
  std::deque<Note> notes;  // As `directories`.
  History history;
  uint32_t faults_now = 0;
  uint32_t silences_now = 0;  // Those for which nodes may count as gone.
  Time silence_ended;
  Time fault_ended;
  uint32_t slow_now = 0;  // Links.
  Time slow_ended;
  uint32_t lock_waits = 0;  // Programs that wait for a lock.
  std::map<HostId, Time> absent_since;
  std::multiset<HostId> changes_now;  // Hosts of programs that are changing something.
  WaitList change_begins;
  uint64_t wipes = 0;       // Nodes that have lost everything.
  Time wiped_at;            // The last one.
  bool may_be_cut = false;  // A call that has failed may have cut a file to nothing.
  uint64_t writes = 0;
  std::map<HostId, Duration> paused;  // In all.
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_STATE_H_
