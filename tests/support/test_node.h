// A storage node's data path in this process: store, engine and bulk server, without a manager. The
// tests of the bulk plane reach it through BulkNodeApi over real sockets.
#ifndef MOSA_TESTS_SUPPORT_TEST_NODE_H_
#define MOSA_TESTS_SUPPORT_TEST_NODE_H_

#include <fmt/format.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client-sai/api/bulk_node_api.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/host_identity.h"
#include "common/base/socket_address.h"
#include "proto/convert/bulk_hello.h"
#include "proto/convert/capability.h"
#include "storage-node/service/bulk_server.h"
#include "storage-node/service/copier.h"

namespace mosa::testing {

inline constexpr NodeId kTestNode{1};

// A directory on the RAM disk, removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char name[] = "/dev/shm/mosa-test-XXXXXX";
    MOSA_CHECK(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct TestNodeOptions {
  NodeId id = kTestNode;
  std::string key = NewCapabilityKey();  // Nodes of one cluster have the same.
  uint64_t limit_bytes = uint64_t{1} << 30;
  node::ConnectionLimits limits = {};
  bool registered = true;
  uint64_t epoch = 0;  // From which on capabilities are taken.
  bool bulk_tls = false;
};

// Whose capabilities a TestNode seals.
inline constexpr ClientId kTestClient{77};

class TestNode {
 public:
  TestNode(std::unique_ptr<node::ObjectStore> store, const TestNodeOptions& options = {})
      : id_(options.id), key_(options.key), bulk_tls_(options.bulk_tls), gate_(clock_) {
    auto engine = node::ObjectEngine::Open(std::move(store), options.limit_bytes, engine_clock_);
    MOSA_CHECK(engine.ok());
    engine_ = *std::move(engine);
    copier_ =
        std::make_unique<node::Copier>(*engine_, gate_, clock_,
                                       std::make_unique<sai::BulkNodeApi>(sai::BulkNodeApiOptions{
                                           .host_identity = "",
                                           .channel = {.connections_max = node::Copier::kCallsMax},
                                           .call_wait = node::Copier::kCallWait}));
    if (options.registered) gate_.SetKey(key_, clock_.Now(), options.epoch, bulk_tls_);
    StartServer("127.0.0.1:0", options.limits);
    client_ = NewClient();
  }

  void StartServer(const std::string& listen = "127.0.0.1:0",
                   const node::ConnectionLimits& limits = {}) {
    auto server = node::BulkServer::Start({.listen = listen,
                                           .socket_path = directory_.path() + "/node.sock",
                                           .node_name = fmt::format("n{}", id_.value),
                                           .limits = limits},
                                          *engine_, gate_, *copier_);
    MOSA_CHECK(server.ok());
    server_ = *std::move(server);
  }
  void StopServer() { server_ = nullptr; }

  NodeAddress Address() const {
    return {.node = id_,
            .name = fmt::format("n{}", id_.value),
            .address = server_->address(),
            .socket_path = server_->socket_path(),
            .host_identity = *HostIdentity(),
            .incarnation = engine_->store().record().incarnation,
            .state = NodeState::kLive};
  }
  BulkIdentity Identity(ClientId client = kTestClient) const {
    return {.client = client, .era = 0, .key = BulkKeyOf(key_, client, 0), .tls = bulk_tls_};
  }
  std::unique_ptr<sai::BulkNodeApi> NewClient(sai::NodeChannelOptions channel = {},
                                              ClientId as = kTestClient) const {
    auto client = std::make_unique<sai::BulkNodeApi>(
        sai::BulkNodeApiOptions{.host_identity = *HostIdentity(), .channel = channel});
    client->SetIdentity(Identity(as));
    client->SetNodes({Address()});
    return client;
  }

  std::string Seal(FileId file, bool may_write, Duration lifetime = Seconds(60)) const {
    return Seal({.file = file, .client = kTestClient, .may_write = may_write, .expires = {}},
                lifetime);
  }
  std::string Seal(Capability capability, Duration lifetime = Seconds(60)) const {
    capability.expires = clock_.Now() + lifetime;
    return SealCapability(capability, key_);
  }
  // As if it had registered again, with a manager whose time is `behind`.
  void Register(uint64_t epoch, Duration behind = {}) {
    gate_.SetKey(key_, clock_.Now() - behind, epoch, bulk_tls_);
  }
  // Looks for local writers and seals all that can be. The engine's time passes only here. A
  // descriptor that was just passed on may be open in the server still, for some moments of real
  // time.
  void SealAll() {
    std::vector<std::byte> scratch(1 << 20);
    for (int i = 0; i < 20 && engine_->unsealed_objects() > 0; ++i) {
      if (i >= 3) std::this_thread::sleep_for(std::chrono::milliseconds(10 * i));
      engine_->Account();
      engine_clock_.Advance(Seconds(10));
      while (engine_->SealNext(scratch)) {
      }
    }
  }

  const std::string& directory() const { return directory_.path(); }
  const std::string& key() const { return key_; }
  node::ObjectEngine& engine() { return *engine_; }
  node::Copier& copier() { return *copier_; }
  node::BulkServer& server() { return *server_; }
  sai::BulkNodeApi& client() { return *client_; }

 private:
  const NodeId id_;
  const std::string key_;
  const bool bulk_tls_;
  const TemporaryDirectory directory_;
  const SystemClock clock_;
  ManualClock engine_clock_{Time{1}};
  node::AccessGate gate_;
  std::unique_ptr<node::ObjectEngine> engine_;
  std::unique_ptr<node::Copier> copier_;
  std::unique_ptr<node::BulkServer> server_;
  std::unique_ptr<sai::BulkNodeApi> client_;
};

// A connection to the node, from that address, that has said nothing yet.
inline FrameSocket Connect(TestNode& node, const std::string& source = "127.0.0.1") {
  const auto address = ResolveAddress(node.server().address());
  const auto own = ResolveAddress(source + ":0");
  UniqueFd socket(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  MOSA_CHECK(::bind(socket.get(), own->get(), own->size()) == 0);
  MOSA_CHECK(::connect(socket.get(), address->get(), address->size()) == 0);
  return FrameSocket(std::move(socket));
}

}  // namespace mosa::testing

#endif  // MOSA_TESTS_SUPPORT_TEST_NODE_H_
