// A simulated mount does what a real one does: for random histories, the same requests to the
// manager in the same envelopes and order, and the same ranges of the same nodes.
//
// MOSA_SEED and MOSA_SEEDS choose the histories.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/fidelity/histories.h"

namespace mosa::fidelity {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The first operation at which the two differ, with what came before it; empty if none does.
std::string Difference(const History& history) {
  const std::vector<Actions> simulated = Simulate(history);
  const std::vector<Actions> real = Perform(history, simulated);
  size_t simulated_releases = 0, real_releases = 0;
  std::string before;
  for (size_t i = 0; i < history.operations.size(); ++i) {
    const std::string operation = ToText(history.operations[i]) + "\n";
    simulated_releases += simulated[i].releases;
    real_releases += real[i].releases;
    EXPECT_FALSE(simulated[i].failed) << operation;
    if (ToText(simulated[i]) != ToText(real[i]))
      return before + operation + "simulated:\n" + ToText(simulated[i]) + "real:\n" +
             ToText(real[i]);
    before += operation;
  }
  simulated_releases += simulated.back().releases;
  real_releases += real.back().releases;
  if (ToText(simulated.back()) != ToText(real.back()))
    return before + "behind all:\nsimulated:\n" + ToText(simulated.back()) + "real:\n" +
           ToText(real.back());
  if (simulated_releases != real_releases)
    return before +
           fmt::format("simulated: {} releases, real: {}", simulated_releases, real_releases);
  return "";
}

TEST(Actions, OfSimulatedMountsAreThoseOfRealOnes) {
  const uint64_t first = FromEnvironment("MOSA_SEED", 1);
  const uint64_t count = FromEnvironment("MOSA_SEEDS", 100);
  for (uint64_t seed = first; seed < first + count; ++seed)
    EXPECT_EQ(Difference(RandomHistory(seed, false)), "")
        << "MOSA_SEED=" << seed << " MOSA_SEEDS=1";
}

// A reader takes the copies that are complete. Real nodes may be late with one: then once more.
TEST(Actions, OfSimulatedMountsAreThoseOfRealOnesWithCopies) {
  const uint64_t first = FromEnvironment("MOSA_SEED", 1);
  const uint64_t count = (FromEnvironment("MOSA_SEEDS", 100) + 3) / 4;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const History history = RandomHistory(seed, true);
    std::string difference = Difference(history);
    for (int again = 0; again < 2 && !difference.empty(); ++again) difference = Difference(history);
    EXPECT_EQ(difference, "") << "MOSA_SEED=" << seed << " MOSA_SEEDS=1";
  }
}

TEST(Actions, OfThePatternsAreTheSame) {
  for (const uint64_t bytes : {uint64_t{1000}, uint64_t{300'000}, uint64_t{9'000'000}})
    for (const auto& [pattern, operations] : Patterns(4, bytes))
      for (const char* configuration :
           {"hosts=4,manager=apart,chunk=256K", "hosts=4,manager=apart,chunk=1M,stripe=2,seed=7"}) {
        const History history{*predict::ParseConfiguration(configuration), operations,
                              pattern == "broadcast"};
        std::string difference = Difference(history);
        if (history.has_copies && !difference.empty()) difference = Difference(history);
        EXPECT_EQ(difference, "") << pattern << " of " << bytes << " B, " << configuration;
      }
}

}  // namespace
}  // namespace mosa::fidelity
