// Drives a libFuzzer entry without libFuzzer: every file of a seed folder, then random mutations of
// them for a bounded number of rounds. A crash or a sanitizer's report is the failure; the last
// input is written beside the program.
//
// Usage: PROGRAM SEED_FOLDER [ROUNDS [SEED]]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using mosa::Rng;

constexpr size_t kInputBytesMax = 4096;

std::vector<std::string> ReadSeeds(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

// The input under way, for OnCrash.
std::string current_input;
std::string last_path;

// Async-signal-safe: writes the input that crashed beside the program, then dies of the same
// signal.
void OnCrash(int signal_number) {
  const int fd = open(last_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd >= 0 && write(fd, current_input.data(), current_input.size()) >= 0) close(fd);
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void Run(const std::string& input) {
  current_input = input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// One small change: a flipped bit, another byte, a cut, a doubled piece, or a piece of another
// seed.
std::string Mutate(std::string input, const std::vector<std::string>& seeds, Rng& rng) {
  const size_t at = input.empty() ? 0 : rng.Below(input.size());
  switch (rng.Below(5)) {
    case 0:
      if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << rng.Below(8)));
      break;
    case 1:
      if (!input.empty()) input[at] = static_cast<char>(rng.Below(256));
      break;
    case 2:
      input.resize(at);
      break;
    case 3:
      input.insert(at, input.substr(at, rng.Below(16)));
      break;
    default: {
      const std::string& other = seeds[rng.Below(seeds.size())];
      const size_t from = other.empty() ? 0 : rng.Below(other.size());
      input.insert(at, other.substr(from, rng.Below(64)));
    }
  }
  if (input.size() > kInputBytesMax) input.resize(kInputBytesMax);
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s SEED_FOLDER [ROUNDS [SEED]]\n", argv[0]);
    return 2;
  }
  const uint64_t rounds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20'000;
  const uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  std::vector<std::string> seeds = ReadSeeds(argv[1]);
  if (seeds.empty()) {
    std::fprintf(stderr, "%s holds no seed: nothing was tested\n", argv[1]);
    return 1;
  }
  last_path = std::string(argv[0]) + ".last_input";
  std::signal(SIGABRT, OnCrash);
  std::signal(SIGSEGV, OnCrash);
  for (const std::string& input : seeds) Run(input);
  Rng rng(seed);
  for (uint64_t round = 0; round < rounds; ++round) {
    std::string input = seeds[rng.Below(seeds.size())];
    for (uint64_t n = 1 + rng.Below(8); n > 0; --n) input = Mutate(std::move(input), seeds, rng);
    Run(input);
  }
  std::printf("%zu seeds and %llu mutations, seed %llu: 1 passed, 0 failed\n", seeds.size(),
              static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(seed));
  return 0;
}
