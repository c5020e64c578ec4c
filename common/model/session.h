// The conversation between one client (a mount) and the manager: what is said at its start, the
// envelopes that carry requests, and what the manager pushes unasked. One stream per client; each
// direction is ordered.
//
// A session lives while the client is heard within kSessionLease; everything that a client caches
// is valid only that long after the last message it sent that the manager answered. When a stream
// breaks, the client opens the session again under its ClientId: it has then dropped all cached
// names, attributes and pages, and says what it still holds.
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
// A capability is good for so long, and a mount asks for a new one when it has less left than the
// margin, which no call to a node takes longer than. A file that stays in use costs its mount one
// call to the manager for each 45 s.
inline constexpr Duration kCapabilityLifetime = Seconds(60);
inline constexpr Duration kCapabilityMargin = kWaitMax;
// How long the replies of a session that has run out are kept. Nobody waits so long for one.
inline constexpr Duration kRepliesKeptFor = Seconds(60);
// So many requests are named as given up in one envelope, and remembered of one session.
inline constexpr size_t kAbandonedMax = 4096;
// That a mount keeps to a storage node, by TCP, and as many by its Unix socket.
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

// First message of a stream. All Held* are empty on a client's first session.
struct SessionStart {
  ClientId client;
  std::string node_name;  // The host's name, as its storage node's; empty if the host has none.
  std::string
      host_identity;  // Boot id and network namespace: equal only on the same host and namespace.
  std::string mount_point;  // For people.
  std::vector<HeldOpen> opens;
  std::vector<HeldLock> locks;
  std::vector<HeldGrant> grants;
  std::vector<FileId> delegations;
  bool operator==(const SessionStart&) const = default;
};

enum class NodeState : uint8_t { kLive = 1, kSilent, kLost, kDraining };

// What a client must know of a storage node to reach it.
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
  Time now;  // The manager's time base, for the client's offset.
  std::vector<NodeAddress> nodes;
  FileIdRangeReply file_ids;
  uint64_t chunk_bytes_default = 0;
  uint64_t inline_bytes_max = 0;
  std::string bulk_key = {};  // The session's: BulkIdentity. Filled in by the manager's shell.
  bool bulk_tls = false;      // The bulk plane is encrypted. Filled in by the shell too.
  uint64_t era = 0;  // The number of the session: a later session always has a higher number.
  // The replies to requests of the client's earlier sessions are still known: one that comes again
  // does not run twice. If not, only what may run twice can be repeated.
  bool replies_kept = false;
  bool operator==(const SessionReady&) const = default;
};

// A client's identity on the bulk plane. The key is a secret that the manager gave to the session;
// nodes derive it from the cluster's capability key (proto/convert/bulk_hello.h).
struct BulkIdentity {
  ClientId client;
  uint64_t era = 0;
  std::string key;   // Empty: there has been no session yet.
  bool tls = false;  // TCP connections to nodes are encrypted.
  bool operator==(const BulkIdentity&) const = default;
};

// Requests that run in order as one step; the first failure ends the batch, and what came before it
// stands.
struct RequestEnvelope {
  RequestId id;  // 0: only a keep-alive, nothing to answer but the time.
  RequestId
      answered_below;  // Every request with a lower id has been answered: recorded replies may go.
  std::vector<Request> requests;
  // When its asker gives up, in the manager's time; Time{}: never. The manager does not begin it
  // later than that.
  Time expires{};
  // Requests whose askers have given up: they never run, if they have not begun yet.
  std::vector<RequestId> abandoned{};
  bool operator==(const RequestEnvelope&) const = default;
};
struct ReplyEnvelope {
  RequestId id;
  std::vector<Reply> replies;  // As many as ran; the last may be a Failure.
  Time now;                    // The manager's time base when it answered.
  bool operator==(const ReplyEnvelope&) const = default;
};

// Drop what is cached of `file`, then answer RecallDone. A recall also covers requests that are
// under way: what their replies say of the file (or of the directory's names) may be older than the
// change, and is not cached. An envelope with a RecallDone holds nothing else but the deferred
// makes and commits that belong before it. A recall that is not answered within 10 s ends the
// session.
enum class RecallKind : uint8_t {
  kEntries = 1,  // Directories: entries and attributes. A delegation is given up: deferred makes
                 // are sent first.
  kFile,         // Other files: attributes, layout and bytes.
  kAccess,       // The layout alone, and the right to store by it: done when no store by it is
                 // under way. Everyone who has the file open hears it.
};
struct RecallPush {
  RecallId recall;
  FileId file;
  RecallKind kind = RecallKind::kFile;
  bool operator==(const RecallPush&) const = default;
};
// The set of nodes, or the state of one, has changed: all of them as they are now.
struct NodesPush {
  std::vector<NodeAddress> nodes;
  bool operator==(const NodesPush&) const = default;
};
// Give back unused room: some node is nearly full.
struct GrantRecallPush {
  NodeId node;
  bool operator==(const GrantRecallPush&) const = default;
};
// The session is over (expired, or the manager is stopping): open it again.
struct SessionEndPush {
  std::string reason;
  bool operator==(const SessionEndPush&) const = default;
};
using Push = std::variant<RecallPush, NodesPush, GrantRecallPush, SessionEndPush>;

// Directory delegation. A session that alone has interest in a directory may be told `delegated` by
// a MakeReply. While it holds the delegation nobody else can look up, list or make there, so it may
// answer lookups of names that it knows to be absent, and defer Make to the file's close, or to the
// recall, in the same envelope as the Commit.

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_SESSION_H_
