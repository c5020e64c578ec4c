#include "tools/measure/capacity_measure.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tools/measure/fio.h"

namespace mosa::cli {
namespace {

using predict::CapacityLoad;
using predict::OneSize;
using predict::ParseLoad;

constexpr uint64_t kFileBytes = 16 << 20;

TEST(CapacityMeasure, SharesOfClientsAreWholeClients) {
  const auto mix = ParseLoad("4K:50%r:0.25,1M:100%r:0.75");
  const auto loads = ClientLoads(*mix, 8, kFileBytes);
  ASSERT_TRUE(loads.ok()) << loads.status();
  ASSERT_EQ(loads->size(), 8U);
  EXPECT_EQ(std::count(loads->begin(), loads->end(), OneSize(4096, 50)), 2);
  EXPECT_EQ(std::count(loads->begin(), loads->end(), OneSize(1 << 20, 100)), 6);
  EXPECT_EQ(ClientLoads(*mix, 6, kFileBytes).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ClientLoads(*mix, 8, 65536).status().code(), StatusCode::kInvalidArgument);
  const auto operations = ParseLoad("operations=4K:50%r:0.25,1M:100%r:0.75");
  EXPECT_EQ(*ClientLoads(*operations, 6, kFileBytes), std::vector<CapacityLoad>(6, *operations));
}

TEST(CapacityMeasure, SharesThatFioWouldRoundAwayAreRefused) {
  for (const char* text :
       {"operations=4K:99%r:0.5,1M:100%r:0.5", "operations=4K:1%r:0.29,1M:0%r:0.71",
        "operations=4K:10%r:0.01,1M:90%r:0.99"})
    EXPECT_EQ(ClientLoads(*ParseLoad(text), 4, kFileBytes).status().code(),
              StatusCode::kInvalidArgument)
        << text;
  for (const char* text :
       {"operations=4K:30%r:0.5,1M:100%r:0.5", "operations=4K:0%r:0.1,1M:0%r:0.9",
        "operations=4K:99%r:0.5,1M:99%r:0.5"})
    EXPECT_TRUE(ClientLoads(*ParseLoad(text), 4, kFileBytes).ok()) << text;
}

TEST(CapacityMeasure, FioIsToldSizesAndRatios) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(FioJob(OneSize(4096, 100), 7), (Words{"--randseed=7", "--rw=randread", "--bs=4096"}));
  EXPECT_EQ(FioJob(OneSize(4096, 0), 7), (Words{"--randseed=7", "--rw=randwrite", "--bs=4096"}));
  EXPECT_EQ(FioJob(OneSize(4096, 70), 7),
            (Words{"--randseed=7", "--rw=randrw", "--rwmixread=70", "--bs=4096"}));
  // Each size has half of the operations. Of 4K three in ten are reads, of 1M all: so 4K has 15 of
  // 65 reads.
  EXPECT_EQ(FioJob(*ParseLoad("operations=4K:30%r:0.5,1M:100%r:0.5"), 7),
            (Words{"--randseed=7", "--rw=randrw", "--rwmixread=65",
                   "--bssplit=4096/23:1048576/77,4096/100:1048576/0", "--blockalign=1048576"}));
  EXPECT_EQ(FioJob(*ParseLoad("operations=4K:100%r:0.5,1M:100%r:0.5"), 7),
            (Words{"--randseed=7", "--rw=randread",
                   "--bssplit=4096/50:1048576/50,4096/50:1048576/50", "--blockalign=1048576"}));
}

TEST(CapacityMeasure, FioSaysWhatAllJobsDid) {
  const auto rates = FioRatesOf(
      "fio: a warning\n{\n \"jobs\": [{\"jobname\": \"0\", \"read\": {\"iops\": 10.5}, "
      "\"write\": {\"iops\": 0}}, {\"jobname\": \"1\", \"read\": {\"iops\": 1}, \"write\": "
      "{\"iops\": 2}}]\n}\nbye\n");
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_DOUBLE_EQ(rates->reads, 11.5);
  EXPECT_DOUBLE_EQ(rates->writes, 2);
  const char* const idle =
      "{\"jobs\": [{\"jobname\": \"0\", \"read\": {\"iops\": 0}, \"write\": {\"iops\": 0}}]\n}\n";
  for (const char* text : {"", "{\n}\n", "{\"jobs\": [{}]\n}\n", "no JSON\n{\n", idle})
    EXPECT_EQ(FioRatesOf(text).status().code(), StatusCode::kFailedPrecondition) << text;
  EXPECT_EQ(MessageOf(FioRatesOf(idle).status()),
            "fio: job 0 completed no operation: give more --seconds");
}

}  // namespace
}  // namespace mosa::cli
