// Observer: sees what simulated mounts are asked and what they ask of others, action by action. For
// tests that compare them with real mounts. It only looks: the simulation does not depend on it.
#ifndef MOSA_PREDICTOR_RUN_OBSERVER_H_
#define MOSA_PREDICTOR_RUN_OBSERVER_H_

#include <cstdint>
#include <vector>

#include "common/model/ids.h"
#include "common/model/messages.h"
#include "common/model/ranges.h"

namespace mosa::predict {

enum class Access : uint8_t {
  kRead,
  kWrite,
  kCut,   // An object is truncated. `range` is empty.
  kStat,  // The object's size is asked for. `range` is empty.
};

class Observer {
 public:
  virtual ~Observer() = default;
  // The kernel asks the mount for bytes, or hands it bytes.
  virtual void OnKernel(ClientId mount, Access access, ByteRange range) = 0;
  // The mount sends an envelope to the manager.
  virtual void OnCall(ClientId mount, const std::vector<Request>& requests) = 0;
  // The mount sends a request to the storage node of another host.
  virtual void OnNode(ClientId mount, Access access, NodeId node, FileId file, ByteRange range) = 0;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_OBSERVER_H_
