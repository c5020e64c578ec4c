#include "proto/convert/credentials.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>

#include "fmt/format.h"
#include "proto/convert/protocol_version.h"

namespace mosa {

namespace {

std::shared_ptr<grpc::experimental::CertificateProviderInterface> Watch(
    const ClusterSecret& secret) {
  return std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      secret.path, secret.path, secret.path, kSecretRefreshSeconds);
}

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host == "[::1]") return true;
  // 127.0.0.0/8, written out: four numbers and nothing else, so that no name slips through.
  if (!host.starts_with("127.")) return false;
  int dots = 0;
  for (const char c : host) {
    if (c == '.') {
      ++dots;
    } else if (c < '0' || c > '9') {
      return false;
    }
  }
  return dots == 3;
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const std::optional<ClusterSecret>& secret) {
  if (!secret) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(Watch(*secret));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

Result<Identity> IdentityOfPeer(const grpc::AuthContext& peer) {
  const auto uris = peer.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME);
  if (!peer.IsPeerAuthenticated() || uris.size() != 1)
    return UnauthenticatedError(
        fmt::format("the peer's certificate names {} roles, not one", uris.size()));
  const auto identity = IdentityOfUri(std::string(uris.front().data(), uris.front().size()));
  if (!identity.ok()) return UnauthenticatedError(MessageOf(identity.status()));
  return identity;
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const std::optional<ClusterSecret>& secret) {
  grpc::ChannelArguments arguments;
  arguments.SetUserAgentPrefix(UserAgentOf(kProtocolVersions));
  arguments.SetMaxReceiveMessageSize(-1);  // What a daemon of our own cluster answers.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A bandwidth probe is a ping and its answer per message: four wake-ups beside each round trip.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamWindowBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A peer whose machine or link is gone says nothing: the connection ends when what was sent (a
  // session always sends) is not acknowledged for this long, by TCP_USER_TIMEOUT. gRPC sets that
  // only with its own pings on; these are as rare as servers tolerate.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 600'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  if (!secret) {
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }
  arguments.SetSslTargetNameOverride(kManagerName);
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Watch(*secret));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  return grpc::CreateCustomChannel(address, grpc::experimental::TlsCredentials(options), arguments);
}

bool AwaitConnection(grpc::Channel& channel, Duration wait) {
  return channel.WaitForConnected(std::chrono::system_clock::now() +
                                  std::chrono::nanoseconds(wait.ns));
}

Status CheckListenAddress(std::string_view address, bool has_secret) {
  const size_t colon = address.rfind(':');
  const std::string_view host = address.substr(0, colon);
  const std::string_view port =
      colon == std::string_view::npos ? std::string_view() : address.substr(colon + 1);
  uint16_t number = 0;
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (host.empty() || port.empty() || parsed.ec != std::errc() ||
      parsed.ptr != port.data() + port.size() ||
      (!bracketed && host.find(':') != std::string_view::npos)) {
    return InvalidArgumentError(fmt::format(
        "address '{}' is not HOST:PORT, such as 127.0.0.1:7400 or [::1]:7400", address));
  }
  if (!has_secret && !IsLoopback(host)) {
    return InvalidArgumentError(fmt::format(
        "listening on {} without a cluster secret would let anybody in: give --secret FILE, or "
        "listen on 127.0.0.1",
        address));
  }
  return OkStatus();
}

}  // namespace mosa
