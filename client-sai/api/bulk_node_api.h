// NodeApi over the bulk plane: frames over TCP, and descriptors over the nodes' Unix sockets.
//
// A call is split into frames of at most frame_bytes, at multiples of that size, and one connection
// has several requests in progress. Every call ends within call_wait. A broken connection is
// replaced once, except for LookAtLocalWrites, which then returns Unavailable: the node remembers
// its previous answer. A block whose checksum does not match is requested once more, and the node
// then verifies it as well.
#ifndef MOSA_CLIENT_SAI_API_BULK_NODE_API_H_
#define MOSA_CLIENT_SAI_API_BULK_NODE_API_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client-sai/api/node_api.h"
#include "client-sai/api/node_channel.h"
#include "common/base/mutex.h"
#include "common/observe/duration_table.h"

namespace mosa::sai {

struct BulkNodeApiOptions {
  std::string host_identity;  // The host of this process (common/base/host_identity.h).
  NodeChannelOptions channel;
  Duration call_wait = kWaitMax;
  uint64_t frame_bytes = 4 << 20;  // A multiple of a checksum block.
  size_t frames_under_way = 4;
  // Counts calls by BulkOperationNames and node, including their wait for a connection. May be
  // null; must outlive the api.
  DurationTable* residence = nullptr;
};

class BulkNodeApi final : public NodeApi {
 public:
  explicit BulkNodeApi(BulkNodeApiOptions options);

  void SetNodes(const std::vector<NodeAddress>& nodes) override;
  void SetIdentity(const BulkIdentity& identity) override;
  Status Read(const ObjectTarget& target, uint64_t offset, std::span<std::byte> out) override;
  Status Write(const ObjectTarget& target, uint64_t offset,
               std::span<const std::byte> data) override;
  Status Truncate(const ObjectTarget& target, uint64_t size_bytes) override;
  Status Allocate(const ObjectTarget& target, int mode, uint64_t offset, uint64_t length) override;
  Result<ObjectStatus> Stat(const ObjectTarget& target) override;
  Result<uint64_t> Seek(const ObjectTarget& target, uint64_t offset, bool data) override;
  bool IsLocal(NodeId node) const override;
  Result<UniqueFd> OpenLocal(const ObjectTarget& target, bool write) override;
  Status FinishLocalWrites(const ObjectTarget& target) override;
  Result<LocalWrites> LookAtLocalWrites(const ObjectTarget& target,
                                        const LookQuestion& question) override;
  Status NoteWritten(const ObjectTarget& target, uint64_t offset, uint64_t length) override;
  // The question's `wait` is added to call_wait.
  Result<BlockSums> Sums(const ObjectTarget& target, const SumsQuestion& question) override;

 private:
  // Shared: calls outlive a change of the node's address.
  using ChannelRef = std::shared_ptr<NodeChannel>;

  Result<ChannelRef> Find(NodeId node) const;
  // Sends one request without payload; the reply has none either.
  Result<v1::BulkReply> Call(const ObjectTarget& target, v1::BulkRequest request,
                             Duration longer = {});
  Time Deadline() const;
  static Status Run(NodeChannel& channel, const NodeChannel::Exchange& exchange,
                    const NodeChannel::Terms& terms);
  // Starts timing a call of class `kind` (BulkOperationNames) to the channel's node.
  TimedRequest Measure(size_t kind, const NodeChannel& channel) const;

  const BulkNodeApiOptions options_;
  mutable SystemMutex mutex_;
  std::map<NodeId, ChannelRef> channels_ ABSL_GUARDED_BY(mutex_);
  BulkIdentity identity_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_BULK_NODE_API_H_
