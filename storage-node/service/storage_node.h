// StorageNode: a whole storage node in this process: store, engine, bulk server, session with the
// manager, sealing and scrubbing. main.cc runs one; tests may run several.
#ifndef MOSA_STORAGE_NODE_SERVICE_STORAGE_NODE_H_
#define MOSA_STORAGE_NODE_SERVICE_STORAGE_NODE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/model/session.h"
#include "proto/convert/credentials.h"
#include "storage-node/engine/access_gate.h"
#include "storage-node/engine/object_engine.h"
#include "storage-node/service/bulk_server.h"
#include "storage-node/service/copier.h"
#include "storage-node/service/manager_link.h"

namespace mosa::node {

struct StorageNodeOptions {
  std::string name;
  std::string manager_address;
  std::string listen;  // host:port; not a wildcard, since clients connect to this address.
  std::string directory;
  std::string socket_path;
  uint64_t limit_bytes = 0;
  uint64_t scrub_bytes_per_second = 8 << 20;  // 0: no scrubbing.
  std::optional<ClusterSecret> secret;
  Duration start_wait = kWaitMax;  // Maximum wait for the manager.
  // Polled a few times a second during that wait; true ends it.
  std::function<bool()> give_up = [] { return false; };
  // Called once, on another thread, if the node cannot continue.
  std::function<void(Status)> on_shutdown = [](Status) {};
};

// InvalidArgument, with the numbers, if `limit_bytes` exceeds the machine's memory or the capacity
// of the file system that has (or will have) `directory`.
Status CheckLimit(const std::string& directory, uint64_t limit_bytes);

class StorageNode {
 public:
  // Returns when the node is registered and serving; Aborted if `give_up` returned true before.
  static Result<std::unique_ptr<StorageNode>> Start(const StorageNodeOptions& options);
  // Stops serving, and waits for requests in progress.
  ~StorageNode();

  // Residence times of requests, and current use. Thread-safe.
  ResidenceSnapshot Residence() const { return engine_->SnapshotOfResidence(); }
  const std::string& address() const { return server_->address(); }
  const std::string& socket_path() const { return server_->socket_path(); }

 private:
  explicit StorageNode(uint64_t scrub_bytes_per_second)
      : scrub_bytes_per_second_(scrub_bytes_per_second), gate_(clock_) {}

  void RunAccountant();
  void RunSealer();
  void RunScrubber();
  bool Sleep(Duration duration);  // False when stopping.
  bool stopping();

  // Constant after Start.
  const uint64_t scrub_bytes_per_second_;
  const SystemClock clock_;
  AccessGate gate_;
  std::unique_ptr<ObjectEngine> engine_;
  std::unique_ptr<Copier> copier_;
  std::unique_ptr<BulkServer> server_;
  std::unique_ptr<ManagerLink> link_;
  std::thread accountant_;
  std::thread sealer_;
  std::thread scrubber_;

  SystemMutex mutex_;
  SystemCondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_STORAGE_NODE_H_
