#include "predictor/capacity/capacity.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "predictor/capacity/bound.h"
#include "predictor/capacity/capacity_json.h"
#include "predictor/capacity/verdict.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kSmall = 4096, kLarge = 1 << 20;

// Reads are three times as fast as writes: f_rw of the paper's Ceph with small blocks.
Capacity Store() {
  Capacity store{"store", 0, {}};
  store.samples[OneSize(kSmall, 100)] = {{3000, 0}};
  store.samples[OneSize(kSmall, 0)] = {{0, 1000}};
  store.samples[OneSize(kLarge, 100)] = {{200, 0}};
  store.samples[OneSize(kLarge, 0)] = {{0, 100}};
  return store;
}

double OperationsOf(const Capacity& store, const std::string& text, bool resampled = false) {
  const auto load = ParseLoad(text);
  EXPECT_TRUE(load.ok()) << load.status();
  const auto operations = ModelOf(store, resampled).Operations(*load);
  EXPECT_TRUE(operations.ok()) << operations.status();
  return operations.ok() ? operations->median : 0;
}

TEST(Capacity, RatiosAreByEquationSix) {
  const Capacity store = Store();
  EXPECT_DOUBLE_EQ(ModelOf(store, false).median.at(kSmall).read_write_factor(), 3);
  EXPECT_DOUBLE_EQ(OperationsOf(store, "4K:100%r"), 3000);
  EXPECT_DOUBLE_EQ(OperationsOf(store, "4K:0%r"), 1000);
  EXPECT_DOUBLE_EQ(OperationsOf(store, "4K:50%r"), 100 * 3000.0 / (50 + 50 * 3));
  const OperationRates rates = EstimateRates(ModelOf(store, false).median, OneSize(kSmall, 70));
  EXPECT_NEAR(rates.reads / rates.writes, 70.0 / 30, 1e-9);
  EXPECT_NEAR(ModelOf(store, false).median.at(kSmall).ConstantOf(rates), 3000, 1e-9)
      << "equation 3";
}

TEST(Capacity, MixesAreByEquationSeven) {
  const Capacity store = Store();
  EXPECT_DOUBLE_EQ(OperationsOf(store, "4K:100%r:0.1,1M:100%r:0.9"), 0.1 * 3000 + 0.9 * 200);
  EXPECT_DOUBLE_EQ(OperationsOf(store, "4K:50%r:0.5,1M:0%r:0.5"), 0.5 * 1500 + 0.5 * 100);
  const auto objects = ParseLoad("operations=4K:100%r:0.5,1M:100%r:0.5");
  EXPECT_DOUBLE_EQ(EquationSeven(ModelOf(store, false).median, *objects), 1600) << "as printed";
  // Operations take 1/3000 s or 1/200 s, one after the other.
  EXPECT_DOUBLE_EQ(OperationsOf(store, "operations=4K:100%r:0.5,1M:100%r:0.5"),
                   1 / (0.5 / 3000 + 0.5 / 200));
  // Equation 7 with the share of capacity that each size gets: 1/16 and 15/16.
  EXPECT_NEAR(OperationsOf(store, "operations=4K:100%r:0.5,1M:100%r:0.5"),
              3000 / 16.0 + 200 * 15 / 16.0, 1e-9);
  const auto mix = ParseLoad("4K:100%r:0.5,1M:100%r:0.5");
  EXPECT_DOUBLE_EQ(BytesPerSecond(*mix, ModelOf(store, false).median),
                   1500.0 * kSmall + 100.0 * kLarge);
}

TEST(Capacity, IntervalsAreThoseOfTheSeeds) {
  Capacity store = Store();
  store.samples[OneSize(kSmall, 100)] = {{2900, 0}, {3000, 0}, {3200, 0}};
  const auto seeds = ModelOf(store, false).Operations(OneSize(kSmall, 100));
  ASSERT_TRUE(seeds.ok());
  EXPECT_DOUBLE_EQ(seeds->low, 2900);
  EXPECT_DOUBLE_EQ(seeds->median, 3000);
  EXPECT_DOUBLE_EQ(seeds->high, 3200);
  const auto half = ModelOf(store, false).Operations(OneSize(kSmall, 50));
  EXPECT_LT(half->low, half->median);
  EXPECT_GT(half->high, half->median);
}

TEST(Capacity, SizesWithoutBothSeedsAreNamed) {
  Capacity store = Store();
  store.samples.erase(OneSize(kLarge, 0));
  EXPECT_EQ(store.seeded_sizes(), (std::vector<uint64_t>{kSmall}));
  const auto unknown = ModelOf(store, false).Operations(OneSize(kLarge, 50));
  EXPECT_EQ(unknown.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(
      MessageOf(unknown.status()),
      "I/O of 1M was not measured, only 4K: add its two seeds with 'mosa capacity run --sizes 1M'");
}

TEST(Capacity, LoadsAreReadAsTheyAreWritten) {
  for (const char* text :
       {"4K:70%r", "4K:70%r:0.5,1M:0%r:0.5", "operations=4K:1%r:0.29,1M:0%r:0.71"}) {
    const auto load = ParseLoad(text);
    ASSERT_TRUE(load.ok()) << text << ": " << load.status();
    EXPECT_EQ(TextOf(*load), text);
  }
  EXPECT_EQ(ParseLoad("operations=4K:70%r")->share_of, ShareOf::kClients) << "it is the same";
  for (const char* text : {"", "4K", "4K:70", "4K:101%r", "0:70%r", "4K:-1%r", "4K:70%r:0.5",
                           "4K:70%r:0.5,1M:70%r:0.6", "4K:70%r:0.005,1M:70%r:0.995", "4K:70%r:nan",
                           "4K:7x%r", "of=4K:70%r"}) {
    EXPECT_EQ(ParseLoad(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(Capacity, FilesAreReadBack) {
  Capacity store = Store();
  store.samples[*ParseLoad("operations=4K:70%r:0.5,1M:0%r:0.5")] = {{70, 130}, {80, 120}};
  const nlohmann::json root = {
      {"mosa_capacity", kCapacityVersion}, {"store", "store"}, {"loads", LoadsToJson(store)}};
  const auto read = ReadCapacity(root.dump());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(LoadsToJson(*read), root["loads"]);
  const auto wrong = [&root](const char* pointer, const nlohmann::json& value) {
    nlohmann::json changed = root;
    changed[nlohmann::json::json_pointer(pointer)] = value;
    return ReadCapacity(changed.dump()).status();
  };
  for (const auto& [pointer, value] : std::initializer_list<std::pair<const char*, nlohmann::json>>{
           {"/mosa_capacity", 2},
           {"/store", 7},
           {"/loads/0/share_of", "bytes"},
           {"/loads/0/parts/0/size_bytes", -1},
           {"/loads/0/parts/0/read_percent", 130},
           {"/loads/0/parts/0/share_percent", 50},
           {"/loads/0/reads_per_second", nlohmann::json::array()},
           {"/loads/0/writes_per_second", {-1.0}},
           {"/loads/1", root["loads"][0]}})
    EXPECT_EQ(wrong(pointer, value).code(), StatusCode::kInvalidArgument) << pointer;
  nlohmann::json one = root;
  for (nlohmann::json& load : one["loads"]) load["share_of"] = "operations";
  EXPECT_EQ(ReadCapacity(one.dump())->seeded_sizes(), store.seeded_sizes()) << "it is the same";
  EXPECT_EQ(ReadCapacity("no JSON").status().code(), StatusCode::kInvalidArgument);
}

// ---- verdicts

// A store that, at half reads and half writes, reaches `share` of the claim's rate.
Capacity Checked(double share) {
  Capacity store = Store();
  store.samples[OneSize(kSmall, 10)] = {{107, 964}};
  const double half = 750 * share;
  store.samples[OneSize(kSmall, 50)] = {{half, half}};
  return store;
}

TEST(CapacityVerdict, ErrorsAreByEquationEight) {
  EXPECT_DOUBLE_EQ(ErrorPercent(110, 100), 10);
  EXPECT_DOUBLE_EQ(ErrorPercent(90, 100), 10);
  const auto checks = ChecksOf(Checked(0.8));
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[1].load, OneSize(kSmall, 50));
  EXPECT_DOUBLE_EQ(checks[1].constant, 0.8 * 3000);
  EXPECT_DOUBLE_EQ(checks[1].error_percent, 25);
}

TEST(CapacityVerdict, ConstantWithinThePapersErrors) {
  const auto verdicts = VerdictsOf(Checked(0.95));
  ASSERT_EQ(verdicts.size(), 2U);
  EXPECT_EQ(verdicts[0].constancy, Constancy::kConstant);
  EXPECT_EQ(verdicts[1].constancy, Constancy::kUnchecked);
}

TEST(CapacityVerdict, NamesTheSampleThatHelps) {
  Capacity store = Checked(0.8);
  const SizeVerdict verdict = VerdictsOf(store).front();
  EXPECT_EQ(verdict.constancy, Constancy::kNotConstant);
  EXPECT_EQ(verdict.worst_read_percent, 50U);
  EXPECT_NE(verdict.resample_read_percent, 0U);
  EXPECT_LT(verdict.resampled_error_percent, 25);
  EXPECT_DOUBLE_EQ(OperationsOf(store, "4K:50%r", true), 1200) << "as it was measured";
  EXPECT_GT(OperationsOf(store, "4K:70%r", true), 0.8 * OperationsOf(store, "4K:70%r"));
  EXPECT_LT(OperationsOf(store, "4K:70%r", true), OperationsOf(store, "4K:70%r"));
  EXPECT_NE(SentenceOf(verdict).find("C is not constant: at 50 % reads C is 80 %"),
            std::string::npos)
      << SentenceOf(verdict);
}

TEST(CapacityVerdict, SeedsThatExplainTheErrorAreNoVerdictOnTheClaim) {
  Capacity store = Checked(0.8);
  store.samples[OneSize(kSmall, 0)] = {{0, 600}, {0, 1000}, {0, 1200}};
  const SizeVerdict verdict = VerdictsOf(store).front();
  EXPECT_EQ(verdict.constancy, Constancy::kUnsteady);
  EXPECT_NE(SentenceOf(verdict).find("estimated 1000 to 1714/s, measured 1200 to 1200"),
            std::string::npos)
      << SentenceOf(verdict);
}

// Writes vary by more than the error, but are only a tenth of the operations: both seeds at their
// lower ends would still give more than was measured.
TEST(CapacityVerdict, SeedsThatVaryWithoutExplainingTheErrorAreNoExcuse) {
  Capacity store;
  store.samples[OneSize(kSmall, 100)] = {{26037, 0}, {26630, 0}, {27011, 0}};
  store.samples[OneSize(kSmall, 0)] = {{0, 2235}, {0, 2940}, {0, 3355}};
  store.samples[OneSize(kSmall, 90)] = {{10210, 1134}};
  EXPECT_NEAR(ModelOf(store, false).Operations(OneSize(kSmall, 90))->low, 12609, 1);
  EXPECT_EQ(VerdictsOf(store).front().constancy, Constancy::kNotConstant);
}

TEST(CapacityVerdict, ResampledRatiosHaveIntervalsOfTheirOwn) {
  Capacity store = Store();
  store.samples[OneSize(kSmall, 50)] = {{500, 500}, {600, 600}, {650, 650}};
  const auto half = ModelOf(store, true).Operations(OneSize(kSmall, 50));
  EXPECT_DOUBLE_EQ(half->low, 1000);
  EXPECT_DOUBLE_EQ(half->median, 1200);
  EXPECT_DOUBLE_EQ(half->high, 1300);
}

TEST(CapacityVerdict, MixesHaveErrorsOfTheirOwn) {
  Capacity store = Store();
  store.samples[*ParseLoad("4K:100%r:0.5,1M:100%r:0.5")] = {{1600, 0}};
  const auto checks = ChecksOf(store);
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_DOUBLE_EQ(checks[0].error_percent, 0);
  EXPECT_DOUBLE_EQ(checks[0].equation_seven, 1600);
  EXPECT_DOUBLE_EQ(ErrorPercentMax(checks[0].load), kMixErrorPercentMax);
  EXPECT_DOUBLE_EQ(ErrorPercentMax(OneSize(kSmall, 50)), kSmallErrorPercentMax);
  EXPECT_DOUBLE_EQ(ErrorPercentMax(OneSize(kLarge, 50)), kLargeErrorPercentMax);
}

// Ten tasks each read a file of 1 MB and a shared one of 1 KB; five of them write.
StageProfile TenReaders() {
  StageProfile stage;
  stage.name = "stage";
  stage.tasks = 10;
  stage.files_read = 20;
  stage.bytes_read = 10'010'000;
  stage.files_written = 5;
  stage.transfers[{EnvelopeOperation::kRead, 1'000'000}] = 10;
  stage.transfers[{EnvelopeOperation::kSharedRead, 1'000}] = 10;
  stage.transfers[{EnvelopeOperation::kWrite, 0}] = 5;
  return stage;
}

TEST(CapacityBound, OfAnEnvelopeIsTheHighestRateOfAsManyClientsOrFewer) {
  Envelope envelope{"store", {}};
  for (const uint32_t clients : {2U, 4U, 8U}) {
    for (const EnvelopeOperation operation : kEnvelopeOperations)
      envelope.cells[{operation, MovesBytes(operation) ? 1000U : 0U, clients}] = {
          100, 90, 100.0 + clients, 0.9};
  }
  const auto limits = LimitsOf(TenReaders(), envelope, 3);
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->size(), 7U) << "all metrics but that of written bytes, of which there are none";
  for (const RateLimit& limit : *limits)
    EXPECT_DOUBLE_EQ(limit.most, limit.is_bandwidth ? 104'000 : 104) << limit.name;
  EXPECT_EQ(LimitsOf(TenReaders(), envelope, 9).status().code(), StatusCode::kFailedPrecondition);
  // Opens: 20 in 0.1 s. Bytes of own files: 10 MB.
  const auto excesses = ExcessesOf(*limits, {true, 0.1, 0});
  ASSERT_EQ(excesses.size(), 2U);
  EXPECT_EQ(excesses[0].limit.name, "1-to-1 read bandwidth") << "the furthest above comes first";
  EXPECT_DOUBLE_EQ(excesses[0].simulated, 1e8);
  EXPECT_EQ(excesses[1].limit.name, "open throughput");
  EXPECT_TRUE(ExcessesOf(*limits, {true, 100, 0}).empty());
  EXPECT_TRUE(ExcessesOf(*limits, {false, 1, 0}).empty()) << "5 creates in 1 s";
}

TEST(CapacityBound, HasNoRateOfWhatIsShortOrNotMeasured) {
  const std::vector<RateLimit> limits = {{"open", true, false, true, 10, 1},
                                         {"read", true, false, false, 10, 1},
                                         {"bytes", true, true, false, 1000, 1}};
  EXPECT_EQ(ExcessesOf(limits, {true, 1, 0}).size(), 3U);
  EXPECT_TRUE(ExcessesOf(limits, {true, kOpenSecondsMin / 2, 0}).empty());
  const auto excesses = ExcessesOf(limits, {true, 1, 900});
  ASSERT_EQ(excesses.size(), 2U) << "which of the ten files lie on the own host is not known";
  EXPECT_DOUBLE_EQ(excesses[0].simulated, 100) << "bytes from other hosts";
  EXPECT_EQ(excesses[1].limit.name, "open");
}

TEST(CapacityBound, AddsUpNoTasksThatTakeTurns) {
  const auto at = [](int64_t begin, int64_t end) {
    return OpenSpan{Time{} + Seconds(begin), Time{} + Seconds(end)};
  };
  // Both run from 0 to 10, and each has a file open for one second.
  const OpenTime turns = OpenTimeOf({{at(1, 2)}, {at(2, 3)}});
  EXPECT_DOUBLE_EQ(turns.seconds, 2);
  EXPECT_EQ(turns.tasks_max, 1U);
  const RateLimit link = {"read bandwidth", true, true, false, 200e6, 119e6};
  EXPECT_TRUE(ExcessesOf({link}, {true, turns.seconds, 0}).empty()) << "100 MB/s";
  const OpenTime together = OpenTimeOf({{at(1, 2)}, {at(1, 2)}});
  EXPECT_DOUBLE_EQ(together.seconds, 1);
  EXPECT_EQ(together.tasks_max, 2U);
  EXPECT_EQ(ExcessesOf({link}, {true, together.seconds, 0}).size(), 1U) << "200 MB/s";
  const OpenTime own = OpenTimeOf({{at(5, 6), at(0, 4), at(1, 3), at(2, 5)}, {}});
  EXPECT_DOUBLE_EQ(own.seconds, 6);
  EXPECT_EQ(own.tasks_max, 1U) << "several files of one task";
  EXPECT_EQ(OpenTimeOf({{}, {}}).tasks_max, 0U);
}

TEST(CapacityBound, OfACapacityIsTheHighestRateOfAnySize) {
  Capacity store = Store();
  EXPECT_EQ(LimitsOf(TenReaders(), store, 1).status().code(), StatusCode::kFailedPrecondition);
  store.clients = 8;
  const auto limits = LimitsOf(TenReaders(), store, 8);
  ASSERT_TRUE(limits.ok()) << limits.status();
  ASSERT_EQ(limits->size(), 3U);
  EXPECT_DOUBLE_EQ((*limits)[0].most, 3000) << "of the small size";
  EXPECT_DOUBLE_EQ((*limits)[1].most, 200.0 * kLarge) << "of the large one";
  EXPECT_EQ((*limits)[2].name, "write throughput");
  StageProfile stage = TenReaders();
  stage.files_written = 5000;
  const auto excesses = ExcessesOf(*LimitsOf(stage, store, 8), {false, 1, 0});
  ASSERT_EQ(excesses.size(), 1U);
  EXPECT_DOUBLE_EQ(excesses[0].simulated, 5000);
  const Status more = LimitsOf(TenReaders(), store, 9).status();
  EXPECT_NE(more.message().find("was measured with 8 clients, not 9"), std::string::npos) << more;
}

TEST(CapacityBound, OfACapacityIsOfSizesThatWereMeasured) {
  Capacity store;
  store.clients = 8;
  for (const uint32_t percent : {0U, 100U})
    store.samples[OneSize(16 * kSmall, percent)] = {{percent * 10.0, 1000 - percent * 10.0}};
  const auto limits = LimitsOf(TenReaders(), store, 8);
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_TRUE(limits->empty()) << "files of less, and requests of more";
}

}  // namespace
}  // namespace mosa::predict
