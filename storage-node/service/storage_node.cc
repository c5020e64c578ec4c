#include "storage-node/service/storage_node.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <utility>
#include <vector>

#include "client-sai/api/bulk_node_api.h"
#include "common/base/errno_status.h"
#include "common/base/host_identity.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/socket_address.h"
#include "common/base/units.h"
#include "storage-node/core/upkeep.h"

namespace mosa::node {
namespace {

constexpr size_t kScratchBytes = 1 << 20;
constexpr Duration kSealerWait = Seconds(1);
// Pause after a round over all objects, and after an object with nothing to verify.
constexpr Duration kScrubRoundPause = Seconds(10);

Status CheckListen(const std::string& listen) {
  MOSA_ASSIGN_OR_RETURN(const SocketAddress address, ResolveAddress(listen));
  const std::string text = address.ToText();
  if (text.starts_with("0.0.0.0:") || text.starts_with("[::]:")) {
    return InvalidArgumentError(
        fmt::format("cannot listen on {}: clients connect to this address; name the one at which "
                    "they reach this host",
                    listen));
  }
  return OkStatus();
}

}  // namespace

Status CheckLimit(const std::string& directory, uint64_t limit_bytes) {
  const auto memory_bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::filesystem::path path = std::filesystem::path(directory).lexically_normal();
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) {
    path = path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
    if (path.empty()) path = ".";
    if (::statvfs(path.c_str(), &status) != 0)
      return ErrnoStatus(errno, fmt::format("cannot use the object directory {}", directory));
  }
  const uint64_t disk_bytes = static_cast<uint64_t>(status.f_blocks) * status.f_frsize;
  const auto human = [](uint64_t bytes) { return HumanBytes(static_cast<int64_t>(bytes)); };
  if (limit_bytes > memory_bytes || (disk_bytes > 0 && limit_bytes > disk_bytes)) {
    return InvalidArgumentError(fmt::format(
        "the limit {} is more than there is: this machine has {} of memory, the file system of {} "
        "{}",
        human(limit_bytes), human(memory_bytes), directory, human(disk_bytes)));
  }
  return OkStatus();
}

Result<std::unique_ptr<StorageNode>> StorageNode::Start(const StorageNodeOptions& options) {
  MOSA_RETURN_IF_ERROR(CheckListen(options.listen));
  MOSA_RETURN_IF_ERROR(CheckLimit(options.directory, options.limit_bytes));
  MOSA_ASSIGN_OR_RETURN(const std::string host_identity, HostIdentity());
  MOSA_ASSIGN_OR_RETURN(const std::string boot_id, BootId());
  MOSA_ASSIGN_OR_RETURN(
      std::unique_ptr<ObjectStore> store,
      OpenDirectoryStore(
          {.path = options.directory, .node_name = options.name, .boot_id = boot_id}));

  std::unique_ptr<StorageNode> node(new StorageNode(options.scrub_bytes_per_second));
  MOSA_ASSIGN_OR_RETURN(node->engine_,
                        ObjectEngine::Open(std::move(store), options.limit_bytes, node->clock_));
  node->copier_ =
      std::make_unique<Copier>(*node->engine_, node->gate_, node->clock_,
                               std::make_unique<sai::BulkNodeApi>(sai::BulkNodeApiOptions{
                                   .host_identity = "",
                                   .channel = {.connections_max = Copier::kCallsMax},
                                   .call_wait = Copier::kCallWait,
                                   .residence = &node->engine_->residence().copies}));
  MOSA_ASSIGN_OR_RETURN(node->server_,
                        BulkServer::Start({.listen = options.listen,
                                           .socket_path = options.socket_path,
                                           .node_name = options.name,
                                           .limits = {}},
                                          *node->engine_, node->gate_, *node->copier_));
  const uint64_t unsealed = node->engine_->unsealed_objects();
  if (unsealed > 0) {
    LogInfo("found {} existing objects; recomputing the checksums of those without a record",
            unsealed);
  }
  node->accountant_ = std::thread([raw = node.get()] { raw->RunAccountant(); });
  node->sealer_ = std::thread([raw = node.get()] { raw->RunSealer(); });
  node->scrubber_ = std::thread([raw = node.get()] { raw->RunScrubber(); });
  node->link_ = std::make_unique<ManagerLink>(
      ManagerLinkOptions{.manager_address = options.manager_address,
                         .secret = options.secret,
                         .registration = {.name = options.name,
                                          .cluster_name = "",
                                          .incarnation = 0,
                                          .address = node->server_->address(),
                                          .socket_path = options.socket_path,
                                          .host_identity = host_identity,
                                          .limit_bytes = options.limit_bytes,
                                          .used_bytes = 0,
                                          .objects = {},
                                          .sizes = {},
                                          .aside = {}}},
      *node->engine_, node->gate_, *node->copier_, options.on_shutdown);
  node->copier_->Start([raw = node.get()](const CopyReport& report) { raw->link_->Send(report); });
  MOSA_RETURN_IF_ERROR(node->link_->Start(options.start_wait, options.give_up));
  return node;
}

StorageNode::~StorageNode() {
  if (link_ != nullptr) link_->Stop();
  if (copier_ != nullptr) copier_->Stop();
  server_ = nullptr;
  {
    const SystemMutexLock lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
  }
  if (engine_ != nullptr) engine_->StopSealing();
  if (accountant_.joinable()) accountant_.join();
  if (sealer_.joinable()) sealer_.join();
  if (scrubber_.joinable()) scrubber_.join();
  if (engine_ != nullptr) engine_->End();
}

bool StorageNode::stopping() {
  const SystemMutexLock lock(mutex_);
  return stopping_;
}

bool StorageNode::Sleep(Duration duration) {
  SystemMutexLock lock(mutex_);
  return !stopped_.wait_for(lock, duration,
                            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
}

// On a separate thread: objects may be slow, and a node without heartbeats is taken for dead.
void StorageNode::RunAccountant() {
  while (Sleep(kHeartbeatEvery)) engine_->Account();
}

void StorageNode::RunSealer() {
  std::vector<std::byte> scratch(kScratchBytes);
  while (!stopping()) {
    if (engine_->SealNext(scratch)) continue;
    engine_->SyncRecords();
    engine_->WaitForSealing(kSealerWait);
  }
}

void StorageNode::RunScrubber() {
  if (scrub_bytes_per_second_ == 0) return;
  std::vector<std::byte> scratch(kScratchBytes);
  bool go_on = true;
  while (go_on) {
    const Time begin = clock_.Monotonic();
    const uint64_t bytes = engine_->ScrubNext(scratch);
    const Duration took = clock_.Monotonic() - begin;
    go_on = Sleep(bytes == 0 ? kScrubRoundPause : ScrubPause(bytes, took, scrub_bytes_per_second_));
  }
}

}  // namespace mosa::node
