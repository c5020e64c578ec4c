// Reading and writing a range over one connection: frames, pipelining, checksums. Part of
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
  v1::BulkRequest request;  // File and capability; the operation is filled in.
  std::string node_name;    // For errors.
  uint64_t frame_bytes = 0;
  size_t frames_under_way = 0;
  Time deadline;
};

// Both return the state of the connection. `answer` is what came of it: an error of the node,
// DataLoss for damaged bytes, or OK; while the connection is good all answers were received.
Status TransferRead(const Transfer& transfer, FrameSocket& socket, uint64_t offset,
                    std::span<std::byte> out, Status& answer);
Status TransferWrite(const Transfer& transfer, FrameSocket& socket, uint64_t offset,
                     std::span<const std::byte> data, Status& answer);
// Receives the answer to request `id`. Internal if it answers something else; Aborted, and why, if
// the node ends the connection and has begun none of the requests that it has not answered. A
// descriptor that came along is put into `descriptor`.
Result<FramePrefix> ReceiveReply(FrameSocket& socket, uint64_t id, v1::BulkReply& reply,
                                 Time deadline, UniqueFd* descriptor = nullptr);

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_BULK_TRANSFER_H_
