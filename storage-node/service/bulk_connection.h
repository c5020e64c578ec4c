// BulkConnection: serves the requests of one connection of the bulk plane, one after the other. Its
// peer has proved whose it is. Used by one thread at a time; Shutdown may be called from any.
#ifndef MOSA_STORAGE_NODE_SERVICE_BULK_CONNECTION_H_
#define MOSA_STORAGE_NODE_SERVICE_BULK_CONNECTION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/observe/duration_table.h"
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
  ClientId client;                  // Whose capabilities count.
  std::string account;              // Whose connections and buffers these are.
};

class BulkConnection {
 public:
  // The references must outlive it.
  BulkConnection(FrameSocket socket, BulkConnectionOptions options, ObjectEngine& engine,
                 const AccessGate& gate, const Copier& copier);

  // Serves the request that has begun to arrive, and others for as long as one follows soon after
  // the other. `scratch` has kBulkScratchBytes and is free again afterwards. While `others_wait` it
  // ends after one request, and holds no answer. False if the connection is over: the peer has
  // closed it, broke the rules of framing, or stalled in the middle of a frame; or Shutdown.
  bool Serve(std::span<std::byte> scratch, const std::atomic<bool>& others_wait);
  void Shutdown() { socket_.Shutdown(); }
  FrameSocket& socket() { return socket_; }

 private:
  Status ServeOne();
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
  // Sends a piece of it; the number of bytes, 0 if the object ends there or nothing could be sent.
  Result<size_t> SendPiece(int fd, uint64_t offset, uint64_t length);

  // What is wrong with the request, its capability aside.
  Status CheckRequest(uint32_t payload_bytes) const;
  bool NeedsWriteRight() const;
  // Before anything is changed: a request whose asker has closed the connection is not carried out,
  // however long it has lain in the socket.
  Status CheckAsked() const;
  // Receives and stores the payload; `left` is what was not received because of an error.
  Status StoreParts(ObjectEngine::Writer& writer, uint64_t& left, Status& connection);
  // Whose change the request is.
  Changer changer() const { return Changer::OfLayout(shown_.capability.generation); }
  Status Simple(const Capability& capability);  // Requests without payload or descriptor.

  const BulkConnectionOptions options_;
  ObjectEngine& engine_;
  const AccessGate& gate_;
  const Copier& copier_;
  FrameSocket socket_;
  AccessGate::Shown shown_;
  std::span<std::byte> scratch_;                    // While it serves.
  const std::atomic<bool>* others_wait_ = nullptr;  // As well.
  v1::BulkRequest request_;
  v1::BulkReply reply_;
  Time deadline_;
  Duration object_time_;              // A write's, so far, without waiting for its payload.
  const DurationTable::PeerId peer_;  // Whose requests these are, for the residence times.
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_BULK_CONNECTION_H_
