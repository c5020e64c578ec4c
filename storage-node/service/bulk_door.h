// BulkDoor: handles a connection of the bulk plane until it has proved its client's identity. Reads
// the hello without blocking, and no byte after it.
//
// Not thread-safe. Never blocks: a socket with TLS must be in non-blocking mode.
#ifndef MOSA_STORAGE_NODE_SERVICE_BULK_DOOR_H_
#define MOSA_STORAGE_NODE_SERVICE_BULK_DOOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/model/session.h"
#include "mosa/v1/bulk.pb.h"
#include "proto/convert/bulk_frame.h"
#include "storage-node/engine/access_gate.h"

namespace mosa::node {

class BulkDoor {
 public:
  // `node_name` is part of the proof. The references must outlive the door.
  BulkDoor(const AccessGate& gate, std::string_view node_name)
      : gate_(gate), node_name_(node_name) {}

  // Processes what has arrived; with TLS, completes the handshake first. Returns true once the peer
  // has proved to be client(), false if more must arrive. Unavailable without a message: the peer
  // has gone. Any other error should be reported to the peer.
  Result<bool> Advance(FrameSocket& socket);
  // Precondition: Advance has returned true.
  ClientId client() const { return client_; }

 private:
  // Returns true when the handshake is complete.
  Result<bool> Encrypt(FrameSocket& socket);
  Result<bool> OnHeader(FrameSocket& socket);

  const AccessGate& gate_;
  const std::string_view node_name_;
  bool has_begun_ = false;  // The handshake has begun.
  bool is_encrypted_ = false;
  std::string bytes_;  // The part of the frame received so far.
  std::optional<std::string> proof_expected_;
  ClientId client_;
};

// Sends a reply without blocking. Returns false if the socket did not take all of it at once; a
// connection with nothing in progress does.
bool SendAtOnce(FrameSocket& socket, const v1::BulkReply& reply);
// Tells the peer why the connection ends, and that no more requests are answered.
void SayGoodbye(FrameSocket& socket, const Status& why);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_BULK_DOOR_H_
