#include "client-sai/api/bulk_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "client-sai/api/node_channel.h"
#include "common/base/crc32c.h"
#include "common/model/checksum_blocks.h"

namespace mosa::sai {
namespace {

// Received at once and then checksummed, while the processor's cache still holds it.
constexpr uint64_t kPieceBytes = 4 * kChecksumBlockBytes;

// The part of the range that one request covers.
struct Part {
  uint64_t offset = 0;
  uint64_t length = 0;
};

std::vector<Part> Divide(uint64_t offset, uint64_t length, uint64_t frame_bytes) {
  std::vector<Part> parts;
  for (uint64_t at = offset; at < offset + length;) {
    const uint64_t n = std::min(offset + length - at, frame_bytes - at % frame_bytes);
    parts.push_back({at, n});
    at += n;
  }
  return parts;
}

// Receives the payload of a read's reply into its place.
class PartReceiver {
 public:
  PartReceiver(FrameSocket& socket, Time deadline) : socket_(socket), deadline_(deadline) {}

  // Returns the connection's state; `matches` is false if a checksum did not match.
  Status Receive(const Part& part, std::span<std::byte> out, const v1::BulkReply& reply,
                 uint64_t payload_bytes, bool& matches) {
    MOSA_RETURN_IF_ERROR(CheckReply(part, reply, payload_bytes));
    int block = 0;
    uint64_t at = reply.offset_bytes();
    const uint64_t end = at + payload_bytes;
    const uint64_t part_end = part.offset + part.length;
    while (at < end) {
      // Whole blocks inside the part go directly to their place, others through a buffer.
      const uint64_t block_bytes = BytesInBlock(at, end - at);
      const bool direct = at >= part.offset && at + block_bytes <= part_end;
      const uint64_t n =
          direct ? std::min({kPieceBytes, end - at, WholeBlocks(at, part_end, end)}) : block_bytes;
      std::span<std::byte> place = direct ? out.subspan(at - part.offset, n) : Buffer().first(n);
      MOSA_RETURN_IF_ERROR(socket_.Receive(place, deadline_));
      for (uint64_t i = 0; i < n; i += kChecksumBlockBytes) {
        const uint64_t size = std::min(n - i, kChecksumBlockBytes);
        if (Crc32c(place.data() + i, size) != reply.crc32c(block++)) matches = false;
      }
      if (!direct) CopyOverlap(part, out, at, place);
      at += n;
    }
    const uint64_t filled = std::clamp(end, part.offset, part_end) - part.offset;
    std::memset(out.data() + filled, 0, out.size() - filled);
    return OkStatus();
  }

 private:
  static Status CheckReply(const Part& part, const v1::BulkReply& reply, uint64_t payload_bytes) {
    const uint64_t begin = part.offset / kChecksumBlockBytes * kChecksumBlockBytes;
    const uint64_t most = BlocksTouched(part.offset, part.length) * kChecksumBlockBytes;
    if (reply.offset_bytes() == begin && payload_bytes <= most &&
        static_cast<uint64_t>(reply.crc32c_size()) == BlocksTouched(begin, payload_bytes)) {
      return OkStatus();
    }
    return InternalError(fmt::format(
        "requested {} bytes at offset {}, received {} at offset {} with {} checksums", part.length,
        part.offset, payload_bytes, reply.offset_bytes(), reply.crc32c_size()));
  }

  // Returns how many bytes from `at` on are whole blocks inside the part, including the payload's
  // last block.
  static uint64_t WholeBlocks(uint64_t at, uint64_t part_end, uint64_t payload_end) {
    if (payload_end <= part_end) return payload_end - at;
    return part_end / kChecksumBlockBytes * kChecksumBlockBytes - at;
  }

  static void CopyOverlap(const Part& part, std::span<std::byte> out, uint64_t at,
                          std::span<const std::byte> bytes) {
    const uint64_t begin = std::max(at, part.offset);
    const uint64_t end = std::min(at + bytes.size(), part.offset + part.length);
    if (begin >= end) return;
    std::memcpy(out.data() + (begin - part.offset), bytes.data() + (begin - at), end - begin);
  }

  std::span<std::byte> Buffer() {
    if (buffer_ == nullptr)
      buffer_ = std::make_unique_for_overwrite<std::byte[]>(kChecksumBlockBytes);
    return {buffer_.get(), kChecksumBlockBytes};
  }

  FrameSocket& socket_;
  const Time deadline_;
  std::unique_ptr<std::byte[]> buffer_;
};

v1::BulkRequest ReadRequest(const Transfer& transfer, const Part& part, uint64_t id, bool verify) {
  v1::BulkRequest request = transfer.request;
  request.set_id(id);
  request.mutable_read()->set_offset_bytes(part.offset);
  request.mutable_read()->set_length_bytes(part.length);
  request.mutable_read()->set_verify(verify);
  return request;
}

// Receives one reply to a read. `matches` as in PartReceiver.
Status ReceivePart(const Transfer& transfer, PartReceiver& receiver, FrameSocket& socket,
                   const Part& part, uint64_t id, std::span<std::byte> out, Status& answer,
                   bool& matches) {
  v1::BulkReply reply;
  MOSA_ASSIGN_OR_RETURN(const FramePrefix prefix,
                        ReceiveReply(socket, id, reply, transfer.deadline));
  const Status said = StatusOf(reply, transfer.node_name);
  if (!said.ok()) {
    if (answer.ok()) answer = said;
    return socket.Discard(prefix.payload_bytes, transfer.deadline);
  }
  return receiver.Receive(part, out, reply, prefix.payload_bytes, matches);
}

// Rereads a part with a wrong checksum: the node verifies before it replies, and we verify again.
Status ReadAgain(const Transfer& transfer, PartReceiver& receiver, FrameSocket& socket,
                 const Part& part, uint64_t id, std::span<std::byte> out, Status& answer) {
  bool matches = true;
  MOSA_RETURN_IF_ERROR(
      socket.SendFrame(ReadRequest(transfer, part, id, /*verify=*/true), {}, transfer.deadline));
  MOSA_RETURN_IF_ERROR(ReceivePart(transfer, receiver, socket, part, id, out, answer, matches));
  if (answer.ok() && !matches) {
    answer = DataLossError(
        fmt::format("{}: {} bytes at offset {} of file {} arrived damaged twice: checksum mismatch",
                    transfer.node_name, part.length, part.offset, transfer.request.file_id()));
  }
  return OkStatus();
}

}  // namespace

Result<FramePrefix> ReceiveReply(FrameSocket& socket, uint64_t id, v1::BulkReply& reply,
                                 Time deadline, UniqueFd* descriptor) {
  MOSA_ASSIGN_OR_RETURN(const FramePrefix prefix, socket.ReceiveStart(reply, deadline, descriptor));
  if (reply.id() == id) return prefix;
  if (reply.id() == 0 && reply.code() != 0) return AbortedError(reply.message());
  return InternalError(fmt::format("the reply to request {} carries the id {}", id, reply.id()));
}

Status TransferRead(const Transfer& transfer, FrameSocket& socket, uint64_t offset,
                    std::span<std::byte> out, Status& answer) {
  const std::vector<Part> parts = Divide(offset, out.size(), transfer.frame_bytes);
  const auto place = [&](const Part& part) {
    return out.subspan(part.offset - offset, part.length);
  };
  PartReceiver receiver(socket, transfer.deadline);
  std::vector<Part> damaged;
  size_t sent = 0;
  for (size_t received = 0; received < parts.size(); ++received) {
    while (answer.ok() && sent < parts.size() && sent < received + transfer.frames_under_way) {
      MOSA_RETURN_IF_ERROR(socket.SendFrame(ReadRequest(transfer, parts[sent], sent + 1, false), {},
                                            transfer.deadline));
      ++sent;
    }
    if (received == sent) return OkStatus();  // After an error, all replies have arrived.
    bool matches = true;
    const Part& part = parts[received];
    MOSA_RETURN_IF_ERROR(
        ReceivePart(transfer, receiver, socket, part, received + 1, place(part), answer, matches));
    if (!matches) damaged.push_back(part);
  }
  uint64_t id = parts.size();
  for (const Part& part : damaged) {
    if (!answer.ok()) break;
    MOSA_RETURN_IF_ERROR(ReadAgain(transfer, receiver, socket, part, ++id, place(part), answer));
  }
  return OkStatus();
}

Status TransferWrite(const Transfer& transfer, FrameSocket& socket, uint64_t offset,
                     std::span<const std::byte> data, Status& answer) {
  const std::vector<Part> parts = Divide(offset, data.size(), transfer.frame_bytes);
  size_t sent = 0;
  for (size_t received = 0; received < parts.size(); ++received) {
    while (answer.ok() && sent < parts.size() && sent < received + transfer.frames_under_way) {
      const Part& part = parts[sent];
      const auto bytes = data.subspan(part.offset - offset, part.length);
      v1::BulkRequest request = transfer.request;
      request.set_id(++sent);
      request.mutable_write()->set_offset_bytes(part.offset);
      const std::vector<uint32_t> crcs = BlockChecksums(part.offset, bytes);
      request.mutable_write()->mutable_crc32c()->Add(crcs.begin(), crcs.end());
      MOSA_RETURN_IF_ERROR(socket.SendFrame(request, bytes, transfer.deadline));
    }
    if (received == sent) return OkStatus();  // After an error, all replies have arrived.
    v1::BulkReply reply;
    MOSA_RETURN_IF_ERROR(ReceiveReply(socket, received + 1, reply, transfer.deadline).status());
    if (answer.ok()) answer = StatusOf(reply, transfer.node_name);
  }
  return OkStatus();
}

}  // namespace mosa::sai
