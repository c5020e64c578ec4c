// A whole storage node in this process, and a manager whose side of the conversation the test
// writes, over real gRPC; the bytes go over the real bulk plane.
#include "storage-node/service/storage_node.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/socket_address.h"
#include "mosa/v1/node.grpc.pb.h"
#include "proto/convert/node.h"
#include "proto/convert/protocol_version.h"
#include "tests/support/test_node.h"

namespace mosa {
namespace {

using node::StorageNode;
using node::StorageNodeOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

// Answers every registration with `answer` and keeps what nodes say.
class ScriptedManager final : public v1::NodeSessionService::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::ManagerToNode, v1::NodeMessage>;

  explicit ScriptedManager(ManagerToNode answer, const std::string& address = "127.0.0.1:0")
      : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    MOSA_CHECK(server_ != nullptr);
  }
  ~ScriptedManager() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status Session(grpc::ServerContext* context, Stream* stream) override {
    context->AddInitialMetadata(kProtocolKey, ToText(kProtocolVersions));
    NodeRegistration registration;
    v1::NodeMessage message;
    bool registered = false;
    while (stream->Read(&message)) {
      const auto value = FromProto(message);
      MOSA_CHECK(value.ok());
      const SystemMutexLock lock(mutex_);
      if (const auto* first = std::get_if<NodeRegistration>(&*value)) registration = *first;
      if (const auto* page = std::get_if<NodeObjectsPage>(&*value)) {
        MOSA_CHECK(AppendPage(*page, registration).ok());
        if (page->last) {
          registrations_.push_back(registration);
          Send(*stream, answer_);
          if (std::holds_alternative<Failure>(answer_)) return grpc::Status::OK;
          registered = true;
          stream_ = stream;
        }
      }
      if (const auto* heartbeat = std::get_if<NodeHeartbeat>(&*value)) {
        MOSA_CHECK(registered);
        heartbeats_.push_back(*heartbeat);
      }
      changed_.notify_all();
    }
    const SystemMutexLock lock(mutex_);
    stream_ = nullptr;
    return grpc::Status::OK;
  }

  void Order(const ManagerToNode& order) {
    const SystemMutexLock lock(mutex_);
    MOSA_CHECK(stream_ != nullptr);
    heartbeats_.clear();
    Send(*stream_, order);
  }
  // The first heartbeat, of those since the last order, that pleases.
  bool SeesHeartbeat(const std::function<bool(const NodeHeartbeat&)>& pleases,
                     std::chrono::milliseconds wait = std::chrono::seconds(5)) {
    SystemMutexLock lock(mutex_);
    return changed_.wait_for(
        lock, wait, [&] { return std::any_of(heartbeats_.begin(), heartbeats_.end(), pleases); });
  }
  void ForgetHeartbeats() {
    const SystemMutexLock lock(mutex_);
    heartbeats_.clear();
  }
  NodeRegistration LastRegistration() {
    const SystemMutexLock lock(mutex_);
    MOSA_CHECK(!registrations_.empty());
    return registrations_.back();
  }
  bool SeesRegistration() {
    SystemMutexLock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(5),
                             [&] { return !registrations_.empty(); });
  }

 private:
  static void Send(Stream& stream, const ManagerToNode& message) {
    for (const v1::ManagerToNode& wire : ToProto(message)) stream.Write(wire);
  }

  const ManagerToNode answer_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  SystemMutex mutex_;
  SystemCondVar changed_;
  // Guarded by mutex_:
  std::vector<NodeRegistration> registrations_;
  std::vector<NodeHeartbeat> heartbeats_;
  Stream* stream_ = nullptr;
};

class StorageNodeTest : public ::testing::Test {
 protected:
  NodeRegistered Welcome(const std::string& cluster = "c") const {
    return {.node = NodeId{1},
            .cluster_name = cluster,
            .capability_key = key_,
            .now = clock_.Now() + Seconds(1000)};  // The manager's clock is far off.
  }
  StorageNodeOptions Options(const std::string& manager) const {
    StorageNodeOptions options;
    options.name = "n1";
    options.manager_address = manager;
    options.listen = "127.0.0.1:0";
    options.directory = directory_.path() + "/objects";
    options.socket_path = directory_.path() + "/node.sock";
    options.limit_bytes = 64 << 20;
    options.scrub_bytes_per_second = uint64_t{1} << 30;
    options.start_wait = Seconds(3);
    return options;
  }
  std::unique_ptr<StorageNode> MustStart(const StorageNodeOptions& options) {
    auto node = StorageNode::Start(options);
    EXPECT_TRUE(node.ok()) << MessageOf(node.status());
    if (!node.ok()) return nullptr;
    client_ = std::make_unique<sai::BulkNodeApi>(
        sai::BulkNodeApiOptions{.host_identity = *HostIdentity(), .channel = {}});
    client_->SetIdentity({.client = ClientId{5}, .era = 0, .key = BulkKeyOf(key_, ClientId{5}, 0)});
    client_->SetNodes({{.node = NodeId{1},
                        .name = "n1",
                        .address = (*node)->address(),
                        .socket_path = (*node)->socket_path(),
                        .host_identity = *HostIdentity(),
                        .incarnation = 1,
                        .state = NodeState::kLive}});
    return *std::move(node);
  }
  std::string Seal(FileId file) const {
    return SealCapability({.file = file,
                           .client = ClientId{5},
                           .may_write = true,
                           .expires = clock_.Now() + Seconds(1060),
                           .epoch = UINT64_MAX},
                          key_);
  }
  Status Write(FileId file, const std::string& data) {
    const std::string capability = Seal(file);
    return client_->Write({NodeId{1}, file, capability}, 0, std::as_bytes(std::span(data)));
  }
  Result<std::string> Read(FileId file, size_t size) {
    const std::string capability = Seal(file);
    std::string out(size, '?');
    MOSA_RETURN_IF_ERROR(
        client_->Read({NodeId{1}, file, capability}, 0, std::as_writable_bytes(std::span(out))));
    return out;
  }

  const SystemClock clock_{};
  const TemporaryDirectory directory_;
  const std::string key_ = NewCapabilityKey();
  std::unique_ptr<sai::BulkNodeApi> client_;
};

TEST_F(StorageNodeTest, RegistersWithWhatItHoldsAndReportsWhatItUses) {
  ScriptedManager manager(Welcome());
  uint64_t incarnation = 0;
  {
    const auto node = MustStart(Options(manager.address()));
    ASSERT_NE(node, nullptr);
    const NodeRegistration first = manager.LastRegistration();
    EXPECT_EQ(first.name, "n1");
    EXPECT_EQ(first.cluster_name, "");
    EXPECT_EQ(first.address, node->address());
    EXPECT_EQ(first.host_identity, *HostIdentity());
    EXPECT_EQ(first.limit_bytes, 64U << 20);
    EXPECT_TRUE(first.objects.empty());
    incarnation = first.incarnation;
    ASSERT_TRUE(Write(FileId{7}, std::string(10'000, 'x')).ok());
    ASSERT_TRUE(Write(FileId{3}, std::string(5'000, 'y')).ok());
    EXPECT_TRUE(manager.SeesHeartbeat([](const NodeHeartbeat& heartbeat) {
      return heartbeat.used_bytes == 5 * 4096 && heartbeat.object_count == 2 &&
             heartbeat.bytes_written_remote == 15'000 && heartbeat.unsealed_objects == 0;
    }));
  }
  const auto node = MustStart(Options(manager.address()));
  const NodeRegistration second = manager.LastRegistration();
  EXPECT_EQ(second.cluster_name, "c");
  EXPECT_EQ(second.incarnation, incarnation);
  EXPECT_EQ(second.used_bytes, 5U * 4096);
  EXPECT_THAT(second.objects, ElementsAre(FileId{3}, FileId{7}));
  EXPECT_EQ(*Read(FileId{3}, 5'000), std::string(5'000, 'y'));
  // What was there is sealed again by itself.
  EXPECT_TRUE(manager.SeesHeartbeat(
      [](const NodeHeartbeat& heartbeat) { return heartbeat.unsealed_objects == 0; }));
}

TEST_F(StorageNodeTest, DropsAtOnceAndSaysSo) {
  ScriptedManager manager(Welcome());
  const auto node = MustStart(Options(manager.address()));
  ASSERT_TRUE(Write(FileId{7}, std::string(1 << 20, 'x')).ok());
  ASSERT_TRUE(Write(FileId{8}, "kept").ok());
  EXPECT_TRUE(manager.SeesHeartbeat([](const auto& heartbeat) { return heartbeat.drops_done == 0; },
                                    std::chrono::milliseconds(1000)));
  manager.Order(DropObjectsOrder{.files = {FileId{7}, FileId{99}}, .number = 5});
  EXPECT_TRUE(manager.SeesHeartbeat(
      [](const NodeHeartbeat& heartbeat) {
        return heartbeat.used_bytes == 4096 && heartbeat.object_count == 1 &&
               heartbeat.drops_done == 5;
      },
      std::chrono::milliseconds(1000)));
  EXPECT_EQ(Read(FileId{7}, 4).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(*Read(FileId{8}, 4), "kept");
}

// Whoever opens a file for writing waits while another program has a lease on it, as for any slow
// operation of the store; the object's lock is held meanwhile.
TEST_F(StorageNodeTest, BeatsAlthoughAnObjectIsSlow) {
  ScriptedManager manager(Welcome());
  const auto node = MustStart(Options(manager.address()));
  const FileId file{7};
  const std::string capability = Seal(file);
  auto lent = client_->OpenLocal({NodeId{1}, file, capability}, true);
  ASSERT_TRUE(lent.ok()) << MessageOf(lent.status());
  const std::string path =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", lent->get()));
  *lent = UniqueFd();
  UniqueFd holder(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(holder);
  ::fcntl(holder.get(), F_SETSIG, SIGURG);  // Ignored.
  // The node may have the object open still, or ask the kernel itself at this moment.
  while (::fcntl(holder.get(), F_SETLEASE, F_RDLCK) != 0) ASSERT_EQ(errno, EAGAIN);
  std::thread writer([&] { EXPECT_TRUE(Write(file, "late").ok()); });
  while (::fcntl(holder.get(), F_GETLEASE) == F_RDLCK)  // Until somebody waits for its end.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int i = 0; i < 4; ++i) {
    manager.ForgetHeartbeats();
    EXPECT_TRUE(manager.SeesHeartbeat([](const NodeHeartbeat&) { return true; })) << i;
  }
  holder.reset();
  writer.join();
}

TEST_F(StorageNodeTest, ServesWhileTheManagerIsAwayAndComesBackToIt) {
  auto manager = std::make_unique<ScriptedManager>(Welcome());
  const std::string address = manager->address();
  const auto node = MustStart(Options(address));
  const uint64_t incarnation = manager->LastRegistration().incarnation;
  manager = nullptr;
  ASSERT_TRUE(Write(FileId{7}, "while away").ok());
  EXPECT_EQ(*Read(FileId{7}, 10), "while away");
  manager = std::make_unique<ScriptedManager>(Welcome(), address);
  ASSERT_TRUE(manager->SeesRegistration());
  EXPECT_EQ(manager->LastRegistration().incarnation, incarnation);
  EXPECT_THAT(manager->LastRegistration().objects, ElementsAre(FileId{7}));
  EXPECT_TRUE(manager->SeesHeartbeat([](const NodeHeartbeat&) { return true; }));
}

TEST_F(StorageNodeTest, ReportsCorruptBlocksAgainToANewManager) {
  auto manager = std::make_unique<ScriptedManager>(Welcome());
  const std::string address = manager->address();
  const auto node = MustStart(Options(address));
  ASSERT_TRUE(Write(FileId{7}, std::string(100'000, 'x')).ok());
  {
    const auto store_path = directory_.path() + "/objects/objects";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(store_path)) {
      if (!entry.is_regular_file()) continue;
      const UniqueFd fd(::open(entry.path().c_str(), O_RDWR | O_CLOEXEC));
      ASSERT_EQ(::pwrite(fd.get(), "!", 1, 70'000), 1);
    }
  }
  EXPECT_EQ(Read(FileId{7}, 100'000).status().code(), StatusCode::kDataLoss);
  const auto reported = [](const NodeHeartbeat& heartbeat) {
    return heartbeat.corrupt_blocks == 1 && heartbeat.corrupt_objects == std::vector{FileId{7}};
  };
  EXPECT_TRUE(manager->SeesHeartbeat(reported));
  manager = nullptr;
  manager = std::make_unique<ScriptedManager>(Welcome(), address);
  EXPECT_TRUE(manager->SeesHeartbeat(reported));
}

// TCP_USER_TIMEOUT of this process's connections from or to the port of `address`, which gRPC may
// have mapped to IPv6.
std::vector<int> UserTimeoutsOf(const std::string& address, bool from) {
  std::vector<int> found;
  for (int fd = 0; fd < 1024; ++fd) {
    const auto end = from ? LocalAddress(fd) : PeerAddress(fd);
    if (!end.ok() || !end->ends_with(address.substr(address.rfind(':'))) || !PeerAddress(fd).ok())
      continue;
    int value = 0;
    socklen_t size = sizeof value;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size) == 0) found.push_back(value);
  }
  return found;
}

TEST_F(StorageNodeTest, ConnectionsToSilentMachinesEnd) {
  ScriptedManager manager(Welcome());
  const auto node = MustStart(Options(manager.address()));
  const auto address = ResolveAddress(node->address());
  const UniqueFd client(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), address->get(), address->size()), 0);
  std::vector<int> served;
  for (int i = 0; i < 500 && served != std::vector{25'000}; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    served = UserTimeoutsOf(node->address(), /*from=*/true);
  }
  EXPECT_THAT(served, ElementsAre(25'000));
  const auto timeouts = UserTimeoutsOf(manager.address(), /*from=*/false);
  ASSERT_FALSE(timeouts.empty());
  for (const int timeout : timeouts) EXPECT_EQ(timeout, 10'000);
}

TEST_F(StorageNodeTest, SaysWhyItCannotStart) {
  const ScriptedManager refusing(Failure{.code = StatusCode::kFailedPrecondition,
                                         .reason = ErrorReason::kInvalid,
                                         .message = "node n1 lives elsewhere"});
  const auto refused = StorageNode::Start(Options(refusing.address()));
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("node n1 lives elsewhere"));

  StorageNodeOptions nobody = Options("127.0.0.1:1");
  nobody.start_wait = Milliseconds(500);
  const auto unanswered = StorageNode::Start(nobody);
  EXPECT_EQ(unanswered.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(unanswered.status()), HasSubstr("127.0.0.1:1"));

  const ScriptedManager first(Welcome("first"));
  EXPECT_NE(MustStart(Options(first.address())), nullptr);
  const ScriptedManager second(Welcome("second"));
  const auto foreign = StorageNode::Start(Options(second.address()));
  EXPECT_EQ(foreign.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(foreign.status()), HasSubstr("belongs to cluster 'first'"));

  StorageNodeOptions wildcard = Options(first.address());
  wildcard.listen = "0.0.0.0:0";
  EXPECT_EQ(StorageNode::Start(wildcard).status().code(), StatusCode::kInvalidArgument);
  StorageNodeOptions huge = Options(first.address());
  huge.limit_bytes = uint64_t{1} << 60;
  const auto limited = StorageNode::Start(huge);
  EXPECT_EQ(limited.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(limited.status()), HasSubstr("1.0 EiB is more than there is"));
}

TEST_F(StorageNodeTest, EndsWhenTheManagerRefusesItForGood) {
  ScriptedManager manager(Welcome());
  SystemMutex mutex;
  SystemCondVar called;
  Status why;
  StorageNodeOptions options = Options(manager.address());
  options.on_shutdown = [&](Status status) {
    const SystemMutexLock lock(mutex);
    why = std::move(status);
    called.notify_all();
  };
  const auto node = MustStart(options);
  ASSERT_TRUE(Write(FileId{7}, "kept").ok());
  manager.Order(Failure{.code = StatusCode::kFailedPrecondition,
                        .reason = ErrorReason::kInvalid,
                        .message = "the node was drained"});
  SystemMutexLock lock(mutex);
  ASSERT_TRUE(called.wait_for(lock, std::chrono::seconds(5), [&] { return !why.ok(); }));
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(why), HasSubstr("drained"));
}

}  // namespace
}  // namespace mosa
