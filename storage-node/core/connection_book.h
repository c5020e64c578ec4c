// ConnectionBook: which connections of the bulk plane may stay, and which is served next.
//
// A thread for each connection is the obvious design; then whoever connects and says nothing takes
// a thread, and enough of them end the node for everybody. Here a connection costs a descriptor and
// a small record until it has proved whose it is, has 2 s for that, and holds a thread only while
// it has a request.
//
// Each connection is in one phase:
//   unproven   Has not shown whose it is. At most `unproven_max`: one more displaces the oldest of
//              the host that has the most, so a flood from one host displaces its own.
//   idle       Proven, without a request. When slots are short the longest idle one goes.
//   queued     Has a request and waits for a thread; first come, first served, but a client that
//              has `threads_per_client_max` already lets others go first.
//   served     A thread is at it.
//   parting    Was told to go; closed when the peer has closed, or in 2 s.
//
// Pure; used under its owner's lock. Functions that return ids name connections whose phase has
// just become parting.
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
  // A mount keeps up to 8 by TCP, and its own host's mount 8 by the Unix socket; a copying node 32.
  size_t proven_max = 4096;
  size_t per_client_max = 64;
  // Each with a buffer of 256 KiB.
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

  // A new connection from `host`. Names one to close at once if there are too many unproven ones.
  ConnectionId Accept(const std::string& host, Time now, std::optional<ConnectionId>& displaced);
  // It has proved to be `client`'s, and is idle. With the numbers, ResourceExhausted if the client
  // has all of its slots in use, Unavailable if all clients together have: it stays unproven.
  // `parting` gets the connection that goes to make room.
  Status Prove(ConnectionId id, const std::string& client, std::vector<ConnectionId>& parting,
               Time now);
  // An idle connection has a request.
  void Queue(ConnectionId id);
  // The next one to serve, if there is one and a thread may take it.
  std::optional<ConnectionId> Next();
  // A served connection has no request any more.
  void Idle(ConnectionId id);
  // It is closed, whatever its phase.
  void Remove(ConnectionId id);
  // An unproven or idle one is told to go.
  void Part(ConnectionId id, Time now);
  // The process is short of descriptors: who goes, if anybody can.
  std::optional<ConnectionId> Spare();

  // Counts one that Prove has refused for good.
  void CountTurnedAway() { ++turned_away_; }

  // Unproven and parting ones whose time is over, and parting ones beyond `unproven_max`: to be
  // closed.
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
    Time until;         // For unproven and parting ones.
    uint64_t idle_since = 0;
  };
  struct Client {
    size_t connections = 0;
    size_t served = 0;
    std::set<std::pair<uint64_t, ConnectionId>> idle;
    std::deque<ConnectionId> waiting;  // Have a request while all its threads are in use.
  };

  Entry& At(ConnectionId id);
  void Leave(ConnectionId id, Entry& entry);  // What its phase counts.
  void LeaveClient(const std::string& name, Client& client);
  std::optional<ConnectionId> LongestIdle() const;
  static void Forget(std::deque<ConnectionId>& queue, ConnectionId id);

  const ConnectionLimits limits_;
  uint64_t last_id_ = 0;
  uint64_t idle_count_ = 0;  // Counts events, to order idle ones.
  std::map<ConnectionId, Entry> entries_;
  std::map<std::string, std::set<ConnectionId>> unproven_of_;  // By host; ids ascend with age.
  std::map<std::string, Client> clients_;
  std::set<std::pair<uint64_t, ConnectionId>> idle_;
  std::deque<ConnectionId> queue_;
  std::set<std::pair<Time, ConnectionId>> expiries_;
  std::set<std::pair<Time, ConnectionId>> parting_;  // The ones in `expiries_` that are parting.
  size_t unproven_count_ = 0;
  size_t proven_count_ = 0;
  size_t served_count_ = 0;
  uint64_t turned_away_ = 0;
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_CORE_CONNECTION_BOOK_H_
