// NodeResidence: what a storage node measures of its requests (common/model/residence.h).
// Thread-safe.
#ifndef MOSA_STORAGE_NODE_ENGINE_NODE_RESIDENCE_H_
#define MOSA_STORAGE_NODE_ENGINE_NODE_RESIDENCE_H_

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

// Buffer size of a thread that serves a connection. Payload is received, checked and stored in
// pieces of this size, which stay in the CPU's cache.
inline constexpr size_t kBulkScratchBytes = 256 * 1024;

// Current use of the bulk plane (BulkUse). Set by the bulk server.
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
  // Maximum number of hosts with a row of their own.
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
  // Requests of the bulk plane by requesting host, from the arrival of the header to the last byte
  // of the answer.
  DurationTable requests{BulkOperationNames(""), kPeersMax, &log};
  // Parts of requests. write.object: the change of the object (RAM, checksums, locks, admission),
  // without the network. read.object: the work before the first byte is sent; the bytes are read
  // while they are sent. order.*: the manager's orders. manager.*: messages to the manager.
  DurationTable parts{{"read.object", "write.object", "order.drop", "order.copy", "order.cancel",
                       "manager.heartbeat", "manager.copy_report", "manager.residence"},
                      0,
                      &log};
  // Requests to other nodes for copies that are made here, by the node asked.
  DurationTable copies{BulkOperationNames("copy."), kPeersMax, &log};
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_NODE_RESIDENCE_H_
