#include "storage-node/engine/access_gate.h"

#include <fmt/format.h>

#include "common/base/mutex.h"
#include "common/model/session.h"
#include "proto/convert/bulk_hello.h"

namespace mosa::node {

Result<Capability> AccessGate::Check(std::string_view sealed, FileId file, bool write,
                                     Shown& shown) const {
  SystemMutexLock lock(mutex_);
  if (key_.empty()) {
    return UnavailableError(
        "the node has not registered with the manager yet and cannot check capabilities");
  }
  const Time now = clock_.Monotonic() + offset_;
  if (shown.key_count != key_count_ || shown.sealed != sealed || now >= shown.capability.expires) {
    const std::string key = key_;
    const uint64_t key_count = key_count_;
    lock.unlock();
    MOSA_ASSIGN_OR_RETURN(shown.capability, OpenCapability(sealed, key, now));
    shown.sealed = sealed;
    shown.key_count = key_count;
    lock.lock();
  }
  if (shown.capability.client != shown.client) {
    return PermissionDeniedError(
        fmt::format("the capability for file {} belongs to client {:016x}, but the connection to "
                    "client {:016x}",
                    file.value, shown.capability.client.value, shown.client.value));
  }
  if (shown.capability.epoch < epoch_) {
    return PermissionDeniedError(
        fmt::format("the capability for file {} has epoch {}, but this node has held its objects "
                    "since epoch {}: open the file again",
                    file.value, shown.capability.epoch, epoch_));
  }
  if (write) {
    MOSA_RETURN_IF_ERROR(CheckIssued(shown.capability));
    MOSA_RETURN_IF_ERROR(CheckEra(shown.capability));
  }
  if (shown.capability.file != file) {
    return PermissionDeniedError(fmt::format("the capability is for file {}, not for file {}",
                                             shown.capability.file.value, file.value));
  }
  if (write && !shown.capability.may_write) {
    return PermissionDeniedError(
        fmt::format("the capability for file {} does not allow writing", file.value));
  }
  return shown.capability;
}

// Stores under a replaced session may arrive much later.
Status AccessGate::CheckEra(const Capability& shown) const {
  if (eras_.size() >= kErasMax && !eras_.contains(shown.client.value)) eras_.clear();
  uint64_t& latest = eras_[shown.client.value];
  if (shown.era >= latest) {
    latest = shown.era;
    return OkStatus();
  }
  return PermissionDeniedError(
      fmt::format("the capability of client {:016x} for file {} is of its session {}, but the "
                  "client has since begun session {}: open the file again",
                  shown.client.value, shown.file.value, shown.era, latest));
}

Status AccessGate::CheckIssued(const Capability& shown) const {
  if (shown.expires >= writes_since_ + kCapabilityLifetime) return OkStatus();
  return PermissionDeniedError(
      fmt::format("the capability to write file {} was issued {} ms before this node's process "
                  "registered: open the file again",
                  shown.file.value,
                  (writes_since_ + kCapabilityLifetime - shown.expires).ns / 1'000'000));
}

Result<std::string> AccessGate::SealForReading(FileId file, Duration lifetime,
                                               uint64_t epoch) const {
  const SystemMutexLock lock(mutex_);
  if (key_.empty())
    return UnavailableError("the node has not registered with the manager yet, so it has no key");
  return SealCapability({.file = file,
                         .client = kNodeClient,
                         .may_write = false,
                         .expires = clock_.Monotonic() + offset_ + lifetime,
                         .epoch = epoch},
                        key_);
}

Result<std::string> AccessGate::BulkKeyFor(ClientId client, uint64_t era) const {
  const SystemMutexLock lock(mutex_);
  if (key_.empty())
    return UnavailableError(
        "the node has not registered with the manager yet, so it knows no clients");
  return BulkKeyOf(key_, client, era);
}

BulkIdentity AccessGate::IdentityAtNodes() const {
  Result<std::string> key = BulkKeyFor(kNodeClient, 0);
  return {
      .client = kNodeClient, .era = 0, .key = key.ok() ? *std::move(key) : "", .tls = bulk_tls()};
}

}  // namespace mosa::node
