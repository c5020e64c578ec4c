// Internal to predictor/run: a file that a program is writing, as the simulated mount sees it.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_WRITER_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_WRITER_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "predictor/run/simulated_client.h"

namespace mosa::predict {

// One file that is being written, from open to close.
struct SimulatedClient::Writer {
  Writer(des::EventLoop& loop, FileId id, File& f, const std::string& p, ByteRange r, Content b)
      : file(id), state(f), path(p), range(r), before(b), sending(loop), lacking{{}, p} {}
  const FileId file;
  File& state;
  const std::string& path;
  ByteRange range;
  const Content before;
  bool by_kernel = false;
  bool keeps_pages = false;     // The kernel keeps what is written.
  uint64_t pages_end = 0;       // Pages below this have room.
  ByteRange open_extent;        // Buffered and not sent yet.
  uint64_t sent_end = 0;        // Bytes below were sent; sending them again takes no room.
  uint64_t local_end = 0;       // The same for bytes written to the own node.
  uint64_t buffered_bytes = 0;  // Includes data being sent.
  des::Group sending;
  std::optional<NodeId> full;  // A node that had no room for sent data.
  // Since bytes were last accepted: the nodes without room, and how often none had any.
  std::set<NodeId> refusing;
  size_t refusals = 0;
  FullStore lacking;  // Set if the write fails for lack of room.
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_WRITER_H_
