// Reads and writes a range over one connection, with frames, pipelining and checksums. Part of
// BulkNodeApi.
#ifndef MOSA_CLIENT_SAI_API_BULK_TRANSFER_H_
#define MOSA_CLIENT_SAI_API_BULK_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/base/time.h"
#include "mosa/v1/bulk.pb.h"
#include "proto/convert/bulk_frame.h"

namespace mosa::sai {

struct Transfer {
  v1::BulkRequest request;  // File and capability; the functions below fill in the operation.
  std::string node_name;    // For error messages.
  uint64_t frame_bytes = 0;
  size_t frames_under_way = 0;
  Time deadline;
};

// Both return the state of the connection. `answer` is the outcome: an error of the node, DataLoss
// for damaged bytes, or OK. If the connection is good, all replies have been received.
Status TransferRead(const Transfer& transfer, FrameSocket& socket, uint64_t offset,
                    std::span<std::byte> out, Status& answer);
Status TransferWrite(const Transfer& transfer, FrameSocket& socket, uint64_t offset,
                     std::span<const std::byte> data, Status& answer);
// Receives the reply to request `id`. Internal if it is for another request. Aborted, with the
// reason, if the node ends the connection before it has begun any of the unanswered requests. A
// descriptor that arrives with the reply is stored in `descriptor`.
Result<FramePrefix> ReceiveReply(FrameSocket& socket, uint64_t id, v1::BulkReply& reply,
                                 Time deadline, UniqueFd* descriptor = nullptr);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_BULK_TRANSFER_H_
