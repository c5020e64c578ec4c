// The conversation between a storage node and the manager, and what a capability says. Plain
// values.
#ifndef MOSA_COMMON_MODEL_STORAGE_H_
#define MOSA_COMMON_MODEL_STORAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/layout.h"
#include "common/model/messages.h"
#include "common/model/session.h"

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
  // The same: local programs have changed their bytes, and no mount has asked about it; it may have
  // been killed.
  std::vector<FileId> untold_objects;
  bool operator==(const NodeHeartbeat&) const = default;
};

struct DropObjectsOrder {
  std::vector<FileId> files;
  bool operator==(const DropObjectsOrder&) const = default;
};

// A source that holds a copy which is being made itself. What it has counts for who copies it only
// once it has settled that by this order or a later one: by an older one, even if it is done, it
// may have fetched other parts of the file.
struct CopyRelay {
  NodeId node;
  uint64_t order = 0;
  bool operator==(const CopyRelay&) const = default;
};

// What a node is to fetch from other nodes so that it holds its copies of a file's bytes. Takes the
// place of any order for the file before it. A node that is to hold nothing new of a position finds
// kNoNode there. Equal bytes need not be fetched: checksums are compared first.
struct CopyOrder {
  FileId file;
  uint64_t order = 0;         // Grows with each order of the manager; the reports repeat it.
  uint64_t data_version = 0;  // Of the file when ordered; the reports repeat it.
  uint64_t size_bytes = 0;    // Of the file: nothing beyond it is to be kept. No bound if `follow`.
  // The file is still being written: what there is is fetched, and more as it comes, and `done` is
  // not reported. A later order without `follow` ends it.
  bool follow = false;
  Layout sources;                  // Of one copy: where to fetch each byte.
  std::vector<NodeAddress> nodes;  // Those named in `sources`.
  std::vector<CopyRelay> relays;   // Of these; all others hold what is fetched there already.
  bool operator==(const CopyOrder&) const = default;
};

// Ends the order for the file, if there is one. What was fetched stays.
struct CancelCopyOrder {
  FileId file;
  bool operator==(const CancelCopyOrder&) const = default;
};
using NodeOrder = std::variant<DropObjectsOrder, CopyOrder, CancelCopyOrder>;

// How a CopyOrder is getting on. Sent when it is done or has failed, and at most once a second
// while it goes on. A report of an order that is not the node's last for the file means nothing.
struct CopyReport {
  FileId file;
  uint64_t order = 0;
  uint64_t data_version = 0;
  uint64_t copied_bytes = 0;     // Present and equal so far.
  uint64_t fetched_bytes = 0;    // Of these, over the network.
  uint64_t allocated_bytes = 0;  // Of the object now.
  // Every block was compared and is equal, at a moment when the source was sealed and, if it is
  // itself a copy, had completed an order for the same data_version.
  bool done = false;
  // It does not go on: no room, the source is gone or damaged. The manager says what next.
  std::optional<Failure> failure;
  bool operator==(const CopyReport&) const = default;
};

// Whom a node names in the capabilities that it seals to read from other nodes.
inline constexpr ClientId kNodeClient{UINT64_MAX};

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
