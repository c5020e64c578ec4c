// BulkConnection: serves the requests of one proven connection of the bulk plane, one after
// another. Not thread-safe, except Shutdown.
#ifndef MOSA_STORAGE_NODE_SERVICE_BULK_CONNECTION_H_
#define MOSA_STORAGE_NODE_SERVICE_BULK_CONNECTION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/rare_log.h"
#include "common/base/status.h"
#include "common/observe/duration_table.h"
#include "mosa/v1/bulk.pb.h"
#include "proto/convert/bulk_frame.h"
#include "storage-node/engine/access_gate.h"
#include "storage-node/engine/object_engine.h"
#include "storage-node/service/copier.h"

namespace mosa::node {

struct BulkConnectionOptions {
  bool passes_descriptors = false;  // For Unix sockets.
  std::string peer;                 // For the log.
  std::string peer_host;            // The peer's address without the port, for residence times.
  ClientId client;                  // The client whose capabilities are accepted.
  std::string account;              // The account for connections and buffers.
};

class BulkConnection {
 public:
  // The references must outlive it.
  BulkConnection(FrameSocket socket, BulkConnectionOptions options, ObjectEngine& engine,
                 const AccessGate& gate, const Copier& copier, RareLog& closings);

  // Serves the request that has begun to arrive, and further ones that follow closely. `scratch`
  // has kBulkScratchBytes and is used only during the call. While `others_wait` is true it returns
  // after one request, and does not hold answers. Returns false if the connection is over: the peer
  // closed it, violated the framing or stalled within a frame, or Shutdown was called.
  bool Serve(std::span<std::byte> scratch, const std::atomic<bool>& others_wait);
  void Shutdown() { socket_.Shutdown(); }
  FrameSocket& socket() { return socket_; }

 private:
  Status ServeOne();
  // Each answers one request. An error means that the connection is unusable.
  Status Answer(uint32_t payload_bytes);
  Status AnswerRead();
  Status AnswerWrite(uint64_t payload_bytes);
  Status AnswerOpenLocal();
  Status AnswerWith(const Status& status);
  Status Sum();
  Status FinishLocalWrites();
  Status Refuse(const Status& why, uint64_t payload_left);
  Result<ReadPlan> PlanRead();
  Status SendPlanned(ReadPlan& plan);
  // Sends a piece of the object. Returns the number of bytes: 0 at the object's end, or if nothing
  // could be sent.
  Result<size_t> SendPiece(int fd, uint64_t offset, uint64_t length);

  // Checks the request, except for its capability.
  Status CheckRequest(uint32_t payload_bytes) const;
  bool NeedsWriteRight() const;
  // Called before a change: a request whose client has closed the connection is not carried out,
  // however long it lay in the socket.
  Status CheckAsked() const;
  // Receives and stores the payload. `left`: bytes not received because of an error.
  Status StoreParts(ObjectEngine::Writer& writer, uint64_t& left, Status& connection);
  // The author of the request's change.
  Changer changer() const { return Changer::OfLayout(shown_.capability.generation); }
  Status Simple(const Capability& capability);  // Requests without payload or descriptor.

  const BulkConnectionOptions options_;
  ObjectEngine& engine_;
  const AccessGate& gate_;
  const Copier& copier_;
  RareLog& closings_;  // Says why connections end.
  FrameSocket socket_;
  AccessGate::Shown shown_;
  std::span<std::byte> scratch_;                    // Valid while it serves.
  const std::atomic<bool>* others_wait_ = nullptr;  // Likewise.
  v1::BulkRequest request_;
  v1::BulkReply reply_;
  Time deadline_;
  Duration object_time_;              // Time of the current write, without waits for its payload.
  const DurationTable::PeerId peer_;  // The peer's row of residence times.
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_BULK_CONNECTION_H_
