// Capabilities as byte strings: sealed by the manager, carried by clients without being looked
// into, opened by storage nodes. Both sides hold the cluster's capability key; nobody without it
// can make a capability or change one.
//
// Form, version 2, 82 bytes: version (1), file (8), client (8), era (8), generation (8), epoch (8),
// expiry in ns (8), rights (1), and HMAC-SHA-256 over all of these (32). Integers are
// little-endian.
#ifndef MOSA_PROTO_CONVERT_CAPABILITY_H_
#define MOSA_PROTO_CONVERT_CAPABILITY_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/storage.h"

namespace mosa {

inline constexpr size_t kCapabilityKeyBytes = 32;
inline constexpr size_t kSealedCapabilityBytes = 82;

// Seals `capability` under `key`, which is any non-empty secret. Pure: the same arguments give the
// same bytes.
std::string SealCapability(const Capability& capability, std::string_view key);

// Opens what SealCapability made. PermissionDenied says which of these it is: not a capability
// (length), of another version, forged or of another cluster (the HMAC), or expired and since when.
// Which file it is for, and whether era, generation and epoch are still current, is the caller's to
// check. The time that the comparison takes does not depend
// on the bytes.
Result<Capability> OpenCapability(std::string_view sealed, std::string_view key, Time now);

// A fresh random key of kCapabilityKeyBytes from the system's generator.
std::string NewCapabilityKey();

// The capability key of a cluster that keeps `cluster_key` to itself and whose members trust these
// authorities (in any order). Nodes learn only this key: once a cluster has changed its authority,
// a node that is no longer trusted holds one that opens nothing.
std::string CapabilityKeyFor(std::string_view cluster_key, std::vector<std::string> authorities);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_CAPABILITY_H_
