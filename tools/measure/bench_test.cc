#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tools/console/progress.h"
#include "tools/measure/bench_plan.h"
#include "tools/measure/bench_regions.h"
#include "tools/measure/bench_results.h"
#include "tools/measure/bench_statistics.h"
#include "tools/measure/bench_traffic.h"
#include "tools/measure/bench_work.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using testing::DoubleNear;
using testing::HasSubstr;

class InDirectory : public testing::Test {
 protected:
  InDirectory() {
    std::string name = (fs::temp_directory_path() / "mosa-bench-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~InDirectory() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return directory_ / name; }

  fs::path directory_;
};

// ---- contents

std::vector<std::byte> Content(std::string_view name, uint64_t seed, uint64_t begin, size_t size) {
  std::vector<std::byte> bytes(size);
  FillContent(ContentKey(name, seed), begin, bytes);
  return bytes;
}

TEST(Content, IsTheSameHoweverItIsCut) {
  const auto whole = Content("a", 7, 0, 1021);
  const auto rest = Content("a", 7, 512, 1021 - 512);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + 512));
}

TEST(Content, EveryWrongByteIsFound) {
  const uint64_t key = ContentKey("a", 7);
  auto bytes = Content("a", 7, 64, 203);
  EXPECT_FALSE(FindMismatch(key, 64, bytes));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{1};
    const auto wrong = FindMismatch(key, 64, bytes);
    ASSERT_TRUE(wrong) << i;
    EXPECT_EQ(wrong->offset, 64 + i / 8 * 8);
    EXPECT_EQ(wrong->expected ^ wrong->found, uint64_t{1} << (i % 8 * 8));
    bytes[i] ^= std::byte{1};
  }
}

TEST(Content, AnotherNameSeedOrOffsetDoesNotPass) {
  const auto bytes = Content("a", 7, 0, 4096);
  EXPECT_TRUE(FindMismatch(ContentKey("b", 7), 0, bytes));
  EXPECT_TRUE(FindMismatch(ContentKey("a", 8), 0, bytes));
  EXPECT_TRUE(FindMismatch(ContentKey("a", 7), 8, bytes));
  EXPECT_TRUE(FindMismatch(ContentKey("a", 7), 0, std::vector<std::byte>(8)));
}

// ---- steps

TEST(WorkStep, IsReadBackFromItsWord) {
  for (const char* word : {"read:in:0:100:in/0", "part:data:4096:8192:data/x:y",
                           "write:a/b:0:1:out/0", "update:d:8:8:/mnt/d", "make:/a b", "remove:x"}) {
    const auto step = ParseWorkStep(word);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(ToWord(*step), word);
  }
}

TEST(WorkStep, RefusesWithTheWord) {
  const struct {
    const char* word;
    const char* why;
  } rows[] = {{"copy:x", "'copy:x' is not a step of work"},
              {"read", "is not a step of work"},
              {"read:x", "has no content"},
              {"read:x:1", "has no numbers"},
              {"read:x:0:-1:p", "has no numbers"},
              {"read:x:0:1", "has no numbers"},
              {"read:x:1:8:p", "at a multiple of 8"},
              {"read:x:0:8:", "has no path"},
              {"make:", "has no path"},
              {"", "is not a step of work"}};
  for (const auto& [word, why] : rows) {
    const auto step = ParseWorkStep(word);
    ASSERT_FALSE(step.ok()) << word;
    EXPECT_EQ(step.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(step.status()), HasSubstr(why));
  }
}

class Work : public InDirectory {
 protected:
  Result<nlohmann::json> Do(const std::vector<std::string>& words, uint64_t seed = 3) {
    std::vector<WorkStep> steps;
    for (const std::string& word : words) {
      MOSA_ASSIGN_OR_RETURN(WorkStep step, ParseWorkStep(word));
      step.path = path(step.path);
      steps.push_back(std::move(step));
    }
    return DoWork(steps, seed);
  }
  std::string Refusal(const std::string& word, uint64_t seed = 3) {
    const auto did = Do({word}, seed);
    return did.ok() ? "did it" : MessageOf(did.status());
  }
};

TEST_F(Work, ReadsWhatItWroteAndCounts) {
  const auto did = Do({"write:c:0:2500001:deep/f", "read:c:0:2500001:deep/f"});
  ASSERT_TRUE(did.ok()) << did.status();
  EXPECT_EQ(did->at("written_bytes"), 2500001);
  EXPECT_EQ(did->at("read_bytes"), 2500001);
  EXPECT_GT(did->at("read_seconds").get<double>(), 0);
}

TEST_F(Work, RegionsMakeTheWhole) {
  ASSERT_TRUE(Do({"write:c:0:0:f", "update:c:4096:4096:f", "update:c:0:4096:f"}).ok());
  EXPECT_TRUE(Do({"read:c:0:8192:f", "part:c:4096:4096:f", "part:c:0:16:f"}).ok());
  EXPECT_THAT(Refusal("update:c:0:8:none"), HasSubstr("cannot open"));
}

TEST_F(Work, NamesFileAndOffsetOfWhatIsWrong) {
  ASSERT_TRUE(Do({"write:c:0:3000000:f"}).ok());
  std::fstream file(path("f"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(2'000'003);
  file.put('\x5a');
  file.close();
  const std::string refusal = Refusal("read:c:0:3000000:f");
  EXPECT_THAT(refusal, HasSubstr(path("f") + " has wrong bytes at offset 2000000: expected 0x"));
  EXPECT_THAT(refusal, HasSubstr(", found 0x"));
  EXPECT_THAT(Refusal("part:c:0:1000000:f"), "did it");
  EXPECT_THAT(Refusal("read:c:0:8:f", 4), HasSubstr("wrong bytes at offset 0"));
}

TEST_F(Work, NamesWhereAFileIsTooShortOrTooLong) {
  ASSERT_TRUE(Do({"write:c:0:1000:f"}).ok());
  EXPECT_THAT(Refusal("read:c:0:1001:f"), HasSubstr("ends at offset 1000, but 1001 bytes"));
  EXPECT_THAT(Refusal("read:c:0:992:f"), HasSubstr("continues beyond offset 992"));
  EXPECT_THAT(Refusal("read:c:0:8:none"), HasSubstr("cannot open"));
}

TEST_F(Work, RemovesWhatItMade) {
  ASSERT_TRUE(Do({"make:a/b", "write:c:0:8:a/b/f", "remove:a", "remove:a"}).ok());
  EXPECT_FALSE(fs::exists(path("a")));
}

// ---- statistics

TEST(Statistics, SummarizesSamples) {
  const Summary ten = Summarize({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(ten.mean, 5);
  EXPECT_DOUBLE_EQ(ten.median, 4.5);
  EXPECT_THAT(*ten.half_width, DoubleNear(2.365 * 2.138 / 2.828, 0.01));
  EXPECT_FALSE(IsWithin(ten, 0.3));
  EXPECT_TRUE(IsWithin(ten, 0.4));
  EXPECT_EQ(Summarize({}).count, 0U);
  EXPECT_FALSE(IsWithin(Summarize({1}), 0.05));
  EXPECT_TRUE(IsWithin(Summarize({3, 3}), 0.05));
  EXPECT_DOUBLE_EQ(Summarize({3, 1, 2}).median, 2);
}

// ---- the plan

std::string Say(const BenchPlan& plan) {
  std::string text = fmt::format("{}..{}", plan.repeats_min, plan.repeats_max);
  for (const Group& group : plan.groups) {
    text += fmt::format("; {} {} {}:", ToText(group.cells[0].pattern), ToText(group.cells[0].size),
                        group.cells[0].scale_millionths);
    for (const Cell& cell : group.cells) text += " " + cell.name();
  }
  return text;
}

TEST(Plan, IsACellForEachSystem) {
  const struct {
    PlanRequest request;
    std::string plan;
  } rows[] = {
      {{.patterns = {"pipeline", "reduce"}, .sizes = {"medium"}, .scales = {"0.1"}, .hosts = 4},
       "10..20; pipeline medium 100000: dss wass local; reduce medium 100000: dss wass"},
      {{.patterns = {"broadcast"}, .sizes = {"small"}, .repeats = "3", .hosts = 6},
       "3..3; broadcast small 1000000: dss wass-1 wass-2 wass-4 wass-6"},
      {{.patterns = {"broadcast", "gather"},
        .sizes = {"small", "large"},
        .scales = {"0.5", "large=0.02"},
        .systems = {"wass", "path=nfs:/mnt/{host}"},
        .replicas = {"N", "1"},
        .repeats = "2..5",
        .hosts = 3},
       "2..5; broadcast small 500000: wass-1 wass-3 nfs; broadcast large 20000: wass-1 wass-3 nfs; "
       "gather small 500000: wass nfs; gather large 20000: wass nfs"},
      {{.patterns = {"scatter", "pipeline", "scatter"}, .sizes = {"small"}, .systems = {"local"}},
       "10..20; pipeline small 1000000: local"},
  };
  for (const auto& row : rows) {
    const auto plan = PlanBench(row.request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(Say(*plan), row.plan);
  }
}

TEST(Plan, RefusesWithOptionAndValue) {
  const struct {
    PlanRequest request;
    const char* why;
  } rows[] = {
      {{.patterns = {"pipe"}}, "--patterns: unknown pattern 'pipe'"},
      {{.sizes = {"huge"}}, "--sizes: unknown size 'huge'"},
      {{.scales = {"0"}}, "--scale 0: '0' is not a factor on the sizes of Table 2"},
      {{.scales = {"-1"}}, "--scale -1: '-1' is not a factor"},
      {{.scales = {"nan"}}, "'nan' is not a factor"},
      {{.scales = {"101"}}, "'101' is not a factor"},
      {{.scales = {"huge=1"}}, "unknown size 'huge'"},
      {{.systems = {"ext4"}}, "unknown system 'ext4'"},
      {{.systems = {"path=nfs"}}, "unknown system 'path=nfs'"},
      {{.systems = {"path=nfs:mnt"}}, "'mnt' is not an absolute path"},
      {{.systems = {"dss", "dss"}}, "names 'dss' twice"},
      {{.replicas = {"0"}, .hosts = 4}, "--replicas 0: give 1 to 4"},
      {{.replicas = {"5"}, .hosts = 4}, "--replicas 5: give 1 to 4"},
      {{.repeats = "0..3"}, "--repeats 0..3"},
      {{.repeats = "4..3"}, "--repeats 4..3"},
      {{.repeats = "1..2..3"}, "--repeats 1..2..3"},
      {{.patterns = {"gather"}, .systems = {"local"}},
       "system local runs the pattern pipeline only"},
  };
  for (const auto& row : rows) {
    const auto plan = PlanBench(row.request);
    ASSERT_FALSE(plan.ok()) << row.why;
    EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(plan.status()), HasSubstr(row.why));
  }
}

// ---- places

class Places : public InDirectory {
 protected:
  std::string Refusal(const BenchSystem& system, uint64_t bytes) {
    RunHost host;
    host.name = "h1";
    host.mount_point = directory_;
    return MessageOf(CheckPlace(system, {host}, "work", bytes));
  }
};

TEST_F(Places, AreLookedAtBefore) {
  const BenchSystem dss{SystemKind::kDss, "dss", ""};
  EXPECT_EQ(Refusal(dss, 1000), "");
  EXPECT_THAT(Refusal(dss, uint64_t{1} << 60), HasSubstr("the files of one run take"));
  fs::create_directory(path("work"));
  EXPECT_EQ(Refusal(dss, 1000), "");
  std::ofstream(path("work/precious")) << "x";
  EXPECT_THAT(Refusal(dss, 1000), HasSubstr(path("work") + " is not empty"));
  EXPECT_THAT(
      Refusal({SystemKind::kPath, "nfs", path("{host}")}, 1),
      HasSubstr("system 'nfs' is not mounted on host h1: there is no directory " + path("h1")));
}

TEST(HostsOf, ALocalDirectoryIsOfOneHost) {
  std::vector<RunHost> hosts(2);
  hosts[0].name = "a";
  hosts[1].name = "b";
  for (RunHost& host : hosts) host.mosa = true;
  const auto local = HostsOf({SystemKind::kLocal, "local", "/dev/shm"}, hosts, "w");
  EXPECT_EQ(local[0].directory, "/dev/shm/w-a");
  EXPECT_EQ(local[1].directory, "/dev/shm/w-b");
  EXPECT_FALSE(local[0].mosa);
  EXPECT_EQ(HostsOf({SystemKind::kPath, "nfs", "/m/{host}"}, hosts, "w")[1].directory, "/m/b/w");
}

// ---- regions

TEST(NodeAt, FollowsSegmentsAndTurns) {
  const auto layout = nlohmann::json::parse(
      R"({"chunk_size":100,"run_chunks":2,"segments":[
          {"begin":0,"width":2,"nodes":["a","b"]},{"begin":400,"width":1,"nodes":["c"]}]})");
  const std::pair<uint64_t, const char*> rows[] = {{0, "a"},   {199, "a"}, {200, "b"},
                                                   {399, "b"}, {400, "c"}, {9999, "c"}};
  for (const auto& [offset, node] : rows) EXPECT_EQ(NodeAt(layout, offset), node) << offset;
  EXPECT_EQ(NodeAt(nlohmann::json::object(), 0), "");
  EXPECT_EQ(NodeAt({{"chunk_size", 8}, {"segments", nlohmann::json::array()}}, 0), "");
}

// ---- traffic

TEST(Traffic, IsWhatGrew) {
  Traffic before, after;
  before.by_path = {{"bytes_read_remote", 5}, {"bytes_written_remote", 9}};
  after.by_path = {{"bytes_read_remote", 7}, {"bytes_written_remote", 4}};
  before.links = {{"h1", {10, 20}}, {"h2", {0, 0}}};
  after.links = {{"h1", {30, 25}}, {"h2", {1, 50}}, {"h3", {9, 9}}};
  before.daemon_seconds = {{"h0", 1.5}, {"h1", 2}};
  after.daemon_seconds = {{"h0", 1.75}, {"h1", 1}, {"h3", 1}};
  const Traffic grown = after - before;
  EXPECT_EQ(grown.by_path.at("bytes_read_remote"), 2U);
  EXPECT_EQ(grown.by_path.at("bytes_written_remote"), 0U) << "its daemon was started anew";
  EXPECT_EQ(grown.NetworkBytes(), 5U + 50);
  EXPECT_EQ(grown.BusiestLinkBytes(), 50U);
  EXPECT_EQ(grown.links.size(), 2U);
  EXPECT_EQ(grown.daemon_seconds, (std::map<std::string, double>{{"h0", 0.25}, {"h1", 0}}));
}

TEST(Traffic, WithoutLinksIsWhatMountsMoved) {
  Traffic traffic;
  traffic.by_path = {
      {"bytes_read_remote", 2}, {"bytes_written_remote", 3}, {"bytes_read_local", 9}};
  EXPECT_EQ(traffic.NetworkBytes(), 5U);
}

// ---- results

class Results : public InDirectory {
 protected:
  static nlohmann::json RunOf(double seconds) { return {{"stages", {{"seconds", seconds}}}}; }
  static Cell Of(const std::string& system) {
    Cell cell;
    cell.system.name = system;
    return cell;
  }
};

TEST_F(Results, AreGoneOnWith) {
  BenchResults first(path("r.json"), {{"seed", 1}});
  ASSERT_TRUE(first.Load().ok());
  for (const double seconds : {2.0, 4.0}) first.AddRun(Of("dss"), RunOf(seconds));
  first.AddRun(Of("wass"), RunOf(1.0));
  ASSERT_TRUE(first.Save("interrupted").ok());
  BenchResults second(path("r.json"), {{"seed", 1}});
  ASSERT_TRUE(second.Load().ok());
  EXPECT_EQ(second.RunCount(Of("dss")), 2U);
  EXPECT_EQ(second.RunCount(Of("nfs")), 0U);
  second.AddRun(Of("wass"), RunOf(4.0));
  EXPECT_THAT(second.RatiosOf(Of("dss"), Of("wass")), testing::ElementsAre(2.0, 1.0));
  const auto json = second.ToJson("done");
  EXPECT_EQ(json["cells"][1]["speedup_over"]["dss"]["median"], 1.5);
  EXPECT_EQ(json["cells"][0]["seconds"]["stages"]["mean"], 3.0);
  EXPECT_EQ(json["cells"][0]["settled"], false);
}

TEST_F(Results, OfAnotherConfigurationAreRefused) {
  BenchResults first(path("r.json"), {{"seed", 1}, {"width", 4}});
  ASSERT_TRUE(first.Save("done").ok());
  BenchResults second(path("r.json"), {{"seed", 2}, {"width", 4}});
  const Status refused = second.Load();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("(seed is 1 there and 2 here): give another --output"));
}

TEST_F(Results, WhatIsNoResultIsRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"version":1,"configuration":{},"cells":[{"runs":[{}]}]})",
        R"({"version":1,"configuration":{},"cells":[{"pattern":"pipeline","size":"small",
            "scale_millionths":1,"system":"dss","directory":"","runs":[{"stages":3}]}]})"}) {
    std::ofstream(path("r.json"), std::ios::trunc) << text;
    BenchResults results(path("r.json"), nlohmann::json::object());
    const Status refused = results.Load();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(MessageOf(refused), HasSubstr("is not a result of 'mosa bench patterns'"));
  }
}

TEST(Progress, SaysHowMuchIsLeft) {
  EXPECT_EQ(ProgressLine(6, 12, Seconds(100), "gather small dss"),
            "[############            ] 6/12 gather small dss, 1m40s left");
  EXPECT_THAT(ProgressLine(0, 5, Seconds(7200), "x"), HasSubstr("0/5 x, 2h00m left"));
}

}  // namespace
}  // namespace mosa::cli
