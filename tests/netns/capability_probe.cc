// capability_probe --manager H:P --secret FILE --node NAME FIRST SECOND: a client that misuses its
// rights.
//
// FIRST and SECOND are files in the root of the store with their bytes on node NAME. The probe
// opens FIRST for reading, as any client may, shows that its capability lets it read FIRST, and
// then that the same capability neither changes FIRST nor reaches SECOND. One line per attempt, and
// one with the capability in hexadecimal; exit code 1 if an attempt went otherwise than it should.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <mutex>
#include <string>
#include <variant>

#include "client-sai/api/bulk_node_api.h"
#include "client-sai/api/grpc_manager_api.h"
#include "common/base/host_identity.h"
#include "proto/convert/credentials.h"

namespace mosa::sai {
namespace {

struct Options {
  std::string manager;
  std::string secret_path;
  std::string node;
  std::string first;
  std::string second;
};

// Remembers the nodes; caches nothing, so it confirms every recall.
class Listener final : public SessionListener {
 public:
  Listener(ClientId client, std::string host_identity)
      : client_(client), host_identity_(std::move(host_identity)) {}
  void Use(ManagerApi& manager) { manager_ = &manager; }

  void OnSessionReady(const SessionReady& ready) override {
    const std::scoped_lock lock(mutex_);
    nodes_ = ready.nodes;
    bulk_identity_ = {
        .client = client_, .era = ready.era, .key = ready.bulk_key, .tls = ready.bulk_tls};
  }
  void OnPush(const Push& push) override {
    if (const auto* recall = std::get_if<RecallPush>(&push)) {
      manager_->Send({RecallDoneRequest{recall->recall, false}}, [](const auto&) {});
    }
  }
  SessionStart SessionHeld() override {
    SessionStart start;
    start.client = client_;
    start.host_identity = host_identity_;
    start.mount_point = "capability_probe";
    return start;
  }
  void OnLeaseRenewed(Time, Time) override {}

  std::vector<NodeAddress> nodes() const {
    const std::scoped_lock lock(mutex_);
    return nodes_;
  }
  BulkIdentity bulk_identity() const {
    const std::scoped_lock lock(mutex_);
    return bulk_identity_;
  }

 private:
  const ClientId client_;
  const std::string host_identity_;
  ManagerApi* manager_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<NodeAddress> nodes_;  // Guarded by mutex_.
  BulkIdentity bulk_identity_;
};

template <typename T>
Result<T> Ask(ManagerApi& manager, Request request) {
  const std::vector<Reply> replies = manager.Call({std::move(request)}, kWaitMax);
  if (replies.size() == 1) {
    if (const auto* reply = std::get_if<T>(&replies[0])) return *reply;
    if (const auto* failure = std::get_if<Failure>(&replies[0])) {
      return Status(failure->code, failure->message);
    }
  }
  return InternalError("the manager gave another kind of reply");
}

Result<FileId> Find(ManagerApi& manager, const std::string& name) {
  MOSA_ASSIGN_OR_RETURN(const auto reply, Ask<EntryReply>(manager, LookupRequest{kRootFile, name}));
  return reply.entry.file;
}

// True if `status` is what was wanted; says so.
bool Judge(const char* what, const Status& status, StatusCode wanted) {
  const bool right = status.code() == wanted && (status.ok() || !MessageOf(status).empty());
  fmt::print("{}: {}: {}\n", right ? "right" : "WRONG", what,
             status.ok() ? "done" : MessageOf(status));
  return right;
}

bool TryRights(NodeApi& nodes, const ObjectTarget& own, const ObjectTarget& other) {
  constexpr auto kRefused = StatusCode::kPermissionDenied;
  std::array<std::byte, 4096> bytes{};
  bool right = Judge("read with the right capability", nodes.Read(own, 0, bytes), StatusCode::kOk);
  right &= Judge("write with a capability to read", nodes.Write(own, 0, bytes), kRefused);
  right &= Judge("truncate with it", nodes.Truncate(own, 1), kRefused);
  right &= Judge("punch with it", nodes.Allocate(own, 3, 0, bytes.size()), kRefused);
  right &= Judge("read another file with it", nodes.Read(other, 0, bytes), kRefused);
  right &= Judge("stat another file with it", nodes.Stat(other).status(), kRefused);
  right &= Judge("write another file with it", nodes.Write(other, 0, bytes), kRefused);
  ObjectTarget none = own;
  none.capability = "";
  right &= Judge("read without a capability", nodes.Read(none, 0, bytes), kRefused);
  std::string changed(own.capability);
  changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
  none.capability = changed;
  right &= Judge("read with one bit changed", nodes.Read(none, 0, bytes), kRefused);
  return right;
}

Result<bool> RunSession(ManagerApi& manager, const Listener& listener, const Options& options) {
  MOSA_ASSIGN_OR_RETURN(const FileId first, Find(manager, options.first));
  MOSA_ASSIGN_OR_RETURN(const FileId second, Find(manager, options.second));
  OpenRequest open;
  open.file = first;
  MOSA_ASSIGN_OR_RETURN(const auto opened, Ask<OpenReply>(manager, open));
  MOSA_ASSIGN_OR_RETURN(std::string identity, HostIdentity());
  BulkNodeApiOptions bulk;
  bulk.host_identity = std::move(identity);
  BulkNodeApi nodes(std::move(bulk));
  nodes.SetIdentity(listener.bulk_identity());
  nodes.SetNodes(listener.nodes());
  for (const NodeAddress& node : listener.nodes()) {
    if (node.name != options.node) continue;
    const ObjectTarget own{node.node, first, opened.access.capability};
    std::string shown;
    for (const char byte : own.capability)
      shown += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    fmt::print("capability {}\n", shown);
    const BulkIdentity own_identity = listener.bulk_identity();
    fmt::print("client {}\nera {}\nbulk_key ", own_identity.client.value, own_identity.era);
    for (const char byte : own_identity.key) fmt::print("{:02x}", static_cast<unsigned char>(byte));
    fmt::print("\n");
    const ObjectTarget other{node.node, second, opened.access.capability};
    return TryRights(nodes, own, other);
  }
  return NotFoundError(fmt::format("there is no node {}", options.node));
}

Result<bool> Run(const Options& options) {
  MOSA_ASSIGN_OR_RETURN(ClusterSecret secret, LoadSecret(options.secret_path));
  MOSA_ASSIGN_OR_RETURN(std::string identity, HostIdentity());
  Listener listener(ClientId{0x70726f6265}, std::move(identity));
  const auto manager = NewGrpcManagerApi({.address = options.manager, .secret = std::move(secret)});
  listener.Use(*manager);
  MOSA_RETURN_IF_ERROR(manager->Start(listener));
  const auto right = RunSession(*manager, listener, options);
  manager->Stop();
  return right;
}

}  // namespace
}  // namespace mosa::sai

int main(int argc, char** argv) {
  CLI::App app{"Shows that a right to one file is no right to anything else."};
  mosa::sai::Options options;
  app.add_option("--manager", options.manager, "HOST:PORT of the manager")->required();
  app.add_option("--secret", options.secret_path, "the cluster secret")->required();
  app.add_option("--node", options.node, "the node that holds both files")->required();
  app.add_option("FIRST", options.first, "a file in the root")->required();
  app.add_option("SECOND", options.second, "another one")->required();
  CLI11_PARSE(app, argc, argv);
  const auto right = mosa::sai::Run(options);
  if (!right.ok()) {
    fmt::print(stderr, "{}\n", mosa::MessageOf(right.status()));
    return 2;
  }
  return *right ? 0 : 1;
}
