// The manager's answers about the state of the cluster or of a file. Plain values. Times are in the
// manager's time base.
#ifndef MOSA_COMMON_MODEL_STATUS_H_
#define MOSA_COMMON_MODEL_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "common/model/messages.h"
#include "common/model/session.h"
#include "common/model/storage.h"

namespace mosa {

// The copies that one node holds of a file's bytes, other than the first copy.
struct CopyStatus {
  enum class State : uint8_t { kValid = 1, kCopying, kWaiting, kFailed };
  NodeId node;
  State state = State::kWaiting;
  uint64_t copied_bytes = 0;
  std::string why;  // For kWaiting and kFailed.
  bool operator==(const CopyStatus&) const = default;
};

struct NodeStatus {
  NodeAddress address;
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t granted_bytes = 0;
  uint64_t object_count = 0;
  Time last_heard;
  NodeHeartbeat last_heartbeat;
  // Only while the node drains, once counted: files that still have bytes on it.
  std::optional<uint64_t> files_left;
  bool operator==(const NodeStatus&) const = default;
};
struct SessionStatus {
  SessionStart start;
  bool connected = false;
  uint64_t open_files = 0;
  uint64_t interests = 0;
  uint64_t delegations = 0;
  bool operator==(const SessionStatus&) const = default;
};
// The use of a resource that clients can consume, and its limit.
struct LimitStatus {
  std::string name;  // Such as "names", or "names of user 1000".
  uint64_t used = 0;
  uint64_t limit = 0;  // 0: unlimited.
  bool is_bytes = false;
  bool operator==(const LimitStatus&) const = default;
};
struct ClusterStatus {
  std::string cluster_name;
  Time now;
  bool in_grace = false;
  uint64_t files = 0;
  uint64_t directories = 0;
  std::vector<NodeStatus> nodes;
  std::vector<SessionStatus> sessions;
  std::vector<LimitStatus> limits{};
  // Why nothing may grow at present; empty if it may.
  std::string growth_refused{};
  bool operator==(const ClusterStatus&) const = default;
};
struct FileStatus {
  std::string path;
  Entry entry;
  Layout layout;
  bool is_inline = false;
  bool lost = false;
  std::string damage{};  // Damaged bytes that no copy can replace; empty if there are none.
  std::string task;
  std::vector<std::pair<NodeId, uint64_t>> allocated_bytes;  // Per node.
  uint32_t copies_wanted = 1;      // Includes the first copy, which is `layout`.
  uint32_t copies_valid = 0;       // Minimum over all bytes.
  std::vector<CopyStatus> copies;  // Ascending by node.
  std::string copies_missing;      // Why some copies have no node; empty if all have one.
  bool operator==(const FileStatus&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_STATUS_H_
