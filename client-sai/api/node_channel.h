// NodeChannel: the connections of one client to one storage node at one address: a bounded pool of
// TCP connections, of which idle ones are used again, and one Unix connection for descriptors.
//
// Safe from any thread. The Unix connection stays open as long as the channel, since its end tells
// the node that this client may have left its write descriptors.
#ifndef MOSA_CLIENT_SAI_API_NODE_CHANNEL_H_
#define MOSA_CLIENT_SAI_API_NODE_CHANNEL_H_

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
#include "mosa/v1/bulk.pb.h"
#include "proto/convert/bulk_frame.h"

namespace mosa::sai {

struct NodeChannelOptions {
  size_t connections_max = 8;
  Duration connect_wait = Seconds(1);
};

class NodeChannel {
 public:
  NodeChannel(NodeAddress address, NodeChannelOptions options)
      : options_(options), address_(std::move(address)) {}

  // One exchange on a connection. Its status is the connection's; what the node answered is
  // reported otherwise.
  using Exchange = std::function<Status(FrameSocket&)>;
  // Runs `exchange` on an idle or a new connection; when all are in use, waits for one. If the
  // connection breaks and `repeatable`, once again on a new one. Unavailable at once while the node
  // is silent or lost. `deadline` is monotonic.
  Status Run(const Exchange& exchange, bool repeatable, Time deadline);

  // Sends a request without payload over the Unix socket. The reply's descriptor, if any, is put
  // into `descriptor`.
  Result<v1::BulkReply> CallLocal(v1::BulkRequest request, UniqueFd* descriptor, Time deadline);
  // True if the Unix socket can be connected to, or is. A failure is remembered for a second.
  bool CanReachSocket();

  // The node is (not) to be reached; when it is not, calls under way end.
  void SetState(NodeState state);
  bool SameEndpoint(const NodeAddress& other) const;
  bool HasIdentity(const std::string& host_identity) const {
    return address_.host_identity == host_identity;
  }
  // "node n1 (127.0.0.1:7000)"
  std::string Name() const;

 private:
  Result<std::unique_ptr<FrameSocket>> Acquire(bool fresh, Time deadline);
  void Release(std::unique_ptr<FrameSocket> socket, bool usable);
  Status CheckState() const;  // Needs mutex_.
  Status ConnectSocket();     // Needs local_mutex_.

  const NodeChannelOptions options_;
  const NodeAddress address_;  // Its state is as of the start: see state_.

  mutable std::mutex mutex_;
  std::condition_variable released_;
  // Guarded by mutex_:
  NodeState state_ = address_.state;
  std::vector<std::unique_ptr<FrameSocket>> idle_;
  std::set<FrameSocket*> busy_;
  size_t connecting_ = 0;

  std::mutex local_mutex_;  // Held for an exchange over the Unix socket.
  // Guarded by local_mutex_:
  std::unique_ptr<FrameSocket> local_;
  std::optional<Time> local_failed_at_;
  uint64_t last_local_id_ = 0;
};

// What a reply says, as a Status that names the node and carries the reason (proto/convert).
Status StatusOf(const v1::BulkReply& reply, const std::string& node_name);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_NODE_CHANNEL_H_
