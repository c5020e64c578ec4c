// Internal to predictor/run: what every part of a simulated mount uses.
#ifndef MOSA_PREDICTOR_RUN_MOUNT_PART_H_
#define MOSA_PREDICTOR_RUN_MOUNT_PART_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client-sai/core/outcome.h"
#include "common/model/messages.h"
#include "common/model/ranges.h"
#include "predictor/des/activity.h"
#include "predictor/run/machines.h"
#include "predictor/run/observer.h"
#include "predictor/run/simulated_manager.h"

namespace mosa::predict {

// Returns the reply at `index` as a T, or the first Failure up to it.
template <typename T>
sai::Outcome<T> ReplyAs(const std::vector<Reply>& replies, size_t index) {
  for (size_t i = 0; i < replies.size() && i <= index; ++i)
    if (const auto* failure = std::get_if<Failure>(&replies[i])) return *failure;
  const auto* reply = index < replies.size() ? std::get_if<T>(&replies[index]) : nullptr;
  if (reply != nullptr) return *reply;
  return Failure{StatusCode::kInternal, ErrorReason::kNone, "the manager sent an unexpected reply"};
}

// The mount's place in the simulation, under short names. Each part has a copy.
class MountPart {
 protected:
  template <typename T>
  using Outcome = sai::Outcome<T>;
  using Done = sai::Done;
  using Timed = SimulatedResidence::Timed;

  // All arguments must outlive this.
  MountPart(des::EventLoop& loop, const Platform& platform, Machines& machines,
            SimulatedManager& manager, ClientId id, MachineIndex on)
      : loop_(loop),
        platform_(platform),
        machines_(machines),
        manager_(manager),
        id_(id),
        machine_(on) {}

  // Sends one request to the manager.
  template <typename T>
  des::Activity<Outcome<T>> Ask(Request request) {
    std::vector<Request> requests;
    requests.push_back(std::move(request));
    const std::vector<Reply> replies = co_await manager_.Call(id_, std::move(requests));
    co_return ReplyAs<T>(replies, 0);
  }
  auto Work(const Cost& cost, uint64_t bytes = 0) {
    return machines_.Work(machine_, cost.Of(bytes));
  }
  bool IsLocal(NodeId node) const {
    return node != kNoNode && manager_.MachineOf(node) == machine_;
  }
  void NoteKernel(Access access, ByteRange range) const {
    if (Observer* const observer = manager_.observer()) observer->OnKernel(id_, access, range);
  }
  void NoteNode(Access access, NodeId node, FileId file, ByteRange range) const {
    if (Observer* const observer = manager_.observer())
      observer->OnNode(id_, access, node, file, range);
  }

  inline static const std::string kNoTask;
  des::EventLoop& loop_;
  const Platform& platform_;
  Machines& machines_;
  SimulatedManager& manager_;
  const ClientId id_;
  const MachineIndex machine_;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_MOUNT_PART_H_
