// A manager in this process: the real core over a store in memory, one thread per client that
// delivers in order, as the gRPC stream does. For tests and for the predictor.
#ifndef MOSA_TESTS_SUPPORT_LOCAL_MANAGER_H_
#define MOSA_TESTS_SUPPORT_LOCAL_MANAGER_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client-sai/api/manager_api.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "manager/core/manager_core.h"
#include "manager/store/metadata_store.h"

namespace mosa::testing {

class LocalManagerApi;

// Thread-safe. Outlives the clients that it hands out.
class LocalManager {
 public:
  LocalManager(manager::ManagerOptions options, const Clock& clock);
  ~LocalManager();

  // A client on the host `node_name` (empty: a host without a storage node).
  std::unique_ptr<sai::ManagerApi> NewClient(std::string node_name);
  // `report` is asked for a heartbeat every kHeartbeatEvery, and after each order.
  NodeId AddNode(NodeRegistration registration, std::function<void(const NodeOrder&)> order,
                 std::function<NodeHeartbeat()> report);
  void ReportCopy(NodeId node, const CopyReport& report);
  // From now on the node is not heard any more.
  void SilenceNode(NodeId node);

  // What people and schedulers change: a rule, a hint by path.
  manager::AdminReply Change(const manager::Command& command);
  // From now on nothing may grow.
  void RefuseGrowth(const std::string& why) { Step(manager::SetStorePressure{0, 0, why}); }
  manager::ClusterStatus Status();
  Result<manager::FileStatus> StatusOf(std::string_view path);
  // How many envelopes with requests all clients together have sent.
  uint64_t envelopes() const { return envelopes_; }

 private:
  friend class LocalManagerApi;
  struct NodeLink {
    std::function<void(const NodeOrder&)> order;
    std::function<NodeHeartbeat()> report;
    bool silent = false;
  };

  std::optional<manager::AdminReply> Step(const manager::Command& command);
  void Deliver(manager::Effects effects,
               std::vector<std::pair<NodeId, NodeOrder>>* orders);  // Caller holds mutex_.
  void CarryOut(const std::vector<std::pair<NodeId, NodeOrder>>& orders);
  void FillInline(ClientId client, ReplyEnvelope& envelope);  // Caller holds mutex_.
  void Run();

  const Clock& clock_;
  std::atomic<uint64_t> envelopes_{0};
  SystemMutex mutex_;
  // Guarded by mutex_.
  std::unique_ptr<manager::MetadataStore> store_;
  manager::ManagerCore core_;
  std::map<ClientId, LocalManagerApi*> clients_;
  std::map<NodeId, NodeLink> nodes_;
  std::map<std::pair<ClientId, RequestId>, std::vector<FileId>> files_of_requests_;
  NodeId registered_;
  uint64_t next_client_ = 1;
  bool stopping_ = false;
  std::thread ticker_;
};

}  // namespace mosa::testing

#endif  // MOSA_TESTS_SUPPORT_LOCAL_MANAGER_H_
