#include "proto/convert/capability.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "common/base/check.h"

namespace mosa {
namespace {

constexpr uint8_t kVersion = 2;
constexpr uint8_t kRightToWrite = 1;
constexpr size_t kMacBytes = 32;
constexpr size_t kBodyBytes = kSealedCapabilityBytes - kMacBytes;

void PutUint64(std::string& out, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

uint64_t GetUint64(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i)
    value |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

std::array<unsigned char, kMacBytes> Mac(std::string_view body, std::string_view key) {
  std::array<unsigned char, kMacBytes> mac{};
  unsigned int mac_bytes = 0;
  const unsigned char* const made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                         reinterpret_cast<const unsigned char*>(body.data()),
                                         body.size(), mac.data(), &mac_bytes);
  MOSA_CHECK(made != nullptr && mac_bytes == kMacBytes);
  return mac;
}

}  // namespace

std::string SealCapability(const Capability& capability, std::string_view key) {
  MOSA_CHECK(!key.empty());
  std::string sealed;
  sealed.reserve(kSealedCapabilityBytes);
  sealed.push_back(static_cast<char>(kVersion));
  PutUint64(sealed, capability.file.value);
  PutUint64(sealed, capability.client.value);
  PutUint64(sealed, capability.era);
  PutUint64(sealed, capability.generation);
  PutUint64(sealed, capability.epoch);
  PutUint64(sealed, static_cast<uint64_t>(capability.expires.ns));
  sealed.push_back(static_cast<char>(capability.may_write ? kRightToWrite : 0));
  const auto mac = Mac(sealed, key);
  sealed.append(reinterpret_cast<const char*>(mac.data()), mac.size());
  return sealed;
}

Result<Capability> OpenCapability(std::string_view sealed, std::string_view key, Time now) {
  MOSA_CHECK(!key.empty());
  if (sealed.empty()) return PermissionDeniedError("the request carries no capability");
  const auto version = static_cast<uint8_t>(sealed[0]);
  if (version != kVersion) {
    return PermissionDeniedError(
        fmt::format("the capability has version {}, but this program supports only version {}",
                    version, kVersion));
  }
  if (sealed.size() != kSealedCapabilityBytes) {
    return PermissionDeniedError(fmt::format("the capability has {} bytes, but version {} has {}",
                                             sealed.size(), kVersion, kSealedCapabilityBytes));
  }
  const std::string_view body = sealed.substr(0, kBodyBytes);
  const auto mac = Mac(body, key);
  if (CRYPTO_memcmp(mac.data(), sealed.data() + kBodyBytes, kMacBytes) != 0) {
    return PermissionDeniedError("the capability is forged or belongs to another cluster");
  }
  Capability capability;
  capability.file = FileId{GetUint64(body, 1)};
  capability.client = ClientId{GetUint64(body, 9)};
  capability.era = GetUint64(body, 17);
  capability.generation = GetUint64(body, 25);
  capability.epoch = GetUint64(body, 33);
  capability.expires = Time{static_cast<int64_t>(GetUint64(body, 41))};
  const auto rights = static_cast<uint8_t>(body[49]);
  capability.may_write = (rights & kRightToWrite) != 0;
  if (now >= capability.expires) {
    return PermissionDeniedError(fmt::format(
        "the capability of client {:016x} for file {} expired {} ms ago: open the file "
        "again",
        capability.client.value, capability.file.value, (now - capability.expires).ns / 1'000'000));
  }
  return capability;
}

std::string NewCapabilityKey() {
  std::string key(kCapabilityKeyBytes, '\0');
  MOSA_CHECK(
      RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), static_cast<int>(key.size())) == 1);
  return key;
}

std::string CapabilityKeyFor(std::string_view cluster_key, std::vector<std::string> authorities) {
  std::sort(authorities.begin(), authorities.end());
  std::string text = "mosa capability key";
  for (const std::string& authority : authorities) {
    text.push_back('\0');
    text.append(authority);
  }
  const auto mac = Mac(text, cluster_key);
  return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

}  // namespace mosa
