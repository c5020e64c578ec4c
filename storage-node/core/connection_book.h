// ConnectionBook: decides which connections of the bulk plane may stay, and which is served next.
//
// The obvious design is a thread per connection. Then every silent connection takes a thread, and
// enough of them stop the node for everybody. Here a connection costs a descriptor and a small
// record until it has proved its client's identity, for which it has 2 s. It holds a thread only
// while it has a request.
//
// Each connection is in one phase:
//   unproven   Has not proved its client's identity. At most `unproven_max`: one more displaces the
//              oldest of the host that has the most, so a flood displaces its own connections.
//   idle       Proven, without a request. If places run out, the longest idle one is closed.
//   queued     Has a request and waits for a thread. First come, first served, but a client that
//              has `threads_per_client_max` threads lets others go first.
//   served     Has a thread.
//   parting    Was told to close; closed when the peer has closed, or after 2 s.
//
// Pure; the caller must hold the owner's lock. Ids returned by functions are of connections that
// have just become parting.
#ifndef MOSA_STORAGE_NODE_CORE_CONNECTION_BOOK_H_
#define MOSA_STORAGE_NODE_CORE_CONNECTION_BOOK_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"

namespace mosa::node {

struct ConnectionLimits {
  size_t unproven_max = 256;
  // A mount keeps up to 8 over TCP, and the mount on the same host 8 over the Unix socket; a
  // copying node 32.
  size_t proven_max = 4096;
  size_t per_client_max = 64;
  // Each thread has a buffer of 256 KiB.
  size_t threads_max = 256;
  size_t threads_per_client_max = 32;
  Duration proof_wait = Seconds(2);
  Duration parting_wait = Seconds(2);
};

struct ConnectionId {
  uint64_t value = 0;
  auto operator<=>(const ConnectionId&) const = default;
};

class ConnectionBook {
 public:
  explicit ConnectionBook(const ConnectionLimits& limits) : limits_(limits) {}

  // Adds a connection from `host`. If there are too many unproven ones, `displaced` must be closed
  // at once.
  ConnectionId Accept(const std::string& host, Time now, std::optional<ConnectionId>& displaced);
  // Records that the connection is `client`'s; it becomes idle. ResourceExhausted if all of the
  // client's places are in use, Unavailable if all places of the node are; it then stays unproven.
  // Adds the connection that makes room to `parting`.
  Status Prove(ConnectionId id, const std::string& client, std::vector<ConnectionId>& parting,
               Time now);
  // Call when an idle connection has a request.
  void Queue(ConnectionId id);
  // Returns the next connection to serve, if there is one and a thread may take it.
  std::optional<ConnectionId> Next();
  // Call when a served connection has no further request.
  void Idle(ConnectionId id);
  // Removes a closed connection, whatever its phase.
  void Remove(ConnectionId id);
  // Makes an unproven or idle connection parting.
  void Part(ConnectionId id, Time now);
  // Returns the connection to close if the process lacks descriptors, if any can be closed.
  std::optional<ConnectionId> Spare();

  // Counts a connection that Prove has refused for good.
  void CountTurnedAway() { ++turned_away_; }

  // Returns the connections to close: unproven and parting ones whose time is over, and parting
  // ones beyond `unproven_max`.
  std::vector<ConnectionId> Expired(Time now) const;
  std::optional<Time> next_expiry() const;

  bool IsParting(ConnectionId id) const;
  size_t queued() const { return queue_.size(); }
  size_t unproven() const { return unproven_count_; }
  size_t proven() const { return proven_count_; }
  size_t served() const { return served_count_; }
  uint64_t turned_away() const { return turned_away_; }
  const ConnectionLimits& limits() const { return limits_; }

 private:
  enum class Phase : uint8_t { kUnproven, kIdle, kQueued, kServed, kParting };
  struct Entry {
    Phase phase = Phase::kUnproven;
    std::string owner;  // The host while unproven, then the client.
    Time until;         // For unproven and parting connections.
    uint64_t idle_since = 0;
  };
  struct Client {
    size_t connections = 0;
    size_t served = 0;
    std::set<std::pair<uint64_t, ConnectionId>> idle;
    // Have a request while the client has all its threads in use.
    std::deque<ConnectionId> waiting;
  };

  Entry& At(ConnectionId id);
  void Leave(ConnectionId id, Entry& entry);  // Updates the counters of its phase.
  void LeaveClient(const std::string& name, Client& client);
  std::optional<ConnectionId> LongestIdle() const;
  static void Forget(std::deque<ConnectionId>& queue, ConnectionId id);

  const ConnectionLimits limits_;
  uint64_t last_id_ = 0;
  uint64_t idle_count_ = 0;  // Counts events, to order idle connections.
  std::map<ConnectionId, Entry> entries_;
  std::map<std::string, std::set<ConnectionId>> unproven_of_;  // By host; ids ascend with age.
  std::map<std::string, Client> clients_;
  std::set<std::pair<uint64_t, ConnectionId>> idle_;
  std::deque<ConnectionId> queue_;
  std::set<std::pair<Time, ConnectionId>> expiries_;
  std::set<std::pair<Time, ConnectionId>> parting_;  // The parting entries of `expiries_`.
  size_t unproven_count_ = 0;
  size_t proven_count_ = 0;
  size_t served_count_ = 0;
  uint64_t turned_away_ = 0;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_CONNECTION_BOOK_H_
