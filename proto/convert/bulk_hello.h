// The hello of a bulk connection: both sides prove that they know the session's key, without
// sending it.
//
// The manager gives each session a key over TLS; a node derives the same one from the capability
// key, so it keeps no table of sessions. Each side picks a nonce. A proof is an HMAC-SHA-256 under
// the session's key over who proves, both nonces, the client, its era, the protocol's version and
// the node's name: a proof that was overheard opens nothing later, nothing at another node, and
// nothing for another client.
//
// Everything here is pure but NewNonce and Introduce.
#ifndef MOSA_PROTO_CONVERT_BULK_HELLO_H_
#define MOSA_PROTO_CONVERT_BULK_HELLO_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/session.h"
#include "mosa/v1/bulk.pb.h"
#include "proto/convert/bulk_frame.h"

namespace mosa {

// The versions of the bulk protocol that this program speaks. Version 1 had no hello.
inline constexpr uint32_t kBulkVersion = 2;
inline constexpr uint32_t kBulkVersionMin = 2;
inline constexpr size_t kBulkNonceBytes = 16;
inline constexpr size_t kBulkProofBytes = 32;
// Before the proof a header has at most this size.
inline constexpr uint32_t kHelloBytesMax = 512;

// The key of a client's session. `capability_key` must not be empty.
std::string BulkKeyOf(std::string_view capability_key, ClientId client, uint64_t era);
// From the system's generator.
std::string NewNonce();

// ---- the node's side

// InvalidArgument if the request is no hello or is malformed, FailedPrecondition, naming both
// sides' versions, if they have none in common.
Status CheckHello(const v1::BulkRequest& request);
struct Greeting {
  v1::BulkReply reply;
  std::string proof_expected;
};
// Answers a checked hello. `key` is BulkKeyOf for the client and era that it names.
Greeting Greet(const v1::BulkHello& hello, std::string_view key, std::string_view node_name,
               std::string_view nonce);
// PermissionDenied if the request does not prove what the greeting asked for. The time that this
// takes does not depend on the bytes.
Status CheckProof(const v1::BulkRequest& request, std::string_view proof_expected);

// ---- the client's side

v1::BulkRequest HelloOf(const BulkIdentity& identity, std::string_view nonce);
// What follows a node's greeting. FailedPrecondition if the node refused for good (another
// version), Unauthenticated if it does not prove to be `node_name` of this cluster, Unavailable if
// it refused for now.
Result<v1::BulkRequest> ProofFor(const BulkIdentity& identity, const v1::BulkHello& hello,
                                 const v1::BulkReply& reply, std::string_view node_name);
// The whole hello over a new connection. The proof may stay in the socket's buffer until the first
// request follows. Errors as FrameSocket's and ProofFor's.
Status Introduce(FrameSocket& socket, const BulkIdentity& identity, std::string_view node_name,
                 Time deadline);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_BULK_HELLO_H_
