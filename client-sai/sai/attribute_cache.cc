#include "client-sai/sai/attribute_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "client-sai/core/rules.h"

namespace mosa::sai {

void AttributeCache::Store(Inode& inode, const Attributes& attributes, Mark mark, bool own) {
  const MutexLock lock(inode.mutex);
  const bool certain = !recalls_.Happened(mark.log, inode.file);
  if (own) recalls_.NoteOwn(inode.file);
  // An uncertain answer may be older than what is known, but is better than nothing. The answer to
  // a change by this mount includes that change, and the caller must see it.
  const bool not_older = attributes.data_version >= inode.known.attributes.data_version;
  if (certain || !inode.known.received || (not_older && (own || inode.known.era == 0))) {
    const Attributes before = std::exchange(inode.known.attributes, attributes);
    Attributes& known = inode.known.attributes;
    known.size_bytes += inode.names.unsent.size();
    if (attributes.shared && !own && !inode.names.unsent.empty()) {
      known.modify_time = std::max(known.modify_time, before.modify_time);
      known.change_time = std::max(known.change_time, before.change_time);
    }
    inode.known.received = true;
  }
  inode.known.Invalidate();
  if (!certain) return;
  inode.names.shared.Note(attributes.shared);
  if (attributes.shared) {
    inode.known.shown_until = mark.at + kSharedAttributesFor;
  } else {
    inode.known.era = mark.era;
  }
}

bool AttributeCache::AreValid(const Inode& inode) const {
  return AreWatched(inode) ||
         (lease_.ValidEra() != 0 && clock_.Monotonic() < inode.known.shown_until);
}

bool AttributeCache::AreWatched(const Inode& inode) const {
  const uint64_t era = lease_.ValidEra();
  return era != 0 && inode.known.era == era;
}

Duration AttributeCache::CachedFor(const Inode& inode) const {
  // After a truncation, the next commit learns what is left of the objects.
  const bool blocks_unknown =
      (inode.unsaved.needs_commit || inode.committing.needs_commit) && !inode.allocated_known();
  const bool may_keep = AreValid(inode) && !blocks_unknown && inode.kernel.size.is_settled();
  if (!may_keep) return {};
  const Duration remaining = lease_.Remaining();
  if (inode.known.shown_until == Time{}) return remaining;
  return std::clamp(inode.known.shown_until - clock_.Monotonic(), Duration{0}, remaining);
}

void AttributeCache::AwaitSettled(Inode& inode, MutexLock& lock) {
  while (inode.known.unsettled > 0 && inode.kernel.cached_handles > 0) inode.changed.wait(lock);
}

void AttributeCache::Settle(Inode& inode) {
  const MutexLock lock(inode.mutex);
  --inode.known.unsettled;
  inode.changed.notify_all();
}

Attributes AttributeCache::View(const Inode& inode) {
  return ViewOn(inode, inode.known.attributes);
}

Attributes AttributeCache::ViewOn(const Inode& inode, Attributes view) {
  view.size_bytes =
      std::max({view.size_bytes, inode.committing.dirty_end, inode.unsaved.dirty_end});
  const std::optional<Time>& modified =
      inode.unsaved.modify_time ? inode.unsaved.modify_time : inode.committing.modify_time;
  if (modified) {
    view.modify_time = *modified;
    view.change_time = std::max(view.change_time, *modified);
  }
  if (inode.making.unsent_times) {
    view.modify_time = inode.making.unsent_times->modify_time.value_or(view.modify_time);
    view.access_time = inode.making.unsent_times->access_time.value_or(view.access_time);
  }
  if (inode.unsaved.data_dirty || inode.committing.data_dirty) {
    uint64_t allocated = 0;
    for (const auto& [node, bytes] : inode.room.allocated) allocated += bytes;
    view.allocated_bytes = std::max(view.allocated_bytes, allocated);
  }
  return view;
}

void AttributeCache::NoteKernelWrites(Inode& inode) {
  const MutexLock lock(inode.mutex);
  if (inode.kernel.passthrough_writers == 0) return;
  for (const auto& [node, object] : inode.local.objects) {
    struct stat status {};
    if ((!object->writable && !object->watched) || fstat(object->fd.get(), &status) != 0) continue;
    const Time modified{status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
    const auto size = static_cast<uint64_t>(status.st_size);
    const auto allocated = static_cast<uint64_t>(status.st_blocks) * 512;
    // Two writes within one tick of the kernel's clock have equal times.
    if (modified == inode.kernel.modify_time && allocated == inode.kernel.allocated &&
        size <= View(inode).size_bytes)
      continue;
    inode.kernel.modify_time = modified;
    inode.local.stores_known = false;
    const uint64_t grown = size > View(inode).size_bytes ? size - View(inode).size_bytes : 0;
    stats_.Add(Counter::kBytesWrittenPassthrough, grown);
    if (allocated > inode.kernel.allocated) {
      const uint64_t used = allocated - inode.kernel.allocated;
      const uint64_t reserved = std::min(used, inode.kernel.room);
      inode.kernel.room -= reserved;
      grants_.Charge(node, used, reserved);
    }
    inode.kernel.allocated = allocated;
    inode.gate.stored_on.insert(node);
    inode.unsaved.dirty_end = std::max(inode.unsaved.dirty_end, size);
    inode.unsaved.modify_time =
        std::max(inode.known.attributes.birth_time, lease_.FromLocalWallTime(modified));
    inode.unsaved.data_dirty = inode.unsaved.needs_commit = inode.local.wrote = true;
    inode.unsaved.stored_by = OlderGeneration(inode.unsaved.stored_by, inode.kernel.stored_by);
    // It is unknown which user wrote, and whether that user may keep the bits.
    if (WithoutPrivileges(inode.known.attributes.permissions) != inode.known.attributes.permissions)
      inode.kernel.must_lose_privileges = true;
    inode.room.allocated[node] = allocated;
  }
}

EntryResult AttributeCache::EntryOf(Inode& inode, bool kernel_may_keep, std::optional<Time> asked) {
  MutexLock lock(inode.mutex);
  AwaitSettled(inode, lock);
  ++inode.kernel.lookups;
  if (asked) inode.kernel.size.NoteAnswered(*asked, clock_.Monotonic());
  EntryResult result;
  result.entry = {inode.file, View(inode)};
  if (kernel_may_keep) result.entry_valid = lease_.Remaining();
  result.attributes_valid = CachedFor(inode);
  return result;
}

}  // namespace mosa::sai
