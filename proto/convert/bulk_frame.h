// Frames of the bulk plane (bulk.proto) over a stream socket: a prefix of two lengths, a protobuf
// header, raw payload bytes.
#ifndef MOSA_PROTO_CONVERT_BULK_FRAME_H_
#define MOSA_PROTO_CONVERT_BULK_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/base/unique_fd.h"
#include "proto/convert/bulk_tls.h"

namespace google::protobuf {
class MessageLite;
}

namespace mosa {

inline constexpr size_t kFramePrefixBytes = 8;
inline constexpr uint32_t kFrameHeaderBytesMax = 64 * 1024;
inline constexpr uint32_t kFramePayloadBytesMax = 8 * 1024 * 1024;

// Bits of BulkReply.blocks.
inline constexpr unsigned kBlockHasData = 1;
inline constexpr unsigned kBlockSettled = 2;
inline constexpr unsigned kBlockDamaged = 4;

// Classes of requests for measuring how long these take, by BulkRequest's operation_case;
// kHeldSums for questions whose answers may be held, kConnect for attempts to connect, kResent for
// those exchanges, of whatever operation, during which TCP lost segments: numbers of fields that
// are no operations. Each name stands behind `prefix`.
inline constexpr size_t kHeldSums = 15;
inline constexpr size_t kConnect = 16;
inline constexpr size_t kResent = 17;
std::vector<std::string> BulkOperationNames(std::string_view prefix);

struct FramePrefix {
  uint32_t header_bytes = 0;
  uint32_t payload_bytes = 0;
};

// InvalidArgument, with the length, if one is over its maximum.
Result<FramePrefix> DecodeFramePrefix(std::span<const std::byte, kFramePrefixBytes> bytes);
// Prefix and header of a frame; the payload follows. Precondition: lengths within their maxima.
std::string EncodeFrameStart(const google::protobuf::MessageLite& header, uint64_t payload_bytes);

// One end of a connection that carries frames. Calls wait until `deadline` (monotonic); after an
// error the connection is useless: Unavailable if the peer closed or broke it, DeadlineExceeded,
// or InvalidArgument for what is no frame. Sending and receiving may go on in two threads, but
// only one each.
class FrameSocket {
 public:
  FrameSocket() = default;
  // Takes a connected stream socket and sets its timeouts.
  explicit FrameSocket(UniqueFd socket);

  // From now on all goes through `tls`, which is of this socket. Then sending and receiving need
  // one thread. Passing descriptors is not possible.
  void UseTls(std::unique_ptr<TlsStream> tls) { tls_ = std::move(tls); }
  // Goes through the whole handshake.
  Status Handshake(Time deadline);
  TlsStream* tls() { return tls_.get(); }

  // Waits at most `wait` until there is something to receive: a frame, or an end or error that
  // ReceiveStart then reports.
  bool HasFrame(Duration wait) const;
  // Receives prefix and header; `payload_bytes` of payload are then to be received or discarded.
  // A descriptor that came along is put into `descriptor`, or closed if that is null.
  Result<FramePrefix> ReceiveStart(google::protobuf::MessageLite& header, Time deadline,
                                   UniqueFd* descriptor = nullptr);
  Status Receive(std::span<std::byte> out, Time deadline);
  // As recv(2) and send(2), without waiting; a socket with TLS must be in non-blocking mode.
  ssize_t TryReceive(std::span<std::byte> out);
  ssize_t TrySend(std::span<const std::byte> data);
  Status Discard(uint64_t bytes, Time deadline);

  // Sends prefix and header; with `more`, the payload is to follow at once.
  Status SendStart(const google::protobuf::MessageLite& header, uint64_t payload_bytes, bool more,
                   Time deadline);
  Status SendFrame(const google::protobuf::MessageLite& header, std::span<const std::byte> payload,
                   Time deadline);
  // A part of the payload that SendStart has announced.
  Status SendPayload(std::span<const std::byte> payload, Time deadline);
  // A frame without payload that carries a copy of `descriptor` (Unix sockets).
  Status SendWithDescriptor(const google::protobuf::MessageLite& header, int descriptor,
                            Time deadline);

  // Ends the connection under the feet of a thread that waits on it.
  void Shutdown();
  // True if the peer has closed, or has sent something that nobody asked for.
  bool IsStale() const;
  // True if the peer has closed, although what it had sent before may still be here.
  bool PeerIsGone() const;
  // What LostSegments has grown by since it was taken last, or since the connection was handed
  // over.
  uint64_t TakeLostSegments();
  int fd() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }

 private:
  Status SendAll(const void* control, size_t control_bytes, std::span<const std::byte> start,
                 std::span<const std::byte> payload, int flags, Time deadline);

  ssize_t ReceiveSome(std::span<std::byte> out);
  ssize_t SendSome(std::span<const std::byte> start, std::span<const std::byte> payload);

  UniqueFd socket_;
  std::unique_ptr<TlsStream> tls_;  // Null: in clear.
  uint64_t lost_segments_ = 0;      // As taken last.
};

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_BULK_FRAME_H_
