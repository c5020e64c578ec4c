// Random histories of a whole store in virtual time. MOSA_SEED and MOSA_SEEDS choose others, and
// MOSA_TRACE=1 prints what happens in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/simulation/store_history.h"

namespace mosa::simulation {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

class StoreSimulation : public ::testing::TestWithParam<bool> {};

TEST_P(StoreSimulation, WhatWasAcknowledgedIsThereAndEveryCallEnds) {
  const uint64_t first = FromEnvironment("MOSA_SEED", 1);
  const uint64_t seeds = FromEnvironment("MOSA_SEEDS", 100);
  double simulated_s = 0;
  Duration longest;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const History history = RunHistory(
        {.seed = seed, .faults = GetParam(), .trace = FromEnvironment("MOSA_TRACE", 0) != 0});
    for (const std::string& problem : history.problems)
      ADD_FAILURE() << "MOSA_SEED=" << seed << " MOSA_SEEDS=1: " << problem;
    if (!history.problems.empty()) return;
    EXPECT_GT(history.operations, 0U);
    simulated_s += static_cast<double>(history.duration.ns) / 1e9;
    longest = std::max(longest, history.longest);
  }
  std::printf("%lu histories, %.0f simulated seconds, the longest call took %.1f s\n", seeds,
              simulated_s, static_cast<double>(longest.ns) / 1e9);
}

INSTANTIATE_TEST_SUITE_P(Faults, StoreSimulation, ::testing::Bool());

TEST(StoreSimulationSeeds, AHistoryDependsOnItsSeedAlone) {
  const History first = RunHistory({.seed = 7});
  const History again = RunHistory({.seed = 7});
  const History other = RunHistory({.seed = 8});
  EXPECT_EQ(first.digest, again.digest);
  EXPECT_EQ(first.operations, again.operations);
  EXPECT_NE(first.digest, other.digest);
}

}  // namespace
}  // namespace mosa::simulation
