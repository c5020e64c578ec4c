// Copier: carries out the manager's CopyOrders. Fetches parts of files from other nodes, as their
// client, and stores them here. storage-node/core/copy_task.h makes the decisions.
//
// A fixed pool of threads serves all orders in turn. At most kFetchesMax fetches are in progress,
// each with one buffer, and at most kHoldsMax questions that a source may hold; if more orders wait
// for their sources, each question is held for a shorter time.
//
// Once Take or Cancel returns, a replaced or cancelled order writes nothing more. Thread-safe;
// reports are made on the pool's threads, without locks held.
#ifndef MOSA_STORAGE_NODE_SERVICE_COPIER_H_
#define MOSA_STORAGE_NODE_SERVICE_COPIER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "client-sai/api/node_api.h"
#include "common/base/clock.h"
#include "common/base/rare_log.h"
#include "common/base/status.h"
#include "common/base/sync.h"
#include "common/model/block_sums.h"
#include "common/model/storage.h"
#include "storage-node/core/copy_task.h"
#include "storage-node/engine/access_gate.h"
#include "storage-node/engine/object_engine.h"

namespace mosa::node {

class Copier {
 public:
  using Report = std::function<void(const CopyReport&)>;

  // At most this many calls are in progress at once, and each should end within kCallWait after
  // what it lets the source wait.
  static constexpr size_t kCallsMax = 32;
  static constexpr Duration kCallWait = Seconds(5);

  // `engine`, `gate` and `clock` must outlive it. `nodes` are the other nodes.
  Copier(ObjectEngine& engine, const AccessGate& gate, const Clock& clock,
         std::unique_ptr<sai::NodeApi> nodes, CopyLimits limits = {});
  ~Copier();
  // Starts the threads. Until then orders are only stored.
  void Start(Report report);
  // Stops what is in progress. Nothing is reported afterwards.
  void Stop();

  // Replaces any earlier order for the file. If that one follows the writer and has the same
  // sources, its fetches continue. An invalid order is reported as failed.
  void Take(CopyOrder order);
  void Cancel(std::span<const FileId> files);
  // Call when the manager that gave the orders was replaced or has forgotten them.
  void CancelAll();

  // Fills in what a node that copies from this one needs to know of the order here (BlockSums:
  // order, tail_settled), and which blocks of `range` are settled.
  void DescribeOrder(FileId file, ByteRange range, BlockSums& sums,
                     std::vector<bool>& settled) const;

 private:
  struct Job;
  class ObjectChange;
  using JobRef = std::shared_ptr<Job>;  // A thread keeps its job alive after a cancel.
  struct Turn {
    JobRef job;
    CopyAction action;
    Duration hold;
    std::unique_ptr<std::byte[]> buffer;  // For fetches; null: not allocated yet.
    bool may_be_absent = false;           // The source may have no object of the file.
    Changer changer;                      // Changes made for the order.
    bool follows = false;                 // The order follows a writer.
    bool may_clear = true;                // Zeroes in the source are final.
  };

  void Run();
  // Blocks until there is something to do; returns nothing when stopping.
  std::optional<Turn> NextTurn();
  std::optional<Turn> PickTurn(Time now, std::optional<Time>& wake_at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Perform(Turn& turn, std::span<std::byte> scratch);
  Status Ask(const Turn& turn, std::span<std::byte> scratch, BlockSums& theirs, BlockSums& own);
  Status Fetch(const Turn& turn, std::span<std::byte> buffer);
  Status Store(const Turn& turn, ByteRange range, std::span<const std::byte> bytes);
  Status Change(const Turn& turn, CopyAction::Kind kind, ByteRange range);
  // Returns false if the file's earlier order, if any, must end.
  bool GoOn(const CopyOrder& order);
  void NoteNodes(const CopyOrder& order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the report that is due, if any.
  std::optional<CopyReport> ReportOf(Job& job, Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Retire(const JobRef& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefreshNodes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ObjectEngine& engine_;
  const AccessGate& gate_;
  const CopyLimits limits_;
  const Clock& clock_;
  const std::unique_ptr<sai::NodeApi> nodes_;
  Report report_;  // Constant while threads run.

  RareLog failures_{20};
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<FileId, JobRef> jobs_ ABSL_GUARDED_BY(mutex_);
  std::set<FileId> active_ ABSL_GUARDED_BY(mutex_);  // Jobs in jobs_ that are not finished.
  std::deque<std::weak_ptr<Job>> finished_ ABSL_GUARDED_BY(mutex_);
  std::map<NodeId, NodeAddress> known_nodes_ ABSL_GUARDED_BY(mutex_);
  // Idle; freed when there is nothing to do.
  std::vector<std::unique_ptr<std::byte[]>> buffers_ ABSL_GUARDED_BY(mutex_);
  FileId served_last_ ABSL_GUARDED_BY(mutex_);
  Time worked_last_ ABSL_GUARDED_BY(mutex_);
  size_t fetching_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t holding_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<Thread> threads_;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_COPIER_H_
