// The door in front of gRPC: it accepts connections, and hands on those that there is room for.
//
// gRPC's own listener ends for good on the first accept without a descriptor, and takes as many
// connections as come: one user could leave none for the database. So the door accepts in its
// place. Some descriptors are never given to connections, one address has a share of the others,
// and a connection beyond that is closed at once. Without a descriptor the door waits, and goes on.
// A connection is gRPC's from the moment that it is handed on; the door looks once a second
// whether its descriptor is still that socket.
//
// Open, Serve and Close by one thread; what it counts may be read by any.
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

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "manager/service/default_limits.h"

namespace mosa::manager {

// Connections by the address that they come from. A plain value: one thread.
class DoorBook {
 public:
  struct Socket {
    ino_t inode = 0;  // Sockets have numbers of their own, which descriptors do not.
    std::string host;
  };

  explicit DoorBook(const DoorLimits& limits) : limits_(limits) {}

  bool HasRoomFor(const std::string& host) const {
    return sockets_.size() < limits_.connections_max && CountOf(host) < limits_.per_address_max;
  }
  void Add(int descriptor, Socket socket);
  // Forgets connections whose descriptor is closed, or another file's by now.
  void Sweep();

  size_t count() const { return sockets_.size(); }
  // How many the address with the most connections has.
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

  // Listens, and lets nobody in yet. Unavailable if the port is in use or the address is not this
  // host's.
  static Result<std::unique_ptr<ConnectionDoor>> Open(const std::string& listen,
                                                      const DoorLimits& limits);
  ~ConnectionDoor() { Close(); }
  ConnectionDoor(const ConnectionDoor&) = delete;
  ConnectionDoor& operator=(const ConnectionDoor&) = delete;

  // Begins to hand connections on, to a server that has started.
  void Serve(std::unique_ptr<Acceptor> acceptor);
  // Nobody is let in any more. Before the server is shut down, which takes no connections then.
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
  // False if nobody waits, or there is no descriptor for who does.
  bool AcceptOne();
  void LetIn(UniqueFd socket, const sockaddr_storage& peer);
  void SweepIfDue(std::chrono::milliseconds every);
  void WarnRarely(const std::string& text);

  // Constant.
  const DoorLimits limits_;
  UniqueFd listener_;
  const UniqueFd stop_;
  const std::string address_;

  // Used by the thread only.
  DoorBook book_;
  std::unique_ptr<Acceptor> acceptor_;
  Clock::time_point swept_at_, warned_at_;
  uint64_t unwarned_ = 0;
  bool lacks_descriptors_ = false, has_warned_ = false;
  std::thread thread_;

  std::atomic<size_t> connections_ = 0, most_of_one_address_ = 0;
  std::atomic<uint64_t> turned_away_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_CONNECTION_DOOR_H_
