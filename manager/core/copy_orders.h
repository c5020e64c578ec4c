// The copy orders of all nodes: what each was ordered, its progress, and which files wait for a
// turn. Bookkeeping only; CopyOrdering decides what to order. Not durable: orders are given
// again after a restart of the manager or of a node's stream.
//
// Not thread-safe.
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

// Maximum number of orders that a node works on at a time. Orders that follow a writer do not
// count.
inline constexpr size_t kCopyOrdersPerNode = 4;

struct CopyTask {
  uint64_t order = 0;  // 0: no order is out.
  uint64_t data_version = 0;
  bool follow = false;
  Layout sources{};  // As ordered.
  uint64_t generation = 0;
  std::vector<NodeId> relays{};
  // One of `relays` was cancelled or has failed, and will not vouch for what it passes on.
  bool relay_ended = false;
  uint64_t copied_bytes = 0;
  std::string failure{};  // Why the last order failed. It may be retried from `retry_at` on.
  Time retry_at{};

  bool running() const { return order != 0; }
  bool operator==(const CopyTask&) const = default;
};

class CopyOrders {
 public:
  // Returns the node's order for the file, or null.
  const CopyTask* Find(FileId file, NodeId node) const;
  // Returns a file's tasks by node; empty if there are none.
  const std::map<NodeId, CopyTask>& Of(FileId file) const;

  // Returns true if the node has room for one more order, or already works on one for this file.
  bool MayStart(FileId file, NodeId node) const;
  // Replaces the node's earlier order for the file.
  void Start(FileId file, NodeId node, CopyTask task);
  void SetProgress(FileId file, NodeId node, uint64_t copied_bytes);
  // Ends the order: it is done or given up.
  void Finish(FileId file, NodeId node);
  // Notes that a node's order was cancelled or has failed. Nodes that fetch from it as a relay need
  // new orders.
  void NoteRelayEnded(FileId file, NodeId node);
  // Ends the order as failed. Its sources are kept, so that the next order can name others.
  void Fail(FileId file, NodeId node, std::string why, Time retry_at);

  // Queues the file at the node. Turns go by fewest live copies, then by arrival.
  void Enqueue(FileId file, NodeId node, uint32_t live_copies);
  bool IsQueued(FileId file, NodeId node) const { return queued_.contains({node, file}); }
  // Takes a file from the queue of some node that has room for one more order. Nothing if there is
  // none.
  std::optional<FileId> TakeNext();

  void ForgetFile(FileId file);
  // Forgets the orders of a node, which no longer knows them and may have lost its objects. Returns
  // the files that it copied, was to copy or was a source of. Tasks that had it as a source lose
  // all sources, and their reports make no copy valid.
  std::vector<FileId> ForgetNode(NodeId node);

  size_t running(NodeId node) const;

 private:
  using Turn = std::tuple<uint32_t, uint64_t, FileId>;  // Live copies, then arrival number.

  void Dequeue(FileId file, NodeId node);

  std::map<FileId, std::map<NodeId, CopyTask>> tasks_;
  std::map<NodeId, std::set<FileId>> running_;  // Without orders that follow a writer.
  std::map<NodeId, std::set<Turn>> queues_;
  std::map<std::pair<NodeId, FileId>, Turn> queued_;
  uint64_t next_in_line_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_COPY_ORDERS_H_
