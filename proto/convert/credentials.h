// The cluster secret: one PEM file with a self-signed certificate (EC P-256, for the name
// "mosa-cluster") and its private key. Whoever has the file belongs to the cluster: both sides of a
// connection show the certificate, and accept no other (mutual TLS).
//
// Everything here is safe from any thread.
#ifndef MOSA_PROTO_CONVERT_CREDENTIALS_H_
#define MOSA_PROTO_CONVERT_CREDENTIALS_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/time.h"

namespace mosa {

struct ClusterSecret {
  std::string certificate_pem;
  std::string private_key_pem;
};

// The text of a new secret file, good for ten years. Write it with mode 0600.
Result<std::string> GenerateSecret();

// Reads a secret. PermissionDenied if anybody but the owner can reach the file, NotFound if there
// is none, InvalidArgument if it does not hold what GenerateSecret writes, FailedPrecondition if
// the certificate is not valid now.
Result<ClusterSecret> LoadSecret(const std::string& path);

// Without a secret: plain text, for loopback only (CheckListenAddress).
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const std::optional<ClusterSecret>& secret);

// How much a peer may send on one stream before it must wait: fixed, since both sides leave
// HTTP/2's bandwidth probe off.
inline constexpr int kStreamWindowBytes = 4 << 20;

// A channel to a daemon at host:port: one connection of its own, no proxy, quick reconnection.
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
