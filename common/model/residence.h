// Residence times: how long requests stayed in a daemon. The Provisioning paper, section 5, used
// this measure to find faults of a deployment, one component and class of requests at a time. Plain
// values.
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
  // The other daemon, which sent or received the request; empty where irrelevant.
  std::string peer;
  DurationCounts times;
  bool operator==(const ResidenceRow&) const = default;
};

// A number of bytes or objects: a total that only grows, or a current value.
struct ResidenceAmount {
  std::string name;
  uint64_t value = 0;
  bool is_total = false;
  bool operator==(const ResidenceAmount&) const = default;
};

// State of a daemon's request log (common/observe/request_log.h), current or last.
struct RequestLogState {
  bool is_on = false;
  bool is_busy = false;  // Starting or stopping.
  std::string path;
  std::string fault;  // Why it did not start or stop as ordered, or is incomplete.
  uint64_t records = 0;
  uint64_t dropped = 0;
  bool operator==(const RequestLogState&) const = default;
};

// Everything since the daemon's start.
struct ResidenceSnapshot {
  std::string component;  // "manager", "storage" or "mount".
  Time started;           // Wall time; identifies the process.
  Time taken;
  std::vector<ResidenceRow> rows;
  std::vector<ResidenceAmount> amounts;
  bool is_truncated = false;  // There were too many rows, and some are left out.
  RequestLogState log = {};
  bool operator==(const ResidenceSnapshot&) const = default;
};

// The daemon to ask: the manager itself, a storage node, or a mount.
using ResidenceSource = std::variant<std::monostate, NodeId, ClientId>;

// A question that the manager forwards to a storage node or client, and its answer: a snapshot in
// wire form, which the manager passes on unread. The daemon first carries out `log_order` on its
// request log.
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
