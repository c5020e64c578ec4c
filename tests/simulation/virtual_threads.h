// Threads in virtual time: the names of common/base/sync.h for tests that run a whole store on one
// thread of the machine, again and again the same way.
//
// A Scheduler runs one virtual thread at a time and may change to another wherever a thread locks,
// unlocks, waits, sleeps or ends. A seed decides which one is next. When no thread can run, time
// goes on to the next end of a wait. (This is how FoundationDB's simulator runs its actors; Zhou et
// al., "FoundationDB: A Distributed Unbundled Transactional Key Value Store", SIGMOD 2021, section
// 4. Here the threads are those of the real code.)
//
// Virtual threads belong to hosts. A paused host's threads do not run, as if the host had been
// suspended.
#ifndef MOSA_TESTS_SIMULATION_VIRTUAL_THREADS_H_
#define MOSA_TESTS_SIMULATION_VIRTUAL_THREADS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/base/time.h"

namespace mosa {

namespace simulation {

struct VirtualThread;
using HostId = uint32_t;

// Threads that wait for the same thing.
class WaitList {
 public:
  // Blocks the calling thread until it is woken, or until `end`. False: `end` has come.
  bool Wait(Time end);
  void WakeOne();
  void WakeAll();

 private:
  friend class Scheduler;
  std::vector<VirtualThread*> waiting_;
};

inline constexpr Time kNever{INT64_MAX};

class Scheduler {
 public:
  explicit Scheduler(uint64_t seed);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Runs `body` as a virtual thread of host 0, until it returns. False: no thread can ever run
  // again, or virtual time has passed `limit`. problem() says why. Call it once.
  bool Run(std::function<void()> body, Time limit);
  const std::string& problem() const { return problem_; }

  // The scheduler that runs now; null outside Run().
  static Scheduler* Current();

  Time now() const { return now_; }
  // Hashes the order of all threads and their times.
  uint64_t digest() const { return digest_; }
  Rng& rng() { return rng_; }

  // The host of the calling thread.
  HostId host() const;
  void Pause(HostId host) { paused_.insert(host); }
  void Resume(HostId host) { paused_.erase(host); }

  // Starts a thread of a host. The scheduler owns it.
  VirtualThread* Start(std::function<void()> body, HostId host);
  VirtualThread* running() const { return running_; }
  // Lets another thread run, or not.
  void MayYield();
  void Sleep(Duration duration);

 private:
  friend class WaitList;
  struct Alarm {
    Time at;
    uint64_t order;
    VirtualThread* thread;
    uint64_t wait;
    bool operator>(const Alarm& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  bool Park(Time end);
  void MakeReady(VirtualThread* thread);
  VirtualThread* Choose();
  bool RingAlarm(Time limit);
  void Describe(const char* why);

  Rng rng_;
  Time now_;
  uint64_t digest_ = 14695981039346656037ULL;
  std::string problem_;
  std::vector<std::unique_ptr<VirtualThread>> threads_;
  std::vector<VirtualThread*> ready_;
  std::vector<Alarm> alarms_;  // A heap.
  uint64_t alarm_count_ = 0;
  std::set<HostId> paused_;
  VirtualThread* running_ = nullptr;
};

// A host's clock. Wall time is `ahead` of virtual time.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(Duration ahead = {}) : ahead_(ahead) {}
  Time Now() const override { return Monotonic() + kWallOffset + ahead_; }
  Time Monotonic() const override;

 private:
  static constexpr Duration kWallOffset = Seconds(1'700'000'000);
  const Duration ahead_;
};

}  // namespace simulation

SteadyTime SteadyNow();
void SleepFor(Duration duration);
// The place of a value of the calling thread's own; `tag` tells which.
std::shared_ptr<void>& ValueOfThread(const void* tag);

template <typename T>
T& OfThread() {
  static const char tag = 0;
  std::shared_ptr<void>& value = ValueOfThread(&tag);
  if (value == nullptr) value = std::make_shared<T>();
  return *static_cast<T*>(value.get());
}

// As std::thread, it must be joined.
class Thread {
 public:
  Thread() = default;
  template <typename Body>
  explicit Thread(Body body) : Thread(std::function<void()>(std::move(body)), 0) {}
  Thread(Thread&& other) noexcept : thread_(std::exchange(other.thread_, nullptr)) {}
  ~Thread() { MOSA_CHECK(!joinable()); }
  Thread& operator=(Thread&& other) noexcept {
    MOSA_CHECK(!joinable());
    thread_ = std::exchange(other.thread_, nullptr);
    return *this;
  }
  bool joinable() const { return thread_ != nullptr; }
  void join();

 private:
  Thread(std::function<void()> body, int);
  simulation::VirtualThread* thread_ = nullptr;
};

class ABSL_LOCKABLE Mutex {
 public:
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION();
  void unlock() ABSL_UNLOCK_FUNCTION();
  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true);
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class Signal;
  void Release();

  simulation::VirtualThread* owner_ = nullptr;
  bool locked_ = false;  // Outside a scheduler there is no owner.
  simulation::WaitList waiting_;
};

class Signal {
 public:
  static SteadyTime Now() { return SteadyNow(); }
  void notify_one() { waiting_.WakeOne(); }
  void notify_all() { waiting_.WakeAll(); }
  void wait(Mutex& mutex) { wait_until(mutex, SteadyTime::max()); }
  bool wait_until(Mutex& mutex, SteadyTime end) ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  simulation::WaitList waiting_;
};

}  // namespace mosa

#endif  // MOSA_TESTS_SIMULATION_VIRTUAL_THREADS_H_
