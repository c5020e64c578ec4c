// Certificates of a cluster: an authority (CA), and the secrets that it issues, each for one role.
//
// A secret is one PEM file: a certificate (EC P-256), its private key, and the certificates of the
// authorities whose peers it trusts: one, and two while a cluster changes its authority. An
// authority's file has the same form with the authority's own certificate and key at its beginning;
// whoever has it can issue any secret.
//
// Everything here is safe from any thread.
#ifndef MOSA_PROTO_CONVERT_CERTIFICATES_H_
#define MOSA_PROTO_CONVERT_CERTIFICATES_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "proto/convert/role.h"

namespace mosa {

// The name for which a manager's certificate is valid: nobody else can pose as the manager.
inline constexpr char kManagerName[] = "mosa-cluster";
// The same of storage nodes.
inline constexpr char kNodeName[] = "mosa-node";

struct ClusterSecret {
  std::string certificate_pem;
  std::string private_key_pem;
  std::string trusted_pem;  // One or more certificates of authorities.
  Identity identity;
  std::string path;  // Where it came from; read again while a connection's end lives.
};

struct Authority {
  std::string certificate_pem;
  std::string private_key_pem;
  // Other authorities that what is issued trusts as well.
  std::vector<std::string> also_trusted_pem;

  // What peers of this authority's cluster trust.
  std::string TrustedPem() const;
  // The text of its file.
  std::string ToPem() const;
};

inline constexpr int kDaysMax = 3650;

// A new one, good for ten years.
Result<Authority> CreateAuthority();
Result<Authority> ParseAuthority(const std::string& text, std::string_view path);

// The text of a new secret file. Write it with mode 0600. InvalidArgument if the days are not 1 to
// kDaysMax, or the identity is none that a URI can say.
Result<std::string> IssueSecret(const Authority& authority, const Identity& identity, int days);
// The text of a secret for the same identity that ends when the old one does, with a key of its
// own.
Result<std::string> ReissueSecret(const Authority& authority, const ClusterSecret& secret);
// The same secret, which trusts what the authority trusts by now.
std::string WithTrust(const ClusterSecret& secret, const Authority& authority);

// Reads a secret. PermissionDenied if anybody but the owner can reach the file (unless systemd has
// put it into $CREDENTIALS_DIRECTORY), or if its role is none of `roles` (empty: any will do);
// NotFound if there is no file; InvalidArgument if it does not hold what IssueSecret gives;
// FailedPrecondition if it was made before there were roles, or is not valid now.
Result<ClusterSecret> LoadSecret(const std::string& path, std::initializer_list<Role> roles = {});
// True if the file holds a certificate and its key, and the certificate's time is over.
bool HasExpired(const std::string& path);
Result<Authority> LoadAuthority(const std::string& path);

// What a person wants to know of a secret: when its certificate ends (as text), and the SHA-256
// prints of the authorities that it trusts, the first one being who issued it.
struct SecretFacts {
  std::string expires;
  std::string issuer;
  std::vector<std::string> trusted;
};
SecretFacts FactsOf(const ClusterSecret& secret);

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_CERTIFICATES_H_
