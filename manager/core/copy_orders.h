// Which nodes have been ordered to copy which files, how far they are, and which wait for a turn.
// Only bookkeeping: what is to be ordered is decided elsewhere (state_copies.cc). Not durable:
// after a restart of the manager, or of a node's stream, orders are given again.
//
// One owner, one thread.
#ifndef MOSA_MANAGER_CORE_COPY_ORDERS_H_
#define MOSA_MANAGER_CORE_COPY_ORDERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/layout.h"

namespace mosa::manager {

// Orders that a node works on at a time; those that follow a writer do not count.
inline constexpr size_t kCopyOrdersPerNode = 4;

struct CopyTask {
  uint64_t order = 0;  // 0: none is out.
  uint64_t data_version = 0;
  bool follow = false;
  Layout sources{};  // As ordered.
  std::vector<NodeId> relays{};
  bool relay_cancelled = false;  // One of them, which will not say that it has what it passes on.
  uint64_t copied_bytes = 0;
  std::string failure{};  // Why the last order failed, and when it may be tried again.
  Time retry_at{};

  bool running() const { return order != 0; }
  bool operator==(const CopyTask&) const = default;
};

class CopyOrders {
 public:
  // What the node was ordered, or nothing.
  const CopyTask* Find(FileId file, NodeId node) const;
  // A file's tasks, by node; empty if there are none.
  const std::map<NodeId, CopyTask>& Of(FileId file) const;

  // True if the node has room for one more order, or works on one for this file.
  bool MayStart(FileId file, NodeId node) const;
  // Takes the place of what the node was ordered before.
  void Start(FileId file, NodeId node, CopyTask task);
  void SetProgress(FileId file, NodeId node, uint64_t copied_bytes);
  // The order is done, or given up.
  void Finish(FileId file, NodeId node);
  // A node's order is cancelled: whoever was to fetch from it as a relay must be ordered anew.
  void NoteCancelled(FileId file, NodeId node);
  // Its sources are remembered, so that the next order can name others.
  void Fail(FileId file, NodeId node, std::string why, Time retry_at);

  // Waits for its turn at the node: fewest live copies first, then who came first.
  void Enqueue(FileId file, NodeId node, uint32_t live_copies);
  bool IsQueued(FileId file, NodeId node) const { return queued_.contains({node, file}); }
  // A file whose turn it is at some node that has room for one more order; it is no longer queued
  // there.
  std::optional<FileId> TakeNext();

  void ForgetFile(FileId file);
  // The node does not know its orders any more, and may not have what it had. Returns the files of
  // which it had some, or was a source: those tasks have no sources any more, and a report of them
  // makes nothing valid.
  std::vector<FileId> ForgetNode(NodeId node);

  size_t running(NodeId node) const;

 private:
  using Turn = std::tuple<uint32_t, uint64_t, FileId>;  // Live copies, number in line.

  void Dequeue(FileId file, NodeId node);

  std::map<FileId, std::map<NodeId, CopyTask>> tasks_;
  std::map<NodeId, std::set<FileId>> running_;  // Without those that follow.
  std::map<NodeId, std::set<Turn>> queues_;
  std::map<std::pair<NodeId, FileId>, Turn> queued_;
  uint64_t next_in_line_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_COPY_ORDERS_H_
