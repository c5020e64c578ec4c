// Fixture for tests of CopyTask: nodes in memory, one of which copies.
#ifndef MOSA_STORAGE_NODE_CORE_COPY_TASK_FIXTURE_H_
#define MOSA_STORAGE_NODE_CORE_COPY_TASK_FIXTURE_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/crc32c.h"
#include "common/model/checksum_blocks.h"
#include "storage-node/core/change_log.h"
#include "storage-node/core/copy_task.h"

namespace mosa::node {

inline constexpr uint64_t kBlock = kChecksumBlockBytes;
inline constexpr FileId kFile{5};
inline constexpr uint64_t kVersion = 9;

// A node's object as a string; a block of zeroes is a hole.
struct Peer {
  std::string bytes{};
  bool absent = false;  // The node has no object.
  bool quiet = true;
  uint64_t incarnation = 1;
  uint64_t change = 100;
  ChangeLog log{100};
  const CopyTask* task = nullptr;  // The task that makes it, if it is a copy.

  void Drop() {
    bytes.clear();
    absent = true;
  }
  void Write(uint64_t offset, const std::string& data) {
    if (std::exchange(absent, false)) log = ChangeLog(++change);
    if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size(), '\0');
    bytes.replace(offset, data.size(), data);
    log.Note({offset, offset + data.size()}, ++change);
  }
  void Cut(uint64_t size) {
    if (absent || size >= bytes.size()) return;
    log.Note({size, bytes.size()}, ++change);
    bytes.resize(size);
  }
  void SetQuiet(bool value) {
    if (std::exchange(absent, false)) log = ChangeLog(++change);
    quiet = value;
    log.NoteAll(++change);
  }
};

inline BlockSums SumsOf(const Peer& peer, ByteRange range, uint64_t after_change) {
  BlockSums sums;
  sums.object_bytes = peer.bytes.size();
  sums.quiet = peer.quiet;
  sums.incarnation = peer.incarnation;
  sums.change = peer.absent ? 0 : peer.change;
  const auto changed = peer.log.Since(after_change);
  sums.all_changed = peer.absent ? after_change != 0 : !changed;
  if (!peer.absent && changed) sums.changed = *changed;
  if (peer.task != nullptr && !peer.task->order().follow) {
    sums.order = peer.task->order().order;
    sums.tail_settled = peer.task->done();
  }
  const uint64_t first = range.begin / kBlock;
  for (uint64_t i = 0; i < BlocksTouched(range.begin, range.size()); ++i) {
    const uint64_t begin = std::min<uint64_t>((first + i) * kBlock, peer.bytes.size());
    const std::string block = peer.bytes.substr(begin, kBlock);
    BlockSum sum;
    sum.has_data = block.find_first_not_of('\0') != std::string::npos;
    if (sum.has_data) sum.crc = Crc32c(block.data(), block.size());
    sum.settled =
        peer.task != nullptr && peer.task->Settled({std::max(range.begin, (first + i) * kBlock),
                                                    std::min(range.end, (first + i + 1) * kBlock)});
    sums.blocks.push_back(sum);
  }
  return sums;
}

// Returns true if a source in this state answers a held question before its time is over.
inline bool EndsTheWait(const Peer& peer, const CopyAction& ask) {
  if (peer.absent) return ask.after_change != 0;
  const auto changed = peer.log.Since(ask.after_change);
  return !changed || std::ranges::any_of(*changed, [&ask](const ByteRange& range) {
    return std::ranges::any_of(ask.about, [&range](const ByteRange& about) {
      return about.begin < range.end && range.begin < about.end;
    });
  });
}

inline std::string Show(const CopyAction& action) {
  const auto blocks = [](uint64_t bytes) {
    return bytes % kBlock == 0 ? fmt::format("{}", bytes / kBlock) : fmt::format("{}B", bytes);
  };
  const std::string range = blocks(action.range.begin) + "-" + blocks(action.range.end);
  switch (action.kind) {
    case CopyAction::Kind::kAsk:
      return fmt::format("{} {}@{}", action.hold ? "hold" : "ask",
                         action.range.empty() ? "" : range, action.source.value);
    case CopyAction::Kind::kFetch:
      return fmt::format("fetch {}@{}", range, action.source.value);
    case CopyAction::Kind::kClear:
      return "clear " + range;
    case CopyAction::Kind::kCut:
      return "cut " + blocks(action.range.begin);
  }
  return "";
}

inline std::string Of(char letter, uint64_t blocks) { return std::string(blocks * kBlock, letter); }

inline CopyOrder OrderOf(uint64_t size_bytes, uint64_t chunk_bytes, std::vector<Segment> segments) {
  CopyOrder order;
  order.file = kFile;
  order.order = 1;
  order.data_version = kVersion;
  order.size_bytes = size_bytes;
  order.sources.chunk_bytes = chunk_bytes;
  order.sources.segments = std::move(segments);
  for (const NodeId node : order.sources.Nodes()) {
    if (node == kNoNode) continue;
    NodeAddress& address = order.nodes.emplace_back();
    address.node = node;
    address.incarnation = 1;
  }
  return order;
}

inline constexpr CopyLimits kTestLimits{.fetch_bytes = 2 << 20, .fetches_per_source_max = 2};

// A node that copies, and its sources.
struct Rig {
  std::map<NodeId, Peer*> peers;
  Peer own;
  const CopyLimits limits;
  CopyTask task;
  Time now{1};
  std::string log;

  Rig(CopyOrder order, std::map<NodeId, Peer*> sources, CopyLimits bounds = kTestLimits)
      : peers(std::move(sources)), limits(bounds), task(std::move(order), bounds) {}

  void Perform(const CopyAction& action) {
    switch (action.kind) {
      case CopyAction::Kind::kAsk: {
        const BlockSums theirs =
            SumsOf(*peers.at(action.source), action.range, action.after_change);
        task.OnSums(action, theirs, SumsOf(own, action.range, 0), now);
        break;
      }
      case CopyAction::Kind::kFetch: {
        EXPECT_LE(action.range.size(), limits.fetch_bytes);
        std::string bytes = peers.at(action.source)->bytes;
        bytes.resize(std::max<size_t>(bytes.size(), action.range.end), '\0');
        own.Write(action.range.begin, bytes.substr(action.range.begin, action.range.size()));
        task.OnDone(action, now);
        break;
      }
      case CopyAction::Kind::kClear:
        own.Write(action.range.begin, std::string(action.range.size(), '\0'));
        task.OnDone(action, now);
        break;
      case CopyAction::Kind::kCut:
        own.Cut(action.range.begin);
        task.OnDone(action, now);
        break;
    }
    for (const ByteRange& range : task.TakeSettled()) own.log.Note(range, ++own.change);
  }
  // Performs actions one at a time, until there are none or the next would have to wait.
  void Run() {
    for (int step = 0; step < 1000; ++step) {
      const auto action = task.Next(now, {.fetches = true, .holds = false});
      if (!action) return;
      if (!log.empty()) log += ", ";
      log += Show(*action);
      Perform(*action);
    }
    FAIL() << "it goes on for ever: " << log.substr(0, 500);
  }
};

inline constexpr NodeId kA{1};
inline constexpr NodeId kB{2};

// Following: the order while the file is written. After: the order at its close.
inline CopyOrder Following(CopyOrder order) {
  order.follow = true;
  order.size_bytes = 0;
  return order;
}
inline CopyOrder After(CopyOrder order) {
  ++order.order;
  return order;
}

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_COPY_TASK_FIXTURE_H_
