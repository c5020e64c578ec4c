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

// An object as its node found it when it registered.
struct HeldSize {
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;
  Time modified;  // In the node's clock.
  bool operator==(const HeldSize&) const = default;
};

// Ranges with data of one length: at begin, begin + stride, ..., `count` of them.
struct DataRuns {
  uint64_t begin = 0;
  uint64_t length = 0;  // Not 0.
  uint64_t stride = 0;  // At least `length`, if there is more than one.
  uint64_t count = 1;   // Not 0.
  bool operator==(const DataRuns&) const = default;
};

// An object that its node has put aside: nobody can reach it by its file any more, and its bytes
// stay until somebody adopts or discards it.
struct AsideObject {
  FileId file;  // That it was an object of.
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;
  Time modified;               // In the node's clock.
  std::vector<DataRuns> data;  // Where it has bytes, ascending.
  bool operator==(const AsideObject&) const = default;
};

// First message of a node's stream. `objects` is everything that it holds: the manager drops what
// no file owns and learns what is lost.
struct NodeRegistration {
  std::string name;
  std::string
      cluster_name;  // As the object directory says; empty for a fresh one. A mismatch is refused.
  uint64_t incarnation =
      0;  // Random, kept in the object directory: another number means that the old bytes are gone.
  std::string address;
  std::string socket_path;
  std::string host_identity;
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;
  std::vector<FileId> objects;
  std::vector<HeldSize> sizes;  // Sizes of `objects`, in order; or empty: the node does not say.
  std::vector<AsideObject> aside;
  bool operator==(const NodeRegistration&) const = default;
};

// All that a node has put aside, after an AsideOrder has changed it.
struct NodeAside {
  std::vector<AsideObject> objects;
  bool operator==(const NodeAside&) const = default;
};

struct NodeRegistered {
  NodeId node;
  std::string cluster_name;
  std::string capability_key;  // 32 bytes; proves capabilities.
  Time now;
  // Capabilities of an earlier epoch were issued when another incarnation of the node held the
  // objects: it refuses them.
  uint64_t epoch = 0;
  bool bulk_tls = false;  // TCP connections of the bulk plane are to be encrypted.
  bool operator==(const NodeRegistered&) const = default;
};

// What the bulk plane of a node has in use now, and its limits.
struct BulkUse {
  uint64_t connections = 0;  // That have proved whose they are.
  uint64_t connections_max = 0;
  uint64_t unproven = 0;  // That have not yet.
  uint64_t unproven_max = 0;
  uint64_t threads = 0;  // That serve a request, or have just done so.
  uint64_t threads_max = 0;
  uint64_t buffer_bytes = 0;  // Held by requests under way.
  uint64_t buffer_bytes_max = 0;
  uint64_t turned_away = 0;  // Since the start: refused or closed because a limit was reached.
  bool operator==(const BulkUse&) const = default;
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
  std::vector<FileId> corrupt_objects{};  // Found since the last heartbeat.
  std::vector<FileId> healed_objects{};   // All their damaged blocks were replaced since then.
  // Found since then: local programs have changed their bytes, and no mount has asked about it; it
  // may have been killed.
  std::vector<FileId> untold_objects{};
  BulkUse bulk = {};
  // How often the node has measured the objects that local programs write: `used_bytes` includes
  // their writes only from then on.
  uint64_t measurements = 0;
  bool operator==(const NodeHeartbeat&) const = default;
};

struct DropObjectsOrder {
  std::vector<FileId> files;
  bool operator==(const DropObjectsOrder&) const = default;
};

// A source that holds a copy which is being made itself. What it has counts for its copiers only
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
  uint64_t data_version = 0;  // The file's when ordered; the reports repeat it.
  uint64_t size_bytes = 0;    // The file's: nothing beyond it is to be kept. No bound if `follow`.
  // The file is still being written: what there is is fetched, and more as it comes, and `done` is
  // not reported. A later order without `follow` ends it.
  bool follow = false;
  Layout sources;                  // Layout of one copy: where to fetch each byte.
  std::vector<NodeAddress> nodes;  // The ones named in `sources`.
  std::vector<CopyRelay> relays;   // Relays among them; the others hold those bytes already.
  uint64_t epoch = 0;              // For the capabilities by which the sources are read.
  // Sources without a committed byte of the file: an object that is absent there is a hole. On any
  // other source, but a relay, its absence is a loss.
  std::vector<NodeId> empty_sources{};
  bool operator==(const CopyOrder&) const = default;
};

// Ends the order for the file, if there is one. What was fetched stays.
struct CancelCopyOrder {
  FileId file;
  bool operator==(const CancelCopyOrder&) const = default;
};

enum class AsideAction : uint8_t {
  kSetAside = 1,  // Put the objects aside: no request reaches them any more.
  kRestore,       // What was put aside is the object of that file again.
  kDiscard,       // Remove what was put aside.
};
// What is to happen to objects that were put aside, or are to be. Those that there are none of are
// left out. The node answers with a NodeAside.
struct AsideOrder {
  AsideAction action = AsideAction::kSetAside;
  std::vector<FileId> files;
  bool operator==(const AsideOrder&) const = default;
};
using NodeOrder = std::variant<DropObjectsOrder, CopyOrder, CancelCopyOrder, AsideOrder>;

// How a CopyOrder is getting on. Sent when it is done or has failed, and at most once a second
// while it goes on. A report of an order that is not the node's last for the file means nothing.
struct CopyReport {
  FileId file;
  uint64_t order = 0;
  uint64_t data_version = 0;
  uint64_t copied_bytes = 0;     // Present and equal so far.
  uint64_t fetched_bytes = 0;    // The part that came over the network.
  uint64_t allocated_bytes = 0;  // What the object occupies now.
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
  uint64_t era = 0;         // Era of the client's session (SessionReady); 0: a node's.
  uint64_t generation = 0;  // The file layout's (DataAccess).
  uint64_t epoch = 0;       // How often a node has come with a new incarnation so far.
  bool operator==(const Capability&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_STORAGE_H_
