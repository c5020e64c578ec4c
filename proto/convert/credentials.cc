#include "proto/convert/credentials.h"

#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <system_error>

#include "fmt/format.h"
#include "proto/convert/protocol_version.h"

namespace mosa {

namespace {

constexpr char kSecretName[] = "mosa-cluster";
constexpr long kValidSeconds = 10L * 365 * 24 * 3600;
constexpr size_t kSecretBytesMax = 64 * 1024;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

bool AddExtension(X509* certificate, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// True if every step worked. The serial number is random, so that two clusters' certificates differ
// in what error messages show.
bool Fill(X509* certificate, EVP_PKEY* key) {
  int64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) != 1) return false;
  X509_NAME* const name = X509_get_subject_name(certificate);
  return X509_set_version(certificate, 2) == 1 &&
         ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate), serial & INT64_MAX) == 1 &&
         // A day of slack for hosts whose clocks are behind.
         X509_gmtime_adj(X509_getm_notBefore(certificate), -24L * 3600) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), kValidSeconds) != nullptr &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(kSecretName), -1, -1,
                                    0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         AddExtension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         AddExtension(certificate, NID_subject_alt_name, "DNS:mosa-cluster") &&
         X509_sign(certificate, key, EVP_sha256()) != 0;
}

Result<std::string> ReadSecretFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    const std::string text = fmt::format("cannot read the cluster secret {}: {}", path,
                                         std::generic_category().message(error));
    return error == ENOENT ? NotFoundError(text) : PermissionDeniedError(text);
  }
  struct stat info {};
  std::string text(kSecretBytesMax + 1, '\0');
  const bool stated = ::fstat(fd, &info) == 0;
  const ssize_t size = stated && S_ISREG(info.st_mode) ? ::read(fd, text.data(), text.size()) : -1;
  ::close(fd);
  if (stated && (info.st_mode & 077) != 0) {
    return PermissionDeniedError(
        fmt::format("the cluster secret {} has mode {:04o}: others can reach it; chmod 600 {}",
                    path, info.st_mode & 07777, path));
  }
  if (size < 0 || static_cast<size_t>(size) > kSecretBytesMax) {
    return InvalidArgumentError(fmt::format(
        "the cluster secret {} is not a file of at most {} bytes", path, kSecretBytesMax));
  }
  text.resize(static_cast<size_t>(size));
  return text;
}

bool IsP256(EVP_PKEY* key) {
  char group[64] = {};
  size_t size = 0;
  return EVP_PKEY_is_a(key, "EC") == 1 &&
         EVP_PKEY_get_group_name(key, group, sizeof(group), &size) == 1 &&
         std::string_view(group, size) == "prime256v1";
}

// An empty answer, where a pass phrase would be asked for on the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

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

Result<std::string> GenerateSecret() {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  const Bio bio(BIO_new(BIO_s_mem()));
  if (key == nullptr || certificate == nullptr || bio == nullptr ||
      !Fill(certificate.get(), key.get()) ||
      PEM_write_bio_X509(bio.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return InternalError("OpenSSL could not make a P-256 key and certificate");
  }
  return TextOf(bio.get());
}

Result<ClusterSecret> LoadSecret(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(path));
  const auto wrong = [&path](std::string_view what) {
    return InvalidArgumentError(fmt::format(
        "the cluster secret {} {}; it must be a file that `mosa secret` made", path, what));
  };
  const Bio certificate_in(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const Bio key_in(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const Certificate certificate(
      PEM_read_bio_X509(certificate_in.get(), nullptr, NoPassword, nullptr));
  const Key key(PEM_read_bio_PrivateKey(key_in.get(), nullptr, NoPassword, nullptr));
  if (certificate == nullptr) return wrong("holds no certificate");
  if (key == nullptr) return wrong("holds no private key without a pass phrase");
  if (!IsP256(key.get())) return wrong("has a key that is not EC P-256");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return wrong("has a key that does not belong to its certificate");
  }
  if (X509_check_host(certificate.get(), kSecretName, 0, 0, nullptr) != 1) {
    return wrong("has a certificate that is not for the name mosa-cluster");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate.get())) >= 0 ||
      X509_cmp_current_time(X509_get0_notAfter(certificate.get())) <= 0) {
    return FailedPreconditionError(fmt::format(
        "the certificate of the cluster secret {} is not valid now: check this host's clock, or "
        "make a new secret",
        path));
  }
  const Bio certificate_out(BIO_new(BIO_s_mem()));
  const Bio key_out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_out.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return InternalError("OpenSSL could not write a certificate that it has read");
  }
  return ClusterSecret{.certificate_pem = TextOf(certificate_out.get()),
                       .private_key_pem = TextOf(key_out.get())};
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const std::optional<ClusterSecret>& secret) {
  if (!secret) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = secret->certificate_pem;
  options.pem_key_cert_pairs.push_back({secret->private_key_pem, secret->certificate_pem});
  return grpc::SslServerCredentials(options);
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
  arguments.SetSslTargetNameOverride(kSecretName);
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = secret->certificate_pem;
  options.pem_private_key = secret->private_key_pem;
  options.pem_cert_chain = secret->certificate_pem;
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
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
