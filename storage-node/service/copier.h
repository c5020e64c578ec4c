// Copier: carries out the manager's CopyOrders: fetches parts of files from other nodes, as their
// client, and stores them here. The deciding is storage-node/core/copy_task.h's.
//
// A fixed pool of threads serves all orders in turn: at most kFetchesMax fetches are under way,
// each with one buffer, and at most kHoldsMax questions that the source may keep for a while; when
// more orders than these wait for their source, each is held for a shorter time.
//
// A cancelled or replaced order writes nothing any more when Take or Cancel returns. Safe from any
// thread; reports are made on the pool's threads, without locks held.
#ifndef MOSA_STORAGE_NODE_SERVICE_COPIER_H_
#define MOSA_STORAGE_NODE_SERVICE_COPIER_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <thread>
#include <vector>

#include "client-sai/api/bulk_node_api.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/model/block_sums.h"
#include "common/model/storage.h"
#include "storage-node/core/copy_task.h"
#include "storage-node/service/access_gate.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {

class Copier {
 public:
  using Report = std::function<void(const CopyReport&)>;

  // `engine` and `gate` must outlive it.
  Copier(ObjectEngine& engine, const AccessGate& gate, CopyLimits limits = {});
  ~Copier();
  // Begins. Until then orders are only kept.
  void Start(Report report);
  // Ends what is under way; nothing is reported any more.
  void Stop();

  // Takes the place of any order for the file before it; what that one, following, is fetching from
  // the same sources goes on. One that makes no sense is reported as failed.
  void Take(CopyOrder order);
  void Cancel(std::span<const FileId> files);
  // The manager that gave the orders is another one, or has forgotten them.
  void CancelAll();

  // Fills in what a node that copies from this one must know of the order here (BlockSums:
  // order, tail_settled), and which blocks of `range` are settled.
  void DescribeOrder(FileId file, ByteRange range, BlockSums& sums,
                     std::vector<bool>& settled) const;

 private:
  struct Job;
  using JobRef = std::shared_ptr<Job>;  // Threads that work for it keep it while it is cancelled.
  struct Turn {
    JobRef job;
    CopyAction action;
    Duration hold;
    std::unique_ptr<std::byte[]> buffer;  // For fetches; null: to be made.
    bool may_be_absent = false;           // The source may have no object of the file.
    Changer changer;                      // By the order.
    bool follows = false;                 // The order is to follow a writer.
    bool may_clear = true;                // What is zero in the source is so for good.
  };

  void Run();
  // Waits for something to do; none when stopping.
  std::optional<Turn> NextTurn();
  std::optional<Turn> PickTurn(Time now, std::optional<Time>& wake_at);
  void Perform(Turn& turn, std::span<std::byte> scratch);
  Status Ask(const Turn& turn, std::span<std::byte> scratch, BlockSums& theirs, BlockSums& own);
  Status Fetch(const Turn& turn, std::span<std::byte> buffer);
  Status Store(const Turn& turn, ByteRange range, std::span<const std::byte> bytes);
  Status Change(const Turn& turn, CopyAction::Kind kind, ByteRange range);
  // False: the file's order before, if there is one, has to end.
  bool GoOn(const CopyOrder& order, uint64_t generation);
  void NoteNodes(const CopyOrder& order);  // Needs mutex_.
  // What there is to report now, if anything; needs mutex_.
  std::optional<CopyReport> ReportOf(Job& job, Time now);
  void Retire(const JobRef& job);  // Needs mutex_.
  void RefreshNodes();             // Needs mutex_.

  ObjectEngine& engine_;
  const AccessGate& gate_;
  const CopyLimits limits_;
  const SystemClock clock_;
  sai::BulkNodeApi nodes_;
  Report report_;  // Constant while threads run.

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::map<FileId, JobRef> jobs_;
  std::set<FileId> active_;  // The ones in jobs_ that are not finished.
  std::deque<std::weak_ptr<Job>> finished_;
  std::map<NodeId, NodeAddress> known_nodes_;
  std::vector<std::unique_ptr<std::byte[]>> buffers_;  // Idle; freed when there is nothing to do.
  FileId served_last_;
  Time worked_last_;
  size_t fetching_ = 0;
  size_t holding_ = 0;
  bool stopping_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_COPIER_H_
