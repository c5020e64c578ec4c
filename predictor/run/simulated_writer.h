// Inside predictor/run: what a simulated mount knows of a file that a program writes.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_WRITER_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_WRITER_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "predictor/run/simulated_client.h"

namespace mosa::predict {

// As of the SAI's writer: a store without room is asked again.
inline constexpr Duration kNoSpaceDelays[] = {Milliseconds(50), Milliseconds(150),
                                              Milliseconds(400)};

// One file that is being written, from its open to its close.
struct SimulatedClient::Writer {
  Writer(des::EventLoop& loop, FileId id, File& f, const std::string& p, ByteRange r, Content b)
      : file(id), state(f), path(p), range(r), before(b), sending(loop), lacking{{}, p} {}
  const FileId file;
  File& state;
  const std::string& path;
  ByteRange range;
  const Content before;
  bool by_kernel = false;
  uint64_t pages_end = 0;       // Pages below have room taken for them.
  ByteRange open_extent;        // Buffered, and not sent yet.
  uint64_t sent_end = 0;        // What is sent below takes no room again,
  uint64_t local_end = 0;       // nor what is written here.
  uint64_t buffered_bytes = 0;  // With what is being sent.
  des::Group sending;
  std::optional<NodeId> full;  // It had no room for what was sent.
  std::map<NodeId, uint64_t> allocated;
  // Since bytes were last taken: who had no room for the next ones, and how often nobody had.
  std::set<NodeId> refusing;
  size_t refusals = 0;
  FullStore lacking;  // If it fails for want of room.
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_WRITER_H_
