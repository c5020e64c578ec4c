// How daemons and clients of a cluster talk: mutual TLS with the certificates of certificates.h,
// read again when their file changes, or plain text on loopback.
//
// Everything here is safe from any thread.
#ifndef MOSA_PROTO_CONVERT_CREDENTIALS_H_
#define MOSA_PROTO_CONVERT_CREDENTIALS_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <optional>
#include <string_view>

#include "common/base/status.h"
#include "common/base/time.h"
#include "proto/convert/certificates.h"

namespace mosa {

// How often the files of secrets are read again. What is connected stays so; new connections are
// made with what the file then has, which must be replaced as a whole (rename).
inline constexpr int kSecretRefreshSeconds = 5;

// Without a secret: plain text, for loopback only (CheckListenAddress). A connecting peer shows a
// certificate of an authority that the secret trusts; which role, is for the service to look at.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const std::optional<ClusterSecret>& secret);

// The peer of a connection with TLS. Unauthenticated if it shows no role, as it does without
// TLS.
Result<Identity> IdentityOfPeer(const grpc::AuthContext& peer);

// How much a peer may send on one stream before it must wait: fixed, since both sides leave
// HTTP/2's bandwidth probe off.
inline constexpr int kStreamWindowBytes = 4 << 20;

// A channel to the manager at host:port, which must show a manager's certificate if there is a
// secret: one connection of its own, no proxy, quick reconnection.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const std::optional<ClusterSecret>& secret);

// Connects, for at most `wait`; true once connected. A channel gets on with connecting only while
// somebody waits on it: one that is only tried now and then never completes its handshake.
bool AwaitConnection(grpc::Channel& channel, Duration wait);

// The rule for daemons: HOST:PORT (HOST a name, IPv4 address or [IPv6 address]; PORT 0 to 65535),
// and without a secret only loopback. InvalidArgument says what to do.
Status CheckListenAddress(std::string_view address, bool has_secret);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_CREDENTIALS_H_
