#include "client-sai/sai/open_modes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"
#include "client-sai/sai/failures.h"
#include "client-sai/sai/io_lock.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// False while others must learn of writes, or wait until nobody can write.
bool MayBeStoredIntoUnseen(const DataAccess& access) {
  return access.may_write && access.layout.OnOneNode() && !access.copied_eagerly &&
         access.close_copies <= 1;
}

// False while a write clears set-user-id bits.
bool MayBeWrittenByKernel(const DataAccess& access, const Attributes& attributes) {
  return MayBeStoredIntoUnseen(access) &&
         WithoutPrivileges(attributes.permissions) == attributes.permissions;
}

constexpr Duration kJoinAgainAfter = Milliseconds(10);

}  // namespace

Outcome<Done> OpenModes::Choose(OpenFile& handle) {
  Inode& inode = *handle.inode;
  const bool may_pass = options_.passthrough && passthrough_allowed_ &&
                        notifier_.capabilities().passthrough && !handle.append && !handle.stream &&
                        (handle.flags & O_DIRECT) == 0;
  const bool may_map = (handle.flags & O_ACCMODE) != O_WRONLY;
  const Time begun = clock_.Monotonic();
  const Duration patience = WaitBudget::Patience();
  std::shared_ptr<LocalObject> object = may_pass ? PassthroughObject(inode, handle.write) : nullptr;
  for (;;) {
    std::shared_ptr<LocalObject> mapped;
    if (!object && may_map && IsBacked(inode)) {
      if (handle.write) {
        const IoLock io(inode);
        write_behind_.Drain(inode);
      }
      auto found = ObjectToMap(inode, handle.write);
      if (!found.ok()) return found.failure();
      mapped = *std::move(found);
    }
    MutexLock lock(inode.mutex);
    // What is buffered must not be stored over what the kernel will have written.
    if (object && IsCurrent(inode, *object) && inode.kernel.unbacked_handles == 0 &&
        inode.behind.buffer.empty() &&
        (!handle.write || MayBeWrittenByKernel(*inode.right.access, inode.known.attributes))) {
      handle.mode = {OpenMode::Kind::kPassthrough, false, object->fd.get()};
      EnterBacking(handle, std::move(object));
      return Done{};
    }
    if (object && handle.write) grants_.Unreserve(object->node, kPassthroughRoomBytes);
    object.reset();
    if (inode.kernel.backed_handles == 0) {
      EnterPages(handle);
      return Done{};
    }
    if (mapped && !(IsCurrent(inode, *mapped) &&
                    (!handle.write ||
                     (inode.behind.buffer.empty() && MayBeStoredIntoUnseen(*inode.right.access)))))
      mapped.reset();
    if (mapped || !may_map || !handle.write) {
      handle.mode = {OpenMode::Kind::kDirect, false, mapped ? mapped->fd.get() : -1, true};
      EnterBacking(handle, std::move(mapped));
      return Done{};
    }
    lock.unlock();
    // Another open was faster, or the layout was recalled meanwhile.
    if (clock_.Monotonic() - begun > patience) return StoreGate::FrozenTooLong(inode, patience);
    SleepFor(kJoinAgainAfter);
  }
}

std::shared_ptr<LocalObject> OpenModes::PassthroughObject(Inode& inode, bool write) {
  AccessPtr access;
  uint64_t size = 0;
  {
    const MutexLock lock(inode.mutex);
    if (inode.kernel.unbacked_handles > 0 || !inode.behind.buffer.empty() || inode.content.buffer)
      return nullptr;
    access = inode.right.access;
    size = AttributeCache::View(inode).size_bytes;
    if (!access || (write && !MayBeWrittenByKernel(*access, inode.known.attributes)))
      return nullptr;
  }
  auto object = objects_.WholeLocal(inode, *access, write);
  struct stat status {};
  if (!object || fstat(object->fd.get(), &status) != 0 ||
      static_cast<uint64_t>(status.st_size) != size)
    return nullptr;
  if (write && !grants_.Reserve(object->node, kPassthroughRoomBytes)) return nullptr;
  return object;
}

Outcome<std::shared_ptr<LocalObject>> OpenModes::ObjectToMap(Inode& inode, bool write) {
  auto access = write ? gate_.EnsureThawed(inode) : rights_.Ensure(inode, false);
  if (!access.ok()) return access.failure();
  const std::vector<NodeId> nodes = (*access)->layout.Nodes();
  const bool has_part =
      std::ranges::any_of(nodes, [&](NodeId each) { return nodes_.IsLocal(each); });
  const std::optional<NodeId> node = objects_.LocalHolder(**access);
  const bool may_store = MayBeStoredIntoUnseen(**access) && !(*access)->is_inline;
  if ((has_part && !node) || (write && !(node && may_store)))
    return Fail(StatusCode::kFailedPrecondition, ErrorReason::kBusy,
                fmt::format("programs on this host use an object of file {} through the kernel, "
                            "and mmap would show or change that object alone: open the file only "
                            "for writing, or again after they close it",
                            inode.file.value));
  if (!node) return std::shared_ptr<LocalObject>();
  auto object = objects_.Local(inode, **access, *node, write);
  if (!object.ok() && object.failure().code == StatusCode::kPermissionDenied)
    object = objects_.Local(inode, *rights_.Renew(inode, *access), *node, write);
  if (!object.ok() && !write) return std::shared_ptr<LocalObject>();
  return object;
}

bool OpenModes::IsBacked(Inode& inode) {
  const MutexLock lock(inode.mutex);
  return inode.kernel.backed_handles > 0;
}

bool OpenModes::IsCurrent(const Inode& inode, const LocalObject& object) const {
  return inode.right.era != 0 && inode.right.era == lease_.ValidEra() && !inode.gate.fenced &&
         !inode.right.access->frozen && !inode.right.access->is_inline &&
         inode.right.access->layout.HoldsAll(object.node);
}

void OpenModes::EnterBacking(OpenFile& handle, std::shared_ptr<LocalObject> object) {
  Inode& inode = *handle.inode;
  inode.mutex.AssertHeld();
  const bool passes = handle.mode.kind == OpenMode::Kind::kPassthrough;
  handle.backed = true;
  ++inode.kernel.backed_handles;
  // What is open only for writing past the object cannot be mapped.
  if (passes || (handle.flags & O_ACCMODE) != O_WRONLY) ++inode.kernel.passthrough_handles;
  if (passes) stats_.Add(Counter::kOpensPassthrough);
  if (!object) return;
  if (struct stat status{};
      inode.kernel.passthrough_writers == 0 && fstat(object->fd.get(), &status) == 0) {
    inode.kernel.modify_time = {status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
    inode.kernel.allocated = static_cast<uint64_t>(status.st_blocks) * 512;
  }
  if (handle.write) {
    if (inode.kernel.passthrough_writers == 0 && inode.kernel.mappable_handles == 0)
      inode.kernel.stored_by = 0;
    inode.kernel.stored_by =
        OlderGeneration(inode.kernel.stored_by, inode.right.access->generation);
    inode.kernel.pages_version.reset();
    // A recall may have dropped it since it was opened, and the kernel's changes are looked for
    // there.
    inode.local.objects[object->node] = object;
    inode.gate.stored_on.insert(object->node);
  }
  if (handle.write && passes) {
    ++inode.kernel.passthrough_writers;
    inode.kernel.room += kPassthroughRoomBytes;
  }
  handle.object = std::move(object);
  if (MayBeMapped(handle) && inode.kernel.mappable_handles++ == 0)
    inode.local.stores_known = !inode.unsaved.data_dirty && !inode.committing.data_dirty &&
                               !inode.local.wrote && inode.local.finishing == 0 &&
                               inode.uses.write_handles == 1;
}

bool OpenModes::FillsPages(const OpenFile& handle) const {
  const Inode& inode = *handle.inode;
  inode.mutex.AssertHeld();
  if (!passthrough_allowed_ || !inode.right.access) return false;
  const Layout& layout = inode.right.access->layout;
  const bool is_here =
      layout.bound() && layout.OnOneNode() && nodes_.IsLocal(layout.segments.front().nodes.front());
  return KeepsWrittenPages(handle.begins_empty, is_here);
}

void OpenModes::EnterPages(OpenFile& handle) {
  Inode& inode = *handle.inode;
  inode.mutex.AssertHeld();
  const bool only_writes = (handle.flags & O_ACCMODE) == O_WRONLY;
  const bool size_may_be_old =
      notifier_.capabilities().maps_direct && inode.kernel.size.may_be_old();
  const bool past_pages = handle.append || handle.stream || (handle.flags & O_DIRECT) != 0;
  handle.uses_pages = !only_writes && !past_pages;
  handle.fills_pages = only_writes && !past_pages && !size_may_be_old && FillsPages(handle);
  if (!only_writes || handle.fills_pages) {
    handle.unbacked = true;
    ++inode.kernel.unbacked_handles;
  }
  // Programs may still map a file that they read past the pages.
  if (handle.uses_pages) ++inode.kernel.cached_handles;
  if (handle.fills_pages) ++inode.kernel.filling_handles;
  if (handle.uses_pages || handle.fills_pages) ++inode.kernel.cached_opens;
  if (!handle.fills_pages && (!handle.uses_pages || size_may_be_old)) {
    handle.mode = {OpenMode::Kind::kDirect, false, -1};
    return;
  }
  const uint64_t version = inode.known.attributes.data_version;
  handle.mode = {OpenMode::Kind::kCached, inode.kernel.pages_version == version, -1};
  inode.kernel.pages_version = version;
}

void OpenModes::LeaveBacking(OpenFile& handle) {
  Inode& inode = *handle.inode;
  attributes_.NoteKernelWrites(inode);
  uint64_t unused = 0;
  {
    const MutexLock lock(inode.mutex);
    if (!std::exchange(handle.backed, false)) return;
    const bool passes = handle.mode.kind == OpenMode::Kind::kPassthrough;
    --inode.kernel.backed_handles;
    if (passes || (handle.flags & O_ACCMODE) != O_WRONLY) --inode.kernel.passthrough_handles;
    if (MayBeMapped(handle)) --inode.kernel.mappable_handles;
    if (handle.write && passes && --inode.kernel.passthrough_writers == 0)
      unused = std::exchange(inode.kernel.room, 0);
  }
  if (unused > 0) grants_.Unreserve(handle.object->node, unused);
  handle.object.reset();
}

OpenMode OpenModes::PassthroughRefused(HandleId id) {
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle) return {};
  if (handle->mode.kind != OpenMode::Kind::kPassthrough) return handle->mode;
  std::shared_ptr<LocalObject> object = handle->object;
  LeaveBacking(*handle);
  const MutexLock lock(handle->inode->mutex);
  // The kernel may have an earlier object for other opens.
  handle->mode = {OpenMode::Kind::kDirect, false, object->fd.get(), true};
  EnterBacking(*handle, std::move(object));
  return handle->mode;
}

void OpenModes::OpenedUnbacked(HandleId id) {
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle || (handle->flags & O_ACCMODE) == O_WRONLY) return;
  LeaveBacking(*handle);
  const MutexLock lock(handle->inode->mutex);
  handle->unbacked = true;
  ++handle->inode->kernel.unbacked_handles;
}

// Accounts for the kernel's direct writes while the file grows, and holds room ahead of them, so
// that others are not promised the same room.
void OpenModes::FollowKernelWrites() {
  for (const InodePtr& inode : handles_.Written()) {
    attributes_.NoteKernelWrites(*inode);
    std::optional<NodeId> node;
    {
      const MutexLock lock(inode->mutex);
      if (inode->kernel.passthrough_writers > 0 && inode->kernel.room < kPassthroughRoomBytes / 2 &&
          inode->right.access->layout.bound())
        node = inode->right.access->layout.segments.front().nodes.front();
    }
    // If there is no more, the RAM disk itself ends the growth.
    if (!node || !grants_.Reserve(*node, kPassthroughRoomBytes)) continue;
    const MutexLock lock(inode->mutex);
    if (inode->kernel.passthrough_writers > 0)
      inode->kernel.room += kPassthroughRoomBytes;
    else
      grants_.Unreserve(*node, kPassthroughRoomBytes);
  }
}

bool OpenModes::MayBeMapped(const OpenFile& handle) {
  return handle.object != nullptr && (handle.flags & O_ACCMODE) == O_RDWR;
}

}  // namespace mosa::sai
