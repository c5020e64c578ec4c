#include "manager/forecast/forecasts.h"

#include <string>
#include <vector>

#include "common/base/units.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mosa::manager {
namespace {

using ::testing::HasSubstr;

Forecasts Small() {
  Forecasts forecasts;
  forecasts.reads.in_manager = {{0, 1000}};
  forecasts.reads.whole = {{0, 2000}, {1000, 3000}};
  forecasts.reads.by_mount = {{0, 2000}, {1000, 4000}};
  forecasts.reads.stripes[4096][1].remote = {{0, 10'000}, {1000, 20'000}};
  StripeCurves& stripe = forecasts.reads.stripes[kMiB][4];
  stripe.remote = {{0, 5000}, {1000, 9000}};
  stripe.exposed[1] = {{1000, 0.5}};
  stripe.exposed[3] = {{1000, 0.25}};
  forecasts.copies[4] = {{65'536, 2}, {kMiB, 4}};
  return forecasts;
}

TEST(ForecastsFile, IsReadAsItWasWritten) {
  const std::string text = WriteForecasts(Small(), "of \"lab\"");
  const auto read = ReadForecasts(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Small());
}

TEST(ForecastsFile, IsRefusedInOneSentenceIfAnyPartIsWrong) {
  const std::string good = WriteForecasts(Small(), "");
  struct Row {
    std::string from, to, says;
  };
  const std::vector<Row> rows = {
      {"{", "", "this is not JSON, or it is cut short"},
      {"\"mosa_forecasts\"", "\"mosa_platform\"", "this is a platform file"},
      {"mosa_forecasts", "mosa_other", "not a file of 'mosa forecast'"},
      {"\"mosa_forecasts\":1", "\"mosa_forecasts\":2", "have version 2, but this program reads"},
      {"\"in_manager\"", "\"other\"", "lack 'in_manager'"},
      {"\"copies\":[", "\"copies\":[7,", "lack 'nodes'"},
      {"\"copies\":2", "\"copies\":5", "'copies' of the forecasts is not a whole number from 1"},
      {"\"nodes\":4", "\"nodes\":-4", "'nodes' of the forecasts is not a whole number from 1"},
      {"65536", "65536000000", "'sizes' of the forecasts is not a list of ascending sizes"},
      {"[0,2000.0]", "[1000,2000.0]", "'whole' of the forecasts is not a list"},
      {"[0,2000.0]", "[0,-1]", "'whole' of the forecasts is not a list"},
      {"[0,2000.0]", "[0,1e300]", "'whole' of the forecasts is not a list"},
      {"[0,2000.0]", "[0,1e999]", "this is not JSON, or it is cut short"},
      {"[[1000,0.25]]", "[]", "'curve' of the forecasts is not a list with entries"},
      {"[[1000,0.25]]", "[[1000,1.5]]", "values from 0 to 1"},
      {"\"stripes\":[", "\"stripes\":[],\"rest\":[", "'stripes' of the forecasts is not a list"},
      {"\"comment\":\"\"", "\"comment\":" + std::string(50, '['), "too deep"},
      {"\"comment\":\"\"", "\"comment\":\"" + std::string(kForecastsBytesMax, ' ') + "\"",
       "too long"},
  };
  for (const Row& row : rows) {
    std::string bad = good;
    ASSERT_NE(bad.find(row.from), std::string::npos) << row.from;
    bad.replace(bad.find(row.from), row.from.size(), row.to);
    const auto read = ReadForecasts(bad);
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << row.from << " " << row.to;
    EXPECT_THAT(MessageOf(read.status()), HasSubstr(row.says));
    EXPECT_EQ(MessageOf(read.status()).find('\n'), std::string::npos);
  }
  for (size_t size = 0; size + 2 < good.size(); ++size)
    EXPECT_FALSE(ReadForecasts(good.substr(0, size)).ok()) << size;
}

// What reading a file costs a host; the file's chunks are on `nodes` in turn.
int64_t Cost(uint32_t host, uint64_t bytes, uint64_t chunk_bytes, std::vector<uint32_t> nodes) {
  ReadableFile file{.size_bytes = bytes, .layout = {.chunk_bytes = chunk_bytes}};
  if (!nodes.empty()) {
    Segment& segment = file.layout.segments.emplace_back();
    segment.width = static_cast<uint32_t>(nodes.size());
    for (const uint32_t node : nodes) segment.nodes.push_back(NodeId{node});
  }
  const FileCosts costs = CostsOf(Small().reads, file);
  for (const auto& [node, cost] : costs.holders)
    if (node == NodeId{host}) return cost.time.ns;
  return costs.elsewhere.time.ns;
}

TEST(ReadCosts, AreInterpolatedAndTakenFromTheNearestStripe) {
  EXPECT_EQ(Cost(1, 500, 0, {}), 1000) << "the manager has it";
  EXPECT_EQ(Cost(1, 500, 4096, {1}), 2500) << "all of it is here";
  EXPECT_EQ(Cost(2, 500, 4096, {1}), 15'000);
  EXPECT_EQ(Cost(2, 500, 1024, {1}), 15'000) << "there are no smaller chunks";
  EXPECT_EQ(Cost(2, 500, kMiB - 4096, {1}), 15'000) << "the next smaller chunks";
  EXPECT_EQ(Cost(2, 500, kMiB, {1}), 7000) << "the only width";
  EXPECT_EQ(Cost(2, 3000, kMiB, {1}), 17'000) << "beyond the last point";
  // 3 MiB from others, and half of what the own MiB takes.
  const auto mib = static_cast<int64_t>(kMiB);
  EXPECT_EQ(Cost(1, 4 * kMiB, kMiB, {1, 2, 3, 4}), 5000 + 4 * 3 * mib + (2 * mib) / 2);
  // Two positions are as near to three as to one by ratio: nearer to three, a quarter.
  EXPECT_EQ(Cost(1, 4 * kMiB, kMiB, {1, 1, 3, 4}), 5000 + 4 * 2 * mib + (2 * 2 * mib) / 4);
}

}  // namespace
}  // namespace mosa::manager
