#include "tests/simulation/history_bytes.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/hash.h"

namespace mosa::simulation {

std::string BytesOf(uint64_t write, uint64_t length) {
  std::string data(length, '\0');
  for (uint64_t i = 0; i < length; ++i)
    data[i] = static_cast<char>(1 + Mix64(write << 20 | i / 512) % 255);
  return data;
}

uint64_t LengthOf(Rng& rng) {
  return 1 + rng.Below(rng.Chance(400) ? 3'000 : rng.Chance(500) ? 100'000 : 400'000);
}

uint64_t GapOf(Rng& rng) { return 1 + rng.Below(rng.Chance(300) ? 300'000 : 5'000); }

std::string Difference(const std::string& right, const std::string& read) {
  size_t i = 0;
  while (i < right.size() && i < read.size() && right[i] == read[i]) ++i;
  size_t last = i;
  for (size_t j = i; j < std::min(right.size(), read.size()); ++j)
    if (right[j] != read[j]) last = j;
  const auto byte = [i](const std::string& bytes) {
    return i < bytes.size() ? static_cast<int>(static_cast<unsigned char>(bytes[i])) : -1;
  };
  return fmt::format("{} bytes, not {}; wrong ones are from {} to {}, the first is {}, not {}",
                     read.size(), right.size(), i, last, byte(read), byte(right));
}

}  // namespace mosa::simulation
