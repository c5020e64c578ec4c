// BulkDoor: what a connection of the bulk plane may do before it has proved whose it is. Reads the
// hello without ever waiting, and never a byte of what follows it.
//
// Used by one thread. Nothing here blocks: a socket with TLS must be in non-blocking mode.
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
#include "storage-node/service/access_gate.h"

namespace mosa::node {

class BulkDoor {
 public:
  // `node_name` is part of the proof. The references must outlive it.
  BulkDoor(const AccessGate& gate, std::string_view node_name)
      : gate_(gate), node_name_(node_name) {}

  // Goes through the handshake first if the socket has TLS. Takes in what has arrived. True once
  // the peer has proved to be client(); false: more has to come. Unavailable without a message if
  // the peer has gone, any other error is to be told it.
  Result<bool> Advance(FrameSocket& socket);
  // Precondition: Advance has returned true.
  ClientId client() const { return client_; }

 private:
  // True when it is over.
  Result<bool> Encrypt(FrameSocket& socket);
  Result<bool> OnHeader(FrameSocket& socket);

  const AccessGate& gate_;
  const std::string_view node_name_;
  bool has_begun_ = false;  // The handshake.
  bool is_encrypted_ = false;
  std::string bytes_;  // Received so far of the frame.
  std::optional<std::string> proof_expected_;
  ClientId client_;
};

// Sends a reply without waiting. False if the socket did not take all of it at once, which a
// connection without anything under way does.
bool SendAtOnce(FrameSocket& socket, const v1::BulkReply& reply);
// Tells the peer why the connection ends, and that nothing more is answered.
void SayGoodbye(FrameSocket& socket, const Status& why);

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_BULK_DOOR_H_
