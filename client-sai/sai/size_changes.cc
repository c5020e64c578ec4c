#include "client-sai/sai/size_changes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"
#include "client-sai/sai/failures.h"
#include "client-sai/sai/io_lock.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// Bytes without room on a node are relocated in pieces of this size.
constexpr uint64_t kAllocatedBytesMax = uint64_t{64} << 20;

}  // namespace

Outcome<Done> SizeChanges::Resize(Inode& inode, uint64_t size_bytes) {
  if (size_bytes > kFileBytesMax)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kTooBig,
                fmt::format("a size of {} bytes exceeds the maximum file size, {}", size_bytes,
                            kFileBytesMax));
  {
    const MutexLock lock(inode.mutex);
    inode.cut.by = 0;
    inode.cut.lays_out_anew = false;
    inode.cut.resizing = true;
    inode.AskIfUncounted();
  }
  attributes_.NoteKernelWrites(inode);
  write_behind_.Drain(inode);
  MOSA_RETURN_IF_FAILED(writer_.Commit(inode, false));
  auto thawed = gate_.EnsureThawed(inode);
  if (!thawed.ok()) return thawed.failure();
  if ((*thawed)->layout.bound() && (*thawed)->is_inline) {
    // The client that was moving the content into the objects failed, so they may hold a part of
    // it.
    auto settled = writer_.EnsureBound(inode, size_bytes);
    if (!settled.ok()) return settled.failure();
  }
  auto fresh = rights_.EnsureFresh(inode, true);
  if (!fresh.ok()) return fresh.failure();
  const AccessPtr access = fresh->access;
  uint64_t size = 0;
  bool by_path = false;
  {
    const MutexLock lock(inode.mutex);
    size = AttributeCache::ViewOn(inode, fresh->attributes).size_bytes;
    by_path = !inode.IsOpenToWrite();  // No close commits it.
  }
  Outcome<Done> result = Done{};
  const bool objects = access->layout.bound() && !access->is_inline;
  if (objects && size_bytes < size) {
    result = CutObjects(inode, {size_bytes, size});
    // Reports the remaining space, for statfs and du.
    if (result.ok() && by_path) result = writer_.Commit(inode, false);
  } else if (!objects && size_bytes > access->inline_bytes_max) {
    auto bound = writer_.EnsureBound(inode, size_bytes);
    result = bound.ok() ? Outcome<Done>(Done{}) : Outcome<Done>(bound.failure());
    if (result.ok()) {
      write_behind_.Drain(inode);
      result = writer_.Commit(inode, false);
    }
  }
  return result;
}

// Ends a call that may have changed the size.
void SizeChanges::EndResize(Inode& inode) {
  if (inode.partly_changed) {
    EndPartialChange(inode);
    if (!writer_.Commit(inode, false).ok()) stats_.Add(Counter::kErrors);
  }
  std::optional<ReleaseRequest> release;
  {
    const MutexLock lock(inode.mutex);
    inode.cut.to.reset();
    inode.cut.resizing = false;
    rights_.DropUnusedInline(inode);
    // truncate(2) opens nothing, so the right was needed only for this call.
    release = inode.EndTruncation();
  }
  if (release) releases_.Queue(*std::move(release));
}

Outcome<Done> SizeChanges::CutObjects(Inode& inode, ByteRange removed) {
  const auto by_access = [&](const DataAccess& access) -> Outcome<Done> {
    const bool all = removed.begin == 0;
    const Outcome<Done> alive =
        objects_.CheckAlive(inode, all ? access.layout.Nodes() : NodesOf(access.layout, removed));
    if (!alive.ok()) return all ? LayOutAnew(inode, access) : alive;
    inode.io.AssertHeld();
    inode.partly_changed = true;
    {
      const MutexLock lock(inode.mutex);
      inode.cut.to = removed.begin;
      ++inode.cuts;
    }
    return CutObjectsOf(inode, access, removed);
  };
  const Outcome<Done> cut = gate_.Run(inode, by_access, IfLost::kGoOn);
  if (!cut.ok()) return cut;
  const MutexLock lock(inode.mutex);
  if (inode.cut.lays_out_anew) return Done{};
  inode.room.pages.Remove(WidenToPages({removed.begin, kFileBytesMax}));
  inode.room.version.reset();  // The next commit asks the nodes for the remaining space.
  inode.unsaved.needs_commit = true;
  return Done{};
}

// An object also holds its node's copies of what is first on other nodes. So only objects that hold
// removed bytes are cut to the new size: if one of them fails, the copies on all others are whole.
// The others are cut at the old end, if they answer. No copy has bytes behind it, but a writer that
// failed may have stored some there.
Outcome<Done> SizeChanges::CutObjectsOf(Inode& inode, const DataAccess& access, ByteRange removed) {
  const std::vector<NodeId> nodes = access.layout.Nodes();
  const std::vector<NodeId> removed_from = NodesOf(access.layout, removed);
  const std::vector<NodeId> kept_on = NodesOf(access.layout, {0, removed.begin});
  const auto has = [](const std::vector<NodeId>& sorted, NodeId node) {
    return std::binary_search(sorted.begin(), sorted.end(), node);
  };
  std::vector<Status> results(nodes.size());
  const auto cut = [&](size_t i) {
    const auto to_new_end = [&](const ObjectTarget& target) {
      return nodes_.Truncate(target, removed.begin);
    };
    if (!has(removed_from, nodes[i])) {
      if (node_states_.IsAlive(nodes[i]))
        (void)nodes_.Truncate({nodes[i], inode.file, access.capability}, removed.end);
    } else if (has(kept_on, nodes[i])) {
      results[i] = objects_.RemoveOn(inode, access, nodes[i], to_new_end);
    } else {
      results[i] = objects_.WithRetries(inode, nodes[i], true, to_new_end);
      if (results[i].code() == StatusCode::kNotFound) results[i] = OkStatus();
    }
  };
  // Not on the write threads, which may be waiting for a store of this file.
  Countdown others(nodes.size() - 1);
  for (size_t i = 1; i < nodes.size(); ++i) {
    reads_.Run([&, i, limit = WaitBudget::OfThisThread()] {
      const WaitBudget budget(limit);
      cut(i);
      others.Arrive();
    });
  }
  cut(0);
  if (nodes.size() > 1) others.Wait();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (results[i].ok()) continue;
    if (removed.begin == 0 && !node_states_.IsAlive(nodes[i])) return LayOutAnew(inode, access);
    return access.lost ? NodeObjects::LostBytes(inode) : FromStatus(results[i]);
  }
  const MutexLock lock(inode.mutex);
  inode.cut.by = access.generation;
  return Done{};
}

// An empty file needs no node. No object is truncated: the manager takes them all from the file.
Outcome<Done> SizeChanges::LayOutAnew(Inode& inode, const DataAccess& access) {
  const MutexLock lock(inode.mutex);
  if (inode.kernel.passthrough_handles > 0)
    return Fail(StatusCode::kUnavailable, ErrorReason::kNodeLost,
                fmt::format("a node that holds a part of file {} is silent, and the kernel has the "
                            "file's object open (passthrough): close the file, or try again when "
                            "the node is back",
                            inode.file.value));
  inode.cut.lays_out_anew = true;
  inode.cut.by = access.generation;
  return Done{};
}

Outcome<Done> SizeChanges::Allocate(HandleId id, int mode, uint64_t offset, uint64_t length) {
  const std::shared_ptr<OpenFile> handle = handles_.FindFile(id);
  if (!handle || !handle->write || length == 0)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                "fallocate needs a file that is open for writing and a length above 0");
  constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  const int kind = mode & ~FALLOC_FL_KEEP_SIZE;
  if (kind != 0 && kind != FALLOC_FL_ZERO_RANGE && mode != kPunch)
    return Fail(StatusCode::kUnimplemented, ErrorReason::kUnsupported,
                fmt::format("fallocate mode {:#x} is not supported", mode));
  if (offset > kFileBytesMax || length > kFileBytesMax - offset)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kTooBig,
                fmt::format("{} bytes at offset {} exceed the maximum file size", length, offset));
  Inode& inode = *handle->inode;
  const IoLock io(inode);
  MOSA_RETURN_IF_FAILED(handle->TellError());
  MOSA_RETURN_IF_FAILED(handle->EnsureCounted());
  attributes_.NoteKernelWrites(inode);
  write_behind_.Drain(inode);
  const ByteRange range{offset, offset + length};
  auto access = rights_.Ensure(inode, true);
  if (!access.ok()) return access.failure();
  const bool objects = (*access)->layout.bound() && !(*access)->is_inline;
  const bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const uint64_t wanted_end = keeps_size && kind != 0 ? 0 : range.end;
  if (!objects && wanted_end <= (*access)->inline_bytes_max && (!keeps_size || kind != 0))
    return PunchInline(inode, kind == 0 ? ByteRange{range.end, range.end} : range);
  if (!objects) {
    auto bound = writer_.EnsureBound(inode, range.end);
    if (!bound.ok()) return bound.failure();
    write_behind_.Drain(inode);
  }
  auto allocated = AllocateRange(inode, mode, range);
  if (!allocated.ok()) {
    EndPartialChange(inode);
    return allocated;
  }
  inode.partly_changed = false;
  blocks_.Drop(inode.file, range);
  const Time now = lease_.ManagerNow();
  const MutexLock lock(inode.mutex);
  inode.unsaved.needs_commit = inode.unsaved.data_dirty = true;
  inode.unsaved.modify_time = now;
  if (!keeps_size) inode.unsaved.dirty_end = std::max(inode.unsaved.dirty_end, range.end);
  return Done{};
}

Outcome<Done> SizeChanges::AllocateRange(Inode& inode, int mode, ByteRange range) {
  if ((mode & FALLOC_FL_PUNCH_HOLE) != 0) return PunchObjects(inode, range);
  const bool zeroes = (mode & FALLOC_FL_ZERO_RANGE) != 0;
  if (zeroes) {
    auto access = rights_.Ensure(inode, true);
    if (!access.ok()) return access.failure();
    MOSA_RETURN_IF_FAILED(objects_.CheckAlive(inode, NodesOf((*access)->layout, range)));
    inode.io.AssertHeld();
    inode.partly_changed = true;
  }
  return writer_.StorePieces(
      inode, range, kAllocatedBytesMax,
      [&](const DataAccess& access, const Piece& piece, std::vector<NodeId>* refused) {
        return AllocatePiece(inode, access, piece, zeroes, refused);
      });
}

// False if it was not allocated, because the `refused` nodes have no room or the layout has
// changed.
Outcome<bool> SizeChanges::AllocatePiece(Inode& inode, const DataAccess& access, const Piece& piece,
                                         bool zeroes, std::vector<NodeId>* refused) {
  const StoreSection store(gate_, inode);
  if (!store.access().ok()) return store.access().failure();
  if ((*store.access())->layout.segments != access.layout.segments) return false;
  for (const NodeId node : piece.nodes) {
    Status status = OkStatus();
    if (zeroes) status = objects_.Punch(inode, **store.access(), node, piece.range);
    if (status.ok()) {
      status = objects_.WithRetries(inode, node, true, [&](const ObjectTarget& target) {
        return nodes_.Allocate(target, FALLOC_FL_KEEP_SIZE, piece.range.begin, piece.range.size());
      });
    }
    if (status.code() == StatusCode::kAborted) return false;
    if (status.code() == StatusCode::kResourceExhausted) {
      refused->push_back(node);
      return false;
    }
    if (!status.ok()) return FromStatus(status);
    const MutexLock lock(inode.mutex);
    inode.gate.stored_on.insert(node);
  }
  return true;
}

// Zeroes `range` of inline content. An empty range at `end` only extends the file.
Outcome<Done> SizeChanges::PunchInline(Inode& inode, ByteRange range) {
  MutexLock lock(inode.mutex);
  auto fresh = writer_.AwaitFresh(inode, lock);
  if (!fresh.ok()) return fresh.failure();
  Writer::LayInline(inode, *fresh);
  std::string& content = *inode.content.buffer;
  if (range.empty()) {
    if (content.size() < range.end) content.resize(static_cast<size_t>(range.end));
  } else {
    range.end = std::min<uint64_t>(range.end, content.size());
    range.begin = std::min(range.begin, range.end);
    std::memset(content.data() + range.begin, 0, static_cast<size_t>(range.size()));
  }
  writer_.NoteInlineWritten(inode, range);
  return Done{};
}

// On each node one request covers all of its parts of the range.
Outcome<Done> SizeChanges::PunchObjects(Inode& inode, ByteRange range) {
  return gate_.Run(inode, [&](const DataAccess& access) -> Outcome<Done> {
    const std::vector<NodeId> nodes = NodesOf(access.layout, range);
    MOSA_RETURN_IF_FAILED(objects_.CheckAlive(inode, nodes));
    inode.io.AssertHeld();
    inode.partly_changed = true;
    {
      const MutexLock lock(inode.mutex);
      inode.room.pages.Remove(range);
      inode.room.version.reset();
    }
    for (const NodeId node : nodes) {
      const Status status = objects_.Punch(inode, access, node, range);
      if (!status.ok()) return FromStatus(status);
    }
    return Done{};
  });
}

// Nodes were to truncate or zero the file together. If only some have done so, no node has the
// state that is cached here, and other mounts must hear of it with the next commit. Does not wait
// for the pages, because the kernel may hold back their writes until this call is answered.
void SizeChanges::EndPartialChange(Inode& inode) {
  if (!std::exchange(inode.partly_changed, false)) return;
  {
    const MutexLock lock(inode.mutex);
    inode.room.pages.Clear();
    inode.room.allocated.clear();
    inode.room.version.reset();
    inode.unsaved.needs_commit = inode.unsaved.change_failed = true;
  }
  write_behind_.DropFailedPages(inode);
}

void SizeChanges::NoteCut(Inode& inode, uint64_t size_bytes, const AttributesReply& reply,
                          Mark mark) {
  const uint64_t data_version = reply.attributes.data_version;
  {
    const MutexLock lock(inode.mutex);
    inode.unsaved.dirty_end = 0;
    // An empty file needs nothing of any node.
    inode.uses.awaits_copies = size_bytes > 0;
    inode.room.pages.Remove({WidenToPages({0, size_bytes}).end, UINT64_MAX});
    inode.room.version.reset();
    if (size_bytes == 0) {
      inode.room.version = data_version;
      inode.room.pages.Clear();
      inode.room.allocated.clear();
      inode.gate.stored_on.clear();
      // The file is placed anew: what could be reported of the objects counts no more.
      if (inode.cut.lays_out_anew) inode.unsaved = {};
    }
    // The manager has taken the cut, and what came before it was committed.
    if (!inode.HasUntold()) inode.unsaved.stored_by = 0;
    inode.content.buffer.reset();
    inode.content.ranges.Clear();
    ++inode.known.own_changes;
    inode.right.era = 0;
    inode.kernel.modify_time = {};
  }
  if (reply.access) rights_.Store(inode, *reply.access, mark, data_version);
  blocks_.DropFile(inode.file);
}

}  // namespace mosa::sai
