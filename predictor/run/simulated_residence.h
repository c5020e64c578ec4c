// SimulatedResidence: how long requests stay with the daemons of a simulated cluster. Its classes
// have the real daemons' names (common/model/residence.h), so that predicted and measured times can
// be compared class by class (Provisioning, section 5).
//
// The model covers these classes:
//
//  mount    manager.*              from sending to the answer.
//           node.read, node.write  the same, by the host asked.
//           fuse.*                 what the store does for the call, without the kernel's part;
//                                  only create, flush, lookup, open, read and write.
//  manager  by request             from when the loop takes it until its answer leaves; NAME.core:
//                                  the decision; log: a write to the database.
//  storage  read, write            by the host that asks, with the transfer; write.object: without
//                                  the transfer.
//           copy.read              by the host asked.
//
// Two classes differ from the daemons' own times, and are not compared with them. The simulated
// manager persists and answers each envelope alone, where the real one does rounds of them. A
// node's `read` ends when its bytes have arrived, where the real one ends when the network has
// taken them over.
//
// A mount's request to a storage node includes the network and the mount's own part. Other classes
// are not simulated. Recording only observes: the simulation does not depend on it.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_RESIDENCE_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_RESIDENCE_H_

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/duration_counts.h"
#include "common/base/strong_id.h"
#include "common/model/messages.h"
#include "common/model/residence.h"
#include "predictor/des/event_loop.h"

namespace mosa::predict {

// Hosts that run tasks come first, then those with storage alone, then the manager's own.
using MachineIndex = StrongId<struct SimulatedMachineTag, uint32_t>;

enum class Daemon : uint8_t { kManager, kStorage, kMount };
const char* ToText(Daemon daemon);

// The names that the daemons give an envelope of requests: "manager.open", "open" or "open.core".
// They have static lifetime. Precondition: `requests` is not empty.
struct EnvelopeNames {
  std::string_view at_mount, at_manager, decision;
};
const EnvelopeNames& NamesOf(const std::vector<Request>& requests);

struct PredictedDaemon {
  Daemon daemon = Daemon::kManager;
  MachineIndex machine;
  std::vector<ResidenceRow> rows;  // By class and peer; a peer is "h1" and so on.
};

class SimulatedResidence {
 public:
  static constexpr MachineIndex kNoPeer{UINT32_MAX};

  // `loop` must outlive this. Recording starts switched off.
  explicit SimulatedResidence(const des::EventLoop& loop) : loop_(loop) {}

  bool is_on() const { return is_on_; }
  // Starts recording: requests that end from now on count.
  void Begin() { is_on_ = true; }

  // Precondition: `name` outlives this.
  void Add(Daemon daemon, MachineIndex on, std::string_view name, Duration stayed,
           MachineIndex peer = kNoPeer) {
    if (is_on_) rows_[{daemon, on, name, peer}].Add(stayed);
  }
  std::vector<PredictedDaemon> Take() const;

  // Records the time from its construction to its destruction.
  class Timed {
   public:
    Timed(SimulatedResidence& residence, Daemon daemon, MachineIndex on, std::string_view name,
          MachineIndex peer = kNoPeer)
        : residence_(residence),
          name_(name),
          begin_(residence.loop_.now()),
          on_(on),
          peer_(peer),
          daemon_(daemon) {}
    ~Timed() { residence_.Add(daemon_, on_, name_, residence_.loop_.now() - begin_, peer_); }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    SimulatedResidence& residence_;
    const std::string_view name_;
    const Time begin_;
    const MachineIndex on_, peer_;
    const Daemon daemon_;
  };

 private:
  struct Key {
    Daemon daemon;
    MachineIndex machine;
    std::string_view name;
    MachineIndex peer;
    auto operator<=>(const Key&) const = default;
  };

  const des::EventLoop& loop_;
  bool is_on_ = false;
  std::map<Key, DurationCounts> rows_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_RESIDENCE_H_
