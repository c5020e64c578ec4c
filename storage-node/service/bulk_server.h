// BulkServer: listens on a TCP address and a Unix socket and serves the connections.
//
// One thread, the loop, accepts and holds all connections that are silent: those that have not
// proved whose they are (BulkDoor) and those that are idle. A connection has one of a bounded pool
// of threads, and its buffer, only while it has a request. ConnectionBook decides which may stay;
// one that has to go is told so before, so that the client can repeat what it had asked.
//
// Threads: Start and Stop from one thread.
#ifndef MOSA_STORAGE_NODE_SERVICE_BULK_SERVER_H_
#define MOSA_STORAGE_NODE_SERVICE_BULK_SERVER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "storage-node/core/connection_book.h"
#include "storage-node/service/access_gate.h"
#include "storage-node/service/bulk_connection.h"
#include "storage-node/service/bulk_door.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {

struct BulkServerOptions {
  std::string listen;  // host:port; port 0 takes a free one.
  std::string socket_path;
  std::string node_name;  // As clients know it from the manager.
  // As many connections as half of the process's descriptors, if these are fewer.
  ConnectionLimits limits;
};

class BulkServer {
 public:
  // Unavailable if an address cannot be had, InvalidArgument if it is none. The others
  // must outlive the server.
  static Result<std::unique_ptr<BulkServer>> Start(const BulkServerOptions& options,
                                                   ObjectEngine& engine, const AccessGate& gate,
                                                   const Copier& copier);
  // Ends all connections, waits for the requests that they are at, removes the Unix socket.
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
    FrameSocket socket;                      // Until it has proved whose it is.
    std::unique_ptr<BulkDoor> door;          // As well.
    std::unique_ptr<BulkConnection> served;  // From then on.
    // Set once it has proved its client and waits for a free place, until its proof time ends.
    std::optional<Status> lacks_place;
    int fd = -1;
  };
  using ConnectionRef = std::shared_ptr<Connection>;  // The loop may have it while it is closed.

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
  // ---- the pool; these need mutex_ but for Work
  void Dispatch();
  void Work(uint64_t worker);
  void Rest(std::unique_lock<std::mutex>& lock, bool& ends);
  // ---- both; need mutex_
  void LetIn(const ConnectionRef& connection);
  void LetInWaiting();
  void Review();  // Whether threads are to stay with connections that have no request.
  bool Arm(const Connection& connection);    // Waits for its next byte.
  void Await(const Connection& connection);  // An idle one's next request.
  void Close(ConnectionId id);
  void SendAway(ConnectionId id, const Status& why);
  void Publish();
  void WarnRarely(const std::string& text);

  // Constant after Start.
  const BulkServerOptions options_;
  ObjectEngine& engine_;
  const AccessGate& gate_;
  const Copier& copier_;
  const SystemClock clock_;
  std::string address_;
  UniqueFd tcp_;
  UniqueFd unix_;
  UniqueFd stop_event_;
  UniqueFd epoll_;
  std::thread loop_;

  std::atomic<bool> others_wait_{false};  // For a thread or a place, and all are in use.

  mutable std::mutex mutex_;
  std::condition_variable work_;
  // Guarded by mutex_:
  ConnectionBook book_;
  std::map<ConnectionId, ConnectionRef> connections_;
  std::deque<ConnectionId> at_the_door_;  // Those that lack a place, in order.
  std::map<uint64_t, std::thread> workers_;
  std::list<std::thread> ended_workers_;
  uint64_t last_worker_ = 0;
  size_t resting_ = 0;  // Workers that wait for something to do.
  bool stopping_ = false;
  std::optional<Time> warned_at_;
  uint64_t unwarned_ = 0;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_BULK_SERVER_H_
