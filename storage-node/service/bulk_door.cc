#include "storage-node/service/bulk_door.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "common/base/errno_status.h"
#include "proto/convert/bulk_frame.h"
#include "proto/convert/bulk_hello.h"

namespace mosa::node {
namespace {

Result<FramePrefix> PrefixOf(const std::string& bytes) {
  return DecodeFramePrefix(std::as_bytes(std::span(bytes)).first<kFramePrefixBytes>());
}

}  // namespace

Result<bool> BulkDoor::Advance(int socket) {
  while (true) {
    size_t wanted = kFramePrefixBytes;
    if (bytes_.size() >= kFramePrefixBytes) wanted += PrefixOf(bytes_)->header_bytes;
    if (bytes_.size() == wanted) {
      MOSA_ASSIGN_OR_RETURN(const bool proved, OnHeader(socket));
      bytes_.clear();
      if (proved) return true;
      continue;
    }
    char room[kFramePrefixBytes + kHelloBytesMax];
    const ssize_t n = ::recv(socket, room, wanted - bytes_.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) return UnavailableError("");
    bytes_.append(room, static_cast<size_t>(n));
    if (bytes_.size() != kFramePrefixBytes) continue;
    MOSA_ASSIGN_OR_RETURN(const FramePrefix prefix, PrefixOf(bytes_));
    // What is longer is no hello: the request of a program that knows none, or not of ours.
    if (prefix.header_bytes > kHelloBytesMax || prefix.payload_bytes > 0 ||
        prefix.header_bytes == 0)
      return CheckHello(v1::BulkRequest());
  }
}

Result<bool> BulkDoor::OnHeader(int socket) {
  v1::BulkRequest request;
  if (!request.ParseFromArray(bytes_.data() + kFramePrefixBytes,
                              static_cast<int>(bytes_.size() - kFramePrefixBytes)))
    return InvalidArgumentError("the connection began with bytes that are no hello");
  if (proof_expected_) {
    MOSA_RETURN_IF_ERROR(CheckProof(request, *proof_expected_));
    return true;
  }
  MOSA_RETURN_IF_ERROR(CheckHello(request));
  const v1::BulkHello& hello = request.hello();
  client_ = ClientId{hello.client_id()};
  MOSA_ASSIGN_OR_RETURN(const std::string key, gate_.BulkKeyFor(client_, hello.era()));
  Greeting greeting = Greet(hello, key, node_name_, NewNonce());
  if (!SendAtOnce(socket, greeting.reply)) return UnavailableError("");
  proof_expected_ = std::move(greeting.proof_expected);
  return false;
}

bool SendAtOnce(int socket, const v1::BulkReply& reply) {
  const std::string frame = EncodeFrameStart(reply, 0);
  return ::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(frame.size());
}

void SayGoodbye(int socket, const Status& why) {
  v1::BulkReply reply;
  reply.set_code(static_cast<int>(why.code()));
  reply.set_message(MessageOf(why));
  SendAtOnce(socket, reply);
  ::shutdown(socket, SHUT_WR);
}

}  // namespace mosa::node
