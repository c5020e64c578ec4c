#include "client-sai/sai/periodic.h"

#include <utility>

namespace mosa::sai {

void Periodic::Start(std::function<void(uint64_t round)> step) {
  thread_ = Thread([this, step = std::move(step)] {
    MutexLock lock(mutex_);
    for (uint64_t round = 0; !stopping_; ++round) {
      wake_.wait_for(lock, kEvery);
      lock.unlock();
      step(round);
      lock.lock();
    }
  });
}

void Periodic::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

}  // namespace mosa::sai
