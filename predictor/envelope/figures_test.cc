#include "predictor/envelope/figures.h"

#include <gtest/gtest.h>

namespace mosa::predict {
namespace {

using enum EnvelopeOperation;

// Each client does 100 operations per second of 1 KiB and 10 of 8 KiB. Four clients do no more than
// two.
Envelope Store() {
  Envelope envelope;
  for (const uint32_t clients : {1U, 2U, 4U}) {
    const double rate = 100.0 * std::min(clients, 2U);
    for (const EnvelopeOperation operation : kEnvelopeOperations) {
      if (!MovesBytes(operation)) envelope.cells[{operation, 0, clients}] = {rate, rate, rate, 0};
      if (!MovesBytes(operation)) continue;
      envelope.cells[{operation, 1024, clients}] = {rate, rate, rate, 0};
      envelope.cells[{operation, 8192, clients}] = {rate / 10, rate / 10, rate / 10, 0};
    }
  }
  return envelope;
}

TEST(Figures, HaveTheEightMetricsOfThePaper) {
  EXPECT_EQ(NameOf(kEnvelopeMetrics.front()), "create throughput");
  EXPECT_EQ(NameOf(kEnvelopeMetrics[5]), "N-to-1 read bandwidth");
  const auto scale = Store().At(2);
  ASSERT_TRUE(scale.ok()) << scale.status();
  EXPECT_DOUBLE_EQ(RateOf({kCreate, false}, *scale), 200);
  EXPECT_DOUBLE_EQ(RateOf({kWrite, false}, *scale), 200) << "of the small files";
  EXPECT_DOUBLE_EQ(RateOf({kWrite, true}, *scale), 200 * 1024.0);
}

TEST(Figures, HeatMapsCountTheCreation) {
  const HeatMap map = WriteHeatMap(Store());
  EXPECT_EQ(map.clients, (std::vector<uint32_t>{1, 2, 4}));
  EXPECT_EQ(map.sizes, (std::vector<uint64_t>{1024, 2048, 4096, 8192}));
  EXPECT_DOUBLE_EQ(map.rates.front()[0], 50) << "10 ms to create it, 10 to write it";
  EXPECT_DOUBLE_EQ(map.rates.back()[1], 1 / (1 / 200.0 + 1 / 20.0));
  EXPECT_LT(map.rates[1][0], map.rates[0][0]);
  EXPECT_GT(map.rates[1][0], map.rates[3][0]);
}

TEST(Figures, GrowthIsRelativeToTheFewestClients) {
  Envelope envelope = Store();
  const auto growth = GrowthOf(envelope);
  ASSERT_EQ(growth.size(), 3U);
  for (size_t i = 0; i < kEnvelopeMetrics.size(); ++i) {
    EXPECT_DOUBLE_EQ(growth[0].factors[i], 1);
    EXPECT_DOUBLE_EQ(growth[2].factors[i], 2);
  }
  envelope.cells.erase({kOpen, 0, 4});
  EXPECT_EQ(GrowthOf(envelope).size(), 2U) << "where it is not whole, nothing is said";
  EXPECT_TRUE(WriteHeatMap(Envelope()).sizes.empty());
}

TEST(Figures, AFallIsBeyondTheIntervalsOfBoth) {
  Envelope envelope = Store();
  EXPECT_TRUE(FallsOf(envelope).empty()) << "as much is no fall";
  envelope.cells[{kWrite, 1024, 2}] = {200, 190, 210, 0.9};
  envelope.cells[{kWrite, 1024, 4}] = {180, 170, 191, 0.9};
  envelope.cells[{kOpen, 0, 1}] = {100, 99, 101, 0.9};
  envelope.cells[{kOpen, 0, 2}] = {90, 89, 91, 0.9};
  envelope.cells[{kOpen, 0, 4}] = {95, 94, 96, 0.9};
  const auto falls = FallsOf(envelope);
  ASSERT_EQ(falls.size(), 2U) << "writes may be as many";
  EXPECT_EQ(falls[0].cell, (EnvelopeCell{kOpen, 0, 2}));
  EXPECT_EQ(falls[1].cell, (EnvelopeCell{kOpen, 0, 4})) << "of one client there were more";
  EXPECT_EQ(falls[1].best_clients, 1U);
  EXPECT_DOUBLE_EQ(falls[1].best, 100);
  EXPECT_DOUBLE_EQ(falls[1].rate, 95);
}

TEST(Figures, OneSampleTellsOfNoFall) {
  Envelope envelope;
  envelope.cells[{kOpen, 0, 1}] = {100, 99, 101, 0.9};
  envelope.cells[{kOpen, 0, 2}] = {10, 10, 10, 0};
  EXPECT_TRUE(FallsOf(envelope).empty());
  envelope.cells[{kOpen, 0, 2}] = {200, 200, 200, 0};
  envelope.cells[{kOpen, 0, 4}] = {150, 140, 160, 0.9};
  EXPECT_TRUE(FallsOf(envelope).empty()) << "nor is it the best that another one falls from";
}

}  // namespace
}  // namespace mosa::predict
