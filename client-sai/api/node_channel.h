// NodeChannel: one client's connections to one storage node at one address: a bounded pool of TCP
// connections, and one of Unix connections for descriptors. Idle connections are reused.
//
// Thread-safe. No call blocks beyond its deadline, or after the node was found silent.
#ifndef MOSA_CLIENT_SAI_API_NODE_CHANNEL_H_
#define MOSA_CLIENT_SAI_API_NODE_CHANNEL_H_

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"
#include "common/model/session.h"
#include "common/observe/duration_table.h"
#include "mosa/v1/bulk.pb.h"
#include "proto/convert/bulk_frame.h"

namespace mosa::sai {

struct NodeChannelOptions {
  size_t connections_max = kNodeConnectionsMax;  // Per kind.
  Duration connect_wait = Seconds(1);
  Duration hello_wait = Seconds(5);
};

class NodeChannel {
 public:
  // `residence` counts TCP connection attempts as kConnect (proto/convert) and exchanges with lost
  // TCP segments as kResent. May be null; must outlive the channel.
  NodeChannel(NodeAddress address, BulkIdentity identity, NodeChannelOptions options,
              DurationTable* residence)
      : options_(options),
        address_(std::move(address)),
        residence_(residence),
        identity_(std::move(identity)) {}

  // One exchange on a connection. Returns the connection's status; the node's answer is reported by
  // other means.
  using Exchange = std::function<Status(FrameSocket&)>;
  enum class Kind : uint8_t { kTcp, kUnix };
  struct Terms {
    Kind kind = Kind::kTcp;
    bool repeatable = false;
    Time deadline;  // Monotonic.
  };
  // Runs `exchange` on an idle or new connection; waits for one if all are in use. Repeats it once
  // on a new connection if the connection breaks and `repeatable`, or if the node says that it has
  // not begun the request. Unavailable at once while the node is silent or lost.
  Status Run(const Exchange& exchange, const Terms& terms);
  // True if the Unix socket is connected or accepts a connection. A failure is remembered for a
  // second, an untrusted peer for a minute. Does not wait for a reply of the node.
  bool CanReachSocket();
  // Checks a descriptor that arrived on `socket`, a Unix connection of this channel, in reply to a
  // request for an object. Refuses it as CheckObjectDescriptor does; the node's socket is then not
  // used for a minute.
  Status CheckDescriptor(int descriptor, const FrameSocket& socket, bool write);

  // Sets the identity for new connections; closes idle ones with another identity.
  void SetIdentity(const BulkIdentity& identity);
  // Sets whether the node may be reached; if not, calls in progress end.
  void SetState(NodeState state);
  bool SameEndpoint(const NodeAddress& other) const;
  bool HasIdentity(const std::string& host_identity) const {
    return address_.host_identity == host_identity;
  }
  const std::string& node_name() const { return address_.name; }
  // "node n1 (127.0.0.1:7000)"
  std::string Name() const;

 private:
  struct Pool {
    std::vector<std::unique_ptr<FrameSocket>> idle;
    std::set<FrameSocket*> busy;
    std::set<FrameSocket*> outdated;  // Connections in `busy` with an outdated identity.
    size_t connecting = 0;
    SystemCondVar released;
    // Unix connections only. No attempt before `retry_at`; `reached_at` is when CanReachSocket last
    // connected.
    std::optional<Time> retry_at;
    std::optional<Time> reached_at;
  };

  Result<std::unique_ptr<FrameSocket>> Acquire(Kind kind, bool fresh, Time deadline);
  // Opens a connection and completes its hello. The connection's slot moves from `connecting` to
  // `busy` on success and stays in `connecting` on an error.
  Result<std::unique_ptr<FrameSocket>> Open(Kind kind, Time deadline);
  Result<std::unique_ptr<FrameSocket>> OpenOnce(Kind kind, Time deadline);
  void Release(Kind kind, std::unique_ptr<FrameSocket> socket, bool usable);
  Status RunOn(FrameSocket& socket, const Exchange& exchange, Kind kind) const;
  Result<UniqueFd> ConnectTo(Kind kind, Duration wait) const;
  // Counts a part of a request, without a log record of its own.
  void Count(DurationTable::ClassId part, Duration duration) const;
  Status CheckState() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasIdle(Pool& pool) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // Discards broken ones.
  void AvoidSocketFor(Duration time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stops using the socket for a minute, and logs it.
  void Distrust(const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Pool& PoolOf(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return kind == Kind::kTcp ? tcp_ : unix_;
  }

  const NodeChannelOptions options_;
  const NodeAddress address_;  // Its state is the initial one: see state_.
  DurationTable* const residence_;

  mutable SystemMutex mutex_;
  NodeState state_ ABSL_GUARDED_BY(mutex_) = address_.state;
  BulkIdentity identity_ ABSL_GUARDED_BY(mutex_);
  Pool tcp_ ABSL_GUARDED_BY(mutex_);
  Pool unix_ ABSL_GUARDED_BY(mutex_);
  std::optional<dev_t> objects_device_ ABSL_GUARDED_BY(mutex_);  // Set by the first object.
};

// Converts a reply to a Status that names the node and carries the reason (proto/convert).
Status StatusOf(const v1::BulkReply& reply, const std::string& node_name);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_NODE_CHANNEL_H_
