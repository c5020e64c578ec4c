// Generations: which stores count. A file's layout generation rises whenever its bytes go to other
// nodes, or when a writer that was away must not continue unnoticed. Each commit names the
// generation under which its bytes were stored.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "manager/core/state.h"

namespace mosa::manager {

CapabilityTerms ManagerCore::State::TermsFor(ClientId client) const {
  const auto session = sessions_.find(client);
  return {.era = session == sessions_.end() ? 0 : session->second.era, .epoch = counters_.epoch};
}

void ManagerCore::State::RaiseGeneration(FileId file, Inode& inode) {
  // Nodes may know later generations of a file whose placement was forgotten.
  FileBytes& bytes = BytesOf(inode);
  bytes.generation = std::max(bytes.generation + 1, recovery_.record().version_floor);
  dirty_.insert(file);
  ReviewCopiesLater(file, inode);  // Orders by the earlier generation end with the next store.
}

void ManagerCore::State::BeginGeneration(FileId file, Inode& inode) {
  RaiseGeneration(file, inode);
  FenceAbsentWriters(file);
}

void ManagerCore::State::FenceWriters(FileId file, Inode& inode, const std::set<ClientId>& live) {
  RaiseGeneration(file, inode);
  FileBytes& bytes = *inode.bytes;
  fences_.Fence(file, live, bytes.kept_since);
  bytes.kept_since = bytes.generation;
  // Their earlier stores count; their later stores must name the new generation.
  if (!live.empty()) TouchAccess(file, /*waits=*/false);
}

void ManagerCore::State::FenceAbsentWriters(FileId file) {
  if (!fences_.HasAbsent(file)) return;
  Inode* const inode = Find(file);
  // Inline bytes are merged by version, and a file without objects was stored nowhere.
  if (!inode || !inode->bytes || inode->bytes->segments.empty()) return fences_.ForgetFile(file);
  const auto opens = write_opens_.find(file);
  FenceWriters(file, *inode, opens == write_opens_.end() ? std::set<ClientId>() : opens->second);
  effects_.frequent_log.push_back(
      fmt::format("file {} is fenced: a session that had it open for writing has expired, and "
                  "other sessions continue with it",
                  file.value));
}

// `was_known`: the session had not expired, so no other client went past its uncommitted stores.
void ManagerCore::State::NoteReturned(FileId file, ClientId client, bool was_known) {
  if (fences_.TakeBack(file, client) || was_known) return;
  Inode* const inode = Find(file);
  if (!inode || !inode->bytes || inode->bytes->segments.empty()) return;
  std::set<ClientId> live;
  if (const auto opens = write_opens_.find(file); opens != write_opens_.end()) live = opens->second;
  live.erase(client);
  FenceWriters(file, *inode, live);
}

bool ManagerCore::State::TellsOfObjects(const CommitRequest& request) {
  return !request.inline_data && (request.data_changed || !request.nodes.empty());
}

std::optional<Failure> ManagerCore::State::CheckGeneration(const CommitRequest& request,
                                                           const Inode& inode) const {
  if (!TellsOfObjects(request)) return std::nullopt;
  const uint64_t current = inode.bytes ? inode.bytes->generation : 0;
  const uint64_t kept_since = fences_.KeptSince(request.file, actor_->start.client,
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

// Returns the nodes in `layout` on which no byte of the file was committed, ascending. Each segment
// of `layout` names first copies, or others, of the same segment of the file.
std::vector<NodeId> ManagerCore::State::EmptyNodesOf(const Inode& inode,
                                                     const Layout& layout) const {
  std::vector<NodeId> empty;
  if (!layout.bound()) return empty;
  const FileBytes& bytes = *inode.bytes;
  MOSA_CHECK(layout.segments.size() == bytes.segments.size());
  std::set<NodeId> serves_copies;
  for (size_t i = 0; i < layout.segments.size() && !bytes.copies.empty(); ++i) {
    const std::vector<NodeId>& nodes = layout.segments[i].nodes;
    const std::vector<NodeId>& first = bytes.segments[i].nodes;
    for (size_t k = 0; k < nodes.size(); ++k)
      if (nodes[k] != first[k % first.size()]) serves_copies.insert(nodes[k]);
  }
  for (const NodeId node : layout.Nodes()) {
    if (node == kNoNode) continue;
    const NodeObject* const object = FindObject(bytes, node);
    if (!object || (!object->lost && object->allocated_bytes == 0) ||
        (!HasCommitted(*object) && !serves_copies.contains(node)))
      empty.push_back(node);
  }
  return empty;
}

}  // namespace mosa::manager
