#include "predictor/envelope/envelope.h"

#include <gtest/gtest.h>

#include "predictor/envelope/envelope_json.h"

namespace mosa::predict {
namespace {

using enum EnvelopeOperation;

constexpr uint64_t kMegabyte = 1 << 20;

TEST(Envelope, HasTheCellsOfThePaper) {
  // MTC Envelope, section 3.2: {create, open} x 9 and {1-to-1, N-to-1, write} x 4 sizes x 9.
  EnvelopeGrid grid;
  grid.clients = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  const auto cells = CellsOf(grid);
  EXPECT_EQ(cells.size(), 2 * 9U + 3 * 4 * 9U);
  for (const EnvelopeCell& cell : cells) {
    EXPECT_EQ(OperationsOf(grid, cell), 8192U);
    EXPECT_EQ(cell.size_bytes > 0, MovesBytes(cell.operation));
  }
}

TEST(Envelope, GivesEachClientAsManyOperations) {
  EnvelopeGrid grid;
  grid.scale_millionths = 10'000;  // 81 files.
  EXPECT_EQ(OperationsOf(grid, {kCreate, 0, 1}), 81U);
  EXPECT_EQ(OperationsOf(grid, {kCreate, 0, 8}), 80U);
  grid.bytes_max = 64 * kMegabyte;
  EXPECT_EQ(OperationsOf(grid, {kRead, 16 * kMegabyte, 2}), 4U);
  EXPECT_EQ(OperationsOf(grid, {kRead, 16 * kMegabyte, 8}), 8U) << "at least one each";
  EXPECT_EQ(StoredBytesOf(grid, {kWrite, 16 * kMegabyte, 2}), 64 * kMegabyte);
  EXPECT_EQ(StoredBytesOf(grid, {kSharedRead, 16 * kMegabyte, 2}), 16 * kMegabyte);
}

TEST(Envelope, SaysHowSureAMedianIs) {
  const Estimate one = MedianOf({3});
  EXPECT_EQ(one.median, 3);
  EXPECT_EQ(one.confidence, 0);
  const Estimate five = MedianOf({5, 1, 4, 2, 3});
  EXPECT_EQ(five.median, 3);
  EXPECT_EQ(five.low, 1);
  EXPECT_EQ(five.high, 5);
  EXPECT_DOUBLE_EQ(five.confidence, 1 - 2.0 / 32);
  // From tables of order statistics: the second and ninth of ten have 97.9 % confidence.
  const Estimate ten = MedianOf({10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  EXPECT_EQ(ten.median, 5.5);
  EXPECT_EQ(ten.low, 2);
  EXPECT_EQ(ten.high, 9);
  EXPECT_NEAR(ten.confidence, 0.9785, 0.0001);
}

TEST(Envelope, IsLinearBetweenSizes) {
  // MTC Envelope, section 4.3: the bandwidth at 8.5 MB is the mean of those at 1 MB and 16 MB.
  SizeCurve curve;
  curve.Add(kMegabyte, 100);      // 100 MiB/s.
  curve.Add(16 * kMegabyte, 20);  // 320 MiB/s.
  constexpr uint64_t kMiddle = 17 * kMegabyte / 2;
  EXPECT_DOUBLE_EQ(curve.BytesAt(kMiddle), 210.0 * kMegabyte);
  EXPECT_DOUBLE_EQ(curve.OperationsAt(kMiddle), 60);
  EXPECT_DOUBLE_EQ(curve.PeakOperations(), 100);
  EXPECT_DOUBLE_EQ(curve.PeakBytes(), 320.0 * kMegabyte);
  EXPECT_DOUBLE_EQ(curve.BytesAt(16 * kMegabyte), 320.0 * kMegabyte);
  EXPECT_DOUBLE_EQ(curve.OperationsAt(1000), 100) << "a small file is all operation";
  EXPECT_DOUBLE_EQ(curve.BytesAt(64 * kMegabyte), 320.0 * kMegabyte) << "a large one all bytes";
  EXPECT_DOUBLE_EQ(curve.OperationsAt(64 * kMegabyte), 5);
}

Envelope TwoScales() {
  Envelope envelope;
  envelope.name = "store";
  for (const uint32_t clients : {1U, 4U}) {
    const double rate = clients == 1 ? 100 : 250;
    for (const EnvelopeOperation operation : kEnvelopeOperations)
      envelope.cells[{operation, MovesBytes(operation) ? 1024U : 0U, clients}] = {rate, rate, rate,
                                                                                  0};
  }
  return envelope;
}

TEST(Envelope, IsLinearBetweenNumbersOfClients) {
  const Envelope envelope = TwoScales();
  const auto two = envelope.At(2);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_DOUBLE_EQ(two->creates, 150);
  EXPECT_DOUBLE_EQ(two->curve(kWrite).OperationsAt(1024), 150);
  const auto four = envelope.At(4);
  ASSERT_TRUE(four.ok()) << four.status();
  EXPECT_DOUBLE_EQ(four->opens, 250);
}

TEST(Envelope, KnowsNothingOfWhatWasNotMeasured) {
  Envelope envelope = TwoScales();
  const auto five = envelope.At(5);
  EXPECT_EQ(five.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(five.status().message().find("covers 1 to 4 clients, not 5"), std::string::npos);
  envelope.cells.erase({kWrite, 1024, 4});
  const auto half = envelope.At(2);
  EXPECT_NE(half.status().message().find("is incomplete at 2 clients"), std::string::npos);
  EXPECT_TRUE(envelope.At(1).ok());
}

TEST(Envelope, GivesFewerClientsTheRatesOfTheFewestMeasured) {
  Envelope envelope = TwoScales();
  std::erase_if(envelope.cells, [](const auto& entry) { return entry.first.clients == 1; });
  const auto one = envelope.At(1);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->clients, 4U);
  EXPECT_DOUBLE_EQ(one->creates, 250);
}

TEST(EnvelopeJson, ReadsCellsBySystem) {
  const auto read = ReadEnvelopes(R"({"mosa_envelope": 1, "cells": [
      {"system": "b", "operation": "create", "size_bytes": 0, "clients": 1,
       "operations_per_second": {"median": 5, "low": 4, "high": 7}},
      {"system": "a", "operation": "N-to-1 read", "size_bytes": 1024, "clients": 2,
       "operations_per_second": {"median": 9}}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(read->front().name, "b");
  const Estimate* rate = read->back().Find({kSharedRead, 1024, 2});
  ASSERT_NE(rate, nullptr);
  EXPECT_EQ(rate->high, 9);
}

TEST(EnvelopeJson, SaysWhatIsWrong) {
  const auto refused = [](const std::string& cells, const std::string& why) {
    const auto read = ReadEnvelopes(R"({"mosa_envelope": 1, "cells": [)" + cells + "]}");
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << cells;
    EXPECT_NE(read.status().message().find(why), std::string::npos) << read.status();
  };
  const std::string good = R"({"system": "a", "operation": "open", "size_bytes": 0, "clients": 1,
                               "operations_per_second": {"median": 5}})";
  refused("", "has no cells yet");
  refused(good + "," + good, "twice");
  refused(R"({"system": "a", "operation": "fly", "size_bytes": 0, "clients": 1})", "'fly'");
  refused(R"({"system": "a", "operation": "write", "size_bytes": 0, "clients": 1})", "of 0 bytes");
  refused(R"({"system": "a", "operation": "open", "size_bytes": 0, "clients": -1})", "clients");
  refused(R"({"system": "a", "operation": "write", "size_bytes": -1, "clients": 1})", "files of");
  refused(R"({"system": "a", "operation": "open", "size_bytes": 0, "clients": 1,
              "operations_per_second": {"median": 0}})",
          "must be 1e-09 to");
  const auto with_rate = [](const std::string& rates) {
    return R"({"system": "a", "operation": "write", "size_bytes": 1000000, "clients": 1,
               "operations_per_second": )" +
           rates + "}";
  };
  refused(with_rate(R"({"median": 1e305})"), "low to high");
  refused(with_rate(R"({"median": 1, "low": 1e-300})"), "low to high");
  refused(R"({"system": "a", "operation": "open", "size_bytes": 0, "clients": 4294967298})",
          "4294967298 clients");
  refused(R"({"system": "a", "operation": "open", "size_bytes": 0, "clients": 2.7})",
          "2.7 clients");
  refused(R"({"system": "a", "operation": "write", "size_bytes": 1024.9, "clients": 2})",
          "files of 1024.9");
  refused(R"({"system": "a"})", "is not a result of 'mosa envelope run'");
  EXPECT_FALSE(ReadEnvelopes("[]").ok());
  EXPECT_FALSE(ReadEnvelopes(R"({"mosa_envelope": 2, "cells": []})").ok());
}

}  // namespace
}  // namespace mosa::predict
