#include "tests/simulation/virtual_threads.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "common/base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace mosa::simulation {
namespace {

constexpr size_t kStackBytes = 256 << 10;
// A thread that runs takes some time, so that one which polls meets the end of its patience.
constexpr uint64_t kTurnNsMax = 3'000;
constexpr uint64_t kYieldsPerMille = 100;

Scheduler* current = nullptr;

// Stacks are used again: to map one takes longer than all that most threads do.
std::vector<std::byte*>& FreeStacks() {
  static std::vector<std::byte*> stacks;
  return stacks;
}

std::byte* TakeStack() {
  std::vector<std::byte*>& free = FreeStacks();
  if (!free.empty()) {
    std::byte* const stack = free.back();
    free.pop_back();
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stack, kStackBytes);
#endif
    return stack;
  }
  void* const mapped = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  MOSA_CHECK(mapped != MAP_FAILED);
  MOSA_CHECK(mprotect(mapped, static_cast<size_t>(sysconf(_SC_PAGESIZE)), PROT_NONE) == 0);
  return static_cast<std::byte*>(mapped);
}

}  // namespace

struct VirtualThread {
  enum class State : uint8_t { kReady, kRunning, kParked, kEnded };
  uint64_t number = 0;
  HostId host = 0;
  std::function<void()> body;
  std::byte* stack = nullptr;
  ucontext_t context{};
  State state = State::kReady;
  uint64_t wait = 0;  // Counts what it has waited for.
  bool in_time = true;
  WaitList joiners;
  WaitList* waits_in = nullptr;
  std::map<const void*, std::shared_ptr<void>> values;  // By tag (OfThread).
  void* fake_stack = nullptr;                           // AddressSanitizer's.
};

namespace {

ucontext_t scheduler_context;

#if defined(__SANITIZE_ADDRESS__)
const void* scheduler_stack = nullptr;
size_t scheduler_stack_bytes = 0;
#endif

void SwitchTo(VirtualThread& thread) {
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, thread.stack, kStackBytes);
#endif
  MOSA_CHECK(swapcontext(&scheduler_context, &thread.context) == 0);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void SwitchBack(VirtualThread& thread) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(
      thread.state == VirtualThread::State::kEnded ? nullptr : &thread.fake_stack, scheduler_stack,
      scheduler_stack_bytes);
#endif
  MOSA_CHECK(swapcontext(&thread.context, &scheduler_context) == 0);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(thread.fake_stack, &scheduler_stack, &scheduler_stack_bytes);
#endif
}

void RunBody() {
  VirtualThread& thread = *current->running();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
  thread.body();
  thread.body = nullptr;
  thread.values.clear();
  thread.state = VirtualThread::State::kEnded;
  thread.joiners.WakeAll();
  SwitchBack(thread);
  MOSA_CHECK(false);  // A thread that has ended runs again.
}

}  // namespace

// ---- WaitList

bool WaitList::Wait(Time end) {
  Scheduler& scheduler = *Scheduler::Current();
  VirtualThread* const self = scheduler.running();
  waiting_.push_back(self);
  self->waits_in = this;
  return scheduler.Park(end);
}

void WaitList::WakeOne() {
  if (waiting_.empty()) return;
  Scheduler& scheduler = *Scheduler::Current();
  const size_t at = scheduler.rng().Below(waiting_.size());
  VirtualThread* const woken = waiting_[at];
  waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(at));
  scheduler.MakeReady(woken);
}

void WaitList::WakeAll() {
  for (VirtualThread* const thread : std::exchange(waiting_, {}))
    Scheduler::Current()->MakeReady(thread);
}

// ---- Scheduler

Scheduler::Scheduler(uint64_t seed) : rng_(seed) {}

Scheduler::~Scheduler() {
  for (const auto& thread : threads_)
    if (thread->stack != nullptr) FreeStacks().push_back(thread->stack);
}

Scheduler* Scheduler::Current() { return current; }

HostId Scheduler::host() const { return running_ == nullptr ? 0 : running_->host; }

VirtualThread* Scheduler::Start(std::function<void()> body, HostId host) {
  auto thread = std::make_unique<VirtualThread>();
  thread->number = threads_.size() + 1;
  thread->host = host;
  thread->body = std::move(body);
  thread->stack = TakeStack();
  MOSA_CHECK(getcontext(&thread->context) == 0);
  thread->context.uc_stack.ss_sp = thread->stack;
  thread->context.uc_stack.ss_size = kStackBytes;
  thread->context.uc_link = nullptr;
  makecontext(&thread->context, RunBody, 0);
  ready_.push_back(thread.get());
  threads_.push_back(std::move(thread));
  return threads_.back().get();
}

bool Scheduler::Run(std::function<void()> body, Time limit) {
  MOSA_CHECK(current == nullptr);
  current = this;
  const VirtualThread* const main = Start(std::move(body), 0);
  while (main->state != VirtualThread::State::kEnded && problem_.empty()) {
    if (now_ > limit) {
      Describe("it takes too long");
      break;
    }
    VirtualThread* const next = Choose();
    if (next == nullptr) {
      if (!RingAlarm(kNever)) Describe("no thread can ever run again");
      continue;
    }
    now_.ns += static_cast<int64_t>(rng_.Below(kTurnNsMax));
    digest_ = (digest_ ^ next->number ^ static_cast<uint64_t>(now_.ns) << 16) * 1099511628211ULL;
    next->state = VirtualThread::State::kRunning;
    running_ = next;
    SwitchTo(*next);
    running_ = nullptr;
    if (next->state == VirtualThread::State::kEnded)
      FreeStacks().push_back(std::exchange(next->stack, nullptr));
  }
  current = nullptr;
  return problem_.empty();
}

VirtualThread* Scheduler::Choose() {
  while (RingAlarm(now_)) {
  }
  size_t count = 0;
  size_t chosen = 0;
  for (size_t i = 0; i < ready_.size(); ++i) {
    if (paused_.contains(ready_[i]->host)) continue;
    if (rng_.Below(++count) == 0) chosen = i;
  }
  if (count == 0) return nullptr;
  VirtualThread* const thread = ready_[chosen];
  ready_[chosen] = ready_.back();
  ready_.pop_back();
  return thread;
}

// Wakes the thread of the next alarm, if it is due by `limit`, and moves time to it.
bool Scheduler::RingAlarm(Time limit) {
  while (!alarms_.empty() && alarms_.front().at <= limit) {
    std::ranges::pop_heap(alarms_, std::greater<>());
    const Alarm alarm = alarms_.back();
    alarms_.pop_back();
    VirtualThread& thread = *alarm.thread;
    if (thread.state != VirtualThread::State::kParked || thread.wait != alarm.wait) continue;
    now_ = std::max(now_, alarm.at);
    thread.in_time = false;
    if (thread.waits_in != nullptr) std::erase(thread.waits_in->waiting_, &thread);
    MakeReady(&thread);
    return true;
  }
  return false;
}

bool Scheduler::Park(Time end) {
  VirtualThread& self = *running_;
  self.state = VirtualThread::State::kParked;
  self.in_time = true;
  ++self.wait;
  if (end != kNever) {
    alarms_.push_back({end, alarm_count_++, &self, self.wait});
    std::ranges::push_heap(alarms_, std::greater<>());
  }
  SwitchBack(self);
  return self.in_time;
}

// Precondition: the thread waits in no list any more.
void Scheduler::MakeReady(VirtualThread* thread) {
  MOSA_CHECK(thread->state == VirtualThread::State::kParked || thread == running_);
  thread->state = VirtualThread::State::kReady;
  thread->waits_in = nullptr;
  ready_.push_back(thread);
}

void Scheduler::MayYield() {
  if (!rng_.Chance(kYieldsPerMille)) return;
  VirtualThread& self = *running_;
  MakeReady(&self);
  SwitchBack(self);
}

void Scheduler::Sleep(Duration duration) { Park(now_ + duration); }

void Scheduler::Describe(const char* why) {
  size_t parked = 0;
  size_t ready = 0;
  for (const auto& thread : threads_) {
    parked += thread->state == VirtualThread::State::kParked ? 1 : 0;
    ready += thread->state == VirtualThread::State::kReady ? 1 : 0;
  }
  problem_ = fmt::format("{} after {} ms: {} threads wait, {} could run", why, now_.ns / 1'000'000,
                         parked, ready);
}

Time VirtualClock::Monotonic() const {
  // Times of 0 mean "never" in places.
  return Time{1'000'000'000} + (current == nullptr ? Duration{} : current->now() - Time{});
}

}  // namespace mosa::simulation

namespace mosa {

using simulation::Scheduler;

SteadyTime SteadyNow() {
  const Scheduler* const scheduler = Scheduler::Current();
  const Time now = scheduler == nullptr ? Time{} : scheduler->now();
  return SteadyTime(std::chrono::nanoseconds(now.ns));
}

void SleepFor(Duration duration) { Scheduler::Current()->Sleep(duration); }

std::shared_ptr<void>& ValueOfThread(const void* tag) {
  static std::map<const void*, std::shared_ptr<void>> outside;
  const Scheduler* const scheduler = Scheduler::Current();
  if (scheduler == nullptr || scheduler->running() == nullptr) return outside[tag];
  return scheduler->running()->values[tag];
}

Thread::Thread(std::function<void()> body, int)
    : thread_(Scheduler::Current()->Start(std::move(body), Scheduler::Current()->host())) {}

void Thread::join() {
  if (thread_->state != simulation::VirtualThread::State::kEnded)
    thread_->joiners.Wait(simulation::kNever);
  thread_ = nullptr;
}

void Mutex::lock() {
  Scheduler* const scheduler = Scheduler::Current();
  if (scheduler == nullptr) {
    MOSA_CHECK(!std::exchange(locked_, true));
    return;
  }
  scheduler->MayYield();
  MOSA_CHECK(!locked_ || owner_ != scheduler->running());
  while (locked_) waiting_.Wait(simulation::kNever);
  locked_ = true;
  owner_ = scheduler->running();
}

bool Mutex::try_lock() {
  if (locked_) return false;
  locked_ = true;
  owner_ = Scheduler::Current() == nullptr ? nullptr : Scheduler::Current()->running();
  return true;
}

void Mutex::Release() {
  MOSA_CHECK(locked_);
  locked_ = false;
  owner_ = nullptr;
  if (Scheduler::Current() != nullptr) waiting_.WakeOne();
}

void Mutex::unlock() {
  Release();
  if (Scheduler* const scheduler = Scheduler::Current(); scheduler != nullptr)
    scheduler->MayYield();
}

bool Signal::wait_until(Mutex& mutex, SteadyTime end) {
  const Time until = end == SteadyTime::max()
                         ? simulation::kNever
                         : Time{std::chrono::nanoseconds(end.time_since_epoch()).count()};
  // Not unlock(): a notification must not come between it and the wait.
  mutex.Release();
  const bool in_time = waiting_.Wait(until);
  mutex.lock();
  return in_time;
}

}  // namespace mosa
