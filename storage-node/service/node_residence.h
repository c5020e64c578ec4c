// What a storage node measures of its requests (common/model/residence.h). Thread-safe.
#ifndef MOSA_STORAGE_NODE_SERVICE_NODE_RESIDENCE_H_
#define MOSA_STORAGE_NODE_SERVICE_NODE_RESIDENCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/observe/duration_table.h"
#include "proto/convert/bulk_frame.h"

namespace mosa::node {

// Payload is received, checked and stored in pieces of this size, which stay in the CPU's cache:
// the buffer of a thread that serves a connection.
inline constexpr size_t kBulkScratchBytes = 256 * 1024;

// What the bulk plane has in use now (BulkUse). Set by the bulk server.
struct BulkGauges {
  std::atomic<uint64_t> connections{0};
  std::atomic<uint64_t> connections_max{0};
  std::atomic<uint64_t> unproven{0};
  std::atomic<uint64_t> unproven_max{0};
  std::atomic<uint64_t> threads{0};
  std::atomic<uint64_t> threads_max{0};
  std::atomic<uint64_t> turned_away{0};
};

struct NodeResidence {
  // Hosts that a row of their own is kept of.
  static constexpr size_t kPeersMax = 128;
  // The classes of `parts`.
  static constexpr DurationTable::ClassId kReadObject{0};
  static constexpr DurationTable::ClassId kWriteObject{1};
  static constexpr DurationTable::ClassId kDropOrder{2};
  static constexpr DurationTable::ClassId kCopyOrder{3};
  static constexpr DurationTable::ClassId kCancelOrder{4};
  static constexpr DurationTable::ClassId kHeartbeat{5};
  static constexpr DurationTable::ClassId kCopyReport{6};
  static constexpr DurationTable::ClassId kResidenceReport{7};

  const Time started = SystemClock().Now();
  RequestLog log;
  BulkGauges bulk;
  // Requests of the bulk plane by who asked, from their header's arrival to their answer's last
  // byte.
  DurationTable requests{BulkOperationNames(""), kPeersMax, &log};
  // Writing the object itself (RAM, checksums, locks, admission), without the network; of reading
  // it what comes before its bytes are sent: these are read while they are sent. What the manager
  // has ordered; what it was told.
  DurationTable parts{{"read.object", "write.object", "order.drop", "order.copy", "order.cancel",
                       "manager.heartbeat", "manager.copy_report", "manager.residence"},
                      0,
                      &log};
  // Requests to other nodes for copies that are made here, by the node asked.
  DurationTable copies{BulkOperationNames("copy."), kPeersMax, &log};
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_NODE_RESIDENCE_H_
