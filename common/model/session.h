// The protocol between one client (a mount) and the manager: the start of a session, the envelopes
// that carry requests, and the manager's pushes. Each client has one stream; each direction is
// ordered.
//
// A session lives while the manager hears from the client within kSessionLease. Everything that a
// client caches expires kSessionLease after it sent the last message that the manager answered.
// When a stream breaks, the client opens the session again under its ClientId. By then it has
// dropped all cached names, attributes and pages, and it reports what it still holds.
#ifndef MOSA_COMMON_MODEL_SESSION_H_
#define MOSA_COMMON_MODEL_SESSION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/time.h"
#include "common/model/ids.h"
#include "common/model/messages.h"

namespace mosa {

inline constexpr Duration kSessionLease = Seconds(5);
inline constexpr Duration kKeepAliveEvery = Seconds(1);
inline constexpr Duration kGracePeriod = Seconds(5);
inline constexpr Duration kNodeDeadAfter = Seconds(5);
inline constexpr Duration kHeartbeatEvery = Milliseconds(250);
inline constexpr Duration kWaitMax = Seconds(15);
// Lifetime of a capability that the manager issues; nodes conclude from its end when it was issued.
// A mount renews one that has less than the margin left; no call to a node takes longer than the
// margin. A file in continuous use costs its mount one call to the manager every 45 s.
inline constexpr Duration kCapabilityLifetime = Seconds(60);
inline constexpr Duration kCapabilityMargin = kWaitMax;
// How long the replies of an expired session are kept. No client waits longer for a reply.
inline constexpr Duration kRepliesKeptFor = Seconds(60);
// Limit on abandoned requests named in one envelope, and remembered per session.
inline constexpr size_t kAbandonedMax = 4096;
// Limit on a mount's TCP connections to one storage node, and on its Unix connections.
inline constexpr size_t kNodeConnectionsMax = 8;

struct HeldOpen {
  FileId file;
  bool write = false;
  bool operator==(const HeldOpen&) const = default;
};
struct HeldLock {
  FileId file;
  Lock lock;
  bool operator==(const HeldLock&) const = default;
};
struct HeldGrant {
  NodeId node;
  uint64_t bytes = 0;
  bool operator==(const HeldGrant&) const = default;
};
// A reserved name of a file that was made and that the manager has not confirmed yet.
struct HeldName {
  FileId directory;
  std::string name;
  bool operator==(const HeldName&) const = default;
};

// First message of a stream. All Held* lists are empty in a client's first session.
struct SessionStart {
  ClientId client;
  std::string node_name;  // Name of the host's storage node; empty if the host has none.
  // Boot id and network namespace: equal only on one host and in one namespace.
  std::string host_identity;
  std::string mount_point;  // For people.
  std::vector<HeldOpen> opens;
  std::vector<HeldLock> locks;
  std::vector<HeldGrant> grants;
  std::vector<FileId> delegations;
  std::vector<HeldName> names{};
  bool operator==(const SessionStart&) const = default;
};

enum class NodeState : uint8_t { kLive = 1, kSilent, kLost, kDraining };

// What a client needs to reach a storage node.
struct NodeAddress {
  NodeId node;
  std::string name;
  std::string address;      // host:port of the bulk plane.
  std::string socket_path;  // Unix socket for descriptor passing.
  std::string host_identity;
  uint64_t incarnation = 0;
  NodeState state = NodeState::kLive;
  bool operator==(const NodeAddress&) const = default;
};

// The manager's answer to SessionStart.
struct SessionReady {
  uint64_t cluster_seed = 0;
  std::string cluster_name;
  Time now;  // In the manager's time base, from which the client computes its offset.
  std::vector<NodeAddress> nodes;
  FileIdRangeReply file_ids;
  uint64_t chunk_bytes_default = 0;
  uint64_t inline_bytes_max = 0;
  // The session's key: see BulkIdentity. Filled in by the manager's shell.
  std::string bulk_key = {};
  bool bulk_tls = false;  // The bulk plane is encrypted. Filled in by the manager's shell.
  uint64_t era = 0;       // The number of the session; later sessions have higher numbers.
  // The manager still knows its replies to the client's earlier sessions, so a repeated request
  // does not run twice. If false, the client may repeat only requests that may run twice.
  bool replies_kept = false;
  bool operator==(const SessionReady&) const = default;
};

// A client's identity on the bulk plane. The manager gives the secret key to the session; nodes
// derive it from the cluster's capability key (proto/convert/bulk_hello.h).
struct BulkIdentity {
  ClientId client;
  uint64_t era = 0;
  std::string key;   // Empty: there has been no session yet.
  bool tls = false;  // TCP connections to nodes are encrypted.
  bool operator==(const BulkIdentity&) const = default;
};

// Requests that run in order as one step. The first failure ends the batch; the requests before it
// remain in effect.
struct RequestEnvelope {
  RequestId id;  // 0: a keep-alive, answered only with the time.
  // All requests with lower ids are answered: the manager may drop their recorded replies.
  RequestId answered_below;
  std::vector<Request> requests;
  // When the client gives up, in the manager's time; Time{}: never. The manager does not begin the
  // envelope later.
  Time expires{};
  // Requests that the client has given up. Those that have not begun never run.
  std::vector<RequestId> abandoned{};
  bool operator==(const RequestEnvelope&) const = default;
};
struct ReplyEnvelope {
  RequestId id;
  std::vector<Reply> replies;  // One per request that ran; the last may be a Failure.
  Time now;                    // When the manager answered, in its time base.
  bool operator==(const ReplyEnvelope&) const = default;
};

// Drop what is cached of `file`, then send RecallDone. A recall also covers requests in progress:
// what their replies say of the file (or of the directory's names) may be older than the change and
// must not be cached. An envelope with a RecallDone may otherwise contain only the deferred makes
// and commits that must precede it. A recall that is not answered within 10 s ends the session.
enum class RecallKind : uint8_t {
  // Directories: entries and attributes. Ends a delegation, and the session's reserved names there,
  // after deferred makes are sent.
  kEntries = 1,
  kFile,  // Other files: attributes, layout and bytes.
  // Only the layout and the right to store by it. Done when no store by it is in progress. Sent to
  // every session that has the file open.
  kAccess,
  // Directories: ends a delegation, after deferred makes are sent, because others want to look.
  // Names and their files stay as they are cached: the session keeps its interest.
  kDelegation,
};
struct RecallPush {
  RecallId recall;
  FileId file;
  RecallKind kind = RecallKind::kFile;
  bool operator==(const RecallPush&) const = default;
};
// The set of nodes or a node's state has changed. Lists all nodes as they are now.
struct NodesPush {
  std::vector<NodeAddress> nodes;
  bool operator==(const NodesPush&) const = default;
};
// A node is nearly full: give back unused room on it.
struct GrantRecallPush {
  NodeId node;
  bool operator==(const GrantRecallPush&) const = default;
};
// The session is over (expired, or the manager is stopping). Open it again.
struct SessionEndPush {
  std::string reason;
  bool operator==(const SessionEndPush&) const = default;
};
using Push = std::variant<RecallPush, NodesPush, GrantRecallPush, SessionEndPush>;

// Directory delegation. A MakeReply may set `delegated` for a session that alone has interest in a
// directory. While it holds the delegation, no other session can look up, list or create there. It
// may therefore answer lookups of absent names by itself, and may defer a Make until the file's
// close or a recall, in one envelope with the Commit.
//
// Shared directories. A directory in which several sessions have lately made names is shared. From
// then on sessions get no interest in it, so that nobody waits for recalls (one that has interest
// keeps it until the next recall). Replies say so: clients may show its attributes for a moment
// only, and believe its names only as long as they are told that nobody has changed the files. A
// client that makes files there asks for a name when it looks it up, as kernels do before each
// create. While the name is reserved for a session, no other session can look it up or make it, or
// list the directory, so the session may defer the Make as under a delegation.

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_SESSION_H_
