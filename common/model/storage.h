// The conversation between a storage node and the manager, and what a capability says. Plain
// values.
#ifndef MOSA_COMMON_MODEL_STORAGE_H_
#define MOSA_COMMON_MODEL_STORAGE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"

namespace mosa {

// First message of a node's stream. `objects` is everything that it holds: the manager drops what
// no file owns and learns what is lost.
struct NodeRegistration {
  std::string name;
  std::string
      cluster_name;  // Of the object directory; empty for a fresh one. A mismatch is refused.
  uint64_t incarnation =
      0;  // Random, kept in the object directory: another number means that the old bytes are gone.
  std::string address;
  std::string socket_path;
  std::string host_identity;
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;
  std::vector<FileId> objects;
  bool operator==(const NodeRegistration&) const = default;
};

struct NodeRegistered {
  NodeId node;
  std::string cluster_name;
  std::string capability_key;  // 32 bytes; proves capabilities.
  Time now;
  bool operator==(const NodeRegistered&) const = default;
};

// Sent every kHeartbeatEvery, and at once after a drop has freed space.
struct NodeHeartbeat {
  uint64_t used_bytes = 0;
  uint64_t limit_bytes = 0;
  uint64_t object_count = 0;
  uint64_t bytes_read_remote = 0;  // Sent over TCP.
  uint64_t bytes_written_remote = 0;
  uint64_t bytes_written_local = 0;  // Through passed descriptors, as far as allocation shows.
  uint64_t descriptors_passed = 0;
  uint64_t unsealed_objects = 0;
  uint64_t corrupt_blocks = 0;
  std::vector<FileId> corrupt_objects;  // Found since the last heartbeat.
  bool operator==(const NodeHeartbeat&) const = default;
};

struct DropObjectsOrder {
  std::vector<FileId> files;
  bool operator==(const DropObjectsOrder&) const = default;
};
using NodeOrder = std::variant<DropObjectsOrder>;

// The right to reach one file's object on any node, issued by the manager, proved by an HMAC
// (proto/convert/capability.h).
struct Capability {
  FileId file;
  ClientId client;
  bool may_write = false;
  Time expires;
  bool operator==(const Capability&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_STORAGE_H_
