#include "client-sai/sai/executor.h"

#include <utility>

#include "common/base/sync.h"
#include "common/observe/request_log.h"

namespace mosa::sai {

Executor::Executor(uint32_t threads, uint32_t threads_max) : threads_max_(threads_max) {
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

void Executor::Run(std::function<void()> task) {
  task = InThisSpan(std::move(task));
  {
    const MutexLock lock(mutex_);
    if (!stopping_) {
      queue_.push_back(std::move(task));
      if (idle_ < queue_.size() && threads_.size() < threads_max_)
        threads_.emplace_back([this] { Work(); });
      wake_.notify_one();
      return;
    }
  }
  task();
}

void Executor::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  // No thread is started from here on.
  for (Thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void Executor::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    ++idle_;
    while (!stopping_ && queue_.empty()) wake_.wait(lock);
    --idle_;
    if (queue_.empty()) return;
    const std::function<void()> task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

void Lanes::Run(Key lane, uint32_t at_once, Task task) {
  task = InThisSpan(std::move(task));
  {
    const MutexLock lock(mutex_);
    Lane& its = lanes_[lane];
    if (its.running > 0 && its.running >= at_once) {
      its.waiting.push_back(std::move(task));
      return;
    }
    ++its.running;
  }
  Start(lane, std::move(task));
}

void Lanes::Start(Key key, Task task) {
  executor_.Run([this, key, task = std::move(task)] {
    task();
    Ended(key);
  });
}

void Lanes::Ended(Key key) {
  Task next;
  {
    const MutexLock lock(mutex_);
    const auto lane = lanes_.find(key);
    if (lane->second.waiting.empty()) {
      if (--lane->second.running == 0) lanes_.erase(lane);
      return;
    }
    next = std::move(lane->second.waiting.front());
    lane->second.waiting.pop_front();
  }
  Start(key, std::move(next));
}

}  // namespace mosa::sai
