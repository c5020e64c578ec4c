#include "client-sai/fuse/killed_askers.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <utility>

#include "common/base/mutex.h"
#include "fmt/format.h"

namespace mosa::sai {
namespace {

constexpr std::chrono::milliseconds kLookEvery{100};
constexpr size_t kInterruptedMax = 65'536;

// Parses a line of /proc/PID/status: a set of signals in hexadecimal.
bool HasKill(const std::string& line) {
  const uint64_t signals = strtoull(line.c_str() + line.find(':') + 1, nullptr, 16);
  return (signals & (uint64_t{1} << (SIGKILL - 1))) != 0;
}

}  // namespace

bool IsBeingKilled(uint32_t thread) {
  if (thread == 0) return false;
  std::ifstream status(fmt::format("/proc/{}/status", thread));
  if (!status) return true;
  for (std::string line; std::getline(status, line);) {
    if ((line.starts_with("SigPnd:") || line.starts_with("ShdPnd:")) && HasKill(line)) return true;
  }
  return false;
}

void KilledAskers::Begin(uint64_t request, uint32_t asker) {
  Shard& shard = ShardOf(request);
  const SystemMutexLock lock(shard.mutex);
  shard.served.push_back({request, asker});
}

void KilledAskers::End(uint64_t request) {
  Shard& shard = ShardOf(request);
  const SystemMutexLock lock(shard.mutex);
  const auto found = std::find_if(shard.served.begin(), shard.served.end(),
                                  [&](const Asked& asked) { return asked.request == request; });
  if (found == shard.served.end()) return;
  *found = shard.served.back();
  shard.served.pop_back();
}

uint32_t KilledAskers::AskerOf(uint64_t request) {
  Shard& shard = ShardOf(request);
  const SystemMutexLock lock(shard.mutex);
  for (const Asked& asked : shard.served)
    if (asked.request == request) return asked.asker;
  return 0;
}

void KilledAskers::Interrupted(uint64_t request) {
  if (AskerOf(request) == 0) return;
  const SystemMutexLock lock(mutex_);
  if (stopping_ || interrupted_.size() >= kInterruptedMax) return;
  interrupted_.push_back(request);
  if (!watcher_.joinable()) watcher_ = std::thread([this] { Watch(); });
  changed_.notify_all();
}

void KilledAskers::Watch() {
  SystemMutexLock lock(mutex_);
  while (!stopping_) {
    if (interrupted_.empty()) {
      changed_.wait(lock);
      continue;
    }
    std::vector<uint64_t> looked_at = std::exchange(interrupted_, {});
    lock.unlock();
    std::erase_if(looked_at, [&](uint64_t request) {
      const uint32_t asker = AskerOf(request);
      if (asker == 0) return true;
      if (!IsBeingKilled(asker)) return false;
      answer_(request);
      return true;
    });
    lock.lock();
    interrupted_.insert(interrupted_.end(), looked_at.begin(), looked_at.end());
    if (!interrupted_.empty())
      changed_.wait_for(lock, kLookEvery,
                        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
  }
}

void KilledAskers::Stop() {
  {
    const SystemMutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (watcher_.joinable()) watcher_.join();
}

}  // namespace mosa::sai
