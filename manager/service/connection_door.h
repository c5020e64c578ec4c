// ConnectionDoor: accepts connections in place of gRPC, and hands over those for which there is
// room.
//
// gRPC's own listener stops for good when an accept fails for lack of a descriptor, and it accepts
// any number of connections: one user could leave no descriptors for the database. The door
// reserves some descriptors, limits each address to a share of the others, and closes connections
// beyond that at once. Without a free descriptor it waits and then continues. gRPC owns a
// connection from the hand-over on. Once a second the door checks whether each descriptor still is
// that socket.
//
// Open, Serve and Close must be called from one thread. Counters may be read from any thread.
#ifndef MOSA_MANAGER_SERVICE_CONNECTION_DOOR_H_
#define MOSA_MANAGER_SERVICE_CONNECTION_DOOR_H_

#include <grpcpp/server_builder.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/base/rare_log.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "manager/service/default_limits.h"

namespace mosa::manager {

// Counts connections by remote address. Not thread-safe.
class DoorBook {
 public:
  struct Socket {
    ino_t inode = 0;  // Identifies the socket; descriptor numbers are reused.
    std::string host;
  };

  explicit DoorBook(const DoorLimits& limits) : limits_(limits) {}

  bool HasRoomFor(const std::string& host) const {
    return sockets_.size() < limits_.connections_max && CountOf(host) < limits_.per_address_max;
  }
  void Add(int descriptor, Socket socket);
  // Forgets connections whose descriptor was closed or reused.
  void Sweep();

  size_t count() const { return sockets_.size(); }
  // Returns the number of connections of the address with the most.
  size_t most_of_one_address() const;

 private:
  size_t CountOf(const std::string& host) const {
    const auto found = hosts_.find(host);
    return found == hosts_.end() ? 0 : found->second;
  }
  void Forget(const std::string& host);

  const DoorLimits limits_;
  std::map<int, Socket> sockets_;  // By descriptor.
  std::map<std::string, size_t> hosts_;
};

class ConnectionDoor {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  // Listens, but accepts nothing yet. Unavailable if the port is in use or the address is not
  // local.
  static Result<std::unique_ptr<ConnectionDoor>> Open(const std::string& listen,
                                                      const DoorLimits& limits);
  ~ConnectionDoor() { Close(); }
  ConnectionDoor(const ConnectionDoor&) = delete;
  ConnectionDoor& operator=(const ConnectionDoor&) = delete;

  // Starts to accept connections and to hand them to a server, which must have been started.
  void Serve(std::unique_ptr<Acceptor> acceptor);
  // Stops accepting. Must be called before the server is shut down.
  void Close();

  const std::string& address() const {
    return address_;
  }  // The host as it was given, and the port.
  const DoorLimits& limits() const { return limits_; }
  size_t connections() const { return connections_; }
  size_t most_of_one_address() const { return most_of_one_address_; }
  uint64_t turned_away() const { return turned_away_; }

 private:
  using Clock = std::chrono::steady_clock;

  ConnectionDoor(const DoorLimits& limits, UniqueFd listener, UniqueFd stop, std::string address)
      : limits_(limits),
        listener_(std::move(listener)),
        stop_(std::move(stop)),
        address_(std::move(address)),
        book_(limits) {}
  void Loop();
  // Returns false if no connection is pending, or there is no descriptor for it.
  bool AcceptOne();
  void LetIn(UniqueFd socket, const sockaddr_storage& peer);
  void SweepIfDue(std::chrono::milliseconds every);

  // Constant.
  const DoorLimits limits_;
  UniqueFd listener_;
  const UniqueFd stop_;
  const std::string address_;

  // Used only by the door's thread.
  DoorBook book_;
  std::unique_ptr<Acceptor> acceptor_;
  Clock::time_point swept_at_;
  RareLog warnings_;
  bool lacks_descriptors_ = false;
  std::thread thread_;

  std::atomic<size_t> connections_ = 0, most_of_one_address_ = 0;
  std::atomic<uint64_t> turned_away_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_CONNECTION_DOOR_H_
