// Making written bytes visible to others: commit, truncate, allocate. Callers hold the inode's io.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"
#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

constexpr int kCommitsMax = 20;
constexpr uint64_t kInlineCachedBytesMax = uint64_t{32} << 20;
// Bytes without room on a node are relocated in pieces of this size.
constexpr uint64_t kAllocatedBytesMax = uint64_t{64} << 20;

// The stored bytes no longer count where they are, so reporting them again is useless.
bool IsRefusedForGood(const Failure& failure) {
  return (failure.code == StatusCode::kFailedPrecondition &&
          failure.reason == ErrorReason::kStale) ||
         failure.reason == ErrorReason::kNodeLost;
}

}  // namespace

// The space that the file's objects occupy, and the part of the grants that went into them.
std::vector<CommitRequest::NodeBytes> Filesystem::Impl::NodeBytesOf(Inode& inode) {
  AccessPtr access;
  bool known = false;
  std::map<NodeId, uint64_t> allocated;
  std::map<NodeId, std::shared_ptr<LocalObject>> objects;
  std::set<NodeId> stored_on;
  {
    const MutexLock lock(inode.mutex);
    access = inode.access;
    known = inode.allocated_known();
    allocated = inode.allocated;
    objects = inode.objects;
    stored_on = inode.stored_on;
  }
  std::vector<CommitRequest::NodeBytes> result;
  if (!access || !access->layout.bound()) return result;
  for (const NodeId node : access->layout.Nodes()) {
    CommitRequest::NodeBytes bytes{node, allocated[node], 0};
    struct stat status {};
    const auto object = objects.find(node);
    bytes.stored_nothing = object == objects.end() && !stored_on.contains(node);
    if (object != objects.end() && fstat(object->second->fd.get(), &status) == 0) {
      bytes.allocated_bytes = static_cast<uint64_t>(status.st_blocks) * 512;
    } else if (!known) {
      auto asked = nodes_.Stat({node, inode.file, access->capability});
      if (asked.status().code() == StatusCode::kPermissionDenied) {  // The capability has expired.
        const auto fresh = EnsureAccess(inode, access->may_write);
        if (fresh.ok()) asked = nodes_.Stat({node, inode.file, (*fresh)->capability});
      }
      const bool absent = asked.status().code() == StatusCode::kNotFound;
      if (asked.ok()) {
        bytes.allocated_bytes = asked->allocated_bytes;
      } else if (absent && IsKnownEmpty(*access, node)) {
        bytes.allocated_bytes = 0;  // The room taken there was moved to another node.
      } else if (absent || !stored_on.contains(node)) {
        continue;  // Room was taken but nothing stored: the manager's number stays valid.
      } else {
        // Room was also taken for what could not be stored.
        bytes.allocated_bytes = kPageBytes;
        bytes.at_least = true;
      }
    }
    bytes.consumed_bytes = grants_.TakeUnreported(node);
    result.push_back(bytes);
  }
  return result;
}

CommitRequest Filesystem::Impl::BuildCommit(Inode& inode, bool last_close) {
  CommitRequest request;
  bool changed = false;
  request.file = inode.file;
  request.last_close = last_close;
  {
    const MutexLock lock(inode.mutex);
    inode.committing = std::exchange(inode.unsaved, {});
    inode.closes = last_close;
    // Cleared before the commit is sent: an open that comes meanwhile counts.
    if (last_close && inode.make_state == MakeState::kSent) inode.manager_counts_open = false;
    changed = inode.committing.needs_commit || inode.committing.data_dirty;
    // What is told of the nodes must not be older.
    if (inode.make_state == MakeState::kSent)
      request.based_on_version = inode.attributes.data_version;
  }
  if (changed) request.nodes = NodeBytesOf(inode);
  const MutexLock lock(inode.mutex);
  request.data_changed = inode.committing.data_dirty || inode.committing.change_failed;
  request.change_failed = inode.committing.change_failed && !inode.committing.data_dirty;
  request.generation = inode.committing.stored_by;
  if (request.generation == 0 && inode.access) request.generation = inode.access->generation;
  request.inline_moved = inode.moves_inline;
  request.modify_time = inode.committing.modify_time;
  request.modify_time_stays = request.data_changed && !request.modify_time;
  if (inode.inline_buffer) {
    request.inline_data = *inode.inline_buffer;
    if (inode.make_state == MakeState::kSent) request.based_on_version = inode.inline_version;
    request.size_bytes = inode.inline_buffer->size();
  } else {
    request.size_bytes = inode.committing.dirty_end;
    request.size_is_exact = false;
  }
  return request;
}

// A commit has failed, so its changes are unsaved again.
void Filesystem::Impl::TakeBack(Inode& inode) {
  const Unsaved old = std::exchange(inode.committing, {});
  inode.unsaved.needs_commit = inode.unsaved.needs_commit || old.needs_commit;
  inode.unsaved.data_dirty = inode.unsaved.data_dirty || old.data_dirty;
  inode.unsaved.change_failed = inode.unsaved.change_failed || old.change_failed;
  inode.unsaved.dirty_end = std::max(inode.unsaved.dirty_end, old.dirty_end);
  if (!inode.unsaved.modify_time) inode.unsaved.modify_time = old.modify_time;
  inode.unsaved.stored_by = OlderGeneration(inode.unsaved.stored_by, old.stored_by);
}

Filesystem::Impl::Reported Filesystem::Impl::DropUncommitted(Inode& inode, const Failure& failure) {
  Reported reported = Reported::kNow;
  {
    const MutexLock lock(inode.mutex);
    if (inode.committing.change_failed && !inode.committing.data_dirty && !inode.unsaved.data_dirty)
      reported = Reported::kBefore;
  }
  if (reported == Reported::kNow) {
    losses_.Warning("{}", failure.message);
    NoteError(inode, failure);
  }
  DropUnsaved(inode);
  return reported;
}

void Filesystem::Impl::DropUnsaved(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    inode.committing = inode.unsaved = {};
    inode.pages.Clear();
    inode.allocated.clear();
    inode.allocated_version.reset();
    inode.access_era = inode.attributes_era = 0;
    if (inode.passthrough_handles == 0) inode.objects.clear();
  }
  DropFailedPages(inode);
}

// The caller's close or append fails. Its bytes must not appear later, perhaps after other bytes
// that the program has written instead.
void Filesystem::Impl::GiveUpUnsaved(Inode& inode, const Failure& failure) {
  if (!MayBeTriedAgain(failure)) return;
  bool concerns_others = false;
  bool change_failed = false;
  {
    const MutexLock lock(inode.mutex);
    const bool in_objects =
        inode.access && inode.access->layout.bound() && !inode.access->is_inline;
    change_failed = inode.HasUntold() &&
                    (in_objects || inode.unsaved.change_failed || inode.committing.change_failed);
    inode.inline_buffer.reset();
    inode.inline_ranges.Clear();
    inode.appended = false;
    concerns_others = inode.write_handles > 1;
  }
  DropUnsaved(inode);
  {
    // Another mount must still hear that copies may differ.
    const MutexLock lock(inode.mutex);
    inode.unsaved.needs_commit = inode.unsaved.change_failed = change_failed;
  }
  if (concerns_others) NoteError(inode, failure);
}

// Another mount was faster.
void Filesystem::Impl::NoteOutdated(Inode& inode) { inode.access_era = inode.attributes_era = 0; }

// The kernel's direct writes did not ask this mount who may keep set-user-id.
Outcome<Done> Filesystem::Impl::TakePrivileges(Inode& inode) {
  SetAttributesRequest request;
  {
    const MutexLock lock(inode.mutex);
    if (!std::exchange(inode.must_lose_privileges, false)) return Done{};
    request.file = inode.file;
    request.permissions = WithoutPrivileges(inode.attributes.permissions);
    if (*request.permissions == inode.attributes.permissions) return Done{};
  }
  const Mark mark = MarkNow();
  auto reply = calls_.Ask<AttributesReply>(request);
  if (!reply.ok()) {
    const MutexLock lock(inode.mutex);
    inode.must_lose_privileges = true;
    return reply.failure();
  }
  StoreAttributes(inode, reply->attributes, mark, true);
  pages_.DropAttributes(inode.file);
  return Done{};
}

Outcome<Done> Filesystem::Impl::Commit(Inode& inode, bool last_close, bool tells_close) {
  MOSA_RETURN_IF_FAILED(TakePrivileges(inode));
  for (int attempt = 1;; ++attempt) {
    bool outdated = false;
    const Outcome<Done> committed =
        CommitOnce(inode, {.last_close = last_close, .tells_close = tells_close}, &outdated);
    if (!outdated || attempt == kCommitsMax) return committed;
    MOSA_RETURN_IF_FAILED(MergeInline(inode));
  }
}

Outcome<Done> Filesystem::Impl::CommitOnce(Inode& inode, CommitKind kind, bool* outdated) {
  bool unsent = false, tells = true;
  std::vector<Request> requests;
  std::optional<SetAttributesRequest> times;
  FileId made_in;
  {
    MutexLock lock(inode.mutex);
    while (inode.make_state == MakeState::kSending) inode.changed.wait(lock);
    if (inode.make_state == MakeState::kRefused) return inode.make_failure;
    unsent = inode.make_state == MakeState::kUnsent;
    if (kind.make_only && !unsent) return Done{};
    const bool has_news =
        inode.unsaved.data_dirty || inode.unsaved.change_failed || inode.unsent_times;
    if (!unsent && !inode.unsaved.needs_commit && !has_news && !kind.tells_close) return Done{};
    tells = !kind.make_only || (has_news && (!kind.bare || inode.appended));
    if (unsent) {
      inode.make_state = MakeState::kSending;
      requests.push_back(inode.make);
      made_in = inode.make.parent;
    }
    times = inode.unsent_times;
  }
  bool is_inline = false;
  if (tells) {
    CommitRequest commit = BuildCommit(inode, kind.last_close);
    is_inline = commit.inline_data.has_value();
    requests.emplace_back(std::move(commit));
    if (times && (times->modify_time || times->access_time)) requests.push_back(*times);
  }
  const Mark mark = MarkNow();
  stats_.Add(Counter::kManagerCalls);
  const std::vector<Reply> replies = manager_.Call(std::move(requests), WaitBudget::ForQuestion());
  MakeState made = MakeState::kSent;
  if (unsent) {
    made = FinishMake(inode, replies.empty() ? ManagerCalls::UnexpectedReply() : replies[0], mark);
    recalls_.NoteOwn(made_in);
  }
  // Requests that ran remain in effect, even if a later one failed.
  const Failure* failure = nullptr;
  const Attributes* attributes = nullptr;
  bool committed = false;
  for (const Reply& each : replies) {
    failure = std::get_if<Failure>(&each);
    if (const auto* reply = std::get_if<AttributesReply>(&each)) {
      attributes = &reply->attributes;
      committed = true;
    }
  }
  if (committed) FinishCommit(inode, is_inline, *attributes, mark);
  if (tells && !committed && kind.last_close) NoteUnheardOpen(inode);
  const bool lost =
      tells && !committed && failure != nullptr && !is_inline && IsRefusedForGood(*failure);
  if (lost && DropUncommitted(inode, *failure) == Reported::kBefore) failure = nullptr;
  EndClosing(inode, committed);
  const MutexLock lock(inode.mutex);
  if (tells && !committed && !lost) TakeBack(inode);
  if (committed && kind.last_close && unsent) inode.manager_counts_open = false;
  if (committed) inode.appended = false;
  if (unsent) EndMake(inode, made);
  *outdated =
      !committed && is_inline && failure != nullptr &&
      (failure->code == StatusCode::kAborted || failure->code == StatusCode::kFailedPrecondition);
  if (*outdated) NoteOutdated(inode);
  if (inode.make_state == MakeState::kRefused) return inode.make_failure;
  if (failure != nullptr) return *failure;
  if (!tells) return Done{};
  if (!committed && !lost) return ManagerCalls::UnexpectedReply();
  inode.unsent_times.reset();
  return Done{};
}

// The commit of a last close was answered, or given up.
void Filesystem::Impl::EndClosing(Inode& inode, bool committed) {
  std::optional<ReleaseRequest> release;
  {
    const MutexLock lock(inode.mutex);
    inode.closes = false;
    const bool named = std::exchange(inode.named_while_closing, false);
    if (named && committed && !inode.manager_counts_open) release = inode.EndUnlessWriter();
  }
  if (release) releases_.Queue(*std::move(release));
}

void Filesystem::Impl::FinishCommit(Inode& inode, bool is_inline, const Attributes& attributes,
                                    Mark mark) {
  {
    const MutexLock lock(inode.mutex);
    const uint64_t version_before = inode.attributes.data_version;
    const bool raises = inode.committing.data_dirty || inode.committing.change_failed;
    if (attributes.data_version == version_before + (raises ? 1 : 0)) {  // Only by this commit.
      if (inode.pages_version == version_before) inode.pages_version = attributes.data_version;
      if (inode.allocated_version == version_before)
        inode.allocated_version = attributes.data_version;
    }
    if (inode.committing.data_dirty) inode.awaits_copies = true;
    // The appenders' lock ensures that nobody else has appended.
    if (inode.append_right && inode.append_right->era == lease_.ValidEra())
      inode.append_right->data_version = attributes.data_version;
    if (inode.committing.stored_by != 0 && !inode.access->empty_nodes.empty()) {
      // The manager knows which nodes have bytes now.
      auto access = std::make_shared<DataAccess>(*inode.access);
      access->empty_nodes.clear();
      inode.access = std::move(access);
    }
    if (is_inline && inode.inline_buffer && inode.access) KeepInline(inode);
    if (is_inline) inode.access_version = attributes.data_version;
    ++inode.own_changes;
    // A reader may have asked before the manager knew that the content is in the objects, or that
    // other copies are older now.
    const bool outdated =
        !is_inline && inode.access && (inode.access->is_inline || !inode.access->may_write);
    if (outdated || recalls_.HappenedForeign(mark.log, inode.file)) inode.access_era = 0;
  }
  StoreAttributes(inode, attributes, mark, true);
  const MutexLock lock(inode.mutex);
  inode.committing = {};
}

// Makes the committed content the access' inline data, so that the next open here needs no call.
void Filesystem::Impl::KeepInline(Inode& inode) {
  auto access = WithoutInlineBytes(*inode.access);
  inode.inline_buffer->shrink_to_fit();  // Only its size is counted.
  access->is_inline = !inode.inline_buffer->empty();
  access->inline_data = std::move(*inode.inline_buffer);
  access->inline_valid_bytes = access->inline_data.size();
  inline_cached_bytes_ += access->inline_data.size();
  inline_cached_bytes_ -= inode.access->inline_data.size();
  inode.access = std::move(access);
  inode.inline_buffer.reset();
  inode.inline_ranges.Clear();
}

// Drops inline bytes that no handle needs, if they are outdated or there are too many of them.
void Filesystem::Impl::DropUnusedInline(Inode& inode) {
  if (inode.handles > 0 || !inode.access || inode.access->inline_data.empty()) return;
  const bool is_current = inode.access_era != 0 && inode.access_era == lease_.ValidEra();
  if (is_current && inline_cached_bytes_ <= kInlineCachedBytesMax) return;
  inline_cached_bytes_ -= inode.access->inline_data.size();
  inode.access = WithoutInlineBytes(*inode.access);
  inode.access_era = 0;
}

// Does everything that a new size requires before the manager records it.
Outcome<Done> Filesystem::Impl::Resize(Inode& inode, uint64_t size_bytes) {
  if (size_bytes > kFileBytesMax)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kTooBig,
                fmt::format("a size of {} bytes exceeds the maximum file size, {}", size_bytes,
                            kFileBytesMax));
  {
    const MutexLock lock(inode.mutex);
    inode.cut_by = 0;
    inode.lays_out_anew = false;
    inode.resizing = true;
    inode.AskIfUncounted();
  }
  RefreshFromKernelWrites(inode);
  Drain(inode);
  MOSA_RETURN_IF_FAILED(Commit(inode, false));
  auto thawed = EnsureThawed(inode);
  if (!thawed.ok()) return thawed.failure();
  if ((*thawed)->layout.bound() && (*thawed)->is_inline) {
    // The client that was moving the content into the objects failed, so they may hold a part of
    // it.
    auto settled = EnsureBound(inode, size_bytes);
    if (!settled.ok()) return settled.failure();
  }
  auto fresh = EnsureFresh(inode, true);
  if (!fresh.ok()) return fresh.failure();
  const AccessPtr access = fresh->access;
  uint64_t size = 0;
  bool by_path = false;
  {
    const MutexLock lock(inode.mutex);
    size = ViewOn(inode, fresh->attributes).size_bytes;
    by_path = inode.write_handles == 0;  // No close commits it.
  }
  Outcome<Done> result = Done{};
  const bool objects = access->layout.bound() && !access->is_inline;
  if (objects && size_bytes < size) {
    result = CutObjects(inode, {size_bytes, size});
    // Reports the remaining space, for statfs and du.
    if (result.ok() && by_path) result = Commit(inode, false);
  } else if (!objects && size_bytes > access->inline_bytes_max) {
    auto bound = EnsureBound(inode, size_bytes);
    result = bound.ok() ? Outcome<Done>(Done{}) : Outcome<Done>(bound.failure());
    if (result.ok()) {
      Drain(inode);
      result = Commit(inode, false);
    }
  }
  return result;
}

// Ends a call that may have changed the size.
void Filesystem::Impl::EndResize(Inode& inode) {
  if (inode.partly_changed) {
    EndPartialChange(inode);
    if (!Commit(inode, false).ok()) stats_.Add(Counter::kErrors);
  }
  std::optional<ReleaseRequest> release;
  {
    const MutexLock lock(inode.mutex);
    inode.cutting_to.reset();
    inode.resizing = false;
    DropUnusedInline(inode);
    // truncate(2) opens nothing, so the right was needed only for this call.
    release = inode.EndUse();
  }
  if (release) releases_.Queue(*std::move(release));
}

Outcome<Done> Filesystem::Impl::CutObjects(Inode& inode, ByteRange removed) {
  const auto by_access = [&](const DataAccess& access) -> Outcome<Done> {
    const bool all = removed.begin == 0;
    const Outcome<Done> alive =
        CheckNodesAlive(inode, all ? access.layout.Nodes() : NodesOf(access.layout, removed));
    if (!alive.ok()) return all ? LayOutAnew(inode, access) : alive;
    inode.io.AssertHeld();
    inode.partly_changed = true;
    {
      const MutexLock lock(inode.mutex);
      inode.cutting_to = removed.begin;
      ++inode.cuts;
    }
    return CutObjectsOf(inode, access, removed);
  };
  const Outcome<Done> cut = WithStore(inode, by_access, IfLost::kGoOn);
  if (!cut.ok()) return cut;
  const MutexLock lock(inode.mutex);
  if (inode.lays_out_anew) return Done{};
  inode.pages.Remove(WidenToPages({removed.begin, kFileBytesMax}));
  inode.allocated_version.reset();  // The next commit asks the nodes for the remaining space.
  inode.unsaved.needs_commit = true;
  return Done{};
}

// An empty file needs no node. No object is truncated: the manager takes them all from the file.
Outcome<Done> Filesystem::Impl::LayOutAnew(Inode& inode, const DataAccess& access) {
  const MutexLock lock(inode.mutex);
  if (inode.passthrough_handles > 0)
    return Fail(StatusCode::kUnavailable, ErrorReason::kNodeLost,
                fmt::format("a node that holds a part of file {} is silent, and the kernel has the "
                            "file's object open (passthrough): close the file, or try again when "
                            "the node is back",
                            inode.file.value));
  inode.lays_out_anew = true;
  inode.cut_by = access.generation;
  return Done{};
}

// Truncate or zero on all nodes or on none, as far as this can be known beforehand.
Outcome<Done> Filesystem::Impl::CheckNodesAlive(const Inode& inode,
                                                const std::vector<NodeId>& nodes) {
  for (const NodeId node : nodes)
    if (!node_states_.IsAlive(node))
      return Fail(StatusCode::kUnavailable, ErrorReason::kNodeLost,
                  fmt::format("node {} is silent and holds a part of file {}, so nothing was "
                              "changed: try again when the node is back",
                              node.value, inode.file.value));
  return Done{};
}

// An object also holds its node's copies of what is first on other nodes. So only objects that hold
// removed bytes are cut to the new size: if one of them fails, the copies on all others are whole.
// The others are cut at the old end, if they answer. No copy has bytes behind it, but a writer that
// failed may have stored some there.
Outcome<Done> Filesystem::Impl::CutObjectsOf(Inode& inode, const DataAccess& access,
                                             ByteRange removed) {
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
      results[i] = RemoveOn(inode, access, nodes[i], to_new_end);
    } else {
      results[i] = WithRetries(inode, nodes[i], true, to_new_end);
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
    return access.lost ? LostBytes(inode) : FromStatus(results[i]);
  }
  const MutexLock lock(inode.mutex);
  inode.cut_by = access.generation;
  return Done{};
}

Status Filesystem::Impl::RemoveOn(Inode& inode, const DataAccess& access, NodeId node,
                                  const std::function<Status(const ObjectTarget&)>& operation) {
  const Status status = WithRetries(inode, node, true, operation);
  if (status.code() != StatusCode::kNotFound) return status;
  if (IsKnownEmpty(access, node)) return OkStatus();
  if (access.lost) return status;  // The manager knows it, too.
  return AbortedError(ObjectMissing(inode, node).message);
}

Outcome<Done> Filesystem::Impl::Allocate(HandleId id, int mode, uint64_t offset, uint64_t length) {
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
  const MutexLock io(inode.io);
  MOSA_RETURN_IF_FAILED(TellError(*handle));
  MOSA_RETURN_IF_FAILED(EnsureCounted(*handle));
  RefreshFromKernelWrites(inode);
  Drain(inode);
  const ByteRange range{offset, offset + length};
  auto access = EnsureAccess(inode, true);
  if (!access.ok()) return access.failure();
  const bool objects = (*access)->layout.bound() && !(*access)->is_inline;
  const bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const uint64_t wanted_end = keeps_size && kind != 0 ? 0 : range.end;
  if (!objects && wanted_end <= (*access)->inline_bytes_max && (!keeps_size || kind != 0))
    return PunchInline(inode, kind == 0 ? ByteRange{range.end, range.end} : range);
  if (!objects) {
    auto bound = EnsureBound(inode, range.end);
    if (!bound.ok()) return bound.failure();
    Drain(inode);
  }
  auto allocated = AllocateRange(inode, mode, range);
  if (!allocated.ok()) {
    EndPartialChange(inode);
    return allocated;
  }
  inode.partly_changed = false;
  blocks_.DropRange(inode.file, range);
  const Time now = lease_.ManagerNow();
  const MutexLock lock(inode.mutex);
  inode.unsaved.needs_commit = inode.unsaved.data_dirty = true;
  inode.unsaved.modify_time = now;
  if (!keeps_size) inode.unsaved.dirty_end = std::max(inode.unsaved.dirty_end, range.end);
  return Done{};
}

// Zeroes `range` of inline content. An empty range at `end` only extends the file.
Outcome<Done> Filesystem::Impl::PunchInline(Inode& inode, ByteRange range) {
  MutexLock lock(inode.mutex);
  auto fresh = AwaitFresh(inode, lock);
  if (!fresh.ok()) return fresh.failure();
  LayInline(inode, *fresh);
  std::string& content = *inode.inline_buffer;
  if (range.empty()) {
    if (content.size() < range.end) content.resize(static_cast<size_t>(range.end));
  } else {
    range.end = std::min<uint64_t>(range.end, content.size());
    range.begin = std::min(range.begin, range.end);
    std::memset(content.data() + range.begin, 0, static_cast<size_t>(range.size()));
  }
  NoteInlineWritten(inode, range);
  return Done{};
}

Outcome<Done> Filesystem::Impl::AllocateRange(Inode& inode, int mode, ByteRange range) {
  if ((mode & FALLOC_FL_PUNCH_HOLE) != 0) return PunchObjects(inode, range);
  const bool zeroes = (mode & FALLOC_FL_ZERO_RANGE) != 0;
  if (zeroes) {
    auto access = EnsureAccess(inode, true);
    if (!access.ok()) return access.failure();
    MOSA_RETURN_IF_FAILED(CheckNodesAlive(inode, NodesOf((*access)->layout, range)));
    inode.io.AssertHeld();
    inode.partly_changed = true;
  }
  return StorePieces(
      inode, range, kAllocatedBytesMax,
      [&](const DataAccess& access, const Piece& piece, std::vector<NodeId>* refused) {
        return AllocatePiece(inode, access, piece, zeroes, refused);
      });
}

// False if it was not allocated, because the `refused` nodes have no room or the layout has
// changed.
Outcome<bool> Filesystem::Impl::AllocatePiece(Inode& inode, const DataAccess& access,
                                              const Piece& piece, bool zeroes,
                                              std::vector<NodeId>* refused) {
  const StoreSection store(*this, inode);
  if (!store.access().ok()) return store.access().failure();
  if ((*store.access())->layout.segments != access.layout.segments) return false;
  for (const NodeId node : piece.nodes) {
    Status status = OkStatus();
    if (zeroes) status = PunchOn(inode, **store.access(), node, piece.range);
    if (status.ok()) {
      status = WithRetries(inode, node, true, [&](const ObjectTarget& target) {
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
    inode.stored_on.insert(node);
  }
  return true;
}

// On each node one request covers all of its parts of the range.
Outcome<Done> Filesystem::Impl::PunchObjects(Inode& inode, ByteRange range) {
  return WithStore(inode, [&](const DataAccess& access) -> Outcome<Done> {
    const std::vector<NodeId> nodes = NodesOf(access.layout, range);
    MOSA_RETURN_IF_FAILED(CheckNodesAlive(inode, nodes));
    inode.io.AssertHeld();
    inode.partly_changed = true;
    {
      const MutexLock lock(inode.mutex);
      inode.pages.Remove(range);
      inode.allocated_version.reset();
    }
    for (const NodeId node : nodes) {
      const Status status = PunchOn(inode, access, node, range);
      if (!status.ok()) return FromStatus(status);
    }
    return Done{};
  });
}

Status Filesystem::Impl::PunchOn(Inode& inode, const DataAccess& access, NodeId node,
                                 ByteRange range) {
  return RemoveOn(inode, access, node, [&](const ObjectTarget& target) {
    return nodes_.Allocate(target, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, range.begin,
                           range.size());
  });
}

}  // namespace mosa::sai
