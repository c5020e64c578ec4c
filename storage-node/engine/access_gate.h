// AccessGate: verifies capabilities with the cluster's key, in the manager's time. Refuses those
// issued for an earlier incarnation of this node and, for writing, those of a session that its
// client has replaced and those issued before this process registered: what it must refuse of them
// was known only to the process before. Refuses all until the node has registered. Thread-safe.
#ifndef MOSA_STORAGE_NODE_ENGINE_ACCESS_GATE_H_
#define MOSA_STORAGE_NODE_ENGINE_ACCESS_GATE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/model/storage.h"
#include "proto/convert/capability.h"

namespace mosa::node {

class AccessGate {
 public:
  // `clock` must outlive the gate.
  explicit AccessGate(const Clock& clock) : clock_(clock) {}

  // `manager_now` is the manager's current time, in which capabilities expire. It advances by the
  // monotonic clock, so setting this host's wall clock changes nothing. Capabilities of an epoch
  // before `epoch` are refused.
  void SetKey(std::string key, Time manager_now, uint64_t epoch, bool bulk_tls) {
    const SystemMutexLock lock(mutex_);
    // A manager's time that was set back must not shut out the capabilities it issues from now on.
    writes_since_ = key_.empty() ? manager_now : std::min(writes_since_, manager_now);
    key_ = std::move(key);
    epoch_ = epoch;
    offset_ = manager_now - clock_.Monotonic();
    ++key_count_;
    bulk_tls_ = bulk_tls;
  }

  // Returns a capability of `epoch` to read `file` on other nodes. Unavailable until the node has
  // registered.
  Result<std::string> SealForReading(FileId file, Duration lifetime, uint64_t epoch) const;

  // Returns the key by which a session of `client` proves its identity. Unavailable until the node
  // has registered.
  Result<std::string> BulkKeyFor(ClientId client, uint64_t era) const;
  // True if TCP connections must be encrypted.
  bool bulk_tls() const {
    const SystemMutexLock lock(mutex_);
    return bulk_tls_;
  }
  // This node's identity towards other nodes; without a key until it has registered.
  BulkIdentity IdentityAtNodes() const;

  // The capability that a connection presented last, cached. Not thread-safe.
  struct Shown {
    ClientId client;  // The client that has proved its identity on the connection. Constant.
    std::string sealed;
    Capability capability;
    uint64_t key_count = 0;
  };
  // Checks that `sealed` gives the connection's client the right to `file`. PermissionDenied states
  // why not; Unavailable: the node has not registered yet.
  Result<Capability> Check(std::string_view sealed, FileId file, bool write, Shown& shown) const;

 private:
  // Maximum number of clients whose latest session is remembered. Beyond it all are forgotten;
  // capabilities of replaced sessions then pass until they expire.
  static constexpr size_t kErasMax = 65'536;

  Status CheckEra(const Capability& shown) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckIssued(const Capability& shown) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  mutable SystemMutex mutex_;
  std::string key_ ABSL_GUARDED_BY(mutex_);
  Duration offset_ ABSL_GUARDED_BY(mutex_);
  // Capabilities to write that were issued earlier are refused.
  Time writes_since_ ABSL_GUARDED_BY(mutex_);
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t key_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool bulk_tls_ ABSL_GUARDED_BY(mutex_) = false;
  // By client: the latest era presented.
  mutable std::unordered_map<uint64_t, uint64_t> eras_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_ENGINE_ACCESS_GATE_H_
