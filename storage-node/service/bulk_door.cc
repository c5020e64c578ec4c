#include "storage-node/service/bulk_door.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "common/base/errno_status.h"
#include "proto/convert/bulk_hello.h"

namespace mosa::node {
namespace {

Result<FramePrefix> PrefixOf(const std::string& bytes) {
  return DecodeFramePrefix(std::as_bytes(std::span(bytes)).first<kFramePrefixBytes>());
}

}  // namespace

Result<bool> BulkDoor::Encrypt(FrameSocket& socket) {
  constexpr char kHandshakeRecord = 0x16;
  char first = kHandshakeRecord;
  // Check only the first record: the last ones of a handshake have other types.
  if (!has_begun_ && ::recv(socket.fd(), &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 &&
      first != kHandshakeRecord) {
    socket.UseTls(nullptr);  // So that the peer understands the refusal.
    return UnavailableError(
        "this cluster's bulk plane is encrypted, but the connection began unencrypted: open the "
        "session with the manager again");
  }
  has_begun_ = true;
  const Result<bool> over = socket.tls()->Handshake();
  if (!over.ok()) socket.UseTls(nullptr);
  is_encrypted_ = over.ok() && *over;
  return over;
}

Result<bool> BulkDoor::Advance(FrameSocket& socket) {
  if (socket.tls() != nullptr && !is_encrypted_) {
    MOSA_ASSIGN_OR_RETURN(const bool over, Encrypt(socket));
    if (!over) return false;
  }
  while (true) {
    size_t wanted = kFramePrefixBytes;
    if (bytes_.size() >= kFramePrefixBytes) wanted += PrefixOf(bytes_)->header_bytes;
    if (bytes_.size() == wanted) {
      MOSA_ASSIGN_OR_RETURN(const bool proved, OnHeader(socket));
      bytes_.clear();
      if (proved) return true;
      continue;
    }
    std::array<std::byte, kFramePrefixBytes + kHelloBytesMax> room{};
    const ssize_t n = socket.TryReceive(std::span(room).first(wanted - bytes_.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) return UnavailableError("");
    bytes_.append(reinterpret_cast<const char*>(room.data()), static_cast<size_t>(n));
    if (bytes_.size() != kFramePrefixBytes) continue;
    MOSA_ASSIGN_OR_RETURN(const FramePrefix prefix, PrefixOf(bytes_));
    // Anything longer is not a hello: the peer knows none, or is not one of our programs.
    if (prefix.header_bytes > kHelloBytesMax || prefix.payload_bytes > 0 ||
        prefix.header_bytes == 0)
      return CheckHello(v1::BulkRequest());
  }
}

Result<bool> BulkDoor::OnHeader(FrameSocket& socket) {
  v1::BulkRequest request;
  if (!request.ParseFromArray(bytes_.data() + kFramePrefixBytes,
                              static_cast<int>(bytes_.size() - kFramePrefixBytes)))
    return InvalidArgumentError("the connection did not begin with a hello");
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

bool SendAtOnce(FrameSocket& socket, const v1::BulkReply& reply) {
  const std::string frame = EncodeFrameStart(reply, 0);
  return socket.TrySend(std::as_bytes(std::span(frame))) == static_cast<ssize_t>(frame.size());
}

void SayGoodbye(FrameSocket& socket, const Status& why) {
  v1::BulkReply reply;
  reply.set_code(static_cast<int>(why.code()));
  reply.set_message(MessageOf(why));
  SendAtOnce(socket, reply);
  ::shutdown(socket.fd(), SHUT_WR);
}

}  // namespace mosa::node
