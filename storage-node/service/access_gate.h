// AccessGate: opens capabilities with the cluster's key, in the manager's time, and refuses those
// that were issued for an earlier incarnation of this node, or, to write, for a session that its
// client has replaced. Shut until the node has registered. Safe from any thread.
#ifndef MOSA_STORAGE_NODE_SERVICE_ACCESS_GATE_H_
#define MOSA_STORAGE_NODE_SERVICE_ACCESS_GATE_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/model/storage.h"
#include "proto/convert/capability.h"

namespace mosa::node {

class AccessGate {
 public:
  // `clock` must outlive the gate.
  explicit AccessGate(const Clock& clock) : clock_(clock) {}

  // `manager_now` is the manager's time at this moment; capabilities expire in that time. It goes
  // on evenly, so that a wall clock that is set here changes nothing. Capabilities of an epoch
  // before `epoch` are refused.
  void SetKey(std::string key, Time manager_now, uint64_t epoch, bool bulk_tls) {
    const std::lock_guard lock(mutex_);
    key_ = std::move(key);
    epoch_ = epoch;
    offset_ = manager_now - clock_.Monotonic();
    ++key_count_;
    bulk_tls_ = bulk_tls;
  }

  // The right to read `file` on other nodes, as they are known since `epoch`. Unavailable if the
  // node has not registered yet.
  Result<std::string> SealForReading(FileId file, Duration lifetime, uint64_t epoch) const;

  // What the session of `client` proves itself by. Unavailable if the node has not registered yet.
  Result<std::string> BulkKeyFor(ClientId client, uint64_t era) const;
  // Whether TCP connections are to be encrypted.
  bool bulk_tls() const {
    const std::lock_guard lock(mutex_);
    return bulk_tls_;
  }
  // This node's identity at other nodes; without a key if it has not registered yet.
  BulkIdentity IdentityAtNodes() const;

  // One connection's memory of the capability that it showed last. Used by one thread.
  struct Shown {
    ClientId client;  // The client that has proved itself on the connection. Constant.
    std::string sealed;
    Capability capability;
    uint64_t key_count = 0;
  };
  // Checks that `sealed` gives the connection's client the right to `file`; PermissionDenied says
  // why not, Unavailable that the node has not registered yet.
  Result<Capability> Check(std::string_view sealed, FileId file, bool write, Shown& shown) const;

 private:
  // Clients whose latest session is remembered. Beyond that all are forgotten, which lets in what
  // expires by its time.
  static constexpr size_t kErasMax = 65'536;

  Status CheckEra(const Capability& shown) const;

  const Clock& clock_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::string key_;
  Duration offset_;
  uint64_t epoch_ = 0;
  uint64_t key_count_ = 0;
  bool bulk_tls_ = false;
  mutable std::unordered_map<uint64_t, uint64_t> eras_;  // By client: the latest that was shown.
};

}  // namespace mosa::node

#endif  // MOSA_STORAGE_NODE_SERVICE_ACCESS_GATE_H_
