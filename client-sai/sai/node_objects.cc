#include "client-sai/sai/node_objects.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"
#include "client-sai/core/write_buffer.h"
#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/failures.h"
#include "common/base/crc32c.h"
#include "common/base/sync.h"
#include "common/model/block_sums.h"

namespace mosa::sai {
namespace {

// A report is sent for this many bytes, or when the writes are not contiguous.
constexpr uint64_t kAnnouncedBytes = 1 << 20;

// False if the node has dropped the object, as it does when it returns empty.
bool IsThere(const LocalObject& object) {
  struct stat status {};
  return fstat(object.fd.get(), &status) == 0 && status.st_nlink > 0;
}

// The checksum of block `index` of the answer, which is `block` of the file, as if zeroes followed
// the object's end. None if the answer does not tell.
std::optional<uint32_t> ChecksumOf(const BlockSums& sums, size_t index, ByteRange block,
                                   bool is_known_empty) {
  static constexpr std::array<std::byte, kChecksumBlockBytes> kZeroes{};
  const BlockSum& sum = sums.blocks[index];
  const bool has_data = sum.has_data && sums.object_bytes > block.begin;
  if (sum.damaged || (sums.absent && !is_known_empty)) return std::nullopt;
  static const uint32_t kZeroBlock = Crc32c(kZeroes.data(), kZeroes.size());
  if (!has_data && block.size() == kZeroes.size()) return kZeroBlock;
  if (!has_data) return Crc32c(kZeroes.data(), block.size());
  const uint64_t covered =
      std::min(sums.object_bytes, block.begin + kChecksumBlockBytes) - block.begin;
  if (covered > block.size()) return std::nullopt;  // The file ends before the object does.
  return ExtendCrc32c(sum.crc, kZeroes.data(), block.size() - covered);
}

}  // namespace

std::optional<NodeId> NodeObjects::LocalHolder(const DataAccess& access) const {
  for (const NodeId node : access.layout.Nodes()) {
    if (access.layout.HoldsAll(node) && nodes_.IsLocal(node)) return node;
  }
  return std::nullopt;
}

Outcome<std::shared_ptr<LocalObject>> NodeObjects::Local(Inode& inode, const DataAccess& access,
                                                         NodeId node, bool write) {
  {
    const MutexLock lock(inode.mutex);
    const auto it = inode.local.objects.find(node);
    if (it != inode.local.objects.end() && (!write || it->second->writable) && IsThere(*it->second))
      return it->second;
  }
  auto opened = nodes_.OpenLocal({node, inode.file, access.capability}, write);
  if (!opened.ok()) return FromStatus(opened.status());
  auto object = std::make_shared<LocalObject>(LocalObject{node, *std::move(opened), write});
  const MutexLock lock(inode.mutex);
  std::shared_ptr<LocalObject>& known = inode.local.objects[node];
  // Another open may have been faster. The kernel's writes are looked for in writable objects.
  if (known == nullptr || write || !known->writable || !IsThere(*known)) known = object;
  return object;
}

std::shared_ptr<LocalObject> NodeObjects::WholeLocal(Inode& inode, const DataAccess& access,
                                                     bool write) {
  if (access.is_inline || access.lost || access.frozen) return nullptr;
  const std::optional<NodeId> node = LocalHolder(access);
  if (!node) return nullptr;
  auto object = Local(inode, access, *node, write);
  return object.ok() ? *object : nullptr;
}

Status NodeObjects::WithRetries(Inode& inode, NodeId node, bool write,
                                const std::function<Status(const ObjectTarget&)>& operation) {
  const Time begun = clock_.Monotonic();
  const uint64_t era = lease_.ValidEra();
  AccessPtr access;
  for (uint32_t attempt = 1;; ++attempt) {
    // Without a lease the manager no longer waits for this mount, so the layout may have changed.
    if (write && attempt > 1 && (era == 0 || lease_.ValidEra() != era))
      return AbortedError("the lease expired during the write");
    if (!access) {
      const MutexLock lock(inode.mutex);
      access = inode.right.access;
    }
    const SteadyTime asked = SteadyNow();
    const Status status = operation({node, inode.file, access->capability});
    const bool unreachable =
        status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kDeadlineExceeded;
    const std::chrono::nanoseconds enough(WaitBudget::kTransferMin.ns);
    if (!unreachable || SteadyNow() - asked >= enough) node_states_.NoteCall(node, !unreachable);
    if (status.ok()) return status;
    if (status.code() == StatusCode::kPermissionDenied || status.code() == StatusCode::kAborted) {
      // The right belongs to an older session, layout or incarnation, or has expired. The next
      // layout may place the bytes on other nodes.
      const MutexLock lock(inode.mutex);
      if (inode.right.access == access) inode.right.era = 0;
      return AbortedError(MessageOf(status));
    }
    if (!unreachable) return status;
    const auto delay = RetryDelay(attempt, clock_.Monotonic() - begun, node_states_.IsAlive(node));
    if (!delay || WaitBudget::IsSpent()) return status;
    SleepFor(*delay);
  }
}

Status NodeObjects::Write(Inode& inode, NodeId node, uint64_t offset,
                          std::span<const std::byte> data) {
  const Status status = WithRetries(inode, node, true, [&](const ObjectTarget& target) {
    return nodes_.Write(target, offset, data);
  });
  if (!status.ok()) return status;
  stats_.Add(Counter::kBytesWrittenRemote, data.size());
  const MutexLock lock(inode.mutex);
  inode.gate.stored_on.insert(node);
  return status;
}

Status NodeObjects::Punch(Inode& inode, const DataAccess& access, NodeId node, ByteRange range) {
  return RemoveOn(inode, access, node, [&](const ObjectTarget& target) {
    return nodes_.Allocate(target, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, range.begin,
                           range.size());
  });
}

Status NodeObjects::RemoveOn(Inode& inode, const DataAccess& access, NodeId node,
                             const std::function<Status(const ObjectTarget&)>& operation) {
  const Status status = WithRetries(inode, node, true, operation);
  if (status.code() != StatusCode::kNotFound) return status;
  if (IsKnownEmpty(access, node)) return OkStatus();
  if (access.lost) return status;  // The manager knows it, too.
  return AbortedError(Missing(inode, node).message);
}

Outcome<Done> NodeObjects::Fetch(Inode& inode, const DataAccess& access, ByteRange range,
                                 std::byte* out, bool parallel) {
  const std::vector<Piece> pieces = SplitRange(access.layout, range, kExtentBytesMax);
  std::vector<Outcome<Done>> results(pieces.size(), Outcome<Done>(Done{}));
  const auto fetch = [&](size_t i) {
    results[i] = FetchPiece(inode, access, pieces[i], out + (pieces[i].range.begin - range.begin));
  };
  if (parallel && pieces.size() > 1) {
    Countdown others(pieces.size() - 1);
    for (size_t i = 1; i < pieces.size(); ++i) {
      reads_.Run([&, i, limit = WaitBudget::OfThisThread()] {
        const WaitBudget budget(limit);
        fetch(i);
        others.Arrive();
      });
    }
    fetch(0);
    others.Wait();
  } else {
    for (size_t i = 0; i < pieces.size(); ++i) fetch(i);
  }
  for (const Outcome<Done>& result : results) MOSA_RETURN_IF_FAILED(result);
  return Done{};
}

Outcome<Done> NodeObjects::FetchPiece(Inode& inode, const DataAccess& access, const Piece& piece,
                                      std::byte* out) {
  const auto size = static_cast<size_t>(piece.range.size());
  std::vector<CopyChoice> copies;
  for (const NodeId node : piece.nodes)
    copies.push_back({node, nodes_.IsLocal(node), node_states_.IsAlive(node)});
  const std::vector<NodeId> order =
      OrderCopies(copies, CopySeed(client_, inode.file, access.layout, piece.range.begin));
  Status status = OkStatus();
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_last = i + 1 == order.size();
    if (is_last && !nodes_.IsLocal(order[i]) && !node_states_.IsAlive(order[i]) &&
        order.size() == 1)
      return Fail(
          StatusCode::kUnavailable, ErrorReason::kNodeLost,
          fmt::format("node {} is silent and holds the only copy of bytes {} to {} of file {}",
                      order[i].value, piece.range.begin, piece.range.end, inode.file.value));
    if (nodes_.IsLocal(order[i]) && ReadLocal(inode, access, order[i], piece.range, out)) {
      stats_.Add(Counter::kBytesReadLocal, size);
      return Done{};
    }
    const auto read = [&](const ObjectTarget& target) {
      return nodes_.Read(target, piece.range.begin, {out, size});
    };
    // While another copy exists, do not wait for a node to return.
    status = is_last ? WithRetries(inode, order[i], false, read)
                     : read({order[i], inode.file, access.capability});
    if (status.code() == StatusCode::kNotFound && IsKnownEmpty(access, order[i])) {
      std::memset(out, 0, size);
      return Done{};
    }
    if (status.ok()) {
      stats_.Add(nodes_.IsLocal(order[i]) ? Counter::kBytesReadLocal : Counter::kBytesReadRemote,
                 size);
      return Done{};
    }
  }
  if (status.code() == StatusCode::kNotFound) return Missing(inode, order.back());
  return FromStatus(status);
}

Outcome<std::vector<uint32_t>> NodeObjects::BlockChecksums(Inode& inode, const DataAccess& access,
                                                           uint64_t file_bytes) {
  std::vector<uint32_t> crcs;
  for (uint64_t begin = 0; begin < file_bytes; begin += kSumsBytesMax) {
    const ByteRange asked{begin, std::min(file_bytes, begin + kSumsBytesMax)};
    std::map<NodeId, Result<BlockSums>> answers;
    const auto ask = [&](NodeId node) -> const Result<BlockSums>& {
      const auto [it, is_new] = answers.try_emplace(node, UnavailableError(""));
      if (is_new && node_states_.IsAlive(node))
        it->second = nodes_.Sums({node, inode.file, access.capability}, {.range = asked});
      return it->second;
    };
    for (uint64_t at = asked.begin; at < asked.end; at += kChecksumBlockBytes) {
      const ByteRange block{at, std::min(asked.end, at + kChecksumBlockBytes)};
      std::optional<uint32_t> crc;
      const std::vector<Piece> pieces = SplitRange(access.layout, block);
      for (size_t i = 0; pieces.size() == 1 && i < pieces.front().nodes.size() && !crc; ++i) {
        const NodeId node = pieces.front().nodes[i];
        if (const Result<BlockSums>& sums = ask(node); sums.ok() && !sums->blocks.empty())
          crc = ChecksumOf(*sums, (at - asked.begin) / kChecksumBlockBytes, block,
                           IsKnownEmpty(access, node));
      }
      if (!crc) {
        std::vector<std::byte> bytes(block.size());
        MOSA_RETURN_IF_FAILED(Fetch(inode, access, block, bytes.data(), true));
        crc = Crc32c(bytes.data(), bytes.size());
      }
      crcs.push_back(*crc);
    }
  }
  return crcs;
}

bool NodeObjects::ReadLocal(Inode& inode, const DataAccess& access, NodeId node, ByteRange range,
                            std::byte* out) {
  auto object = Local(inode, access, node, false);
  struct stat status {};
  if (!object.ok() || fstat((*object)->fd.get(), &status) != 0 || status.st_nlink == 0)
    return false;
  const auto size = static_cast<size_t>(range.size());
  size_t have = 0;
  while (have < size) {
    const ssize_t count =
        pread((*object)->fd.get(), out + have, size - have, static_cast<off_t>(range.begin + have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) break;
    have += static_cast<size_t>(count);
  }
  std::memset(out + have, 0, size - have);
  return true;
}

Outcome<std::optional<uint64_t>> NodeObjects::Seek(Inode& inode, NodeId node, uint64_t offset,
                                                   SeekKind kind) {
  std::optional<uint64_t> found;
  const Status status = WithRetries(inode, node, false, [&](const ObjectTarget& target) -> Status {
    const auto answer = nodes_.Seek(target, offset, kind == SeekKind::kData);
    if (answer.ok()) found = *answer;
    return answer.status().code() == StatusCode::kOutOfRange ? OkStatus() : answer.status();
  });
  if (status.code() == StatusCode::kNotFound) {
    AccessPtr access;
    {
      const MutexLock lock(inode.mutex);
      access = inode.right.access;
    }
    if (IsKnownEmpty(*access, node)) return found;
    return Missing(inode, node);
  }
  if (!status.ok()) return FromStatus(status);
  return found;
}

bool NodeObjects::IsAllocated(Inode& inode, const DataAccess& access, NodeId node,
                              ByteRange range) {
  uint64_t size = 0;
  {
    const MutexLock lock(inode.mutex);
    size = AttributeCache::View(inode).size_bytes;
  }
  if (range.begin >= size || range.end > size + kPageBytes) return false;
  const ObjectTarget target{node, inode.file, access.capability};
  const auto data = nodes_.Seek(target, range.begin, true);
  if (!data.ok() || *data != range.begin) return false;
  const auto hole = nodes_.Seek(target, range.begin, false);
  if (!hole.ok()) return false;
  return *hole >= std::min(range.end, size);
}

void NodeObjects::NoteWrittenLocally(Inode& inode, const DataAccess& access, NodeId node,
                                     ByteRange range) {
  ByteRange announced;
  {
    const MutexLock lock(inode.mutex);
    ByteRange& waiting = inode.local.unannounced;
    const bool continues = !waiting.empty() && range.begin == waiting.end;
    if (!waiting.empty() && !continues) announced = std::exchange(waiting, range);
    if (announced.empty()) waiting = continues ? ByteRange{waiting.begin, range.end} : range;
    if (announced.empty() && waiting.size() >= kAnnouncedBytes)
      announced = std::exchange(waiting, {});
  }
  if (announced.empty()) return;
  // A node that misses the report finds the difference when the file is closed.
  const Status told =
      nodes_.NoteWritten({node, inode.file, access.capability}, announced.begin, announced.size());
  if (told.ok()) return;
  stats_.Add(Counter::kErrors);
  if (told.code() != StatusCode::kPermissionDenied) return;
  const MutexLock lock(inode.mutex);
  inode.right.era = 0;  // The next write has a new right.
}

Outcome<Done> NodeObjects::CheckAlive(const Inode& inode, const std::vector<NodeId>& nodes) const {
  for (const NodeId node : nodes)
    if (!node_states_.IsAlive(node))
      return Fail(StatusCode::kUnavailable, ErrorReason::kNodeLost,
                  fmt::format("node {} is silent and holds a part of file {}, so nothing was "
                              "changed: try again when the node is back",
                              node.value, inode.file.value));
  return Done{};
}

Failure NodeObjects::Missing(Inode& inode, NodeId node) {
  {
    const MutexLock lock(inode.mutex);
    inode.right.era = 0;
  }
  return Fail(StatusCode::kAborted, ErrorReason::kNodeLost,
              fmt::format("node {} has no object of file {} although bytes were committed there, "
                          "so they are lost: rerun the task that wrote them",
                          node.value, inode.file.value));
}

bool NodeObjects::IsKnownEmpty(const DataAccess& access, NodeId node) {
  return std::binary_search(access.empty_nodes.begin(), access.empty_nodes.end(), node);
}

Failure NodeObjects::LostBytes(const Inode& inode) {
  return Fail(StatusCode::kDataLoss, ErrorReason::kNodeLost,
              fmt::format("bytes of file {} are lost: the node that held them no longer has them",
                          inode.file.value));
}

}  // namespace mosa::sai
