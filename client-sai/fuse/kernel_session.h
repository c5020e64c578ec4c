// The connection to the kernel over /dev/fuse: mounting, negotiation, worker threads, and notices
// to the kernel.
//
// libfuse mounts and decodes requests. Its packaged versions (< 3.17) lack passthrough, statx and
// the epoch. So FUSE_INIT and FUSE_STATX are answered here, and missing notices are written here.
// With a newer libfuse, only this file and passthrough.h would shrink; the callbacks would stay.
#ifndef MOSA_CLIENT_SAI_FUSE_KERNEL_SESSION_H_
#define MOSA_CLIENT_SAI_FUSE_KERNEL_SESSION_H_

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "client-sai/fuse/fuse_api.h"
#include "client-sai/fuse/kernel_protocol.h"
#include "client-sai/fuse/killed_askers.h"
#include "client-sai/fuse/parked_requests.h"
#include "client-sai/fuse/passthrough.h"
#include "client-sai/sai/filesystem.h"
#include "common/base/large_buffer.h"
#include "common/base/mutex.h"
#include "common/base/rare_log.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/observe/duration_table.h"

namespace mosa::sai {

// The features that a mount of a cluster requests. Left out on purpose: FUSE_WRITEBACK_CACHE (costs
// CPU without gain for large writes, and hides sizes), FUSE_AUTO_INVAL_DATA (a file's own commits
// would drop its pages; recalls invalidate), splice (never paid off), FUSE_CACHE_SYMLINKS (nothing
// would invalidate a target), FUSE_POSIX_ACL, FUSE_EXPORT_SUPPORT.
inline constexpr uint64_t kMountFlags =
    FUSE_ASYNC_READ | FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS | FUSE_ATOMIC_O_TRUNC | FUSE_BIG_WRITES |
    FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO | FUSE_ASYNC_DIO | FUSE_PARALLEL_DIROPS |
    FUSE_MAX_PAGES | FUSE_EXPLICIT_INVAL_DATA |
    FUSE_HANDLE_KILLPRIV_V2 |  // Else the kernel asks for security.capability at each write.
    FUSE_INIT_EXT | kernel::kDirectIoAllowMmap | kernel::kNoExportSupport;

struct KernelSessionOptions {
  std::string mount_point;    // Absolute, without symbolic links.
  std::string type = "mosa";  // The type in the mount table, after "fuse.".
  uint64_t flags = kMountFlags;
  bool allow_other = false;
  bool passthrough = true;
  // Newest protocol 7.`minor_max` to agree on, with no feature of a newer one. For kernels whose
  // newer features are faulty.
  uint32_t minor_max = kernel::kMinorNewest;
  uint32_t threads = 8;  // Kept ready; more are started while all are busy.
  // Counts requests by KernelRequestKind. May be null; must outlive the session.
  DurationTable* residence = nullptr;
};

// What was negotiated with the kernel.
struct KernelAgreement {
  uint32_t protocol_minor = 0;
  uint64_t flags = 0;
  bool epoch = false;
  bool drops_pages = false;
  bool passthrough = false;
  std::string passthrough_reason;  // Why not; empty if passthrough is on.
};

// True while a worker serves a write, truncate or open that must clear set-user-id and set-group-id
// bits. The file system clears them (FUSE_HANDLE_KILLPRIV_V2).
bool RequestKillsPrivileges();

// Takes the memory of the request that this worker serves. Bytes passed to the callbacks stay valid
// while it exists. Call at most once per request.
LargeBuffer TakeRequestMemory();

// One mount. Created before the Filesystem that notifies through it, mounted after, and outlives
// it. One thread calls Mount, StartWorkers and Stop; call agreement() only after Mount; the rest is
// thread-safe. Before Mount there are no capabilities. Notices do nothing while nothing is mounted.
class KernelSession final : public KernelNotifier {
 public:
  // Answers a statx request for the inode. Returns 0 or an errno.
  using StatxFunction = std::function<int(uint64_t inode, kernel::StatxOut& out)>;

  explicit KernelSession(KernelSessionOptions options);
  ~KernelSession() override;  // Calls Stop.
  KernelSession(const KernelSession&) = delete;
  KernelSession& operator=(const KernelSession&) = delete;

  // Mounts and negotiates. Callbacks get `userdata` from fuse_req_userdata(). Unavailable or
  // PermissionDenied say what the kernel or fusermount3 refused.
  Status Mount(const fuse_lowlevel_ops& operations, void* userdata, StatxFunction statx);
  // Starts to serve requests.
  void StartWorkers();
  // Readable once the kernel has ended the connection, because the mount was unmounted.
  int ended_descriptor() const { return ended_.get(); }
  // Unmounts, lazily if programs still use the mount, and ends the workers. Idempotent.
  void Stop();

  const KernelAgreement& agreement() const { return agreement_; }
  // For a callback that returns before its request is answered: the request counts as being served
  // until the returned object is destroyed. Call at most once per request.
  class Detached {
   public:
    Detached(KilledAskers& askers, uint64_t request) : askers_(&askers), request_(request) {}
    Detached(Detached&& other) noexcept
        : askers_(std::exchange(other.askers_, nullptr)), request_(other.request_) {}
    Detached& operator=(Detached&&) = delete;
    ~Detached() {
      if (askers_ != nullptr) askers_->End(request_);
    }

   private:
    KilledAskers* askers_;
    uint64_t request_;
  };
  Detached Detach();

  uint32_t workers() const;
  uint64_t parked() const { return parked_.count(); }
  uint64_t requests() const { return requests_.load(std::memory_order_relaxed); }
  // Precondition: mounted with passthrough.
  BackingFiles& backing_files() { return *backing_files_; }

  Capabilities capabilities() const override;
  void InvalidateEntries() override;
  bool InvalidateFile(FileId file) override;
  void InvalidateAttributes(FileId file) override;

 private:
  Status Negotiate();
  Status AnswerInit(const fuse_in_header& header, const fuse_init_in& init);
  void Work();
  void StartWorker();
  bool ShouldRetire();
  // Serves the request that this worker received; request_memory owns it.
  void Serve(const fuse_buf& request);
  // Serves a request about bytes here, or leaves it to whoever has a turn next.
  void ServeInTurn(const fuse_buf& request);
  void Dispatch(const fuse_buf& request, std::chrono::steady_clock::time_point arrived);
  void AnswerKilled(uint64_t request);
  void AnswerStatx(const fuse_in_header& header);
  void EndWorkers();
  // Stops the sending of notices, and waits for those in progress.
  void EndNotices();
  // Invalidates from byte `begin` on; a negative `begin` invalidates only the attributes.
  bool Invalidate(FileId file, off_t begin);
  bool BeginNotice();  // False: do not send the notice.
  void EndNotice();

  const KernelSessionOptions options_;
  StatxFunction statx_;
  KernelAgreement agreement_;  // Constant after Mount.
  // The negotiated capabilities. The Filesystem's threads read them before they serve anything, so
  // also during Mount.
  std::atomic<Capabilities> capabilities_{Capabilities{}};
  fuse_session* session_ = nullptr;
  std::atomic<int> device_ = -1;
  std::optional<BackingFiles> backing_files_;
  UniqueFd ended_;

  KilledAskers askers_;
  ParkedRequests parked_;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint32_t> idle_ = 0;
  std::atomic<uint64_t> requests_ = 0;
  RareLog failures_;
  mutable SystemMutex mutex_;
  std::set<pthread_t> workers_ ABSL_GUARDED_BY(mutex_);  // All workers that have not ended.
  SystemCondVar worker_ended_;
  uint32_t notices_ ABSL_GUARDED_BY(mutex_) = 0;  // In progress.
  bool notices_refused_ ABSL_GUARDED_BY(mutex_) = false;
  SystemCondVar notice_ended_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_FUSE_KERNEL_SESSION_H_
