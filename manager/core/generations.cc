#include "manager/core/generations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/model/ranges.h"
#include "manager/core/file_bytes.h"

namespace mosa::manager {

void Generations::CloseWrite(Session& session, FileId file) {
  session.write_opens.erase(file);
  fences_.NoteClosed(file, session.start.client);
  const auto opens = sessions_.write_opens.find(file);
  if (opens == sessions_.write_opens.end()) return EndStream(file);
  opens->second.erase(session.start.client);
  if (opens->second.empty()) {
    sessions_.write_opens.erase(opens);
    EndMark(file);
    EndStream(file);
  }
  lifetimes_.RecheckDue(file);
  if (const Inode* inode = files_.Find(file)) copy_queue_.ReviewLater(file, *inode);
  if (files_.orphans.contains(file)) step_.orphan_checks.insert(file);
}

void Generations::SetStream(FileId file, Inode& inode, StreamPhase phase) {
  if (std::exchange(inode.stream, phase) != phase) step_.Touch(file);
}

void Generations::NoteStreamOpened(FileId file) {
  Inode& inode = *files_.Find(file);
  if (!hints_.HintsOf(inode).stream) return;
  std::set<ClientId> writers;
  if (const auto opens = sessions_.write_opens.find(file); opens != sessions_.write_opens.end())
    writers = opens->second;
  // What is broken stays so until all who write it have closed it.
  if (inode.stream == StreamPhase::kBroken && !writers.empty()) return;
  writers.erase(step_.actor->start.client);
  if (writers.empty()) SetStream(file, inode, StreamPhase::kOpen);
}

// An open from before the hint does not count: its close may be told after the hint was set.
void Generations::EndStream(FileId file) {
  Inode* const inode = files_.Find(file);
  // After a restart, other writers may not be back yet: EndAbandonedStreams.
  if (!inode || inode->stream != StreamPhase::kOpen || cluster_.grace_end) return;
  if (sessions_.write_opens.contains(file)) return;
  // Its readers have not read what now has its name.
  const bool is_replaced = inode->link_count == 0;
  SetStream(file, *inode, is_replaced ? StreamPhase::kBroken : StreamPhase::kEnded);
}

void Generations::NoteWriterGone(FileId file) {
  Inode* const inode = files_.Find(file);
  if (inode && inode->stream == StreamPhase::kOpen) SetStream(file, *inode, StreamPhase::kBroken);
}

void Generations::EndAbandonedStreams(bool all_are_back) {
  for (auto& [file, inode] : files_.inodes) {
    if (inode->stream != StreamPhase::kOpen || sessions_.write_opens.contains(file)) continue;
    if (all_are_back)
      EndStream(file);
    else
      NoteWriterGone(file);
  }
}

void Generations::CommitTo(FileId file) {
  if (files_.uncommitted.erase(file) == 0) return;
  step_.dirty.insert(file);
  lifetimes_.RecheckDue(file);
}

void Generations::RaiseVersion(FileId file, Inode& inode, bool committed) {
  ++inode.data_version;
  lifetimes_.ContentChanged(file);
  if (!inode.bytes) return;
  // Whoever still has it open may store on.
  inode.bytes->may_differ = sessions_.write_opens.contains(file) && ShowsBytesOfNodes(inode);
  copy_.marked.erase(file);
  inode.bytes->raised_uncommitted = committed ? 0 : inode.bytes->raised_uncommitted + 1;
}

void Generations::MarkMayDiffer(FileId file) {
  Inode* inode = files_.Find(file);
  if (!inode || !inode->bytes || inode->bytes->may_differ || !ShowsBytesOfNodes(*inode)) return;
  inode->bytes->may_differ = true;
  step_.dirty.insert(file);
}

// The last writer has said that nothing is uncommitted.
void Generations::EndMark(FileId file) {
  Inode* inode = files_.Find(file);
  // Those who had it open before a restart may not be back yet: EndMarkedOpens.
  if (!inode || !inode->bytes || !inode->bytes->may_differ || copy_.marked.contains(file)) return;
  inode->bytes->may_differ = false;
  step_.dirty.insert(file);
}

void Generations::EndUncommitted(FileId file) {
  Inode* inode = files_.Find(file);
  if (!inode || !ShowsBytesOfNodes(*inode)) return;
  RaiseVersion(file, *inode, /*committed=*/false);
  step_.Touch(file);
  copy_queue_.ReviewLater(file, *inode);
}

void Generations::EndMarkedOpens(bool all_are_back) {
  for (const FileId file : std::exchange(copy_.marked, {})) {
    const Inode* inode = files_.Find(file);
    if (!inode || !inode->bytes || !inode->bytes->may_differ) continue;
    if (!all_are_back || !sessions_.write_opens.contains(file)) EndUncommitted(file);
  }
}

void Generations::NoteDamage(NodeId node, FileId file) {
  Inode* inode = files_.Find(file);
  if (!inode || !inode->bytes || !NamedNodes(*inode->bytes).contains(node)) return;
  FileBytes& bytes = *inode->bytes;
  // What it compared before it found the damage does not count.
  copy_queue_.EndTask(file, node);
  for (auto& cells : bytes.copies)
    for (CopyCell& cell : cells)
      if (cell.node == node) cell.data_version = 0;
  const bool is_new = !std::exchange(ObjectOn(bytes, node).damaged, true);
  step_.TouchAccess(file);
  copy_queue_.ReviewLater(file, *inode);
  if (!is_new) return;
  const std::string damage = copy_view_.DamageOf(*inode);
  step_.effects.log.push_back(fmt::format(
      "node {} found damage in its object of file {}: {}", nodes_.NameOf(node), file.value,
      damage.empty() ? "it is replaced from another copy" : "'mosa lost' lists it; " + damage));
}

void Generations::NoteHealed(NodeId node, FileId file) {
  Inode* inode = files_.Find(file);
  if (!inode || !inode->bytes || !IsDamaged(*inode->bytes, node)) return;
  ObjectOn(*inode->bytes, node).damaged = false;
  step_.TouchAccess(file);
  copy_queue_.ReviewLater(file, *inode);
}

void Generations::RaiseGeneration(FileId file, Inode& inode) {
  // Nodes may know later generations of a file whose placement was forgotten.
  FileBytes& bytes = BytesOf(inode);
  bytes.generation = std::max(bytes.generation + 1, cluster_.recovery.record().version_floor);
  step_.dirty.insert(file);
  copy_queue_.ReviewLater(file,
                          inode);  // Orders by the earlier generation end with the next store.
}

void Generations::BeginGeneration(FileId file, Inode& inode) {
  RaiseGeneration(file, inode);
  FenceAbsentWriters(file);
}

void Generations::FenceWriters(FileId file, Inode& inode, const std::set<ClientId>& live) {
  RaiseGeneration(file, inode);
  FileBytes& bytes = *inode.bytes;
  fences_.Fence(file, live, bytes.kept_since);
  bytes.kept_since = bytes.generation;
  // Their earlier stores count; their later stores must name the new generation.
  if (!live.empty()) step_.TouchAccess(file, /*waits=*/false);
}

void Generations::FenceAbsentWriters(FileId file) {
  if (!fences_.HasAbsent(file)) return;
  Inode* const inode = files_.Find(file);
  // Inline bytes are merged by version, and a file without objects was stored nowhere.
  if (!inode || !inode->bytes || inode->bytes->segments.empty()) return fences_.ForgetFile(file);
  const auto opens = sessions_.write_opens.find(file);
  FenceWriters(file, *inode,
               opens == sessions_.write_opens.end() ? std::set<ClientId>() : opens->second);
  step_.effects.frequent_log.push_back(
      fmt::format("file {} is fenced: a session that had it open for writing has expired, and "
                  "other sessions continue with it",
                  file.value));
}

// `was_known`: the session had not expired, so no other client went past its uncommitted stores.
void Generations::NoteReturned(FileId file, ClientId client, bool was_known) {
  if (fences_.TakeBack(file, client) || was_known) return;
  Inode* const inode = files_.Find(file);
  if (!inode || !inode->bytes || inode->bytes->segments.empty()) return;
  std::set<ClientId> live;
  if (const auto opens = sessions_.write_opens.find(file); opens != sessions_.write_opens.end())
    live = opens->second;
  live.erase(client);
  FenceWriters(file, *inode, live);
}

std::optional<Failure> Generations::CheckGeneration(const CommitRequest& request,
                                                    const Inode& inode) const {
  if (!TellsOfObjects(request)) return std::nullopt;
  const uint64_t current = inode.bytes ? inode.bytes->generation : 0;
  const uint64_t kept_since = fences_.KeptSince(request.file, step_.actor->start.client,
                                                inode.bytes ? inode.bytes->kept_since : 0);
  if (request.generation > current)
    return Refuse(
        StatusCode::kInvalidArgument, ErrorReason::kInvalid,
        fmt::format("the commit of file {} names layout generation {}, but the latest one is {}",
                    request.file.value, request.generation, current));
  if (request.generation >= kept_since) return std::nullopt;
  return Refuse(StatusCode::kFailedPrecondition, ErrorReason::kStale,
                fmt::format("the layout of file {} changed while this mount was silent: it stored "
                            "bytes by the stale generation {}, and the current one is {}; open the "
                            "file again and repeat what was written since the last sync",
                            request.file.value, request.generation, current));
}

void Generations::WriteWriterBounds(FileId file) {
  WriterBoundsRecord record;
  for (const auto& [client, kept_since] : fences_.BoundsOf(file))
    record.bounds.push_back({client, kept_since});
  if (record.bounds.empty()) {
    step_.effects.writes.Delete(WriterBoundsKey(file));
  } else {
    step_.effects.writes.Put(WriterBoundsKey(file), Encode(record));
  }
}

// Marks objects as lost that files had on the node and that are not in `present`. Considers only
// files unchanged since `listed_after`, for which the list is conclusive.
void Generations::LoseObjectsOf(NodeId id, const std::set<FileId>& present, Time listed_after) {
  size_t lost = 0;
  for (auto& [file, inode] : files_.inodes) {
    if (!inode->bytes || inode->change_time >= listed_after || present.contains(file)) continue;
    LoseUncommittedHole(id, file, *inode);
    for (NodeObject& object : inode->bytes->objects) {
      if (object.node != id) continue;
      for (auto& cells : inode->bytes->copies) {
        for (CopyCell& cell : cells) {
          if (cell.node != id || (cell.data_version == 0 && !cell.uncut)) continue;
          cell = {id, 0};  // Nothing is left there.
          step_.Touch(file);
        }
      }
      if (object.lost || object.allocated_bytes == 0) continue;
      step_.Touch(file);
      object.damaged = false;
      object.lost = HasCommitted(object);
      if (!object.lost) object = {.node = id, .uncut = object.uncut};
      if (copy_view_.UncoveredNode(*inode, false)) ++lost;
    }
  }
  if (lost > 0)
    step_.effects.log.push_back(
        fmt::format("node {} has lost the bytes of {} files: 'mosa lost' lists "
                    "them",
                    nodes_.NameOf(id), lost));
}

// The node has no object of the file. Where nothing was committed there, that is a hole. But a
// writer that died may have stored bytes in it, and copies may have them: they are compared again.
void Generations::LoseUncommittedHole(NodeId id, FileId file, Inode& inode) {
  const FileBytes& bytes = *inode.bytes;
  if (bytes.copies.empty() || inode.size_bytes == 0) return;
  bool is_hole = false;
  for (size_t i = 0; i < bytes.segments.size(); ++i)
    for (size_t position = 0; position < bytes.segments[i].width; ++position)
      is_hole = is_hole || (bytes.segments[i].nodes[position] == id &&
                            HasBytes(bytes, inode.size_bytes, i, position));
  const bool has_bytes =
      std::any_of(bytes.objects.begin(), bytes.objects.end(),
                  [id](const NodeObject& o) { return o.node == id && HasCommitted(o); });
  if (!is_hole || has_bytes) return;
  RaiseVersion(file, inode, /*committed=*/false);
  copy_queue_.ReviewLater(file, inode);
  step_.Touch(file);
}

// The node has come back empty. Nothing else would reveal that stored and uncommitted bytes are
// missing. It may have stored bytes after it was last heard from, also of files made since.
void Generations::LoseUncommittedOf(const Node& node) {
  const NodeId id = node.address.node;
  for (const FileId file : fences_.FilesWithAbsent()) {
    const Inode* inode = files_.Find(file);
    const std::vector<NodeId> stored_on =
        inode ? hints_.LayoutOf(*inode).Nodes() : std::vector<NodeId>();
    if (std::binary_search(stored_on.begin(), stored_on.end(), id)) FenceAbsentWriters(file);
  }
  for (const auto& [file, writers] : sessions_.write_opens)
    LoseStoresOn(id, file, *files_.Find(file));
}

// Bytes that writers have stored on the node can no longer be committed. What they store there from
// now on can: of earlier bytes the file has lost only committed ones, which is known already.
void Generations::LoseStoresOn(NodeId node, FileId file, Inode& inode) {
  if (!inode.bytes) return;
  const bool stores = !inode.bytes->is_inline || files_.FreezeOf(file);
  const std::vector<NodeId> first = hints_.LayoutOf(inode).Nodes();
  if (!stores || !std::binary_search(first.begin(), first.end(), node)) return;
  FenceWriters(file, inode, {});
  step_.Touch(file);
}

// A writer declares its open after the restart. Nodes may have come back empty before that.
void Generations::LoseStoresOnEmptyNodes(FileId file, Inode& inode) {
  if (!cluster_.grace_end) return;
  for (const auto& [id, node] : nodes_.by_id)
    if (node.came_empty) LoseStoresOn(id, file, inode);
}

// A program has stored into the object, and no mount will commit that. Readers must read the file
// again, and copies must follow.
void Generations::TakeUntold(const Node& node, FileId file) {
  Inode* const inode = files_.Find(file);
  if (!inode || !inode->bytes || inode->bytes->is_inline) return;
  const std::vector<NodeId> first = hints_.LayoutOf(*inode).Nodes();
  if (!std::binary_search(first.begin(), first.end(), node.address.node)) {
    step_.effects.frequent_log.push_back(
        fmt::format("node {}: a program stored into the copy of file {}, but the node does not "
                    "hold the file's first copy: these stores are discarded",
                    node.address.name, file.value));
    return;
  }
  RaiseVersion(file, *inode, /*committed=*/false);
  NodeObject& object = ObjectOn(*inode->bytes, node.address.node);
  if (object.holds == ObjectHolds::kCopies) object.holds = ObjectHolds::kBoth;
  object.allocated_bytes = std::max(object.allocated_bytes, kPageBytes);
  inode->modify_time = inode->change_time = step_.now;
  copy_queue_.ReviewLater(file, *inode);
  step_.Touch(file);
  step_.effects.log.push_back(
      fmt::format("node {}: a program stored into file {} after its last close, and its mount has "
                  "ended: the file is now at version {}",
                  node.address.name, file.value, inode->data_version));
}

}  // namespace mosa::manager
