// Executor: a small pool of threads that runs tasks in FIFO order.
#ifndef MOSA_CLIENT_SAI_SAI_EXECUTOR_H_
#define MOSA_CLIENT_SAI_SAI_EXECUTOR_H_

#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "common/base/sync.h"
#include "common/model/ids.h"

namespace mosa::sai {

// Thread-safe. A task runs in the span of the thread that submits it (InThisSpan). While all
// threads are busy, more are started, up to `threads_max`; they stay. Stop runs the queued tasks,
// then joins. Later tasks run at once on the caller's thread.
class Executor {
 public:
  explicit Executor(uint32_t threads, uint32_t threads_max = 0);
  ~Executor() { Stop(); }
  void Run(std::function<void()> task);
  void Stop();

 private:
  void Work();

  Mutex mutex_;
  CondVar wake_;
  const uint32_t threads_max_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  uint32_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;
};

// Runs tasks in lanes: at most a given number of each lane at once, in FIFO order. Waiting tasks
// hold no thread. Thread-safe; stop the executor before destroying this.
class Lanes {
 public:
  using Task = std::function<void()>;
  // A file, and the number of one of its lanes.
  using Key = std::pair<FileId, uint64_t>;

  explicit Lanes(Executor& executor) : executor_(executor) {}
  // Runs `task` once fewer than `at_once` tasks of the lane are running.
  void Run(Key lane, uint32_t at_once, Task task);

 private:
  struct Lane {
    uint32_t running = 0;
    std::deque<Task> waiting;
  };
  void Start(Key key, Task task);
  void Ended(Key key);

  Executor& executor_;
  Mutex mutex_;
  std::map<Key, Lane> lanes_ ABSL_GUARDED_BY(mutex_);  // Lanes with running tasks.
};

// Waits for a number of tasks to arrive. Thread-safe.
class Countdown {
 public:
  explicit Countdown(size_t count) : left_(count) {}
  void Arrive() {
    const MutexLock lock(mutex_);
    if (--left_ == 0) done_.notify_all();
  }
  void Wait() {
    MutexLock lock(mutex_);
    while (left_ > 0) done_.wait(lock);
  }

 private:
  Mutex mutex_;
  CondVar done_;
  size_t left_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_EXECUTOR_H_
