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
  std::string before;
  for (size_t i = 0; i < history.operations.size(); ++i) {
    const std::string operation = ToText(history.operations[i]) + "\n";
    if (ToText(simulated[i]) != ToText(real[i]))
      return before + operation + "simulated:\n" + ToText(simulated[i]) + "real:\n" +
             ToText(real[i]);
    before += operation;
  }
  return "";
}

TEST(Actions, OfSimulatedMountsAreThoseOfRealOnes) {
  const uint64_t first = FromEnvironment("MOSA_SEED", 1);
  const uint64_t count = FromEnvironment("MOSA_SEEDS", 100);
  for (const bool has_copies : {false, true})
    for (uint64_t seed = first; seed < first + count; ++seed)
      EXPECT_EQ(Difference(RandomHistory(seed, has_copies)), "")
          << "MOSA_SEED=" << seed << " MOSA_SEEDS=1" << (has_copies ? ", with copies" : "");
}

TEST(Actions, OfThePatternsAreTheSame) {
  for (const uint64_t bytes : {uint64_t{1000}, uint64_t{300'000}, uint64_t{9'000'000}})
    for (const auto& [pattern, operations] : Patterns(4, bytes))
      for (const char* configuration :
           {"hosts=4,manager=apart,chunk=256K", "hosts=4,manager=apart,chunk=1M,stripe=2,seed=7"}) {
        const History history{*predict::ParseConfiguration(configuration), operations,
                              pattern == "broadcast"};
        EXPECT_EQ(Difference(history), "") << pattern << " of " << bytes << " B, " << configuration;
      }
}

}  // namespace
}  // namespace mosa::fidelity
