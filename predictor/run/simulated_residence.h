// SimulatedResidence: how long requests stay with the daemons of a simulated cluster, in classes of
// the names that its real daemons have (common/model/residence.h), so that what is predicted of a
// class and what is measured of it are laid side by side (Provisioning, section 5).
//
// What the model knows of each class:
//
//  mount    manager.*              from its sending to its answer.
//           node.read, node.write  the same, by the host asked.
//           fuse.*                 what the store does for it, without the kernel's own part;
//                                  create, flush, lookup, open, read and write alone.
//  manager  by request             from when the loop takes it until its answer leaves; NAME.core:
//                                  the decision; log: a write to the database.
//  storage  read, write            by the host that asks: with the bytes' way; write.object:
//                                  without it.
//           copy.read              by the host asked.
//
// Two are not the daemons' own times, and not judged beside them: the manager persists and answers
// each envelope alone, not rounds of them; a node's `read` ends when its bytes have arrived, not
// when the network has taken them over.
//
// A mount that asks a storage node also waits for the way of the question, and for its own part.
// Others are not simulated. It only looks on: nothing depends on whether it is on.
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

// "manager.open", "open" or "open.core" of an envelope of requests, as its daemon names it. They
// stay for ever. Precondition: there is a request.
struct EnvelopeNames {
  std::string_view at_mount, at_manager, decision;
};
const EnvelopeNames& NamesOf(const std::vector<Request>& requests);

struct PredictedDaemon {
  Daemon daemon = Daemon::kManager;
  MachineIndex machine;
  std::vector<ResidenceRow> rows;  // By class and peer, which is "h1" and so on.
};

class SimulatedResidence {
 public:
  static constexpr MachineIndex kNoPeer{UINT32_MAX};

  // `loop` outlives this. It is off.
  explicit SimulatedResidence(const des::EventLoop& loop) : loop_(loop) {}

  bool is_on() const { return is_on_; }
  // From now on, with what ends from now on.
  void Begin() { is_on_ = true; }

  // Precondition: `name` outlives this.
  void Add(Daemon daemon, MachineIndex on, std::string_view name, Duration stayed,
           MachineIndex peer = kNoPeer) {
    if (is_on_) rows_[{daemon, on, name, peer}].Add(stayed);
  }
  std::vector<PredictedDaemon> Take() const;

  // Adds the time from its making to its end.
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
