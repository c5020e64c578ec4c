#include "client-sai/sai/kernel_pages.h"

#include <utility>
#include <vector>

namespace mosa::sai {
namespace {

// Shorter than the manager's patience with an unanswered recall. By then a silent node counts as
// dead, and the requests that wait for it are over.
constexpr Duration kPagesWaitMax = Seconds(6);
// How soon a file that the kernel did not know is invalidated again; doubles.
constexpr Duration kUnknownPauseMin = Milliseconds(1);
constexpr Duration kUnknownPauseMax = Milliseconds(64);

}  // namespace

KernelPages::KernelPages(InodeTable& inodes, KernelNotifier& notifier, const Clock& clock,
                         Stats& stats, uint32_t threads, uint32_t threads_max)
    : inodes_(inodes),
      notifier_(notifier),
      clock_(clock),
      stats_(stats),
      threads_(threads, threads_max) {}

void KernelPages::Drop(FileId file, Dropped dropped, Done done) {
  std::list<Pending>::iterator pending;
  {
    const MutexLock lock(mutex_);
    const Time until = clock_.Monotonic() + kPagesWaitMax;
    pending = pending_.insert(pending_.end(), {file, until, std::move(done)});
  }
  threads_.Run([this, file, pending, dropped = std::move(dropped)] {
    Invalidate(file);
    dropped();
    Done waiting;
    {
      const MutexLock lock(mutex_);
      waiting = std::move(pending->done);
      pending_.erase(pending);
    }
    if (waiting) waiting(true);
  });
}

bool KernelPages::DropNow(FileId file, Dropped dropped) {
  bool in_time = false;
  Countdown done(1);
  Drop(file, std::move(dropped), [&](bool is_in_time) {
    in_time = is_in_time;
    done.Arrive();
  });
  done.Wait();
  return in_time;
}

void KernelPages::DropAttributes(FileId file) {
  Note(file, &SizeInKernel::NoteTelling);
  notifier_.InvalidateAttributes(file);
}

void KernelPages::EndOverdue() {
  std::vector<Pending> overdue;
  {
    const MutexLock lock(mutex_);
    const Time now = clock_.Monotonic();
    for (Pending& pending : pending_) {
      if (pending.until > now) break;
      if (pending.done)
        overdue.push_back({pending.file, pending.until, std::exchange(pending.done, nullptr)});
    }
  }
  for (const Pending& pending : overdue) {
    stats_.Add(Counter::kPagesWaitsEnded);
    delays_.Warning(
        "the kernel did not drop the pages of file {} within {} s: a request that locks one of "
        "them waits for a node or another mount",
        pending.file.value, kPagesWaitMax.ns / 1'000'000'000);
    pending.done(false);
  }
}

// A reply that introduces the file to the kernel may be in flight. Until its caller runs, the
// kernel does not know the file, and then it caches the outdated attributes of the reply.
void KernelPages::Invalidate(FileId file) {
  Note(file, &SizeInKernel::NoteTelling);
  for (Duration pause = kUnknownPauseMin; !notifier_.InvalidateFile(file); pause = pause * 2) {
    const InodePtr inode = inodes_.Find(file);
    if (!inode || pause > kUnknownPauseMax) return;
    {
      const MutexLock lock(inode->mutex);
      if (inode->kernel.lookups == 0) return;
    }
    SleepFor(pause);
  }
  Note(file, &SizeInKernel::NoteTold);
}

void KernelPages::Note(FileId file, void (SizeInKernel::*note)(Time)) {
  const InodePtr inode = inodes_.Find(file);
  if (!inode) return;
  const MutexLock lock(inode->mutex);
  const bool is_read_by_pages = inode->known.attributes.type == FileType::kRegular;
  if (is_read_by_pages && inode->kernel.lookups > 0) (inode->kernel.size.*note)(clock_.Monotonic());
}

}  // namespace mosa::sai
