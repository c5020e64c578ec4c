// Limits with real gRPC and RocksDB: data directories on small file systems, and peers that do not
// read or do not speak.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client-sai/api/admin_client.h"
#include "manager/service/service_fixture.h"
#include "manager/service/stream.h"
#include "mosa/v1/manager_service.grpc.pb.h"
#include "mosa/v1/session.grpc.pb.h"
#include "proto/convert/session.h"

namespace mosa::manager {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

bool WaitUntil(const std::function<bool()>& condition, seconds limit) {
  for (const auto end = Clock::now() + limit; Clock::now() < end;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return condition();
}

class LimitsTest : public ManagerServiceTest {
 protected:
  uint64_t UsedOf(std::string_view name) const {
    for (const LimitStatus& limit : server_->Limits())
      if (limit.name == name) return limit.used;
    return 0;
  }
};

// ---- full data directories

class FullDirectoryTest : public LimitsTest {
 protected:
  static constexpr size_t kFileBytes = 16'000;

  void SetUp() override {
    disk_ = directory_ / "disk";
    std::filesystem::create_directory(disk_);
    if (::mount("mosa_limits_test", disk_.c_str(), "tmpfs", 0, "size=96M") != 0)
      GTEST_SKIP() << "only root can mount a small file system";
    options_.data_directory = disk_ / "store";
    options_.limits.inline_bytes = uint64_t{1} << 40;  // The test is about the full directory.
    options_.user_share_percent = 100;
  }
  void TearDown() override {
    server_.reset();
    ::umount2(disk_.c_str(), MNT_DETACH);
  }

  // Bytes of other programs, until nothing more fits.
  void FillDisk() {
    const int file =
        ::open((disk_ / "others").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    for (size_t bytes = 1 << 20; bytes >= 512; bytes /= 2) {
      const std::string block(bytes, 'o');
      while (::write(file, block.data(), bytes) > 0) continue;
    }
    ::close(file);
  }
  void FreeDisk() { std::filesystem::remove(disk_ / "others"); }

  static std::string ContentOf(int number) {
    std::string content;
    for (uint64_t word = static_cast<uint64_t>(number) + 1; content.size() < kFileBytes;
         word = word * 6364136223846793005ULL + 1442695040888963407ULL)
      content.append(reinterpret_cast<const char*>(&word), sizeof word);
    content.resize(kFileBytes);
    return content;
  }
  // Makes files until one is refused. Returns the number acknowledged, and the reason for the
  // refusal.
  std::pair<int, ErrorReason> Fill(TestClient& client) {
    files_.clear();
    for (int i = 0; i < 20'000; ++i) {
      const MakeRequest make = client.MakeOf(kRootFile, fmt::format("f{}", i));
      const std::vector<Reply> replies =
          client.api().Call({make, CommitOf(make.file, ContentOf(i))}, kWaitMax);
      if (const auto* failure = std::get_if<Failure>(&replies.back())) {
        // The name may exist without bytes.
        client.Ask(RemoveRequest{kRootFile, fmt::format("f{}", i)});
        return {i, failure->reason};
      }
      files_.push_back(make.file);
    }
    return {20'000, ErrorReason::kNone};
  }
  // As Fill(), once there is room for more than `files_min` files, for which it waits. The database
  // frees what belonged to removed files in the background.
  std::pair<int, ErrorReason> FillAgain(TestClient& client, int files_min) {
    std::pair<int, ErrorReason> filled;
    WaitUntil(
        [&] {
          filled = Fill(client);
          if (filled.first > files_min || filled.second != ErrorReason::kNoSpace) return true;
          for (int i = 0; i < filled.first; ++i) Removes(client, fmt::format("f{}", i));
          return false;
        },
        seconds(60));
    return filled;
  }
  void CheckFiles(TestClient& client) {
    for (size_t i = 0; i < files_.size(); i += 7) {
      const Reply reply = client.Ask(OpenRequest{.file = files_[i]});
      const auto* open = std::get_if<OpenReply>(&reply);
      ASSERT_NE(open, nullptr) << i;
      ASSERT_EQ(open->access.inline_data, ContentOf(static_cast<int>(i))) << i;
    }
  }
  static bool Removes(TestClient& client, const std::string& name) {
    return std::holds_alternative<RemoveReply>(client.Ask(RemoveRequest{kRootFile, name}));
  }
  static bool Makes(TestClient& client, const std::string& name) {
    return std::holds_alternative<MakeReply>(client.Ask(client.MakeOf(kRootFile, name)));
  }

  std::filesystem::path disk_;
  std::vector<FileId> files_;
};

TEST_F(FullDirectoryTest, AnswersNoSpaceAndRemovalsMakeRoomAgainThreeTimes) {
  StartServer();
  const auto client = Client(1);
  for (int round = 0; round < 3; ++round) {
    const int files_min = round == 0 ? 1'500 : 200;
    const auto [count, reason] = FillAgain(*client, files_min);
    EXPECT_EQ(reason, ErrorReason::kNoSpace);
    EXPECT_GT(count, files_min) << "round " << round;
    CheckFiles(*client);
    for (int i = 0; i < count; ++i)
      ASSERT_TRUE(Removes(*client, fmt::format("f{}", i))) << i << " of round " << round;
    EXPECT_TRUE(
        WaitUntil([&] { return Makes(*client, fmt::format("again{}", round)); }, seconds(60)));
  }
}

TEST_F(FullDirectoryTest, StartsOnAFullDiskAndTakesRemovalsOnceThereIsRoom) {
  StartServer();
  auto client = Client(1);
  const auto [count, reason] = Fill(*client);
  EXPECT_EQ(reason, ErrorReason::kNoSpace);
  client.reset();
  server_.reset();
  FillDisk();
  StartServer();
  ASSERT_NE(server_, nullptr);
  // While other programs hold every byte no session can begin: it could not be recorded.
  FreeDisk();
  client = Client(2);
  CheckFiles(*client);
  for (int i = 0; i < count; ++i)
    ASSERT_TRUE(WaitUntil([&] { return Removes(*client, fmt::format("f{}", i)); }, seconds(60)));
  EXPECT_TRUE(WaitUntil([&] { return Makes(*client, "again"); }, seconds(60)));
}

TEST_F(FullDirectoryTest, NobodyIsAnsweredWithoutRoomAndAllGoesOnOnceThereIsSome) {
  StartServer();
  const auto client = Client(1);
  ASSERT_TRUE(Makes(*client, "f"));
  std::atomic<uint64_t> answered = 0;
  std::atomic<bool> done = false;
  std::thread other([&] {
    for (uint64_t i = 0; !done; ++i) {
      SetAttributesRequest set;
      set.file = std::get<EntryReply>(client->Ask(LookupRequest{kRootFile, "f"})).entry.file;
      set.permissions = 0600 + i % 8;
      client->Ask(set);
      ++answered;
    }
  });
  uint64_t before = answered;
  EXPECT_TRUE(WaitUntil(
      [&] {
        before = answered;
        FillDisk();
        std::this_thread::sleep_for(seconds(2));
        return answered == before;
      },
      seconds(100)));
  FreeDisk();
  EXPECT_TRUE(WaitUntil([&] { return answered > before + 100; }, seconds(30)));
  done = true;
  other.join();
  EXPECT_TRUE(WaitUntil([&] { return Makes(*client, "g"); }, seconds(30)));
}

TEST_F(FullDirectoryTest, StopsWhileItWaitsForRoom) {
  StartServer();
  const auto client = Client(1);
  ASSERT_TRUE(Makes(*client, "f"));
  const FileId file = std::get<EntryReply>(client->Ask(LookupRequest{kRootFile, "f"})).entry.file;
  std::atomic<bool> done = false;
  std::thread filler([&] {
    while (!done) FillDisk();
  });
  std::thread other([&] {
    for (int i = 0; i < 200 && !done; ++i) {
      SetAttributesRequest set;
      set.file = file;
      set.permissions = 0600;
      client->api().Send({set}, [](const std::vector<Reply>&) {});
    }
  });
  std::this_thread::sleep_for(seconds(3));
  const auto begun = Clock::now();
  server_.reset();
  EXPECT_LT(Clock::now() - begun, seconds(10));
  done = true;
  other.join();
  filler.join();
  FreeDisk();
  StartServer();
  EXPECT_NE(server_, nullptr);
}

// ---- peers that do not read, or do not speak

class Stub {
 public:
  explicit Stub(const std::string& address)
      : channel_(MakeChannel(address, std::nullopt)),
        stub_(v1::ClientSessionService::NewStub(channel_)),
        stream_(stub_->Session(&context_)) {}
  ~Stub() {
    context_.TryCancel();
    stream_->Finish();
  }
  bool Send(const ClientMessage& value) {
    v1::ClientMessage message;
    ToProto(value, &message);
    return stream_->Write(message);
  }
  bool Read() {
    v1::ManagerMessage message;
    return stream_->Read(&message);
  }

 private:
  grpc::ClientContext context_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::ClientSessionService::Stub> stub_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::ManagerMessage>> stream_;
};

TEST_F(LimitsTest, WhoDoesNotReadIsNotReadFromAndOthersGoOn) {
  StartServer();
  const auto other = Client(1);
  const MakeRequest make = other->MakeOf(kRootFile, "f");
  other->Ask(make);
  SetXattrRequest set;
  set.file = make.file;
  set.name = "user.large";
  set.value = std::string(60'000, 'v');
  ASSERT_TRUE(std::holds_alternative<EmptyReply>(other->Ask(set)));

  Stub silent(server_->address());
  SessionStart start;
  start.client = ClientId{99};
  start.node_name = "n";
  ASSERT_TRUE(silent.Send(start));
  ASSERT_TRUE(silent.Read());
  GetXattrRequest get;
  get.file = make.file;
  get.name = set.name;
  // Two gigabytes of answers, if a peer read them.
  for (uint64_t i = 1; i <= 400; ++i) {
    RequestEnvelope envelope{.id = RequestId{i}, .answered_below = {}, .requests = {}};
    envelope.requests.assign(100, get);
    if (!silent.Send(envelope)) break;
  }
  Duration longest{0};
  uint64_t queued_most = 0;
  for (const auto end = Clock::now() + seconds(4); Clock::now() < end;) {
    const auto begun = Clock::now();
    ASSERT_TRUE(std::holds_alternative<GetXattrReply>(other->Ask(get)));
    longest = std::max(longest, Duration{(Clock::now() - begun).count()});
    queued_most = std::max(queued_most, UsedOf("bytes queued to peers"));
  }
  EXPECT_LT(longest.ns, Seconds(5).ns);
  EXPECT_GT(queued_most, 0U);
  EXPECT_LE(queued_most, kStreamQueueBytesMax);
  // The other session's keep-alive may be in progress when bytes are counted.
  EXPECT_TRUE(WaitUntil([&] { return UsedOf("bytes queued to peers") < 1'000; }, seconds(60)));
}

TEST_F(LimitsTest, AStreamThatDoesNotSayWhoseItIsIsEnded) {
  StartServer();
  Stub silent(server_->address());
  EXPECT_TRUE(WaitUntil([&] { return UsedOf("streams") == 1; }, seconds(10)));
  const auto begun = Clock::now();
  EXPECT_FALSE(silent.Read());
  EXPECT_LT(Clock::now() - begun, seconds(10));
  EXPECT_TRUE(WaitUntil([&] { return UsedOf("streams") == 0; }, seconds(10)));
}

TEST_F(LimitsTest, AConnectionThatProvesNothingIsClosedAndOthersGoOn) {
  options_.secret = Secret({.role = Role::kManager});
  StartServer();
  const auto client = Client(1);
  std::vector<int> silent;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string& where = server_->address();
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(where.substr(where.rfind(':') + 1))));
  for (int i = 0; i < 500; ++i) {
    silent.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(silent.back(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_TRUE(std::holds_alternative<MakeReply>(client->Ask(client->MakeOf(kRootFile, "f"))));
  const auto begun = Clock::now();
  for (const int connection : silent) {
    char byte = 0;
    pollfd waiting{.fd = connection, .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&waiting, 1, 15'000), 1);
    // TLS may send a message before it closes.
    while (::recv(connection, &byte, 1, MSG_DONTWAIT) > 0) continue;
    ::close(connection);
  }
  EXPECT_LT(Clock::now() - begun, seconds(15));
}

// ---- connections

// A silent connection from 127.0.0.`host`.
class SilentConnection {
 public:
  explicit SilentConnection(int host) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(0x7f000000U + static_cast<uint32_t>(host));
    MOSA_CHECK(fd_ >= 0);
    MOSA_CHECK(::bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own) == 0);
  }
  ~SilentConnection() { ::close(fd_); }
  SilentConnection(SilentConnection&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  bool Connect(const std::string& where) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(where.substr(where.rfind(':') + 1))));
    return ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

 private:
  int fd_;
};

// While this exists, the process cannot open another file.
class NoDescriptors {
 public:
  NoDescriptors() {
    MOSA_CHECK(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int lowest = ::dup(0);
    ::close(lowest);
    const rlimit none{.rlim_cur = static_cast<rlim_t>(lowest), .rlim_max = before_.rlim_max};
    MOSA_CHECK(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(LimitsTest, WhoComesWhenThereIsNoDescriptorIsLetInOnceThereIsOne) {
  StartServer();
  const auto client = Client(1);
  std::vector<SilentConnection> others;
  for (int i = 0; i < 20; ++i) others.emplace_back(2);
  {
    const NoDescriptors none;
    for (SilentConnection& other : others) EXPECT_TRUE(other.Connect(server_->address()));
    std::this_thread::sleep_for(seconds(1));
    EXPECT_TRUE(std::holds_alternative<MakeReply>(client->Ask(client->MakeOf(kRootFile, "f"))));
  }
  // How many are there at once depends on the machine: some fail for lack of a second descriptor,
  // and the first end, being silent, while the last are let in.
  EXPECT_TRUE(WaitUntil([&] { return UsedOf("connections of one address") >= 2; }, seconds(10)));
  const auto next = Client(2);
  EXPECT_TRUE(std::holds_alternative<MakeReply>(next->Ask(next->MakeOf(kRootFile, "g"))));
}

TEST_F(LimitsTest, AnAddressWithAllItsConnectionsIsTurnedAwayUntilSomeEndAndOthersAreLetIn) {
  options_.connections = DoorLimits{.connections_max = 100, .per_address_max = 5};
  StartServer();
  std::vector<SilentConnection> others;
  for (int i = 0; i < 10; ++i) others.emplace_back(2);
  for (SilentConnection& other : others) EXPECT_TRUE(other.Connect(server_->address()));
  EXPECT_TRUE(WaitUntil([&] { return UsedOf("connections turned away") >= 5; }, seconds(5)));
  EXPECT_EQ(UsedOf("connections turned away"), 5U);
  EXPECT_EQ(UsedOf("connections of one address"), 5U);
  const auto client = Client(1);
  EXPECT_TRUE(std::holds_alternative<MakeReply>(client->Ask(client->MakeOf(kRootFile, "f"))));
  others.clear();
  EXPECT_TRUE(WaitUntil([&] { return UsedOf("connections") == 1; }, seconds(10)));
  SilentConnection again(2);
  EXPECT_TRUE(again.Connect(server_->address()));
  EXPECT_TRUE(WaitUntil([&] { return UsedOf("connections") == 2; }, seconds(10)));
  EXPECT_EQ(UsedOf("connections turned away"), 5U);
}

TEST_F(LimitsTest, WhenAllConnectionsAreTakenTheNextOneIsClosedAndAClientGoesOn) {
  options_.connections = DoorLimits{.connections_max = 8, .per_address_max = 6};
  StartServer();
  const auto client = Client(1);
  std::vector<SilentConnection> others;
  for (int i = 0; i < 12; ++i) others.emplace_back(2 + i % 3);
  for (SilentConnection& other : others) EXPECT_TRUE(other.Connect(server_->address()));
  EXPECT_TRUE(WaitUntil([&] { return UsedOf("connections turned away") >= 5; }, seconds(5)));
  EXPECT_LE(UsedOf("connections"), 8U);
  EXPECT_TRUE(std::holds_alternative<MakeReply>(client->Ask(client->MakeOf(kRootFile, "f"))));
}

// ---- unread answers

TEST_F(LimitsTest, AnswersThatNobodyReadsAreRefusedBeyondALimitAndGivenUpInTime) {
  StartServer();
  const auto stub = v1::ManagerService::NewStub(MakeChannel(server_->address(), std::nullopt));
  v1::ListLocationsRequest request;
  const std::string path = "/" + std::string(3'000, 'n');
  for (int i = 0; i < 1'500; ++i) request.add_paths(path);
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::ListLocationsResponse>> reader;
    v1::ListLocationsResponse response;
    grpc::Status status;
  };
  grpc::CompletionQueue queue;
  // Each answer has 4.5 MB, and nothing is read before Finish.
  std::deque<Call> calls(20);
  for (Call& call : calls) {
    call.reader = stub->AsyncListLocations(&call.context, request, &queue);
    call.reader->ReadInitialMetadata(nullptr);
  }
  uint64_t queued_most = 0;
  EXPECT_TRUE(WaitUntil(
      [&] {
        queued_most = std::max(queued_most, UsedOf("bytes queued to peers"));
        return queued_most > kUnaryBytesPerConnectionMax / 2 &&
               UsedOf("bytes queued to peers") == 0;
      },
      seconds(60)));
  EXPECT_LE(queued_most, kUnaryBytesPerConnectionMax);
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < calls.size(); ++i) ASSERT_TRUE(queue.Next(&tag, &ok));
  for (Call& call : calls) call.reader->Finish(&call.response, &call.status, &call);
  int refused = 0, given_up = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    ASSERT_TRUE(queue.Next(&tag, &ok));
    const auto code = static_cast<Call*>(tag)->status.error_code();
    refused += code == grpc::StatusCode::RESOURCE_EXHAUSTED ? 1 : 0;
    given_up += code == grpc::StatusCode::CANCELLED ? 1 : 0;
  }
  EXPECT_GE(refused, 12);
  EXPECT_EQ(refused + given_up, 20);
  sai::AdminClient admin(server_->address(), std::nullopt);
  EXPECT_TRUE(admin.GetClusterStatus().ok());
}

}  // namespace
}  // namespace mosa::manager
