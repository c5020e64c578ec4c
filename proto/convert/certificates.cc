#include "proto/convert/certificates.h"

#include <fcntl.h>
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

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "common/base/unique_fd.h"
#include "fmt/format.h"

namespace mosa {

namespace {

constexpr long kDaySeconds = 24L * 3600;
constexpr size_t kSecretBytesMax = 64 * 1024;
constexpr size_t kTrustedMax = 8;

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
using Asn1Time = std::unique_ptr<ASN1_TIME, Deleter<ASN1_TIME_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

Bio TextBio(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// An empty answer, where a pass phrase would be asked for on the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

std::string PemOf(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  return PEM_write_bio_X509(bio.get(), certificate) == 1 ? TextOf(bio.get()) : "";
}

std::string PemOf(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  return PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1
             ? TextOf(bio.get())
             : "";
}

Certificate CertificateOf(std::string_view pem) {
  return Certificate(PEM_read_bio_X509(TextBio(pem).get(), nullptr, NoPassword, nullptr));
}

Key KeyOf(std::string_view pem) {
  return Key(PEM_read_bio_PrivateKey(TextBio(pem).get(), nullptr, NoPassword, nullptr));
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

Asn1Time InDays(int days) { return Asn1Time(X509_gmtime_adj(nullptr, days * kDaySeconds)); }

// True if every step worked: a subject, a key and a time, but no signature.
bool Begin(X509* certificate, EVP_PKEY* key, const std::string& name, const ASN1_TIME* ends) {
  int64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) != 1) return false;
  const std::string common_name =
      name.empty() ? fmt::format("mosa authority {:016x}", static_cast<uint64_t>(serial)) : name;
  return X509_set_version(certificate, 2) == 1 &&
         ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate), serial & INT64_MAX) == 1 &&
         // A day of slack for hosts whose clocks are behind.
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kDaySeconds) != nullptr &&
         ends != nullptr && X509_set1_notAfter(certificate, ends) == 1 &&
         X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(common_name.data()),
                                    static_cast<int>(common_name.size()), -1, 0) == 1 &&
         X509_set_pubkey(certificate, key) == 1;
}

// The name that clients check, and who may be which end of a connection.
struct Ends {
  std::string dns;
  std::string usage;
};
Ends EndsOf(Role role) {
  if (role == Role::kManager) return {fmt::format(",DNS:{}", kManagerName), "serverAuth"};
  if (role == Role::kNode) return {fmt::format(",DNS:{}", kNodeName), "serverAuth,clientAuth"};
  return {"", "clientAuth"};
}

bool Sign(X509* certificate, const Authority& authority, const Identity& identity) {
  const Certificate issuer = CertificateOf(authority.certificate_pem);
  const Key issuer_key = KeyOf(authority.private_key_pem);
  const Ends ends = EndsOf(identity.role);
  return issuer != nullptr && issuer_key != nullptr &&
         X509_set_issuer_name(certificate, X509_get_subject_name(issuer.get())) == 1 &&
         AddExtension(certificate, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
         AddExtension(certificate, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
         AddExtension(certificate, issuer.get(), NID_ext_key_usage, ends.usage) &&
         AddExtension(certificate, issuer.get(), NID_authority_key_identifier, "keyid:always") &&
         AddExtension(certificate, issuer.get(), NID_subject_alt_name,
                      fmt::format("URI:{}{}", ToUri(identity), ends.dns)) &&
         X509_sign(certificate, issuer_key.get(), EVP_sha256()) != 0;
}

bool IsP256(EVP_PKEY* key) {
  char group[64] = {};
  size_t size = 0;
  return EVP_PKEY_is_a(key, "EC") == 1 &&
         EVP_PKEY_get_group_name(key, group, sizeof(group), &size) == 1 &&
         std::string_view(group, size) == "prime256v1";
}

bool HasEnded(X509* certificate) {
  return X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0;
}

bool IsValidNow(X509* certificate) {
  return X509_cmp_current_time(X509_get0_notBefore(certificate)) < 0 &&
         X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0;
}

// The one role that the certificate names.
Result<Identity> IdentityOf(X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> uris;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const text = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                      static_cast<size_t>(ASN1_STRING_length(text)));
  }
  if (uris.size() != 1)
    return InvalidArgumentError(fmt::format("it names {} roles, not one", uris.size()));
  return IdentityOfUri(uris.front());
}

// True of a file that systemd has put into the directory of the service's credentials, which only
// the service and root may enter. It is root's, with an access list for the service, and the group
// bits show that list's mask: 0440.
bool IsCredential(const std::string& path, const struct stat& info) {
  const char* const directory = std::getenv("CREDENTIALS_DIRECTORY");
  if (directory == nullptr || *directory != '/') return false;
  return info.st_uid == 0 && (info.st_mode & 07777) == 0440 &&
         std::filesystem::path(path).parent_path() == std::filesystem::path(directory);
}

Result<std::string> ReadSecretFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    const int error = errno;
    const std::string text =
        fmt::format("cannot read the secret {}: {}", path, std::generic_category().message(error));
    return error == ENOENT ? NotFoundError(text) : PermissionDeniedError(text);
  }
  struct stat info {};
  std::string text(kSecretBytesMax + 1, '\0');
  const bool stated = ::fstat(fd.get(), &info) == 0;
  const ssize_t size =
      stated && S_ISREG(info.st_mode) ? ::read(fd.get(), text.data(), text.size()) : -1;
  if (stated && S_ISREG(info.st_mode) && (info.st_mode & 077) != 0 && !IsCredential(path, info)) {
    return PermissionDeniedError(
        fmt::format("the secret {} has mode {:04o}, so other users can access it: run chmod 600 {}",
                    path, info.st_mode & 07777, path));
  }
  if (size < 0 || static_cast<size_t>(size) > kSecretBytesMax) {
    return InvalidArgumentError(
        fmt::format("the secret {} is not a file of at most {} bytes{}", path, kSecretBytesMax,
                    stated && S_ISDIR(info.st_mode) ? ": name one of the files in it" : ""));
  }
  text.resize(static_cast<size_t>(size));
  return text;
}

struct PemFile {
  Certificate certificate;
  Key key;
  std::vector<Certificate> others;
};

// What secrets and authorities have in common.
Result<PemFile> ReadPem(const std::string& text, std::string_view path) {
  const auto wrong = [path](std::string_view what) {
    return InvalidArgumentError(
        fmt::format("the secret {} {}; it must be a file that `mosa secret` made", path, what));
  };
  PemFile file;
  const Bio certificates = TextBio(text);
  while (Certificate next{PEM_read_bio_X509(certificates.get(), nullptr, NoPassword, nullptr)}) {
    if (file.certificate == nullptr) {
      file.certificate = std::move(next);
    } else if (file.others.size() == kTrustedMax) {
      return wrong(fmt::format("names more than {} authorities", kTrustedMax));
    } else {
      file.others.push_back(std::move(next));
    }
  }
  file.key = KeyOf(text);
  if (file.certificate == nullptr) return wrong("holds no certificate");
  if (file.key == nullptr) return wrong("holds no unencrypted private key");
  if (!IsP256(file.key.get())) return wrong("has a key that is not EC P-256");
  if (X509_check_private_key(file.certificate.get(), file.key.get()) != 1)
    return wrong("has a key that does not belong to its certificate");
  return file;
}

Result<PemFile> ReadValidPem(const std::string& text, std::string_view path) {
  MOSA_ASSIGN_OR_RETURN(PemFile file, ReadPem(text, path));
  if (!IsValidNow(file.certificate.get())) {
    return FailedPreconditionError(fmt::format(
        "the certificate of the secret {} is not valid now: check this host's clock, or issue a "
        "new one with `mosa secret issue`",
        path));
  }
  return file;
}

std::string PrintOf(X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), static_cast<unsigned char*>(digest), &size) != 1)
    return "";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::vector<Certificate> CertificatesOf(const std::string& pem) {
  std::vector<Certificate> all;
  const Bio bio = TextBio(pem);
  while (Certificate next{PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)})
    all.push_back(std::move(next));
  return all;
}

bool IsSignedBy(X509* certificate, X509* issuer) {
  return X509_verify(certificate, X509_get0_pubkey(issuer)) == 1;
}

Result<std::string> IssueUntil(const Authority& authority, const Identity& identity,
                               const ASN1_TIME* ends) {
  if (identity.uid.has_value() != (identity.role == Role::kUser) ||
      (!identity.node.empty() && identity.role != Role::kNode))
    return InvalidArgumentError(
        "the role user needs a uid, the role node may have a name, and other roles have neither");
  const auto checked = IdentityOfUri(ToUri(identity));
  if (!checked.ok() || *checked != identity)
    return InvalidArgumentError(
        fmt::format("the name '{}' may contain only letters, digits and '-_.'", identity.node));
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  if (key == nullptr || certificate == nullptr ||
      !Begin(certificate.get(), key.get(), fmt::format("mosa {}", NameOf(identity.role)), ends) ||
      !Sign(certificate.get(), authority, identity)) {
    return InternalError("OpenSSL could not issue a certificate with a P-256 key");
  }
  return PemOf(certificate.get()) + PemOf(key.get()) + authority.TrustedPem();
}

}  // namespace

std::string Authority::TrustedPem() const {
  std::string text = certificate_pem;
  for (const std::string& pem : also_trusted_pem) text += pem;
  return text;
}

std::string Authority::ToPem() const {
  std::string text = certificate_pem + private_key_pem;
  for (const std::string& pem : also_trusted_pem) text += pem;
  return text;
}

Result<Authority> CreateAuthority() {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  X509* const raw = certificate.get();
  if (key == nullptr || raw == nullptr || !Begin(raw, key.get(), "", InDays(kDaysMax).get()) ||
      X509_set_issuer_name(raw, X509_get_subject_name(raw)) != 1 ||
      !AddExtension(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(raw, raw, NID_key_usage, "critical,keyCertSign") ||
      !AddExtension(raw, raw, NID_subject_key_identifier, "hash") ||
      X509_sign(raw, key.get(), EVP_sha256()) == 0) {
    return InternalError("OpenSSL could not make an authority with a P-256 key");
  }
  return Authority{PemOf(raw), PemOf(key.get()), {}};
}

Result<Authority> ParseAuthority(const std::string& text, std::string_view path) {
  MOSA_ASSIGN_OR_RETURN(const PemFile file, ReadValidPem(text, path));
  if (X509_check_ca(file.certificate.get()) != 1) {
    return InvalidArgumentError(fmt::format(
        "{} is not an authority: name the ca.pem that `mosa secret create` made", path));
  }
  Authority authority{PemOf(file.certificate.get()), PemOf(file.key.get()), {}};
  for (const Certificate& other : file.others)
    authority.also_trusted_pem.push_back(PemOf(other.get()));
  return authority;
}

Result<std::string> IssueSecret(const Authority& authority, const Identity& identity, int days) {
  if (days < 1 || days > kDaysMax)
    return InvalidArgumentError(
        fmt::format("the validity is {} days, but must be 1 to {}", days, kDaysMax));
  return IssueUntil(authority, identity, InDays(days).get());
}

Result<std::string> ReissueSecret(const Authority& authority, const ClusterSecret& secret) {
  const Certificate old = CertificateOf(secret.certificate_pem);
  if (old == nullptr) return InvalidArgumentError("the secret has no certificate");
  return IssueUntil(authority, secret.identity, X509_get0_notAfter(old.get()));
}

std::string WithTrust(const ClusterSecret& secret, const Authority& authority) {
  return secret.certificate_pem + secret.private_key_pem + authority.TrustedPem();
}

Result<ClusterSecret> LoadSecret(const std::string& path, std::initializer_list<Role> roles) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(path));
  MOSA_ASSIGN_OR_RETURN(const PemFile file, ReadValidPem(text, path));
  X509* const certificate = file.certificate.get();
  if (file.others.empty() && X509_check_host(certificate, kManagerName, 0, 0, nullptr) == 1) {
    return FailedPreconditionError(
        fmt::format("the secret {} was made before secrets had roles and grants full access: make "
                    "new ones, one file per role, with `mosa secret create DIR`",
                    path));
  }
  const auto identity = IdentityOf(certificate);
  if (!identity.ok()) {
    return InvalidArgumentError(
        fmt::format("the secret {} has no role: {}", path, MessageOf(identity.status())));
  }
  const bool is_issued = std::any_of(
      file.others.begin(), file.others.end(),
      [certificate](const Certificate& other) { return IsSignedBy(certificate, other.get()); });
  if (!is_issued) {
    return InvalidArgumentError(
        fmt::format("the secret {} was not issued by any authority that it trusts", path));
  }
  if (roles.size() > 0 && std::find(roles.begin(), roles.end(), identity->role) == roles.end()) {
    std::string wanted;
    for (const Role role : roles)
      wanted += fmt::format("{}{}", wanted.empty() ? "" : " or ", NameOf(role));
    return PermissionDeniedError(
        fmt::format("the secret {} has the role {}, but the role {} is needed", path,
                    Describe(*identity), wanted));
  }
  ClusterSecret secret{.certificate_pem = PemOf(certificate),
                       .private_key_pem = PemOf(file.key.get()),
                       .trusted_pem = {},
                       .identity = *identity,
                       .path = path};
  for (const Certificate& other : file.others) secret.trusted_pem += PemOf(other.get());
  return secret;
}

bool HasExpired(const std::string& path) {
  const auto text = ReadSecretFile(path);
  if (!text.ok()) return false;
  const auto file = ReadPem(*text, path);
  return file.ok() && HasEnded(file->certificate.get());
}

Result<Authority> LoadAuthority(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(path));
  return ParseAuthority(text, path);
}

SecretFacts FactsOf(const ClusterSecret& secret) {
  SecretFacts facts;
  const Certificate own = CertificateOf(secret.certificate_pem);
  const Bio bio(BIO_new(BIO_s_mem()));
  if (own == nullptr || ASN1_TIME_print(bio.get(), X509_get0_notAfter(own.get())) != 1)
    return facts;
  facts.expires = TextOf(bio.get());
  for (const Certificate& each : CertificatesOf(secret.trusted_pem)) {
    facts.trusted.push_back(PrintOf(each.get()));
    if (IsSignedBy(own.get(), each.get())) facts.issuer = facts.trusted.back();
  }
  return facts;
}

}  // namespace mosa
