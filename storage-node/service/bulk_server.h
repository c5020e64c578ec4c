// BulkServer: listens on a TCP address and a Unix socket and serves the connections.
//
// One thread, the loop, accepts connections and holds the silent ones: those not proven yet
// (BulkDoor) and those idle. A connection has one of a bounded pool of threads, and its buffer,
// only while it has a request. ConnectionBook decides which connections may stay. One that must
// close is told first, so that its client can repeat its requests.
//
// Start and destroy it from the same thread.
#ifndef MOSA_STORAGE_NODE_SERVICE_BULK_SERVER_H_
#define MOSA_STORAGE_NODE_SERVICE_BULK_SERVER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/rare_log.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "storage-node/core/connection_book.h"
#include "storage-node/engine/access_gate.h"
#include "storage-node/engine/object_engine.h"
#include "storage-node/service/bulk_connection.h"
#include "storage-node/service/bulk_door.h"

namespace mosa::node {

struct BulkServerOptions {
  std::string listen;  // host:port; port 0 takes a free one.
  std::string socket_path;
  std::string node_name;  // As clients know it from the manager.
  // Also limited to half of the process's descriptors.
  ConnectionLimits limits;
};

class BulkServer {
 public:
  // Unavailable if an address cannot be bound, InvalidArgument if it is malformed. The references
  // must outlive the server.
  static Result<std::unique_ptr<BulkServer>> Start(const BulkServerOptions& options,
                                                   ObjectEngine& engine, const AccessGate& gate,
                                                   const Copier& copier);
  // Ends all connections, waits for requests in progress, and removes the Unix socket.
  ~BulkServer();

  // host:port with the real port.
  const std::string& address() const { return address_; }
  const std::string& socket_path() const { return options_.socket_path; }

 private:
  struct Connection {
    ConnectionId id;
    bool is_unix = false;
    std::string peer;  // For the log.
    std::string host;
    FrameSocket socket;                      // Until the client's identity is proven.
    std::unique_ptr<BulkDoor> door;          // Likewise.
    std::unique_ptr<BulkConnection> served;  // Set once the identity is proven.
    // Why there is no place for a proven connection. It waits for one until its proof time ends.
    std::optional<Status> lacks_place;
    int fd = -1;
  };
  using ConnectionRef = std::shared_ptr<Connection>;  // The loop may hold one while it is closed.

  BulkServer(BulkServerOptions options, ObjectEngine& engine, const AccessGate& gate,
             const Copier& copier);

  Status Listen();
  // ---- the loop
  void Loop();
  void Accept(int listener, bool is_unix);
  void OnReadable(ConnectionId id);
  void OnDoor(const ConnectionRef& connection);
  void Drain(const ConnectionRef& connection);
  void CloseExpired();
  int NextTimeout() const;
  // ---- the pool
  void Dispatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work(uint64_t worker);
  void Rest(SystemMutexLock& lock, bool& ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // ---- the loop and the pool
  void LetIn(const ConnectionRef& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetInWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Review() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // Updates others_wait_.
  // Waits for its next byte.
  bool Arm(const Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for an idle connection's next request.
  void Await(const Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(ConnectionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendAway(ConnectionId id, const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after Start.
  const BulkServerOptions options_;
  ObjectEngine& engine_;
  const AccessGate& gate_;
  const Copier& copier_;
  const SystemClock clock_;
  RareLog warnings_, closings_;  // Thread-safe.
  std::string address_;
  UniqueFd tcp_;
  UniqueFd unix_;
  UniqueFd stop_event_;
  UniqueFd epoll_;
  std::thread loop_;

  std::atomic<bool> others_wait_{false};  // Connections wait for a thread or a place.

  mutable SystemMutex mutex_;
  SystemCondVar work_;
  ConnectionBook book_ ABSL_GUARDED_BY(mutex_);
  std::map<ConnectionId, ConnectionRef> connections_ ABSL_GUARDED_BY(mutex_);
  // Connections that lack a place, in order.
  std::deque<ConnectionId> at_the_door_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::thread> workers_ ABSL_GUARDED_BY(mutex_);
  std::list<std::thread> ended_workers_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_worker_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t resting_ ABSL_GUARDED_BY(mutex_) = 0;  // Workers without a connection.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_BULK_SERVER_H_
