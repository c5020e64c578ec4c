// KilledAskers: replies to the kernel for programs that were killed while they waited for the
// mount.
//
// A killed process ends only when its request is answered, which may take as long as a node or the
// manager takes. The kernel reports once that the caller got a signal, but not which one. So each
// such caller is polled until its request is over, and its request is answered when it is being
// killed. The request continues, and the kernel refuses its later reply.
#ifndef MOSA_CLIENT_SAI_FUSE_KILLED_ASKERS_H_
#define MOSA_CLIENT_SAI_FUSE_KILLED_ASKERS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/mutex.h"

namespace mosa::sai {

// True if SIGKILL is pending for the thread, or it is gone. False for a thread in another PID
// namespace (0), about which nothing is known.
bool IsBeingKilled(uint32_t thread);

// Thread-safe.
class KilledAskers {
 public:
  // Answers a request with EINTR. Called on a thread of this object.
  using Answer = std::function<void(uint64_t request)>;

  explicit KilledAskers(Answer answer) : answer_(std::move(answer)) {}
  ~KilledAskers() { Stop(); }
  KilledAskers(const KilledAskers&) = delete;
  KilledAskers& operator=(const KilledAskers&) = delete;

  // A request of thread `asker` is being served from now until End.
  void Begin(uint64_t request, uint32_t asker);
  void End(uint64_t request);
  // The request's caller got a signal. Starts the thread that watches such callers.
  void Interrupted(uint64_t request);
  void Stop();  // Idempotent.

 private:
  struct Asked {
    uint64_t request = 0;
    uint32_t asker = 0;
  };
  struct Shard {
    SystemMutex mutex;
    std::vector<Asked> served ABSL_GUARDED_BY(mutex);  // A few entries.
  };
  // Request ids are even.
  Shard& ShardOf(uint64_t request) { return shards_[request / 2 % kShards]; }
  // The calling thread if the request is still being served, else 0.
  uint32_t AskerOf(uint64_t request);
  void Watch();

  static constexpr size_t kShards = 16;
  const Answer answer_;
  std::array<Shard, kShards> shards_;
  SystemMutex mutex_;
  SystemCondVar changed_;
  std::vector<uint64_t> interrupted_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_KILLED_ASKERS_H_
