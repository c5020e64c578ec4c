// For tests: a secret whose time is over, which nobody issues.
#ifndef MOSA_PROTO_CONVERT_EXPIRED_SECRET_H_
#define MOSA_PROTO_CONVERT_EXPIRED_SECRET_H_

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "proto/convert/certificates.h"

namespace mosa {

// `text` as IssueSecret of `authority` gives it, with a certificate that ended a minute ago.
inline std::string ExpireSecret(const std::string& text, const Authority& authority) {
  using Bio = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
  const auto of = [](const std::string& pem) {
    return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free_all);
  };
  const Bio certificate_in = of(text);
  const Bio key_in = of(authority.private_key_pem);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(certificate_in.get(), nullptr, nullptr, nullptr), &X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(key_in.get(), nullptr, nullptr, nullptr), &EVP_PKEY_free);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), -60);
  EXPECT_NE(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  const Bio out(BIO_new(BIO_s_mem()), &BIO_free_all);
  EXPECT_EQ(PEM_write_bio_X509(out.get(), certificate.get()), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size)) +
         text.substr(text.find("-----BEGIN PRIVATE KEY"));
}

}  // namespace mosa

#endif  // MOSA_PROTO_CONVERT_EXPIRED_SECRET_H_
