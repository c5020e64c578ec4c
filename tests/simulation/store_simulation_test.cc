// Random histories of a whole store in virtual time. MOSA_SEED and MOSA_SEEDS choose others, and
// MOSA_TRACE=1 prints what happens in them.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/simulation/store_history.h"

namespace mosa::simulation {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

// ThreadSanitizer sees nothing in threads that one thread of the machine runs, and does not follow
// changes between their stacks.
#if defined(__SANITIZE_THREAD__)
constexpr bool kIsThreadSanitized = true;
#else
constexpr bool kIsThreadSanitized = false;
#endif

class StoreSimulation : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (kIsThreadSanitized) GTEST_SKIP() << "virtual threads are not for ThreadSanitizer";
  }
};

TEST_P(StoreSimulation, WhatWasAcknowledgedIsThereAndEveryCallEnds) {
  const uint64_t first = FromEnvironment("MOSA_SEED", 1);
  const uint64_t seeds = FromEnvironment("MOSA_SEEDS", 100);
  double simulated_s = 0;
  uint64_t failed = 0;
  Duration longest;
  std::string longest_call;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const History history = RunHistory(
        {.seed = seed, .faults = GetParam(), .trace = FromEnvironment("MOSA_TRACE", 0) != 0});
    for (const std::string& problem : history.problems)
      ADD_FAILURE() << "MOSA_SEED=" << seed << " MOSA_SEEDS=1: " << problem;
    if (!history.problems.empty()) return;
    EXPECT_GT(history.operations, 0U);
    simulated_s += static_cast<double>(history.duration.ns) / 1e9;
    failed += history.failed;
    if (history.longest <= longest) continue;
    longest = history.longest;
    longest_call = history.longest_call + ", seed " + std::to_string(seed);
  }
  std::printf(
      "%lu histories, %.0f simulated seconds; %lu calls failed as they may; the longest "
      "took %.1f s: %s\n",
      seeds, simulated_s, failed, static_cast<double>(longest.ns) / 1e9, longest_call.c_str());
}

INSTANTIATE_TEST_SUITE_P(Faults, StoreSimulation, ::testing::Bool());

TEST(StoreSimulationSeeds, AHistoryDependsOnItsSeedAlone) {
  if (kIsThreadSanitized) GTEST_SKIP() << "virtual threads are not for ThreadSanitizer";
  const History first = RunHistory({.seed = 7});
  const History again = RunHistory({.seed = 7});
  const History other = RunHistory({.seed = 8});
  EXPECT_EQ(first.digest, again.digest);
  EXPECT_EQ(first.operations, again.operations);
  EXPECT_NE(first.digest, other.digest);
}

}  // namespace
}  // namespace mosa::simulation
