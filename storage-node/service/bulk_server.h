// BulkServer: listens on a TCP address and a Unix socket and serves each connection in a thread of
// its own. A node has a bounded pool of connections per client, so threads are few and mostly
// asleep; one over the limit is answered Unavailable and closed.
//
// Threads: Start and Stop from one thread.
#ifndef MOSA_STORAGE_NODE_SERVICE_BULK_SERVER_H_
#define MOSA_STORAGE_NODE_SERVICE_BULK_SERVER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "storage-node/service/access_gate.h"
#include "storage-node/service/bulk_connection.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {

struct BulkServerOptions {
  std::string listen;  // host:port; port 0 takes a free one.
  std::string socket_path;
  // Each with a thread: of some thirty hosts if all of a mount's (8) and a copier's (24) are in
  // use.
  size_t connections_max = 1024;
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
  BulkServer(BulkServerOptions options, ObjectEngine& engine, const AccessGate& gate,
             const Copier& copier)
      : options_(std::move(options)), engine_(engine), gate_(gate), copier_(copier) {}

  struct Served {
    explicit Served(std::unique_ptr<BulkConnection> c) : connection(std::move(c)) {}
    std::unique_ptr<BulkConnection> connection;
    std::thread thread;
    std::atomic<bool> done{false};
  };

  Status Listen();
  void AcceptLoop();
  void Accept(int listener, bool is_unix);
  void Reap();

  // Constant after Start.
  const BulkServerOptions options_;
  ObjectEngine& engine_;
  const AccessGate& gate_;
  const Copier& copier_;
  std::string address_;
  UniqueFd tcp_;
  UniqueFd unix_;
  UniqueFd stop_event_;
  std::thread acceptor_;

  // Of the accepting thread, and of the destructor after it.
  std::list<Served> served_;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_BULK_SERVER_H_
