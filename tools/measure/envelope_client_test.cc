#include "tools/measure/envelope_client.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "common/base/clock.h"
#include "tools/cluster/process.h"
#include "tools/measure/envelope_measure.h"
#include "tools/measure/envelope_results.h"
#include "tools/measure/link_counters.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using predict::EnvelopeCell;
using enum predict::EnvelopeOperation;

constexpr uint64_t kSize = 3'000'001;  // Several blocks, and not whole words.

class EnvelopeClientTest : public testing::Test {
 protected:
  EnvelopeClientTest() : directory_(fs::temp_directory_path() / "mosa-envelope-test-XXXXXX") {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
  }
  ~EnvelopeClientTest() override { fs::remove_all(directory_); }

  ClientSample SampleOf(predict::EnvelopeOperation operation) const {
    return {operation, MovesBytes(operation) ? kSize : 0, 3, 1, directory_, 7};
  }
  std::string PathOf(const ClientSample& sample, uint64_t index) const {
    return directory_ + "/" + sample.name(index);
  }
  // Up to the end of the timed part.
  Status Run(const ClientSample& sample, bool warm = false) {
    MOSA_RETURN_IF_ERROR(EnvelopeClient::Prepare(sample));
    MOSA_RETURN_IF_ERROR(client_.Ready(sample, warm));
    MOSA_ASSIGN_OR_RETURN(span_, client_.Go(sample, SystemClock().Monotonic()));
    return OkStatus();
  }
  void Spoil(const std::string& path, uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put('?');
  }

  std::string directory_;
  EnvelopeClient client_;
  ClientSpan span_;
};

TEST_F(EnvelopeClientTest, DoesEveryOperationAndFindsItRight) {
  for (const auto operation : predict::kEnvelopeOperations) {
    for (const bool warm : {false, true}) {
      SCOPED_TRACE(NameOf(operation));
      const ClientSample sample = SampleOf(operation);
      const Status status = Run(sample, warm);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_LT(span_.begin, span_.end);
      EXPECT_TRUE(client_.CheckRead(sample).ok());
      EXPECT_TRUE(EnvelopeClient::CheckStored(sample, Duration{}).ok());
      for (const auto& entry : fs::directory_iterator(directory_)) fs::remove(entry);
    }
  }
}

TEST_F(EnvelopeClientTest, FindsAWrongByteThatWasRead) {
  for (const auto operation : {kRead, kSharedRead}) {
    const ClientSample sample = SampleOf(operation);
    ASSERT_TRUE(EnvelopeClient::Prepare(sample).ok());
    Spoil(PathOf(sample, 2), kSize - 1);
    ASSERT_TRUE(client_.Ready(sample, false).ok());
    ASSERT_TRUE(client_.Go(sample, Time{}).ok());
    const Status wrong = client_.CheckRead(sample);
    EXPECT_EQ(wrong.code(), StatusCode::kDataLoss);
    EXPECT_NE(wrong.message().find(sample.name(2) + " has wrong bytes at offset 3000000"),
              std::string::npos)
        << wrong;
  }
}

TEST_F(EnvelopeClientTest, FindsAWrongByteThatWasWritten) {
  const ClientSample sample = SampleOf(kWrite);
  ASSERT_TRUE(Run(sample).ok());
  Spoil(PathOf(sample, 1), 5);
  EXPECT_EQ(EnvelopeClient::CheckStored(sample, Duration{}).status().code(), StatusCode::kDataLoss);
  const Status at_once = EnvelopeClient::CheckStored(sample, Seconds(3600)).status();
  EXPECT_NE(at_once.message().find("has wrong bytes"), std::string::npos) << at_once;
  fs::resize_file(PathOf(sample, 0), kSize - 1);
  const Status shorter = EnvelopeClient::CheckStored(sample, Duration{}).status();
  EXPECT_NE(shorter.message().find("ends at offset 3000000"), std::string::npos) << shorter;
  fs::resize_file(PathOf(sample, 0), kSize + 1);
  const Status longer = EnvelopeClient::CheckStored(sample, Duration{}).status();
  EXPECT_NE(longer.message().find("is longer than the 3000001 bytes"), std::string::npos) << longer;
}

TEST_F(EnvelopeClientTest, LooksAgainAtWhatIsSeenLate) {
  const ClientSample sample = SampleOf(kCreate);
  ASSERT_TRUE(Run(sample).ok());
  EXPECT_EQ(EnvelopeClient::CheckStored(sample, Seconds(60))->ns, 0);
  const std::string path = PathOf(sample, 1);
  fs::remove(path);
  std::thread writer([&path] {
    cluster::Pause(Milliseconds(100));
    std::ofstream(path, std::ios::binary).close();
  });
  const auto late = EnvelopeClient::CheckStored(sample, Seconds(60));
  writer.join();
  ASSERT_TRUE(late.ok()) << late.status();
}

TEST_F(EnvelopeClientTest, NamesTheFileThatItCannotHave) {
  const ClientSample created = SampleOf(kCreate);
  ASSERT_TRUE(Run(created).ok());
  const Status again = client_.Go(created, Time{}).status();
  EXPECT_NE(again.message().find("cannot open " + PathOf(created, 0) + ": File exists"),
            std::string::npos)
      << again;
  const ClientSample opened = SampleOf(kOpen);
  fs::remove(PathOf(opened, 1));
  ASSERT_TRUE(client_.Ready(opened, false).ok());
  EXPECT_EQ(client_.Go(opened, Time{}).status().code(), StatusCode::kNotFound);
  fs::remove(PathOf(opened, 2));
  EXPECT_EQ(EnvelopeClient::CheckStored(created, Duration{}).status().code(),
            StatusCode::kNotFound);
}

TEST_F(EnvelopeClientTest, WaitsForNoMomentThatIsFarAway) {
  const ClientSample sample = SampleOf(kCreate);
  ASSERT_TRUE(client_.Ready(sample, false).ok());
  const Time tomorrow = SystemClock().Monotonic() + Seconds(86400);
  EXPECT_EQ(client_.Go(sample, tomorrow).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(EnvelopeClientTest, SaysThatTheWordToBeginCameLate) {
  const ClientSample sample = SampleOf(kCreate);
  ASSERT_TRUE(client_.Ready(sample, false).ok());
  const Time yesterday = SystemClock().Monotonic() - Seconds(1);
  const auto span = client_.Go(sample, yesterday);
  ASSERT_TRUE(span.ok()) << span.status();
  EXPECT_GE(span->told, yesterday + Seconds(1));
  EXPECT_LE(span->told, span->begin);
}

TEST(EnvelopeMeasure, HasTheNextProcessOnAnotherHost) {
  for (size_t hosts = 2; hosts <= 9; ++hosts) {
    for (uint32_t clients = 1; clients <= 16; ++clients) {
      const size_t workers = WorkersFor(clients, hosts);
      ASSERT_GE(workers, clients);
      for (size_t client = 0; client < clients; ++client)
        EXPECT_NE(client % hosts, (client + 1) % workers % hosts)
            << client << " of " << clients << " clients on " << hosts << " hosts";
    }
  }
}

TEST_F(EnvelopeClientTest, ResultsAreOfTheirGrid) {
  predict::EnvelopeGrid grid;
  grid.scale_millionths = 1000;  // 8 files.
  const std::string path = directory_ + "/result.json";
  EnvelopeResults whole(path, grid, {{"grid", 1}}, "");
  whole.Add("store", {kWrite, 1024, 2}, {0.5, 0.25, 0.125});
  whole.Add("store", {kWrite, 1024, 2}, {0.5, std::nullopt, std::nullopt});
  ASSERT_TRUE(whole.Save("running").ok());
  EnvelopeResults again(path, grid, {{"grid", 1}}, "");
  ASSERT_TRUE(again.Load().ok());
  EXPECT_EQ(again.ToJson().at("cells"), whole.ToJson().at("cells"));
  EXPECT_EQ(again.Envelopes({"store"}).front().Find({kWrite, 1024, 2})->median, 16);
  const auto refused = [&](const char* name, const nlohmann::json& value) {
    nlohmann::json wrong = whole.ToJson();
    wrong["cells"][0][name] = value;
    std::ofstream(path) << wrong;
    EnvelopeResults results(path, grid, {{"grid", 1}}, "");
    EXPECT_EQ(results.Load().code(), StatusCode::kInvalidArgument) << name << ": " << value;
  };
  refused("operations", 0);
  refused("operations", 7);
  refused("clients", 4294967298);
  refused("size_bytes", 1024.9);
  refused("seconds", {1e-300});
}

TEST_F(EnvelopeClientTest, SaysWhatIsUsedUpWhereACurveFalls) {
  EnvelopeResults results(directory_ + "/result.json", predict::EnvelopeGrid{}, {}, "");
  const struct {
    EnvelopeCell cell;
    std::optional<double> busy_share, link_share;
    const char* used_up;
  } rows[] = {{{kCreate, 0, 2}, 0.9, 0.9, "processors"},
              {{kOpen, 0, 2}, 0.2, std::nullopt, ""},
              {{kRead, 1024, 2}, 0.2, 0.9, "links"},
              {{kWrite, 1, 2}, std::nullopt, 0.3, ""}};
  for (const auto& row : rows) {
    EnvelopeCell one = row.cell;
    one.clients = 1;
    for (int repeat = 0; repeat < 3; ++repeat) {
      results.Add("store", one, {10, 0.1, 0.1});
      results.Add("store", row.cell, {20, row.busy_share, row.link_share});
    }
  }
  const std::vector<ExplainedFall> falls = results.Falls({"store"});
  ASSERT_EQ(falls.size(), std::size(rows));
  for (size_t i = 0; i < falls.size(); ++i) {
    EXPECT_EQ(falls[i].fall.cell, rows[i].cell);
    EXPECT_EQ(falls[i].used_up, rows[i].used_up) << NameOf(rows[i].cell.operation);
    EXPECT_EQ(falls[i].busy_share, rows[i].busy_share);
    EXPECT_EQ(falls[i].link_share, rows[i].link_share);
  }
  EXPECT_EQ(results.ToJson().at("falls").size(), std::size(rows));
}

TEST(LinkCounters, AreOfTheBusiestLinkInOneDirection) {
  const auto at = [](const char* first, const char* second) {
    std::istringstream text(
        std::string("Inter-|   Receive\n face |bytes\n    lo: 900 1 0 0 0 0 0 0 "
                    "900 1 0 0 0 0 0 0\n") +
        first + second);
    return ParseLinkCounters(text);
  };
  const auto before = at("  eth0: 100 1 0 0 0 0 0 0 50 1 0 0 0 0 0 0\n", "");
  ASSERT_EQ(before.size(), 1U) << "without the loopback";
  EXPECT_EQ(before.at("eth0").received, 100U);
  EXPECT_EQ(before.at("eth0").sent, 50U);
  const auto after = at("  eth0:300 1 0 0 0 0 0 0 850 1 0 0 0 0 0 0\n",
                        " wlan0: 5000 1 0 0 0 0 0 0 5000 1 0 0 0 0 0 0\n");
  EXPECT_EQ(BusiestLinkBytes(after, before), 800U) << "of links that were there before";
}

TEST(BusyShare, NeedsEnoughTicksOfEachClient) {
  BusyShare one;
  one.Add({3, 10}, 2);
  EXPECT_DOUBLE_EQ(one.share().value_or(-1), 0.3);
  one.Add({2, 9}, 2);
  EXPECT_FALSE(one.share()) << "many clients with few ticks each are not many ticks";
  BusyShare many_processors;
  many_processors.Add({32, 64}, 64);
  EXPECT_FALSE(many_processors.share()) << "one tick of each";
  EXPECT_FALSE(BusyShare().share());
}

TEST_F(EnvelopeClientTest, IsToldAllOfASampleInWords) {
  const ClientSample sample = SampleOf(kSharedRead);
  const ClientSample told = ClientSampleOf(ToJson(sample));
  EXPECT_EQ(told.operation, sample.operation);
  EXPECT_EQ(told.size_bytes, sample.size_bytes);
  EXPECT_EQ(told.operations, sample.operations);
  EXPECT_EQ(told.name(0), "shared");
  EXPECT_EQ(told.directory, sample.directory);
  const auto done = DoClientStep(client_, "prepare", ToJson(sample));
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(fs::file_size(directory_ + "/shared"), kSize);
}

}  // namespace
}  // namespace mosa::cli
