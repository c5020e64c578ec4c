#include "client-sai/sai/mapped_stores.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "client-sai/core/rules.h"
#include "client-sai/sai/failures.h"
#include "client-sai/sai/io_lock.h"
#include "common/base/log.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// How often mappable files are looked at. The pause after a look is kLookShare times its length, so
// that comparing large files takes little of a processor. A look may also wait for the manager or a
// processor. So the pause has a limit that depends on the size: kLookShare times what comparing all
// bytes takes at 4 GiB/s.
constexpr Duration kLookEvery = Seconds(1);
constexpr int64_t kLookShare = 32;
constexpr uint64_t kLookBytesPerSecond = uint64_t{128} << 20;
// The kernel's own reference to the object may outlast its release for a moment.
constexpr uint32_t kQuickLooks = 4;
constexpr Duration kQuickLookFirst = Milliseconds(2);
// A close or fsync compares at most this much; larger files wait for the next look.
constexpr uint64_t kLookAtOnceBytesMax = uint64_t{128} << 20;

Duration PauseAfter(const WatchedFiles::Due& due, Duration took, uint64_t size_bytes) {
  if (due.keeps && due.looks < kQuickLooks)
    return kQuickLookFirst * (int64_t{1} << (2 * due.looks));
  const Duration longest = Seconds(static_cast<int64_t>(size_bytes / kLookBytesPerSecond));
  return std::max(kLookEvery, std::min(took * kLookShare, longest));
}

// The file was removed, so nothing is lost.
bool IsGone(const Failure& failure) { return failure.code == StatusCode::kNotFound; }

}  // namespace

void MappedStores::Start() {
  finisher_ = Thread([this] { LookAtWatched(); });
}

void MappedStores::Stop() {
  watched_.Stop();
  finisher_.join();
}

Stats::Files MappedStores::Files() const {
  const auto numbers = [](const std::vector<FileId>& files) {
    std::vector<uint64_t> ids;
    for (const FileId file : files) ids.push_back(file.value);
    return ids;
  };
  return {.files_kept = watched_.kept(),
          .kept = numbers(watched_.Kept(UnsavedFiles::kFilesMax)),
          .unsaved = numbers(unsaved_.All())};
}

bool MappedStores::MayBeStoredInto(const Inode& inode) {
  return inode.kernel.mappable_handles > 0 && AttributeCache::View(inode).size_bytes > 0;
}

void MappedStores::WatchIfMappable(const std::shared_ptr<OpenFile>& handle) {
  {
    const MutexLock lock(handle->inode->mutex);
    if (!OpenModes::MayBeMapped(*handle)) return;
  }
  watched_.Watch(handle->inode->file, handle->inode, clock_.Monotonic() + kLookEvery);
}

bool MappedStores::Keep(const std::shared_ptr<OpenFile>& handle) {
  Inode& inode = *handle->inode;
  switch (watched_.Keep(inode.file, handle->inode, handle)) {
    case WatchedFiles::Keeping::kOneIsKept:
      return false;
    case WatchedFiles::Keeping::kTooMany:
      NoteUnsaved(inode, Fail(StatusCode::kResourceExhausted, ErrorReason::kNone,
                              fmt::format("{} files are already watched for late stores, which is "
                                          "the limit: the file's node reports later stores",
                                          WatchedFiles::kFilesMax)));
      {
        // The node compares with what it saw before, as if this mount had died.
        const MutexLock lock(inode.mutex);
        inode.local.wrote = false;
      }
      return false;
    case WatchedFiles::Keeping::kKept:
      return true;
  }
  return false;
}

void MappedStores::Catch(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    if (inode.kernel.mappable_handles == 0 || inode.unsaved.data_dirty ||
        AttributeCache::View(inode).size_bytes > kLookAtOnceBytesMax)
      return;
  }
  LookAtStores(inode, /*while_written=*/true);
}

bool MappedStores::LookAtStores(Inode& inode, bool while_written) {
  const MutexLock look(inode.look);
  AccessPtr access;
  bool known = false;
  uint64_t times_set = 0;
  {
    const MutexLock lock(inode.mutex);
    access = inode.right.access;
    times_set = inode.local.times_set;
    // A write that this mount sees meanwhile clears it again.
    known = std::exchange(inode.local.stores_known, true);
  }
  if (!access || !access->layout.bound()) return false;
  // Renews a right that has expired or soon will.
  const auto fresh = rights_.Ensure(inode, access->may_write);
  if (!fresh.ok() && IsGone(fresh.failure())) return false;
  if (fresh.ok()) access = *fresh;
  const std::optional<NodeId> node = objects_.LocalHolder(*access);
  if (!node) return false;
  LocalWrites found;
  bool renewed = false;
  for (LookQuestion question{0, while_written};; question.from_bytes = found.next_bytes) {
    const auto ask = [&] {
      return nodes_.LookAtLocalWrites({*node, inode.file, access->capability}, question);
    };
    auto step = ask();
    if (step.status().code() == StatusCode::kPermissionDenied && !std::exchange(renewed, true)) {
      access = rights_.Renew(inode, access);
      step = ask();
    }
    if (!step.ok()) {
      stats_.Add(Counter::kErrors);
      // The node may have answered; the next comparison starts from what it saw now.
      const MutexLock lock(inode.mutex);
      inode.local.stores_known = false;
      inode.local.look_was_lost = true;
      return true;
    }
    found = {.writers_left = found.writers_left || step->writers_left,
             .changed = found.changed || step->changed,
             .unknown = found.unknown || step->unknown,
             .complete = step->complete,
             .next_bytes = step->next_bytes};
    if (found.complete) break;
  }
  const MutexLock lock(inode.mutex);
  // A writer may appear after a step that compared bytes, and the node does not report those again.
  const bool found_some = found.changed || found.unknown;
  if (found.writers_left && !while_written && !found_some) {
    inode.local.stores_known = inode.local.stores_known && known;
    return true;
  }
  if (std::exchange(inode.local.look_was_lost, false) || found_some) {
    stats_.Add(Counter::kStoresFound);
    inode.unsaved.data_dirty = inode.unsaved.needs_commit = inode.local.wrote = true;
    inode.unsaved.stored_by = OlderGeneration(inode.unsaved.stored_by, inode.kernel.stored_by);
    // Otherwise the difference may be committed already, or may be older than a time that was set.
    const bool is_new = known && found.changed && inode.local.times_set == times_set;
    if (is_new)
      inode.unsaved.modify_time = std::max(inode.known.attributes.birth_time, lease_.ManagerNow());
  }
  return found.writers_left;
}

// Closes this mount's own writable descriptors, to see whether others can still store. The object
// is then inspected through a read-only descriptor.
void MappedStores::CloseWritable(Inode& inode) {
  const IoLock io(inode);
  AccessPtr access;
  std::optional<NodeId> node;
  std::shared_ptr<LocalObject> written;
  {
    const MutexLock lock(inode.mutex);
    access = inode.right.access;
    if (access) node = objects_.LocalHolder(*access);
    // Others store through it, too. Writers that store by calls open it again.
    if (!node || inode.kernel.mappable_handles > 1 || inode.kernel.passthrough_writers > 1) return;
    const auto found = inode.local.objects.find(*node);
    if (found != inode.local.objects.end() && found->second->watched) return;
    if (found != inode.local.objects.end()) written = found->second;
  }
  UniqueFd looked_at;
  if (written) {
    const std::string path = fmt::format("/proc/self/fd/{}", written->fd.get());
    looked_at = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  if (!looked_at) {
    auto opened = nodes_.OpenLocal({*node, inode.file, access->capability}, false);
    if (!opened.ok()) return;  // The next look asks the node again.
    looked_at = *std::move(opened);
  }
  const MutexLock lock(inode.mutex);
  if (inode.kernel.mappable_handles > 1 || inode.kernel.passthrough_writers > 1) return;
  std::erase_if(inode.local.objects, [](const auto& each) { return each.second->writable; });
  inode.local.objects[*node] = std::make_shared<LocalObject>(
      LocalObject{.node = *node, .fd = std::move(looked_at), .watched = true});
}

void MappedStores::LookAtWatched() {
  while (const std::optional<WatchedFiles::Due> due = watched_.AwaitDue()) {
    const Time begun = clock_.Monotonic();
    if (LookAt(*due)) {
      if (const std::shared_ptr<OpenFile> kept = watched_.Finish(due->file)) {
        open_modes_.LeaveBacking(*kept);
        EndHandle(*kept);
        releases_.Send();
      }
      continue;
    }
    uint64_t size_bytes = 0;
    {
      const MutexLock lock(due->inode->mutex);
      size_bytes = AttributeCache::View(*due->inode).size_bytes;
    }
    const Time ended = clock_.Monotonic();
    watched_.LookAgain(due->file, ended + PauseAfter(*due, ended - begun, size_bytes));
  }
}

bool MappedStores::LookAt(const WatchedFiles::Due& due) {
  if (lease_.ValidEra() == 0) return false;  // Wait for the manager first.
  Inode& inode = *due.inode;
  bool mappable = false;
  {
    const MutexLock lock(inode.mutex);
    mappable = inode.kernel.mappable_handles > 0;
  }
  if (!mappable && !due.keeps) return true;
  bool writers_left = false;
  if (mappable) {
    if (due.keeps) CloseWritable(inode);
    attributes_.NoteKernelWrites(inode);
    // Not under io: a large file takes long, and others may close it meanwhile.
    writers_left = LookAtStores(inode, !due.keeps || due.looks >= kQuickLooks);
  }
  const IoLock io(inode);
  attributes_.NoteKernelWrites(inode);
  write_behind_.Drain(inode);
  const Outcome<Done> committed = writer_.Commit(inode, false);
  if (!committed.ok()) {
    // A program that still has it open gets the error at its close.
    if (!due.keeps || MayBeTriedAgain(committed.failure())) return false;
    NoteUnsaved(inode, committed.failure());
    return true;
  }
  return due.keeps && !writers_left;
}

// Reports files that this mount can no longer watch, because it ends.
void MappedStores::NameKept() {
  for (const FileId file : watched_.Kept(WatchedFiles::kFilesMax)) {
    LogWarning(
        "file {} may still be mapped for writing while this mount ends: its node reports later "
        "stores once no program maps the file",
        file.value);
  }
}

void MappedStores::NoteUnsaved(const Inode& inode, const Failure& failure) {
  if (IsGone(failure)) return;  // Nobody can miss bytes of a file that was removed.
  stats_.Add(Counter::kFilesUnsaved);
  unsaved_.Note(inode.file);
  losses_.Warning("bytes written to file {} after its last close are not stored: {}",
                  inode.file.value, failure.message);
}

// Precondition: nobody uses the handle any more.
void MappedStores::EndHandle(OpenFile& handle) {
  const InodePtr inode = handle.inode;
  std::optional<ReleaseRequest> release;
  bool finish = false;
  bool last = false;
  bool lost = false;
  AccessPtr access;
  {
    const MutexLock lock(inode->mutex);
    if (handle.uses_pages) --inode->kernel.cached_handles;
    if (handle.fills_pages) --inode->kernel.filling_handles;
    if (handle.unbacked) --inode->kernel.unbacked_handles;
    if (handle.write) --inode->uses.write_handles;
    if (handle.write && !std::exchange(handle.closed, true)) --inode->uses.unclosed_writers;
    handle.ended = true;
    --inode->uses.handles;
    last = inode->uses.handles == 0;
    release = inode->EndUse();
    if (inode->uses.write_handles == 0) {
      finish = std::exchange(inode->local.wrote, false);
      if (finish) ++inode->local.finishing;
      // Nobody here can write it any more. Its node waits for that before it copies or seals.
      std::erase_if(inode->local.objects, [](const auto& each) { return each.second->writable; });
    }
    access = inode->right.access;
    if (last) {
      inode->local.objects.clear();
      inode->room.pages.Clear();
      inode->room.allocated.clear();
      inode->room.version.reset();
      // Unstored bytes were reported, and no program is left to retry.
      if (!inode->cut.resizing) {
        lost = inode->content.buffer.has_value() || inode->unsaved.data_dirty;
        inode->content.buffer.reset();
        inode->content.ranges.Clear();
        inode->unsaved = {};
      }
      rights_.DropUnusedInline(*inode);
    }
  }
  if (release) releases_.Queue(*std::move(release));
  if (last) blocks_.DropFile(inode->file);  // Rereads are served by the kernel's cache.
  if (lost) write_behind_.DropFailedPages(*inode);
  if (finish) FinishLocalWrites(inode, access);
}

void MappedStores::FinishLocalWrites(const InodePtr& inode, const AccessPtr& access) {
  // Destroyed with the last of the tasks started here.
  const std::shared_ptr<void> finishing(nullptr, [inode](void*) {
    const MutexLock lock(inode->mutex);
    --inode->local.finishing;
  });
  for (const NodeId node : access ? access->layout.Nodes() : std::vector<NodeId>()) {
    if (!nodes_.IsLocal(node)) continue;
    write_behind_.RunStore(node, [this, inode, access, node, finishing] {
      // A node that misses this computes its checksums when the object is next read.
      const Status told = nodes_.FinishLocalWrites({node, inode->file, access->capability});
      if (!told.ok() && told.code() != StatusCode::kPermissionDenied)  // An old capability.
        stats_.Add(Counter::kErrors);
    });
  }
}

}  // namespace mosa::sai
