#ifndef MOSA_TESTS_SIMULATION_AWAIT_H_
#define MOSA_TESTS_SIMULATION_AWAIT_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "client-sai/core/outcome.h"
#include "common/base/sync.h"

namespace mosa::simulation {

// Starts a call that answers through a callback, and waits for its outcome.
template <typename Value>
sai::Outcome<Value> Await(
    const std::function<void(std::function<void(sai::Outcome<Value>)>)>& start) {
  struct State {
    Mutex mutex;
    CondVar told;
    std::optional<sai::Outcome<Value>> outcome;
  };
  const auto state = std::make_shared<State>();
  start([state](sai::Outcome<Value> outcome) {
    const MutexLock lock(state->mutex);
    state->outcome = std::move(outcome);
    state->told.notify_all();
  });
  MutexLock lock(state->mutex);
  while (!state->outcome) state->told.wait(lock);
  return *std::move(state->outcome);
}

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_AWAIT_H_
