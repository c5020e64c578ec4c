// NodeChannel: the connections of one client to one storage node at one address: a bounded pool of
// TCP connections, and one of Unix connections for descriptors; idle ones are used again.
//
// Safe from any thread. No call waits beyond its deadline, or after the node was found silent.
#ifndef MOSA_CLIENT_SAI_API_NODE_CHANNEL_H_
#define MOSA_CLIENT_SAI_API_NODE_CHANNEL_H_

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"
#include "common/model/session.h"
#include "common/observe/duration_table.h"
#include "mosa/v1/bulk.pb.h"
#include "proto/convert/bulk_frame.h"

namespace mosa::sai {

struct NodeChannelOptions {
  size_t connections_max = kNodeConnectionsMax;  // For each kind.
  Duration connect_wait = Seconds(1);
  Duration hello_wait = Seconds(5);
};

class NodeChannel {
 public:
  // Attempts to connect by TCP are counted in `residence`, as kConnect (proto/convert), and
  // exchanges during which TCP lost segments, as kResent; null: nowhere. It outlives the channel.
  NodeChannel(NodeAddress address, BulkIdentity identity, NodeChannelOptions options,
              DurationTable* residence)
      : options_(options),
        address_(std::move(address)),
        residence_(residence),
        identity_(std::move(identity)) {}

  // One exchange on a connection. Its status is the connection's; what the node answered is
  // reported otherwise.
  using Exchange = std::function<Status(FrameSocket&)>;
  enum class Kind : uint8_t { kTcp, kUnix };
  struct Terms {
    Kind kind = Kind::kTcp;
    bool repeatable = false;
    Time deadline;  // Monotonic.
  };
  // Runs `exchange` on an idle or a new connection; when all are in use, waits for one. If the
  // connection breaks and `repeatable`, or the node says that it has not begun the request, once
  // again on a new one. Unavailable at once while the node is silent or lost.
  Status Run(const Exchange& exchange, const Terms& terms);
  // True if the Unix socket can be connected to, or is. A failure is remembered for a second, and
  // for a minute that what listens there is not trusted. Waits for no answer of the node.
  bool CanReachSocket();
  // Takes a descriptor that came on `socket`, a Unix connection of this channel, in answer to a
  // request for an object. One that is no such object is refused as of CheckObjectDescriptor; then
  // the node's socket is not used for a minute.
  Status CheckDescriptor(int descriptor, const FrameSocket& socket, bool write);

  // Sets who asks on connections from now on; idle ones of another identity are closed.
  void SetIdentity(const BulkIdentity& identity);
  // The node is (not) to be reached; when it is not, calls under way end.
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
    std::set<FrameSocket*> outdated;  // The ones in `busy` that another identity made.
    size_t connecting = 0;
    std::condition_variable released;
    // Unix connections only: no attempt before `retry_at`; when one was last made to see whether
    // somebody listens.
    std::optional<Time> retry_at;
    std::optional<Time> reached_at;
  };

  Result<std::unique_ptr<FrameSocket>> Acquire(Kind kind, bool fresh, Time deadline);
  // A new connection whose hello is over. Its place, so far counted as connecting, counts as busy
  // then; after an error it is as it was.
  Result<std::unique_ptr<FrameSocket>> Open(Kind kind, Time deadline);
  Result<std::unique_ptr<FrameSocket>> OpenOnce(Kind kind, Time deadline);
  void Release(Kind kind, std::unique_ptr<FrameSocket> socket, bool usable);
  Status RunOn(FrameSocket& socket, const Exchange& exchange, Kind kind) const;
  Result<UniqueFd> ConnectTo(Kind kind, Duration wait) const;
  // A part of a request: counted, but no request of its own in the log.
  void Count(DurationTable::ClassId part, Duration duration) const;
  // These need mutex_.
  Status CheckState() const;
  bool HasIdle(Pool& pool);  // Forgets those that have broken.
  void AvoidSocketFor(Duration time);
  // The socket is not used for a minute, and that is logged.
  void Distrust(const Status& why);
  Pool& PoolOf(Kind kind) { return kind == Kind::kTcp ? tcp_ : unix_; }

  const NodeChannelOptions options_;
  const NodeAddress address_;  // Its state is as of the start: see state_.
  DurationTable* const residence_;

  mutable std::mutex mutex_;
  // Guarded by mutex_:
  NodeState state_ = address_.state;
  BulkIdentity identity_;
  Pool tcp_;
  Pool unix_;
  std::optional<dev_t> objects_device_;  // Where the node's objects lie, from the first of them.
};

// What a reply says, as a Status that names the node and carries the reason (proto/convert).
Status StatusOf(const v1::BulkReply& reply, const std::string& node_name);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_NODE_CHANNEL_H_
