// TLS 1.3 over a connection of the bulk plane, keyed by the session's key (BulkIdentity): a
// pre-shared key with an ephemeral Diffie-Hellman exchange. Both sides prove that they know the
// key, what was recorded stays secret when the key gets known later, and no certificates are
// needed. Where the kernel has TLS (CONFIG_TLS) OpenSSL hands the connection's keys to it.
//
// Used by one thread at a time; the socket is the caller's and must outlive it. Its users
// ignore or block SIGPIPE.
#ifndef MOSA_PROTO_CONVERT_BULK_TLS_H_
#define MOSA_PROTO_CONVERT_BULK_TLS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/model/session.h"

struct ssl_st;

namespace mosa {

class TlsStream {
 public:
  // The key of the client's session; an error if it is not known.
  using KeyOf = std::function<Result<std::string>(ClientId client, uint64_t era)>;

  static std::unique_ptr<TlsStream> Client(int socket, BulkIdentity identity);
  static std::unique_ptr<TlsStream> Server(int socket, KeyOf key_of);
  ~TlsStream();

  // Goes on with the handshake, as far as the socket does not block. True when it is over, false if
  // more has to come. Unavailable says why it failed.
  Result<bool> Handshake();
  // As recv(2) and send(2): the number of bytes, 0 if the peer has closed, -1 with errno.
  ssize_t Receive(void* out, size_t size);
  ssize_t Send(const void* data, size_t size);
  // Sends a part of a file, as sendfile(2) does. Precondition: kernel_sends().
  ssize_t SendFile(int fd, uint64_t offset, size_t size);
  // Bytes have been received that the socket does not show any more.
  bool has_pending() const;
  bool kernel_sends() const;  // The kernel encrypts what is sent.

  // For OpenSSL's callbacks.
  const BulkIdentity& identity() const { return identity_; }
  const KeyOf& key_of() const { return key_of_; }

 private:
  TlsStream(int socket, bool is_server, BulkIdentity identity, KeyOf key_of);
  ssize_t Outcome(int returned) const;

  const BulkIdentity identity_;
  const KeyOf key_of_;
  const std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
};

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_BULK_TLS_H_
