// KernelPages: makes the kernel drop what it caches of files, bytes and attributes.
#ifndef MOSA_CLIENT_SAI_SAI_KERNEL_PAGES_H_
#define MOSA_CLIENT_SAI_SAI_KERNEL_PAGES_H_

#include <functional>
#include <list>

#include "client-sai/sai/executor.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/stats.h"
#include "common/base/clock.h"
#include "common/base/rare_log.h"
#include "common/base/sync.h"

namespace mosa::sai {

// Thread-safe. Borrows its arguments.
class KernelPages {
 public:
  using Dropped = std::function<void()>;
  using Done = std::function<void(bool in_time)>;

  KernelPages(InodeTable& inodes, KernelNotifier& notifier, const Clock& clock, Stats& stats,
              uint32_t threads, uint32_t threads_max);

  // Makes the kernel drop what it caches of a file, then runs `dropped` and `done(true)`. If that
  // takes longer than six seconds, `done(false)` runs at that time instead of `done(true)`: a
  // page may be locked by a request that waits for another mount, which waits for this one. Both
  // run on threads of this class, a late `done` on that which calls EndOverdue. They must not
  // block. `done` may be null.
  void Drop(FileId file, Dropped dropped, Done done);
  // As Drop, and blocks until `done`.
  bool DropNow(
      FileId file, Dropped dropped = [] {});
  // Waits for no page.
  void DropAttributes(FileId file);

  // Call several times a second.
  void EndOverdue();
  // Runs what is queued. Later drops run on their callers' threads.
  void Stop() { threads_.Stop(); }

 private:
  struct Pending {
    FileId file;
    Time until;
    Done done;
  };
  void Invalidate(FileId file);
  void Note(FileId file, void (SizeInKernel::*note)(Time));

  InodeTable& inodes_;
  KernelNotifier& notifier_;
  const Clock& clock_;
  Stats& stats_;
  RareLog delays_;
  Mutex mutex_;
  std::list<Pending> pending_ ABSL_GUARDED_BY(mutex_);  // Earliest deadline first.
  Executor threads_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_KERNEL_PAGES_H_
