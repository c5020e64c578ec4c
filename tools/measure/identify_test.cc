#include "tools/measure/identify.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tools/measure/identify_files.h"
#include "tools/measure/identify_network.h"
#include "tools/measure/identify_tasks.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using predict::Probe;
using predict::ProbeKind;
using predict::Where;

class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(fs::temp_directory_path() / "mosa-identify-test-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~TemporaryDirectory() { fs::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(IdentifyNetwork, MeasuresStreamsAndRoundTripsOfAReceiver) {
  const auto receiver = StreamReceiver::Open("127.0.0.1", "secret");
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  const StreamTarget target{{"127.0.0.1"}, (*receiver)->port(), "secret"};
  const auto span = SendStreams(target, 8 << 20, 2 << 20, 1);
  ASSERT_TRUE(span.ok()) << span.status();
  EXPECT_LE(span->bytes, 6U << 20) << "what warms up is not counted";
  EXPECT_GE(span->bytes, 5U << 20);
  EXPECT_GT(span->BytesPerSecond(), 1e6);
  const auto four = SendStreams(target, 1 << 20, 0, 4);
  ASSERT_TRUE(four.ok()) << four.status();
  EXPECT_GT(four->bytes, 2U << 20) << "all connections count";
  const auto apart = SendStreamsApart({target, target}, 4 << 20, Milliseconds(1), 2);
  ASSERT_TRUE(apart.ok()) << apart.status();
  ASSERT_EQ(apart->size(), 4U);
  for (const StreamSpan& each : *apart) {
    EXPECT_LE(each.bytes, 4U << 20);
    EXPECT_GT(each.end_ns, each.begin_ns);
  }
  for (const bool under_stream : {false, true}) {
    const auto trip = RoundTripSeconds(target, 5, under_stream);
    ASSERT_TRUE(trip.ok()) << trip.status();
    EXPECT_GT(*trip, 1e-7);
    EXPECT_LT(*trip, 1);
  }
}

TEST(IdentifyNetwork, TalksToNobodyWithoutTheToken) {
  const auto receiver = StreamReceiver::Open("127.0.0.1", "secret");
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  const StreamTarget stranger{{"127.0.0.1"}, (*receiver)->port(), "SECRET"};
  const auto refused = SendStreams(stranger, 1 << 20, 0, 1);
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  const StreamTarget nobody{{"127.0.0.1"}, 1, "secret"};
  EXPECT_EQ(RoundTripSeconds(nobody, 1, false).status().code(), StatusCode::kUnavailable);
}

TEST(IdentifyNetwork, ListensOnOneAddressOnly) {
  const auto receiver = StreamReceiver::Open("127.0.0.1", "secret");
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  for (const char* address : {"127.0.0.2", "::1"}) {
    const StreamTarget elsewhere{{address}, (*receiver)->port(), "secret"};
    EXPECT_EQ(RoundTripSeconds(elsewhere, 1, false).status().code(), StatusCode::kUnavailable)
        << address;
  }
  EXPECT_EQ(StreamReceiver::Open("nowhere", "secret").status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(AddressTowards(""), "127.0.0.1");
  EXPECT_EQ(AddressTowards("127.0.0.3"), "127.0.0.1");
}

TEST(IdentifyNetwork, BearsFewStrangersAndNotForLong) {
  const auto receiver = StreamReceiver::Open("127.0.0.1", "secret");
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  const StreamTarget target{{"127.0.0.1"}, (*receiver)->port(), "secret"};
  std::vector<UniqueFd> strangers;
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(target.port);
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < 12; ++i) {
    strangers.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(strangers.back().get(), reinterpret_cast<sockaddr*>(&there), sizeof there),
              0);
  }
  // Connections beyond the eighth are dropped at once, the others after a second; none gets a byte.
  for (const size_t i : {11U, 0U}) {
    pollfd wait{strangers[i].get(), POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, 10'000), 1) << i;
    char byte = 0;
    EXPECT_LE(recv(strangers[i].get(), &byte, 1, 0), 0) << i;
  }
  pollfd last{strangers[7].get(), POLLIN, 0};
  ASSERT_EQ(poll(&last, 1, 10'000), 1);
  const auto trip = RoundTripSeconds(target, 5, false);
  EXPECT_TRUE(trip.ok()) << "there is room again: " << trip.status();
}

TEST(StreamSpan, JoinsWhatWasSeenAtTheSameTime) {
  StreamSpan all;
  all.Join({1000, 5'000'000'000, 6'000'000'000});
  all.Join({3000, 4'000'000'000, 5'500'000'000});
  EXPECT_DOUBLE_EQ(all.BytesPerSecond(), 2000);
}

TEST(IdentifyFiles, DoesWhatProbesSayAndLeavesNothing) {
  const TemporaryDirectory directory;
  IdentifyFiles files;
  for (const auto& [kind, bytes, ready] : {std::tuple{ProbeKind::kWrite, uint64_t{3 << 20}, false},
                                           {ProbeKind::kRead, 100, true},
                                           {ProbeKind::kReadAgain, 2 << 20, true},
                                           {ProbeKind::kOpen, 0, true},
                                           {ProbeKind::kStat, 0, true},
                                           {ProbeKind::kMakeDirectory, 0, false},
                                           {ProbeKind::kRemove, 1, true}}) {
    SampleFiles sample;
    sample.probe = {kind, Where::kOwn, bytes, 3};
    sample.directory = directory.path();
    sample.tag = "t";
    sample.rounds = 2;
    if (ready) {
      ASSERT_TRUE(files.Write(sample).ok()) << ToText(sample.probe);
    }
    const auto seconds = files.Operate(sample);
    ASSERT_TRUE(seconds.ok()) << ToText(sample.probe) << ": " << seconds.status();
    EXPECT_GT(*seconds, 0);
    if (kind == ProbeKind::kWrite) {
      EXPECT_EQ(fs::file_size(sample.path(5)), bytes);
    }
    ASSERT_TRUE(files.Remove(sample).ok());
    EXPECT_TRUE(fs::is_empty(directory.path())) << ToText(sample.probe);
  }
}

// Appending costs twice as much: the mount asks the manager for the end each time.
TEST(IdentifyFiles, WritesThroughTheMountWithoutAppending) {
  const int mode = WriteModeOf({ProbeKind::kWrite, Where::kOwnThroughMount, 1 << 20, 1}, false);
  EXPECT_EQ(mode & O_APPEND, 0);
  EXPECT_EQ(mode & (O_ACCMODE | O_DIRECT), O_WRONLY | O_DIRECT);
  EXPECT_EQ(WriteModeOf({ProbeKind::kWrite, Where::kOwn, 1 << 20, 1}, false), O_WRONLY);
}

TEST(IdentifyFiles, NamesTheFileThatFails) {
  IdentifyFiles files;
  SampleFiles sample;
  sample.probe = {ProbeKind::kRead, Where::kOwn, 1, 2};
  sample.directory = "/nonexistent";
  sample.tag = "t";
  const auto refused = files.Operate(sample);
  EXPECT_EQ(refused.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(MessageOf(refused.status()), "cannot open /nonexistent/t-0: No such file or directory");
}

TEST(Identify, RefusesAPlatformThatIsAllGuesses) {
  predict::Evidence evidence;
  evidence.figures = {{.name = "client.call.ns_per_call", .measured = false},
                      {.name = "runner.launch.ns_per_call", .measured = false}};
  evidence.measurements.resize(3);
  IdentifyRequest options;
  options.out = "lab.json";
  options.budget_seconds = 15;
  const Status refused = CheckFigures(evidence, options);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(MessageOf(refused),
            "0 of 2 figures could be measured (3 measurements, --budget 15), so lab.json is not "
            "written: give a larger --budget (up to 120 seconds), or measure when the machines are "
            "idle");
  options.budget_seconds = kIdentifyBudgetMax;
  EXPECT_EQ(MessageOf(CheckFigures(evidence, options)),
            "0 of 2 figures could be measured (3 measurements, --budget 120), so lab.json is not "
            "written: measure when the machines are idle");
  evidence.figures.back().measured = true;
  EXPECT_TRUE(CheckFigures(evidence, options).ok()) << "one figure is worth keeping";
}

TEST(IdentifyTasks, TimesARunOfTheEngine) {
  const TemporaryDirectory directory;
  RunHost host;
  host.name = "local";
  host.mount_point = directory.path();
  host.directory = directory.path() + "/run";
  fs::create_directory(directory.path() + "/scratch");
  const auto seconds = SecondsOfRun({.tasks = 3, .one_by_one = true, .outputs = true}, {host},
                                    directory.path() + "/scratch");
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_GT(*seconds, 1e-4);
  EXPECT_EQ(fs::file_size(host.directory + "/output-2"), 1U);
}

}  // namespace
}  // namespace mosa::cli
