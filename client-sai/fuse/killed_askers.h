// KilledAskers: answers the kernel for programs that were killed while they waited in the mount.
//
// A killed process goes only when the request that it waits for is answered, and that may take as
// long as a node or the manager takes. The kernel says that the asker got a signal, once and not
// which; so whoever did is looked at until its request is over, and answered when it is being
// killed. What serves the request goes on, and its own answer is refused by the kernel.
#ifndef MOSA_CLIENT_SAI_FUSE_KILLED_ASKERS_H_
#define MOSA_CLIENT_SAI_FUSE_KILLED_ASKERS_H_

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mosa::sai {

// Whether SIGKILL is pending for the thread, or it is gone. Nothing is known about another PID
// namespace (0): false.
bool IsBeingKilled(uint32_t thread);

// Thread-safe.
class KilledAskers {
 public:
  // Answers a request with EINTR. Called on a thread of this object's.
  using Answer = std::function<void(uint64_t request)>;

  explicit KilledAskers(Answer answer) : answer_(std::move(answer)) {}
  ~KilledAskers() { Stop(); }
  KilledAskers(const KilledAskers&) = delete;
  KilledAskers& operator=(const KilledAskers&) = delete;

  // A request of thread `asker` is served from here on, until End.
  void Begin(uint64_t request, uint32_t asker);
  void End(uint64_t request);
  // Its asker got a signal. Starts the thread that looks after such askers.
  void Interrupted(uint64_t request);
  void Stop();  // Idempotent.

 private:
  struct Asked {
    uint64_t request = 0;
    uint32_t asker = 0;
  };
  struct Shard {
    std::mutex mutex;
    std::vector<Asked> served;  // Guarded by mutex; a few.
  };
  Shard& ShardOf(uint64_t request) { return shards_[request / 2 % kShards]; }  // They are even.
  // The asking thread, if the request is still being served; 0: nobody.
  uint32_t AskerOf(uint64_t request);
  void Watch();

  static constexpr size_t kShards = 16;
  const Answer answer_;
  std::array<Shard, kShards> shards_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<uint64_t> interrupted_;
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_KILLED_ASKERS_H_
