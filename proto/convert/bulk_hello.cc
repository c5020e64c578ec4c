#include "proto/convert/bulk_hello.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace mosa {
namespace {

// Capabilities begin with a small version number, these with letters: no HMAC is both.
constexpr std::string_view kKeyLabel = "mosa bulk session key";
constexpr std::string_view kNodeLabel = "mosa bulk node";
constexpr std::string_view kClientLabel = "mosa bulk client";

void PutUint64(std::string& out, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

std::string Mac(std::string_view key, std::string_view text) {
  MOSA_CHECK(!key.empty());
  std::string mac(kBulkProofBytes, '\0');
  unsigned int mac_bytes = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(mac.data()), &mac_bytes);
  MOSA_CHECK(made != nullptr && mac_bytes == mac.size());
  return mac;
}

// Nonces have one length, so no two different sets of arguments give the same text.
std::string Proof(std::string_view key, std::string_view label, const v1::BulkHello& hello,
                  uint32_t version, std::string_view node_nonce, std::string_view node_name) {
  std::string text(label);
  text.push_back('\0');
  text.append(hello.nonce());
  text.append(node_nonce);
  PutUint64(text, hello.client_id());
  PutUint64(text, hello.era());
  PutUint64(text, version);
  text.append(node_name);
  return Mac(key, text);
}

bool Equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string BulkKeyOf(std::string_view capability_key, ClientId client, uint64_t era) {
  std::string text(kKeyLabel);
  PutUint64(text, client.value);
  PutUint64(text, era);
  return Mac(capability_key, text);
}

std::string NewNonce() {
  std::string nonce(kBulkNonceBytes, '\0');
  MOSA_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()),
                        static_cast<int>(nonce.size())) == 1);
  return nonce;
}

// ---- the node's side

Status CheckHello(const v1::BulkRequest& request) {
  if (!request.has_hello()) {
    return InvalidArgumentError(
        fmt::format("the connection began without a hello: this node speaks version {} of the "
                    "bulk protocol, the peer an older one; upgrade the peer",
                    kBulkVersion));
  }
  const v1::BulkHello& hello = request.hello();
  if (hello.version() < kBulkVersionMin || hello.version_min() > kBulkVersion) {
    return FailedPreconditionError(
        fmt::format("this node speaks versions {} to {} of the bulk protocol, the peer {} to {}: "
                    "upgrade the older one of the two",
                    kBulkVersionMin, kBulkVersion, hello.version_min(), hello.version()));
  }
  if (hello.nonce().size() != kBulkNonceBytes || hello.version_min() > hello.version()) {
    return InvalidArgumentError(
        fmt::format("invalid hello with a nonce of {} bytes and versions {} to {}: a nonce must "
                    "have {} bytes, and versions must ascend",
                    hello.nonce().size(), hello.version_min(), hello.version(), kBulkNonceBytes));
  }
  return OkStatus();
}

Greeting Greet(const v1::BulkHello& hello, std::string_view key, std::string_view node_name,
               std::string_view nonce) {
  MOSA_CHECK(nonce.size() == kBulkNonceBytes);
  const uint32_t version = std::min(hello.version(), kBulkVersion);
  Greeting greeting;
  v1::BulkGreeting& out = *greeting.reply.mutable_greeting();
  out.set_version(version);
  out.set_nonce(std::string(nonce));
  out.set_proof(Proof(key, kNodeLabel, hello, version, nonce, node_name));
  greeting.proof_expected = Proof(key, kClientLabel, hello, version, nonce, node_name);
  return greeting;
}

Status CheckProof(const v1::BulkRequest& request, std::string_view proof_expected) {
  if (request.has_proof() && Equal(request.proof().proof(), proof_expected)) return OkStatus();
  return PermissionDeniedError(
      "the peer failed to authenticate as the client that it claims to be: its session key does "
      "not match");
}

// ---- the client's side

v1::BulkRequest HelloOf(const BulkIdentity& identity, std::string_view nonce) {
  v1::BulkRequest request;
  v1::BulkHello& hello = *request.mutable_hello();
  hello.set_version(kBulkVersion);
  hello.set_version_min(kBulkVersionMin);
  hello.set_client_id(identity.client.value);
  hello.set_era(identity.era);
  hello.set_nonce(std::string(nonce));
  return request;
}

Result<v1::BulkRequest> ProofFor(const BulkIdentity& identity, const v1::BulkHello& hello,
                                 const v1::BulkReply& reply, std::string_view node_name) {
  if (reply.code() != 0) {
    const bool for_good = reply.code() == static_cast<int>(StatusCode::kFailedPrecondition);
    return Status(for_good ? StatusCode::kFailedPrecondition : StatusCode::kUnavailable,
                  fmt::format("the hello was refused: {}", reply.message()));
  }
  const v1::BulkGreeting& greeting = reply.greeting();
  if (greeting.version() < kBulkVersionMin || greeting.version() > kBulkVersion) {
    return FailedPreconditionError(
        fmt::format("the node chose version {} of the bulk protocol, this program speaks {} to {}: "
                    "upgrade the older one of the two",
                    greeting.version(), kBulkVersionMin, kBulkVersion));
  }
  if (greeting.nonce().size() != kBulkNonceBytes ||
      !Equal(greeting.proof(), Proof(identity.key, kNodeLabel, hello, greeting.version(),
                                     greeting.nonce(), node_name))) {
    return absl::UnauthenticatedError(fmt::format(
        "the process that answered failed to authenticate as node {} of this cluster", node_name));
  }
  v1::BulkRequest request;
  request.mutable_proof()->set_proof(
      Proof(identity.key, kClientLabel, hello, greeting.version(), greeting.nonce(), node_name));
  return request;
}

Status Introduce(FrameSocket& socket, const BulkIdentity& identity, std::string_view node_name,
                 Time deadline) {
  const v1::BulkRequest hello = HelloOf(identity, NewNonce());
  MOSA_RETURN_IF_ERROR(socket.SendFrame(hello, {}, deadline));
  v1::BulkReply reply;
  MOSA_ASSIGN_OR_RETURN(const FramePrefix prefix, socket.ReceiveStart(reply, deadline));
  if (prefix.payload_bytes > 0) return InternalError("the reply to a hello carries a payload");
  MOSA_ASSIGN_OR_RETURN(const v1::BulkRequest proof,
                        ProofFor(identity, hello.hello(), reply, node_name));
  return socket.SendStart(proof, 0, /*more=*/true, deadline);
}

}  // namespace mosa
