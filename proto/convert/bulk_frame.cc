#include "proto/convert/bulk_frame.h"

#include <fmt/format.h>
#include <google/protobuf/message_lite.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/tcp_options.h"
#include "mosa/v1/bulk.pb.h"

namespace mosa {
namespace {

constexpr size_t kTlsRecordBytesMax = 16 * 1024;

void PutUint32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

uint32_t GetUint32(const std::byte* bytes) {
  uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= std::to_integer<uint32_t>(bytes[i]) << (8 * i);
  return value;
}

Status CheckDeadline(Time deadline, std::string_view what) {
  if (SystemClock().Monotonic() < deadline) return OkStatus();
  return DeadlineExceededError(fmt::format("timed out while {} a frame", what));
}

Status Closed() { return UnavailableError("the peer closed the connection"); }

// Takes the first descriptor out of a received message and closes any others.
UniqueFd TakeDescriptor(msghdr& message) {
  UniqueFd taken;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      UniqueFd owned(fd);
      if (!taken) taken = std::move(owned);
    }
  }
  return taken;
}

}  // namespace

std::vector<std::string> BulkOperationNames(std::string_view prefix) {
  using Wire = v1::BulkRequest;
  std::vector<std::string> names(kResent + 1);
  const auto set = [&](size_t kind, std::string_view name) {
    names.at(kind) = std::string(prefix).append(name);
  };
  set(Wire::OPERATION_NOT_SET, "unknown");
  set(Wire::kRead, "read");
  set(Wire::kWrite, "write");
  set(Wire::kTruncate, "truncate");
  set(Wire::kAllocate, "allocate");
  set(Wire::kStat, "stat");
  set(Wire::kSeek, "seek");
  set(Wire::kOpenLocal, "open_local");
  set(Wire::kFinishLocalWrites, "finish_local_writes");
  set(Wire::kSums, "sums");
  set(Wire::kNoteWritten, "note_written");
  set(kHeldSums, "sums_held");
  set(kConnect, "connect");
  set(kResent, "resent");
  return names;
}

Result<FramePrefix> DecodeFramePrefix(std::span<const std::byte, kFramePrefixBytes> bytes) {
  const FramePrefix prefix{.header_bytes = GetUint32(bytes.data()),
                           .payload_bytes = GetUint32(bytes.data() + 4)};
  if (prefix.header_bytes > kFrameHeaderBytesMax || prefix.payload_bytes > kFramePayloadBytesMax) {
    return InvalidArgumentError(fmt::format(
        "a frame of {} header and {} payload bytes exceeds the limits of {} and {}",
        prefix.header_bytes, prefix.payload_bytes, kFrameHeaderBytesMax, kFramePayloadBytesMax));
  }
  return prefix;
}

std::string EncodeFrameStart(const google::protobuf::MessageLite& header, uint64_t payload_bytes) {
  const size_t header_bytes = header.ByteSizeLong();
  MOSA_CHECK(header_bytes <= kFrameHeaderBytesMax && payload_bytes <= kFramePayloadBytesMax);
  std::string start;
  start.reserve(kFramePrefixBytes + header_bytes);
  PutUint32(start, static_cast<uint32_t>(header_bytes));
  PutUint32(start, static_cast<uint32_t>(payload_bytes));
  MOSA_CHECK(header.AppendToString(&start));
  return start;
}

FrameSocket::FrameSocket(UniqueFd socket)
    : socket_(std::move(socket)), lost_segments_(LostSegments(socket_.get())) {
  // Calls return at least this often to look at their deadline.
  const timeval slice{.tv_sec = 0, .tv_usec = 250'000};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof slice);
}

Status FrameSocket::Handshake(Time deadline) {
  while (true) {
    MOSA_ASSIGN_OR_RETURN(const bool over, tls_->Handshake());
    if (over) return OkStatus();
    MOSA_RETURN_IF_ERROR(CheckDeadline(deadline, "completing the TLS handshake before"));
  }
}

bool FrameSocket::HasFrame(Duration wait) const {
  if (tls_ != nullptr && tls_->has_pending()) return true;
  pollfd event{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&event, 1, static_cast<int>(wait.ns / 1'000'000)) > 0;
}

Result<FramePrefix> FrameSocket::ReceiveStart(google::protobuf::MessageLite& header, Time deadline,
                                              UniqueFd* descriptor) {
  std::array<std::byte, kFramePrefixBytes> bytes{};
  size_t done = 0;
  while (done < bytes.size()) {
    iovec part{.iov_base = bytes.data() + done, .iov_len = bytes.size() - done};
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = tls_ != nullptr
                          ? tls_->Receive(part.iov_base, part.iov_len)
                          : ::recvmsg(socket_.get(), &message, MSG_WAITALL | MSG_CMSG_CLOEXEC);
    if (n == 0) return Closed();
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      return ErrnoStatus(errno, "cannot receive a frame");
    if (n > 0) {
      UniqueFd taken = tls_ != nullptr ? UniqueFd() : TakeDescriptor(message);
      if (taken && descriptor != nullptr) *descriptor = std::move(taken);
      done += static_cast<size_t>(n);
    }
    if (done < bytes.size()) MOSA_RETURN_IF_ERROR(CheckDeadline(deadline, "receiving"));
  }
  MOSA_ASSIGN_OR_RETURN(const FramePrefix prefix, DecodeFramePrefix(bytes));
  std::array<std::byte, 1024> small;
  std::string large;
  std::span<std::byte> room(small);
  if (prefix.header_bytes > small.size()) {
    large.resize(prefix.header_bytes);
    room = std::as_writable_bytes(std::span(large));
  }
  room = room.first(prefix.header_bytes);
  MOSA_RETURN_IF_ERROR(Receive(room, deadline));
  if (!header.ParseFromArray(room.data(), static_cast<int>(room.size()))) {
    return InvalidArgumentError(fmt::format("the {} header bytes of a frame do not decode as {}",
                                            room.size(), header.GetTypeName()));
  }
  return prefix;
}

Status FrameSocket::Receive(std::span<std::byte> out, Time deadline) {
  while (!out.empty()) {
    const ssize_t n = ReceiveSome(out);
    if (n == 0) return Closed();
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      return ErrnoStatus(errno, "cannot receive a frame");
    if (n > 0) out = out.subspan(static_cast<size_t>(n));
    if (!out.empty()) MOSA_RETURN_IF_ERROR(CheckDeadline(deadline, "receiving"));
  }
  return OkStatus();
}

ssize_t FrameSocket::ReceiveSome(std::span<std::byte> out) {
  if (tls_ != nullptr) return tls_->Receive(out.data(), out.size());
  return ::recv(socket_.get(), out.data(), out.size(), MSG_WAITALL);
}

ssize_t FrameSocket::TryReceive(std::span<std::byte> out) {
  if (tls_ != nullptr) return tls_->Receive(out.data(), out.size());
  return ::recv(socket_.get(), out.data(), out.size(), MSG_DONTWAIT);
}

ssize_t FrameSocket::TrySend(std::span<const std::byte> data) {
  if (tls_ != nullptr) return tls_->Send(data.data(), data.size());
  return ::send(socket_.get(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Status FrameSocket::Discard(uint64_t bytes, Time deadline) {
  std::array<std::byte, 16 * 1024> sink;
  while (bytes > 0) {
    const size_t n = std::min<uint64_t>(bytes, sink.size());
    MOSA_RETURN_IF_ERROR(Receive(std::span(sink).first(n), deadline));
    bytes -= n;
  }
  return OkStatus();
}

Status FrameSocket::SendStart(const google::protobuf::MessageLite& header, uint64_t payload_bytes,
                              bool more, Time deadline) {
  const std::string start = EncodeFrameStart(header, payload_bytes);
  return SendAll(nullptr, 0, std::as_bytes(std::span(start)), {}, more ? MSG_MORE : 0, deadline);
}

Status FrameSocket::SendFrame(const google::protobuf::MessageLite& header,
                              std::span<const std::byte> payload, Time deadline) {
  const std::string start = EncodeFrameStart(header, payload.size());
  return SendAll(nullptr, 0, std::as_bytes(std::span(start)), payload, 0, deadline);
}

Status FrameSocket::SendPayload(std::span<const std::byte> payload, Time deadline) {
  return SendAll(nullptr, 0, {}, payload, 0, deadline);
}

Status FrameSocket::SendWithDescriptor(const google::protobuf::MessageLite& header, int descriptor,
                                       Time deadline) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  auto* const rights = reinterpret_cast<cmsghdr*>(control);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
  const std::string start = EncodeFrameStart(header, 0);
  return SendAll(control, sizeof control, std::as_bytes(std::span(start)), {}, 0, deadline);
}

// A small beginning shares its record with what follows. After an error the same bytes come again,
// as OpenSSL demands.
ssize_t FrameSocket::SendSome(std::span<const std::byte> start,
                              std::span<const std::byte> payload) {
  if (start.empty()) return tls_->Send(payload.data(), payload.size());
  std::array<std::byte, kTlsRecordBytesMax> record;
  if (payload.empty() || start.size() >= record.size())
    return tls_->Send(start.data(), start.size());
  const size_t more = std::min(payload.size(), record.size() - start.size());
  std::memcpy(record.data(), start.data(), start.size());
  std::memcpy(record.data() + start.size(), payload.data(), more);
  return tls_->Send(record.data(), start.size() + more);
}

Status FrameSocket::SendAll(const void* control, size_t control_bytes,
                            std::span<const std::byte> start, std::span<const std::byte> payload,
                            int flags, Time deadline) {
  while (!start.empty() || !payload.empty()) {
    // sendmsg does not write through these pointers.
    iovec parts[2] = {{const_cast<std::byte*>(start.data()), start.size()},
                      {const_cast<std::byte*>(payload.data()), payload.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    message.msg_control = const_cast<void*>(control);
    message.msg_controllen = control_bytes;
    const ssize_t sent = tls_ != nullptr ? SendSome(start, payload)
                                         : ::sendmsg(socket_.get(), &message, flags | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
      return ErrnoStatus(errno, "cannot send a frame");
    if (sent > 0) {
      // The control data goes with the first byte, once.
      control = nullptr;
      control_bytes = 0;
      const size_t of_start = std::min(start.size(), static_cast<size_t>(sent));
      start = start.subspan(of_start);
      payload = payload.subspan(static_cast<size_t>(sent) - of_start);
    }
    if (!start.empty() || !payload.empty())
      MOSA_RETURN_IF_ERROR(CheckDeadline(deadline, "sending"));
  }
  return OkStatus();
}

void FrameSocket::Shutdown() {
  if (socket_) ::shutdown(socket_.get(), SHUT_RDWR);
}

bool FrameSocket::IsStale() const {
  char byte = 0;
  const ssize_t n = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

bool FrameSocket::PeerIsGone() const {
  pollfd event{.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&event, 1, 0) > 0;
}

uint64_t FrameSocket::TakeLostSegments() {
  const uint64_t before = std::exchange(lost_segments_, LostSegments(socket_.get()));
  return lost_segments_ - before;
}

}  // namespace mosa
