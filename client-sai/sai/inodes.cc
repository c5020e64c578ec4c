// Inodes, and their attributes as this mount sees them: the manager's, with its own changes on top.
#include <sys/stat.h>

#include <algorithm>

#include "client-sai/core/rules.h"
#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

constexpr size_t kForgetsMax = 256;  // In one request.

}  // namespace

void Filesystem::Impl::CountLookup(Inode& inode, uint64_t lookups) {
  const MutexLock lock(inode.mutex);
  inode.kernel_lookups += lookups;
}

void Filesystem::Impl::NoteDropped(Inode& inode) {
  inode.mutex.AssertHeld();
  ClearNames(inode);
  if (inode.access) inline_cached_bytes_ -= inode.access->inline_data.size();
  recalls_.NoteForeign(inode.file);
}

void Filesystem::Impl::EvictIdle() {
  const std::vector<FileId> evicted = inodes_.DropIdle();
  if (evicted.empty()) return;
  for (size_t i = 0; i < evicted.size(); i += kForgetsMax) {
    const auto begin = evicted.begin() + static_cast<int64_t>(i);
    const auto end =
        evicted.begin() + static_cast<int64_t>(std::min(i + kForgetsMax, evicted.size()));
    calls_.Tell(ForgetRequest{{begin, end}});
  }
  // A question from before this mount's interest ended may yet be answered, and nobody would recall
  // that answer.
  bool is_back = false;
  for (const FileId file : evicted) {
    blocks_.DropFile(file);
    recalls_.NoteForeign(file);
    const InodePtr inode = inodes_.Find(file);
    if (!inode) continue;
    is_back = true;
    DropCached(*inode, RecallKind::kEntries);
    pages_.Drop(
        file, [this, inode] { Settle(*inode); }, [](bool) {});
    service_.Run([this, inode] {
      if (!EnsureAllMade(*inode).ok()) stats_.Add(Counter::kErrors);
    });
  }
  if (is_back) kernel_names_.ForgetAll();
}

void Filesystem::Impl::StoreAttributes(Inode& inode, const Attributes& attributes, Mark mark,
                                       bool own) {
  const MutexLock lock(inode.mutex);
  const bool certain = !recalls_.Happened(mark.log, inode.file);
  if (own) recalls_.NoteOwn(inode.file);
  // An uncertain answer may be older than what is known, but is better than nothing. The answer to
  // a change by this mount includes that change, and the caller must see it.
  const bool not_older = attributes.data_version >= inode.attributes.data_version;
  if (certain || !inode.attributes_known || (not_older && (own || inode.attributes_era == 0))) {
    inode.attributes = attributes;
    inode.attributes.size_bytes += inode.names.unsent.size();
    inode.attributes_known = true;
  }
  inode.attributes_era = certain ? mark.era : 0;
}

bool Filesystem::Impl::AttributesValid(const Inode& inode) const {
  const uint64_t era = lease_.ValidEra();
  return era != 0 && inode.attributes_era == era;
}

Duration Filesystem::Impl::AttributesCachedFor(const Inode& inode) const {
  // After a truncation, the next commit learns what is left of the objects.
  const bool blocks_unknown =
      (inode.unsaved.needs_commit || inode.committing.needs_commit) && !inode.allocated_known();
  const bool may_keep =
      AttributesValid(inode) && !blocks_unknown && inode.size_in_kernel.is_settled();
  return may_keep ? lease_.Remaining() : Duration{0};
}

void Filesystem::Impl::AwaitSettled(Inode& inode, MutexLock& lock) {
  while (inode.unsettled > 0 && inode.cached_handles > 0) inode.changed.wait(lock);
}

void Filesystem::Impl::Settle(Inode& inode) {
  const MutexLock lock(inode.mutex);
  --inode.unsettled;
  inode.changed.notify_all();
}

Attributes Filesystem::Impl::View(const Inode& inode) const {
  return ViewOn(inode, inode.attributes);
}

Attributes Filesystem::Impl::ViewOn(const Inode& inode, Attributes view) {
  view.size_bytes =
      std::max({view.size_bytes, inode.committing.dirty_end, inode.unsaved.dirty_end});
  const std::optional<Time>& modified =
      inode.unsaved.modify_time ? inode.unsaved.modify_time : inode.committing.modify_time;
  if (modified) {
    view.modify_time = *modified;
    view.change_time = std::max(view.change_time, *modified);
  }
  if (inode.unsent_times) {
    view.modify_time = inode.unsent_times->modify_time.value_or(view.modify_time);
    view.access_time = inode.unsent_times->access_time.value_or(view.access_time);
  }
  if (inode.unsaved.data_dirty || inode.committing.data_dirty) {
    uint64_t allocated = 0;
    for (const auto& [node, bytes] : inode.allocated) allocated += bytes;
    view.allocated_bytes = std::max(view.allocated_bytes, allocated);
  }
  return view;
}

Outcome<Done> Filesystem::Impl::EnsureAttributes(Inode& inode) {
  bool has_unsent = false;
  {
    const MutexLock lock(inode.mutex);
    if (inode.make_state == MakeState::kRefused) return inode.make_failure;
    if (inode.make_state != MakeState::kSent) return Done{};
    if (AttributesValid(inode)) return Done{};
    // A directory removed here keeps its attributes for programs that have it open or work in it.
    if (inode.attributes.type == FileType::kDirectory && inode.attributes_known &&
        inode.attributes.link_count == 0)
      return Done{};
    has_unsent = !inode.names.unsent.empty();
  }
  if (has_unsent) MOSA_RETURN_IF_FAILED(EnsureAllMade(inode));
  const Mark mark = MarkNow();
  auto reply = calls_.Ask<AttributesReply>(GetAttributesRequest{inode.file});
  if (!reply.ok()) {
    const MutexLock lock(inode.mutex);
    const bool directory = inode.attributes_known && inode.attributes.type == FileType::kDirectory;
    if (reply.failure().reason != ErrorReason::kStale || !directory) return reply.failure();
    // Removed while open here: fstat still answers, with no links left.
    inode.attributes.link_count = 0;
    return Done{};
  }
  StoreAttributes(inode, reply->attributes, mark, false);
  return Done{};
}

EntryResult Filesystem::Impl::EntryOf(Inode& inode, bool kernel_may_keep,
                                      std::optional<Time> asked) {
  MutexLock lock(inode.mutex);
  AwaitSettled(inode, lock);
  ++inode.kernel_lookups;
  if (asked) inode.size_in_kernel.NoteAnswered(*asked, clock_.Monotonic());
  EntryResult result;
  result.entry = {inode.file, View(inode)};
  if (kernel_may_keep) result.entry_valid = lease_.Remaining();
  result.attributes_valid = AttributesCachedFor(inode);
  return result;
}

void Filesystem::Impl::RefreshFromKernelWrites(Inode& inode) {
  const MutexLock lock(inode.mutex);
  if (inode.passthrough_writers == 0) return;
  for (const auto& [node, object] : inode.objects) {
    struct stat status {};
    if ((!object->writable && !object->watched) || fstat(object->fd.get(), &status) != 0) continue;
    const Time modified{status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
    const auto size = static_cast<uint64_t>(status.st_size);
    const auto allocated = static_cast<uint64_t>(status.st_blocks) * 512;
    // Two writes within one tick of the kernel's clock have equal times.
    if (modified == inode.kernel_modify_time && allocated == inode.kernel_allocated &&
        size <= View(inode).size_bytes)
      continue;
    inode.kernel_modify_time = modified;
    inode.stores_known = false;
    const uint64_t grown = size > View(inode).size_bytes ? size - View(inode).size_bytes : 0;
    stats_.Add(Counter::kBytesWrittenPassthrough, grown);
    if (allocated > inode.kernel_allocated) {
      const uint64_t used = allocated - inode.kernel_allocated;
      const uint64_t reserved = std::min(used, inode.kernel_room);
      inode.kernel_room -= reserved;
      grants_.Charge(node, used, reserved);
    }
    inode.kernel_allocated = allocated;
    inode.stored_on.insert(node);
    inode.unsaved.dirty_end = std::max(inode.unsaved.dirty_end, size);
    inode.unsaved.modify_time =
        std::max(inode.attributes.birth_time, lease_.FromLocalWallTime(modified));
    inode.unsaved.data_dirty = inode.unsaved.needs_commit = inode.wrote_locally = true;
    inode.unsaved.stored_by = OlderGeneration(inode.unsaved.stored_by, inode.kernel_stored_by);
    // It is unknown which user wrote, and whether that user may keep the bits.
    if (WithoutPrivileges(inode.attributes.permissions) != inode.attributes.permissions)
      inode.must_lose_privileges = true;
    inode.allocated[node] = allocated;
  }
}

Outcome<AttributesResult> Filesystem::Impl::GetAttributes(FileId file) {
  const InodePtr inode = inodes_.Get(file);
  const Time asked = clock_.Monotonic();
  {
    MutexLock lock(inode->mutex);
    AwaitSettled(*inode, lock);
  }
  RefreshFromKernelWrites(*inode);
  MOSA_RETURN_IF_FAILED(EnsureAttributes(*inode));
  MutexLock lock(inode->mutex);
  AwaitSettled(*inode, lock);
  inode->size_in_kernel.NoteAnswered(asked, clock_.Monotonic());
  return AttributesResult{View(*inode), AttributesCachedFor(*inode)};
}

Outcome<Attributes> Filesystem::Impl::GetUnsettledAttributes(FileId file) {
  const InodePtr inode = inodes_.Get(file);
  MOSA_RETURN_IF_FAILED(EnsureAttributes(*inode));
  const MutexLock lock(inode->mutex);
  return View(*inode);
}

// Applies changes to a file that only this mount knows, as part of its make. False: send the make
// first.
bool Filesystem::Impl::SetUnsentAttributes(Inode& inode, const AttributeChanges& changes) {
  const Time now = lease_.ManagerNow();
  const MutexLock lock(inode.mutex);
  if (inode.make_state != MakeState::kUnsent) return false;
  if (changes.uid || changes.gid) return false;
  const uint64_t size = changes.size_bytes.value_or(0);
  if (size > inode.access->inline_bytes_max) return false;
  const auto in_future = [&](const std::optional<Time>& time) { return time && *time > now; };
  if (in_future(changes.modify_time) || in_future(changes.access_time)) return false;
  if (changes.size_bytes) {
    if (!inode.inline_buffer) inode.inline_buffer.emplace();
    inode.inline_buffer->resize(static_cast<size_t>(size));
    inode.inline_ranges.Remove({size, UINT64_MAX});
    inode.unsaved.dirty_end = size;
    inode.unsaved.data_dirty = true;
    inode.unsaved.modify_time = now;
  }
  if (changes.permissions) {
    inode.make.permissions = *changes.permissions & 07777;
    inode.attributes.permissions = inode.make.permissions;
  }
  const bool sets_modify = changes.modify_time || changes.modify_time_now;
  const bool sets_access = changes.access_time || changes.access_time_now;
  if (sets_modify || sets_access) {
    if (!inode.unsent_times) inode.unsent_times.emplace();
    inode.unsent_times->file = inode.file;
    if (sets_modify) inode.unsent_times->modify_time = changes.modify_time.value_or(now);
    if (sets_access) inode.unsent_times->access_time = changes.access_time.value_or(now);
  }
  inode.attributes.change_time = now;
  return true;
}

// The manager has the new size, and the objects are truncated.
void Filesystem::Impl::NoteCut(Inode& inode, uint64_t size_bytes, uint64_t data_version) {
  {
    const MutexLock lock(inode.mutex);
    inode.unsaved.dirty_end = 0;
    // An empty file needs nothing of any node.
    inode.awaits_copies = size_bytes > 0;
    inode.pages.Remove({WidenToPages({0, size_bytes}).end, UINT64_MAX});
    inode.allocated_version.reset();
    if (size_bytes == 0) {
      inode.allocated_version = data_version;
      inode.pages.Clear();
      inode.allocated.clear();
      inode.stored_on.clear();
      // The file is placed anew: what could be reported of the objects counts no more.
      if (inode.lays_out_anew) inode.unsaved = {};
    }
    // The manager has taken the cut, and what came before it was committed.
    if (!inode.HasUntold()) inode.unsaved.stored_by = 0;
    inode.inline_buffer.reset();
    inode.inline_ranges.Clear();
    ++inode.own_changes;
    inode.access_era = 0;
    inode.kernel_modify_time = {};
  }
  blocks_.DropFile(inode.file);
}

void Filesystem::Impl::SetAttributes(FileId file, const AttributeChanges& changes,
                                     std::function<void(Outcome<AttributesResult>)> done) {
  const Outcome<AttributesResult> changed = SetAttributes(file, changes);
  const InodePtr inode = inodes_.Get(file);
  std::optional<AwaitCopiesRequest> awaited;
  if (changed.ok() && changes.size_bytes) awaited = CopiesOfClosed(*inode);
  if (!awaited) return done(changed);
  AwaitCopies(*awaited, [this, inode, done = std::move(done)](const Outcome<Done>& copied) {
    if (!copied.ok()) {
      DropFailedPages(*inode);  // The kernel still has the old size.
      return done(copied.failure());
    }
    AttributesResult now;  // Others may have changed the file meanwhile.
    {
      const MutexLock lock(inode->mutex);
      now = {View(*inode), AttributesCachedFor(*inode)};
    }
    done(now);
  });
}

// truncate(2) is the last close as well, if nobody here has the file open for writing.
std::optional<AwaitCopiesRequest> Filesystem::Impl::CopiesOfClosed(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    if (!inode.awaits_copies || inode.write_handles > 0 || inode.attributes.link_count == 0)
      return std::nullopt;
  }
  releases_.Send();  // While the manager counts a writer, nobody copies.
  return AwaitedCopies(inode);
}

// Asks for the change, and truncates the objects again if they are no longer the file's. `mark` is
// that of the last question.
Outcome<AttributesReply> Filesystem::Impl::ChangeAttributes(Inode& inode,
                                                            SetAttributesRequest request,
                                                            Mark* mark) {
  for (;;) {
    {
      const MutexLock lock(inode.mutex);
      request.generation = inode.cut_by;
      request.lay_out_anew = request.size_bytes && inode.lays_out_anew;
    }
    *mark = MarkNow();
    auto reply = ManagerCalls::LastOf<AttributesReply>(
        request.lay_out_anew ? AskFreezing(inode, request) : calls_.AskAll({request}));
    if (reply.ok() || !request.size_bytes) return reply;
    {
      // Another mount has begun to move the file into objects, or its bytes have moved. An answer
      // that is late may mean that the manager has laid it out anew.
      const MutexLock lock(inode.mutex);
      inode.access_era = inode.attributes_era = 0;
    }
    if (reply.failure().code != StatusCode::kAborted) return reply;
    MOSA_RETURN_IF_FAILED(Resize(inode, *request.size_bytes));
  }
}

Outcome<AttributesResult> Filesystem::Impl::SetAttributes(FileId file,
                                                          const AttributeChanges& changes) {
  const InodePtr inode = inodes_.Get(file);
  const MutexLock io(inode->io);
  bool resizes = false;
  const std::shared_ptr<void> resize(nullptr, [&](void*) {
    inode->io.AssertHeld();
    if (resizes) EndResize(*inode);
  });
  if (!SetUnsentAttributes(*inode, changes)) {
    MOSA_RETURN_IF_FAILED(EnsureMade(*inode));
    resizes = changes.size_bytes.has_value();
    if (resizes) MOSA_RETURN_IF_FAILED(Resize(*inode, *changes.size_bytes));
    RefreshFromKernelWrites(*inode);
    if (changes.modify_time || changes.modify_time_now) CatchStores(*inode);
    bool must_commit = false;
    {
      const MutexLock lock(inode->mutex);
      must_commit =
          (inode->unsaved.data_dirty && (changes.modify_time || changes.modify_time_now)) ||
          (inode->unsent_times && (changes.modify_time || changes.modify_time_now ||
                                   changes.access_time || changes.access_time_now));
    }
    // Settles earlier writes first, so that their commit cannot override the time being set.
    if (must_commit) {
      Drain(*inode);
      MOSA_RETURN_IF_FAILED(Commit(*inode, false));
    }
    SetAttributesRequest request{file,
                                 changes.permissions,
                                 changes.uid,
                                 changes.gid,
                                 changes.size_bytes,
                                 changes.access_time,
                                 changes.modify_time,
                                 changes.access_time_now,
                                 changes.modify_time_now};
    if (changes.modify_time || changes.modify_time_now) {
      const MutexLock lock(inode->mutex);
      ++inode->times_set;
    }
    Mark mark;
    auto reply = ChangeAttributes(*inode, std::move(request), &mark);
    if (!reply.ok()) return reply.failure();
    inode->partly_changed = false;
    if (changes.size_bytes) NoteCut(*inode, *changes.size_bytes, reply->attributes.data_version);
    StoreAttributes(*inode, reply->attributes, mark, true);
  }
  const MutexLock lock(inode->mutex);
  return AttributesResult{View(*inode), AttributesCachedFor(*inode)};
}

}  // namespace mosa::sai
