// Programs that go on with a file whose writer's host is not heard of any more, as a job scheduler
// starts a task again elsewhere. What was stored by the first writer, and not synced, must not
// count beside what the second one writes: the first one learns of that when it returns.
#ifndef MOSA_TESTS_SIMULATION_HISTORY_TAKEOVER_H_
#define MOSA_TESTS_SIMULATION_HISTORY_TAKEOVER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/model/ranges.h"
#include "tests/simulation/history_calls.h"
#include "tests/simulation/history_state.h"

namespace mosa::simulation {

// A program's change of a name, from before its open to behind its close. It belongs to the name
// while it exists; the name's lock must be held.
class OpenChange {
 public:
  OpenChange(const Host& host, Name& name);
  ~OpenChange() { name_.change = nullptr; }
  OpenChange(const OpenChange&) = delete;
  OpenChange& operator=(const OpenChange&) = delete;

  // ---- called by the program
  void NoteWrite(uint64_t offset, uint64_t length) {
    unsynced_.push_back({offset, offset + length});
  }
  // A sync or close begins: it may succeed although its answer comes only when the other writer is
  // done.
  void BeginSync() { is_syncing_ = true; }
  void NoteSync() {
    unsynced_.clear();
    is_syncing_ = false;
  }
  // It may commit what was written before, and is a change of what the other writer has made.
  void NoteResize() {
    NoteSync();
    is_clean_ = false;
  }
  // The program learns that bytes it has written are not stored.
  void NoteStale(const Failure& failure);
  bool is_taken_over() const { return taken_over_; }
  // False: the bytes may be those of the other writer.
  bool IsOwn(uint64_t at) const;

  HostId host() const { return host_; }

 private:
  friend class Takeovers;

  Name& name_;
  const HostId host_;
  std::vector<ByteRange> unsynced_;  // Parts that it has written.
  std::vector<ByteRange> at_stake_;  // The same, when another program had taken over.
  bool is_syncing_ = false;
  bool taken_over_ = false;  // Another program has written the file since.
  bool is_clean_ = false;    // It was done before this one went on.
  bool is_stale_ = false;    // This one has heard of it.
  uint64_t faults_ = 0;      // That there were by then.
};

class Takeovers {
 public:
  explicit Takeovers(HistoryState& state) : state_(state), calls_(state) {}

  // True if the name is being changed on another host whose session has expired.
  bool MayTakeOver(const Host& host, size_t at) const;
  // Writes the file anew. The name's lock is the other program's.
  void TakeOver(const Host& host, size_t at, Rng& rng);
  // Call it when a change that was taken over is over. `content`: what the program has made of the
  // file; nothing if one of its calls has failed.
  void End(const Host& host, size_t at, const OpenChange& change,
           const std::optional<std::string>& content);

 private:
  HistoryState& state_;
  HistoryCalls calls_;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_HISTORY_TAKEOVER_H_
