// How long requests stayed in a daemon, as it answers when it is asked: the measure by which the
// Provisioning paper, section 5, found the faults of a deployment, one component and class of
// request at a time. Plain values.
#ifndef MOSA_COMMON_MODEL_RESIDENCE_H_
#define MOSA_COMMON_MODEL_RESIDENCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/duration_counts.h"
#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa {

struct ResidenceRow {
  std::string name;  // The class: "read", "fuse.open", "manager.lookup".
  std::string peer;  // Asked by it, or asked of it; empty where that does not matter.
  DurationCounts times;
  bool operator==(const ResidenceRow&) const = default;
};

// A number of bytes, or of things: a total that only grows, or what is there now.
struct ResidenceAmount {
  std::string name;
  uint64_t value = 0;
  bool is_total = false;
  bool operator==(const ResidenceAmount&) const = default;
};

// The log of its requests that a daemon writes, or has written last (common/observe/request_log.h).
struct RequestLogState {
  bool is_on = false;
  bool is_busy = false;  // It is being begun or ended.
  std::string path;
  std::string fault;  // Why it was not begun or ended as ordered, or is not whole.
  uint64_t records = 0;
  uint64_t dropped = 0;
  bool operator==(const RequestLogState&) const = default;
};

// All since the daemon's start.
struct ResidenceSnapshot {
  std::string component;  // "manager", "storage" or "mount".
  Time started;           // Wall time; another one is another process.
  Time taken;
  std::vector<ResidenceRow> rows;
  std::vector<ResidenceAmount> amounts;
  bool is_truncated = false;  // Some rows are left out: there were too many.
  RequestLogState log = {};
  bool operator==(const ResidenceSnapshot&) const = default;
};

// Whose is asked for: the manager's own, a storage node's, a mount's.
using ResidenceSource = std::variant<std::monostate, NodeId, ClientId>;

// What the manager asks a storage node or a client on behalf of others, and its answer: a snapshot
// as it goes over the wire, which the manager passes on unread. Before it answers, a daemon does
// what it is told with its log of requests.
enum class RequestLogOrder : uint8_t { kNone, kBegin, kEnd };
struct ResidenceQuery {
  uint64_t query = 0;
  RequestLogOrder log_order = RequestLogOrder::kNone;
  std::string log_directory = {};  // On the daemon's host.
  bool operator==(const ResidenceQuery&) const = default;
};
inline constexpr size_t kResidenceBytesMax = size_t{4} << 20;
struct ResidenceReport {
  uint64_t query = 0;
  std::string snapshot;  // At most kResidenceBytesMax.
  bool operator==(const ResidenceReport&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_RESIDENCE_H_
