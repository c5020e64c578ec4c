// SimulatedCopies: how storage nodes carry out the manager's orders to hold copies of files: each
// fetches what it lacks from the nodes that the order names, a few pieces at a time, as far as
// those have it themselves, and reports when it has all, or no room for more.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_COPIES_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_COPIES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "common/model/ranges.h"
#include "common/model/storage.h"
#include "predictor/des/activity.h"
#include "predictor/des/waiting.h"
#include "predictor/run/machines.h"

namespace mosa::predict {

class SimulatedManager;

class SimulatedCopies {
 public:
  // All outlive this.
  SimulatedCopies(des::EventLoop& loop, const Platform& platform, Machines& machines,
                  SimulatedManager& manager)
      : loop_(loop), platform_(platform), machines_(machines), manager_(manager) {}

  // In the place of any earlier order for the file.
  void Order(NodeId node, const CopyOrder& order);
  void Cancel(NodeId node, FileId file);
  // More of a file that is being written is there.
  void NoteWritten(FileId file);

 private:
  struct Key {
    FileId file;
    NodeId node;
    auto operator<=>(const Key&) const = default;
  };
  struct Task {
    explicit Task(des::EventLoop& loop) : changed(loop) {}
    // Below, the node has what it is to hold.
    uint64_t here_end() const { return under_way.empty() ? asked_end : *under_way.begin(); }
    // What is being fetched comes for nobody.
    void GoOnAt(uint64_t offset) {
      asked_end = offset;
      under_way.clear();
      ++round;
    }
    CopyOrder order;
    size_t at_once = 1;  // So many pieces by that order.
    uint64_t asked_end = 0;
    std::set<uint64_t> under_way;  // Where what is being fetched begins.
    uint32_t round = 0;            // What was asked for in an earlier one counts no more.
    uint64_t fetched_bytes = 0;
    bool is_full = false;
    bool runs = false;
    bool cancelled = false;
    des::Signal changed;
  };
  Task& at(Key key) { return tasks_.at(key); }
  des::Activity<void> Carry(Key key);
  // What to fetch next, if its source has it and is not asked for enough already.
  std::optional<Piece> Next(Key key);
  des::Activity<void> Fetch(Key key, Piece piece);
  des::Activity<void> Report(Key key);

  des::EventLoop& loop_;
  const Platform& platform_;
  Machines& machines_;
  SimulatedManager& manager_;
  std::map<Key, Task> tasks_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_COPIES_H_
