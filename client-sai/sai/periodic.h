// Periodic: a thread that runs a step ten times a second.
#ifndef MOSA_CLIENT_SAI_SAI_PERIODIC_H_
#define MOSA_CLIENT_SAI_SAI_PERIODIC_H_

#include <cstdint>
#include <functional>

#include "common/base/sync.h"
#include "common/base/time.h"

namespace mosa::sai {

// Start and Stop are called by one thread, each at most once.
class Periodic {
 public:
  // `step` gets the number of steps before it.
  void Start(std::function<void(uint64_t round)> step);
  // Waits for a step in progress.
  void Stop();

 private:
  static constexpr Duration kEvery = Milliseconds(100);

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_PERIODIC_H_
