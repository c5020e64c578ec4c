#include "proto/convert/bulk_tls.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace mosa {
namespace {

constexpr std::array<unsigned char, 2> kAes128GcmSha256 = {0x13, 0x01};
constexpr size_t kIdentityBytes = 16;

void PutUint64(unsigned char* out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<unsigned char>(value >> (8 * i));
}
uint64_t GetUint64(const unsigned char* bytes) {
  uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) value |= uint64_t{bytes[i]} << (8 * i);
  return value;
}

// The form in which OpenSSL wants a pre-shared key. Null if it has no memory.
SSL_SESSION* SessionOf(SSL* ssl, const std::string& key) {
  SSL_SESSION* const session = SSL_SESSION_new();
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256.data());
  if (session != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                                  key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

TlsStream& StreamOf(SSL* ssl) { return *static_cast<TlsStream*>(SSL_get_app_data(ssl)); }

// OpenSSL copies the identity before it goes on.
int UseKey(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, size_t* identity_bytes,
           SSL_SESSION** session) {
  thread_local std::array<unsigned char, kIdentityBytes> bytes;
  *session = nullptr;
  if (digest != nullptr && EVP_MD_get_type(digest) != NID_sha256) return 1;  // Another suite's.
  const BulkIdentity& own = StreamOf(ssl).identity();
  *session = SessionOf(ssl, own.key);
  if (*session == nullptr) return 0;
  PutUint64(bytes.data(), own.client.value);
  PutUint64(bytes.data() + 8, own.era);
  *identity = bytes.data();
  *identity_bytes = bytes.size();
  return 1;
}

int FindKey(SSL* ssl, const unsigned char* identity, size_t identity_bytes, SSL_SESSION** session) {
  *session = nullptr;
  if (identity_bytes != kIdentityBytes) return 1;  // Goes on without: the handshake then fails.
  const auto key = StreamOf(ssl).key_of()(ClientId{GetUint64(identity)}, GetUint64(identity + 8));
  if (key.ok()) *session = SessionOf(ssl, *key);
  return 1;
}

SSL_CTX* NewContext(bool is_server) {
  SSL_CTX* const context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
  MOSA_CHECK(context != nullptr);
  MOSA_CHECK(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1);
  MOSA_CHECK(SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1);
  // A frame has its length, so an end that is not announced is found out.
  SSL_CTX_set_options(context, SSL_OP_ENABLE_KTLS | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                   SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  if (is_server) {
    SSL_CTX_set_psk_find_session_callback(context, FindKey);
  } else {
    SSL_CTX_set_psk_use_session_callback(context, UseKey);
    // Nobody is trusted by a certificate: a peer that does not take the key is refused.
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  }
  return context;
}

SSL* NewSsl(int socket, bool is_server) {
  static SSL_CTX* const server = NewContext(true);
  static SSL_CTX* const client = NewContext(false);
  SSL* const ssl = SSL_new(is_server ? server : client);
  MOSA_CHECK(ssl != nullptr && SSL_set_fd(ssl, socket) == 1);
  is_server ? SSL_set_accept_state(ssl) : SSL_set_connect_state(ssl);
  return ssl;
}

}  // namespace

TlsStream::TlsStream(int socket, bool is_server, BulkIdentity identity, KeyOf key_of)
    : identity_(std::move(identity)),
      key_of_(std::move(key_of)),
      ssl_(NewSsl(socket, is_server), &SSL_free) {
  SSL_set_app_data(ssl_.get(), this);
}

TlsStream::~TlsStream() = default;

std::unique_ptr<TlsStream> TlsStream::Client(int socket, BulkIdentity identity) {
  return std::unique_ptr<TlsStream>(new TlsStream(socket, false, std::move(identity), {}));
}

std::unique_ptr<TlsStream> TlsStream::Server(int socket, KeyOf key_of) {
  return std::unique_ptr<TlsStream>(new TlsStream(socket, true, {}, std::move(key_of)));
}

Result<bool> TlsStream::Handshake() {
  ERR_clear_error();
  errno = 0;
  const int returned = SSL_do_handshake(ssl_.get());
  if (returned == 1) {
    if (SSL_session_reused(ssl_.get()) == 1) return true;  // By the key, not by a certificate.
    return UnavailableError("the TLS handshake did not use the session key");
  }
  const int error = SSL_get_error(ssl_.get(), returned);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return false;
  const unsigned long code = ERR_peek_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return UnavailableError(fmt::format(
      "the TLS handshake failed ({}): the peer does not encrypt or does not have the session key",
      reason != nullptr ? reason : "the peer closed the connection"));
}

ssize_t TlsStream::Outcome(int returned) const {
  switch (SSL_get_error(ssl_.get(), returned)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    case SSL_ERROR_SYSCALL:
      if (errno == 0) return 0;
      return -1;
    default:
      errno = EPROTO;
      return -1;
  }
}

ssize_t TlsStream::Receive(void* out, size_t size) {
  ERR_clear_error();
  errno = 0;
  const int n = SSL_read(ssl_.get(), out, static_cast<int>(std::min<size_t>(size, INT_MAX)));
  return n > 0 ? n : Outcome(n);
}

ssize_t TlsStream::Send(const void* data, size_t size) {
  ERR_clear_error();
  errno = 0;
  const int n = SSL_write(ssl_.get(), data, static_cast<int>(std::min<size_t>(size, INT_MAX)));
  if (n > 0) return n;
  const ssize_t outcome = Outcome(n);
  if (outcome == 0) errno = EPIPE;
  return -1;
}

ssize_t TlsStream::SendFile(int fd, uint64_t offset, size_t size) {
  ERR_clear_error();
  errno = 0;
  const ossl_ssize_t n = SSL_sendfile(ssl_.get(), fd, static_cast<off_t>(offset), size, 0);
  return n >= 0 ? n : Outcome(static_cast<int>(n));
}

bool TlsStream::has_pending() const { return SSL_has_pending(ssl_.get()) == 1; }

bool TlsStream::kernel_sends() const { return BIO_get_ktls_send(SSL_get_wbio(ssl_.get())) != 0; }

}  // namespace mosa
