// BulkConnection: serves the requests of one connection of the bulk plane, one after the other.
// Used by one thread; Shutdown may be called from any.
#ifndef MOSA_STORAGE_NODE_SERVICE_BULK_CONNECTION_H_
#define MOSA_STORAGE_NODE_SERVICE_BULK_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/duration_table.h"
#include "common/base/status.h"
#include "mosa/v1/bulk.pb.h"
#include "proto/convert/bulk_frame.h"
#include "storage-node/service/access_gate.h"
#include "storage-node/service/copier.h"
#include "storage-node/service/object_engine.h"

namespace mosa::node {

struct BulkConnectionOptions {
  bool passes_descriptors = false;  // A Unix socket.
  std::string peer;                 // For the log.
  std::string peer_host;            // Its address without the port: whose requests these are.
};

class BulkConnection {
 public:
  // The references must outlive it.
  BulkConnection(UniqueFd socket, BulkConnectionOptions options, ObjectEngine& engine,
                 const AccessGate& gate, const Copier& copier);

  // Until the peer closes, breaks the rules of framing, stalls in the middle of a frame, or
  // Shutdown.
  void Serve();
  void Shutdown() { socket_.Shutdown(); }

 private:
  // Each answers one request, and fails only if the connection is useless afterwards.
  Status Answer(uint32_t payload_bytes);
  Status AnswerRead();
  Status AnswerWrite(uint64_t payload_bytes);
  Status AnswerAppend(uint32_t payload_bytes);
  Status AnswerOpenLocal();
  Status AnswerWith(const Status& status);
  Status Sum();
  Status FinishLocalWrites();
  Status Refuse(const Status& why, uint64_t payload_left);
  Result<ReadPlan> PlanRead();
  Status SendPlanned(ReadPlan& plan);

  // What is wrong with the request, its capability aside.
  Status CheckRequest(uint32_t payload_bytes) const;
  bool NeedsWriteRight() const;
  // Receives and stores the payload; `left` is what was not received because of an error.
  Status StoreParts(ObjectEngine::Writer& writer, uint64_t& left, Status& connection);
  Status Simple(const Capability& capability);  // Requests without payload or descriptor.

  const BulkConnectionOptions options_;
  ObjectEngine& engine_;
  const AccessGate& gate_;
  const Copier& copier_;
  FrameSocket socket_;
  AccessGate::Shown shown_;
  std::unique_ptr<std::byte[]> scratch_;
  v1::BulkRequest request_;
  v1::BulkReply reply_;
  Time deadline_;
  Duration object_time_;              // Of a write: so far, without waiting for its payload.
  const DurationTable::PeerId peer_;  // Whose requests these are, for the residence times.
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_BULK_CONNECTION_H_
