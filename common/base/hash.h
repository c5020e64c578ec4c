// Hashes with stable values: the same bytes give the same number on every machine, compiler and
// version.
//
// Hash64 is FNV-1a (Fowler, Noll, Vo) over the bytes, finished by Mix64. Mix64 is the finaliser of
// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). base_test.cc pins golden values. Not for secrets.
#ifndef MOSA_COMMON_BASE_HASH_H_
#define MOSA_COMMON_BASE_HASH_H_

#include <cstdint>
#include <string_view>

namespace mosa {

constexpr uint64_t Mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr uint64_t Hash64(std::string_view bytes, uint64_t seed = 0) {
  uint64_t h = 0xcbf29ce484222325ULL ^ Mix64(seed);
  for (const char c : bytes) {
    h ^= static_cast<unsigned char>(c);
    h *= 0x100000001b3ULL;
  }
  return Mix64(h);
}

constexpr uint64_t HashCombine(uint64_t a, uint64_t b) {
  return Mix64(a ^ (Mix64(b) + 0x632be59bd9b4e019ULL));
}

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_HASH_H_
