// The protocol between a storage node and the manager, and the content of a capability. Plain
// values.
#ifndef MOSA_COMMON_MODEL_STORAGE_H_
#define MOSA_COMMON_MODEL_STORAGE_H_

#include <cstdint>
#include <map>
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

// An object as the node found it when it registered.
struct HeldSize {
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;
  Time modified;  // In the node's clock.
  bool operator==(const HeldSize&) const = default;
};

// `count` ranges of data of equal length, at begin, begin + stride, and so on.
struct DataRuns {
  uint64_t begin = 0;
  uint64_t length = 0;  // Not 0.
  uint64_t stride = 0;  // At least `length`, if there is more than one.
  uint64_t count = 1;   // Not 0.
  bool operator==(const DataRuns&) const = default;
};

// An object that its node has put aside. Requests for its file no longer reach it, and its bytes
// stay until a user adopts or discards it.
struct AsideObject {
  FileId file;  // The file to which it belonged.
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;
  Time modified;               // In the node's clock.
  std::vector<DataRuns> data;  // Where it has data, ascending.
  bool operator==(const AsideObject&) const = default;
};

// First message of a node's stream. `objects` lists everything that the node holds. The manager
// drops objects without a file and learns which bytes are lost.
struct NodeRegistration {
  std::string name;
  // From the object directory; empty for a new one. A mismatch is refused.
  std::string cluster_name;
  // Random, kept in the object directory. A new number means that the old bytes are gone.
  uint64_t incarnation = 0;
  std::string address;
  std::string socket_path;
  std::string host_identity;
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;
  std::vector<FileId> objects;
  // Sizes of `objects`, in the same order; empty if the node does not know.
  std::vector<HeldSize> sizes;
  std::vector<AsideObject> aside;
  bool operator==(const NodeRegistration&) const = default;
};

// Everything that a node has put aside, after an AsideOrder changed it.
struct NodeAside {
  std::vector<AsideObject> objects;
  bool operator==(const NodeAside&) const = default;
};

struct NodeRegistered {
  NodeId node;
  std::string cluster_name;
  std::string capability_key;  // 32 bytes; verifies capabilities.
  Time now;
  // The node refuses capabilities of an earlier epoch, because they were issued when another
  // incarnation of the node held the objects.
  uint64_t epoch = 0;
  bool bulk_tls = false;  // TCP connections of the bulk plane must be encrypted.
  bool operator==(const NodeRegistered&) const = default;
};

// Current use and limits of a node's bulk plane.
struct BulkUse {
  uint64_t connections = 0;  // Authenticated.
  uint64_t connections_max = 0;
  uint64_t unproven = 0;  // Not yet authenticated.
  uint64_t unproven_max = 0;
  uint64_t threads = 0;  // Serving a request, or having just served one.
  uint64_t threads_max = 0;
  uint64_t buffer_bytes = 0;  // Held by requests in progress.
  uint64_t buffer_bytes_max = 0;
  uint64_t turned_away = 0;  // Since the start: refused or closed because of a limit.
  bool operator==(const BulkUse&) const = default;
};

// Sent every kHeartbeatEvery, and at once after a drop has freed space.
struct NodeHeartbeat {
  uint64_t used_bytes = 0;
  uint64_t limit_bytes = 0;
  uint64_t object_count = 0;
  uint64_t bytes_read_remote = 0;  // Sent over TCP.
  uint64_t bytes_written_remote = 0;
  // Through passed descriptors, as far as their allocation shows.
  uint64_t bytes_written_local = 0;
  uint64_t descriptors_passed = 0;
  uint64_t unsealed_objects = 0;
  uint64_t corrupt_blocks = 0;
  std::vector<FileId> corrupt_objects{};  // Found since the last heartbeat.
  std::vector<FileId> healed_objects{};   // All their damaged blocks were replaced since then.
  // Found since then: local programs have changed their bytes, and no mount has asked about them,
  // perhaps because it was killed.
  std::vector<FileId> untold_objects{};
  BulkUse bulk = {};
  // Counts measurements of the objects that local programs write. `used_bytes` includes their
  // writes as of the last one.
  uint64_t measurements = 0;
  // The number of the last drop order that was carried out since the node registered. It does not
  // rise while an object could not be dropped.
  uint64_t drops_done = 0;
  bool operator==(const NodeHeartbeat&) const = default;
};

struct DropObjectsOrder {
  std::vector<FileId> files;
  uint64_t number = 0;  // Rises from 1 on since the node registered.
  // The current layout generation of each file that is not removed. The node refuses stores up to
  // it from now on.
  std::map<FileId, uint64_t> generations{};
  bool operator==(const DropObjectsOrder&) const = default;
};

// A source whose copy is itself still being made. Its bytes count for copiers only once it has
// settled them by this order or a later one. Under an older order, even a completed one, it may
// have fetched other parts of the file.
struct CopyRelay {
  NodeId node;
  uint64_t order = 0;
  bool operator==(const CopyRelay&) const = default;
};

// The bytes that a node must fetch from other nodes to hold its copies of a file. Replaces any
// earlier order for the file. kNoNode marks positions of which the node gets nothing new. Equal
// bytes need not be fetched: checksums are compared first.
struct CopyOrder {
  FileId file;
  uint64_t order = 0;         // Increases with each order of the manager; reports repeat it.
  uint64_t data_version = 0;  // The file's when ordered; reports repeat it.
  uint64_t size_bytes = 0;    // The file's size: keep nothing beyond it. Not a bound if `follow`.
  // The file is still being written. The node fetches what exists, then more as it comes, and does
  // not report `done`. A later order without `follow` ends this.
  bool follow = false;
  Layout sources;                  // A layout of one copy: where to fetch each byte.
  std::vector<NodeAddress> nodes;  // The nodes named in `sources`.
  std::vector<CopyRelay> relays;   // The relays among them; the other nodes already hold the bytes.
  uint64_t epoch = 0;              // For the capabilities used to read the sources.
  // Sources without a committed byte of the file: a missing object there is a hole. On any other
  // source, except a relay, it means that bytes are lost.
  std::vector<NodeId> empty_sources{};
  // The file's layout generation when ordered. Nothing more is changed for the order once a mount
  // has stored into the node's object by a later one, however late the order arrives.
  uint64_t generation = 0;
  bool operator==(const CopyOrder&) const = default;
};

// Ends the order for the file, if there is one. Fetched bytes stay.
struct CancelCopyOrder {
  FileId file;
  bool operator==(const CancelCopyOrder&) const = default;
};

enum class AsideAction : uint8_t {
  kSetAside = 1,  // Put the objects aside: no request reaches them any more.
  kRestore,       // Make the put-aside object the file's object again.
  kDiscard,       // Remove the put-aside objects.
};
// An action on put-aside objects, or on objects to put aside. Files without such an object are
// skipped. The node answers with a NodeAside.
struct AsideOrder {
  AsideAction action = AsideAction::kSetAside;
  std::vector<FileId> files;
  bool operator==(const AsideOrder&) const = default;
};
using NodeOrder = std::variant<DropObjectsOrder, CopyOrder, CancelCopyOrder, AsideOrder>;

// Progress of a CopyOrder. Sent when it is done or has failed, and otherwise at most once a second.
// The manager ignores reports of any order but the node's last for the file.
struct CopyReport {
  FileId file;
  uint64_t order = 0;
  uint64_t data_version = 0;
  uint64_t copied_bytes = 0;     // Present and equal so far.
  uint64_t fetched_bytes = 0;    // The part that was fetched over the network.
  uint64_t allocated_bytes = 0;  // Space that the object occupies now.
  // Every block was compared and is equal, at a time when the source was sealed. If the source is
  // itself a copy, it had completed an order for the same data_version.
  bool done = false;
  // The copy has stopped: no room, or the source is gone or damaged. The manager decides what to do
  // next.
  std::optional<Failure> failure;
  bool operator==(const CopyReport&) const = default;
};

// The client named in capabilities that a node seals to read from other nodes.
inline constexpr ClientId kNodeClient{UINT64_MAX};

// The right to access one file's objects on any node. Issued by the manager and verified by an HMAC
// (proto/convert/capability.h).
struct Capability {
  FileId file;
  ClientId client;
  bool may_write = false;
  Time expires;
  uint64_t era = 0;         // Era of the client's session (SessionReady); 0 for a node.
  uint64_t generation = 0;  // Generation of the file's layout (DataAccess).
  uint64_t epoch = 0;       // Counts nodes' returns with a new incarnation.
  bool operator==(const Capability&) const = default;
};

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_STORAGE_H_
