#include "manager/service/manager_server.h"

#include <grpcpp/alarm.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/host_identity.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "fmt/format.h"
#include "manager/core/recovery.h"
#include "manager/service/connection_door.h"
#include "manager/service/core_driver.h"
#include "manager/service/default_limits.h"
#include "manager/service/sessions.h"
#include "manager/service/stream.h"
#include "manager/store/data_directory.h"
#include "manager/store/metadata_store.h"
#include "proto/convert/capability.h"

namespace mosa::manager {

namespace {

// The shell's own records. The core's keys never begin with a tilde.
constexpr std::string_view kShellPrefix = "~";
constexpr std::string_view kClusterNameKey = "~cluster_name";
constexpr std::string_view kClusterSeedKey = "~cluster_seed";
constexpr std::string_view kCapabilityKeyKey = "~capability_key";

// State that belongs to the cluster rather than to one run of the manager.
struct StoredIdentity {
  std::string cluster_name;
  uint64_t cluster_seed = 0;
  std::string cluster_key;  // The capability key is derived from it.
};

Result<std::optional<std::string>> Find(MetadataStore& store, std::string_view key) {
  Result<std::string> value = store.Get(key);
  if (value.ok()) return std::optional<std::string>(*std::move(value));
  if (value.status().code() == StatusCode::kNotFound) return std::optional<std::string>();
  return value.status();
}

// Reads the identity from the store, or makes one and sets `fresh`.
Result<StoredIdentity> LoadIdentity(MetadataStore& store, const ServerOptions& options,
                                    bool& fresh) {
  MOSA_ASSIGN_OR_RETURN(const auto name, Find(store, kClusterNameKey));
  MOSA_ASSIGN_OR_RETURN(const auto seed, Find(store, kClusterSeedKey));
  MOSA_ASSIGN_OR_RETURN(const auto key, Find(store, kCapabilityKeyKey));
  fresh = !name && !seed && !key;
  if (fresh) {
    // The seed is as random as the key, and reveals nothing about it.
    const StoredIdentity identity{.cluster_name = options.core.cluster_name,
                                  .cluster_seed = Hash64(NewCapabilityKey()),
                                  .cluster_key = NewCapabilityKey()};
    return identity;
  }
  StoredIdentity identity;
  const char* const seed_end = seed ? seed->data() + seed->size() : nullptr;
  if (!name || !seed || !key || key->size() != kCapabilityKeyBytes ||
      std::from_chars(seed->data(), seed_end, identity.cluster_seed).ptr != seed_end) {
    return DataLossError(fmt::format(
        "the database {} lacks a part of the cluster's identity; keep it as it is, and start with "
        "a good copy of it",
        options.data_directory));
  }
  if (*name != options.core.cluster_name) {
    return FailedPreconditionError(
        fmt::format("the database {} belongs to cluster '{}', not to '{}': give its name with "
                    "--cluster-name, or another --data-dir",
                    options.data_directory, *name, options.core.cluster_name));
  }
  identity.cluster_name = *name;
  identity.cluster_key = *key;
  return identity;
}

Status SaveIdentity(MetadataStore& store, const StoredIdentity& identity) {
  KvBatch batch;
  batch.Put(std::string(kClusterNameKey), identity.cluster_name);
  batch.Put(std::string(kClusterSeedKey), fmt::format("{}", identity.cluster_seed));
  batch.Put(std::string(kCapabilityKeyKey), identity.cluster_key);
  return store.Commit(batch);
}

std::string CapabilityKeyOf(const StoredIdentity& identity,
                            const std::optional<ClusterSecret>& secret) {
  return CapabilityKeyFor(identity.cluster_key,
                          secret ? FactsOf(*secret).trusted : std::vector<std::string>());
}

Result<std::unique_ptr<ManagerCore>> LoadCore(MetadataStore& store, const ManagerOptions& options) {
  auto core = std::make_unique<ManagerCore>(options);
  MOSA_RETURN_IF_ERROR(store.Load(
      kInlineDataPrefix, [&core](std::string_view key, std::string_view value) -> Status {
        return key.starts_with(kShellPrefix) ? OkStatus() : core->LoadRecord(key, value);
      }));
  MOSA_RETURN_IF_ERROR(core->FinishLoad(SystemClock().Now()));
  return core;
}

// Events between two commits: enough to share one write among many clients, few enough that the
// first client does not wait long.
constexpr int kEventsPerFlushMax = 512;
// Streams count unread bytes only after messages have left, so limit the replies per flush.
constexpr size_t kReplyBytesPerFlush = size_t{4} << 20;
// Besides sessions: storage nodes, and streams whose peers are about to begin or to end.
constexpr size_t kOtherStreamsMax = 8192;
// With TLS, the handshake proves the peer's identity.
constexpr int kHandshakeMaxMs = 2'000;
constexpr int kIdleConnectionMaxMs = 300'000;
constexpr int kStreamsPerConnectionMax = 256;
constexpr int kKeepaliveMs = 30'000;
// Memory limit for gRPC's messages in transit.
constexpr size_t kGrpcBytesMax = size_t{1} << 30;

void LimitConnections(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMaxMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMaxMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnectionMax);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  builder.SetResourceQuota(grpc::ResourceQuota("manager").Resize(kGrpcBytesMax));
}

// Maximum time of a round, so that the loop notices when the process was stopped.
constexpr Duration kRoundMax = Milliseconds(300);

void NoteCopies(CoreDriver& driver, const CopiesForecast& copies) {
  for (const auto& [nodes, sizes] : copies) {
    const AdminReply reply = driver.Change(SetCopiesForecast{nodes, sizes});
    if (!reply.status.ok()) LogWarning("{}", MessageOf(reply.status));
  }
}

gpr_timespec DeadlineOf(const CoreDriver& driver, bool has_more) {
  int64_t wait_ns = has_more ? 0 : kRoundMax.ns;
  if (driver.wake_at())
    wait_ns = std::clamp<int64_t>((*driver.wake_at() - driver.Now()).ns, 0, wait_ns);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(wait_ns, GPR_TIMESPAN));
}

// The limits as the loop's thread last published them, for other threads.
class ShownLimits {
 public:
  void Set(std::vector<LimitStatus> limits) {
    const SystemMutexLock lock(mutex_);
    limits_ = std::move(limits);
  }
  std::vector<LimitStatus> Get() const {
    const SystemMutexLock lock(mutex_);
    return limits_;
  }

 private:
  mutable SystemMutex mutex_;
  std::vector<LimitStatus> limits_ ABSL_GUARDED_BY(mutex_);
};

// The loop that owns the core: handles all pending events, commits what they wrote, then releases
// the answers. Ends when the server is shut down and every call is over.
void RunLoop(grpc::ServerCompletionQueue& queue, CoreDriver& driver, const Forecasts* forecasts,
             Services& services, const bool& is_shut_down, ShownLimits& limits) {
  using Next = grpc::CompletionQueue::NextStatus;
  void* tag = nullptr;
  bool ok = false;
  bool queue_is_shut_down = false, has_more = false;
  Time limits_at;
  // Must come before the first review, which would otherwise make and drop copies by the rule.
  if (forecasts != nullptr) NoteCopies(driver, forecasts->copies);
  while (true) {
    Next next = queue.AsyncNext(&tag, &ok, DeadlineOf(driver, has_more));
    for (int events = 1; next == Next::GOT_EVENT; ++events) {
      static_cast<Event*>(tag)->Happen(ok);
      if (events == kEventsPerFlushMax || driver.reply_bytes() > kReplyBytesPerFlush) break;
      next = queue.AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
    }
    driver.TickIfDue();
    driver.Flush();
    if (driver.Now() >= limits_at) {
      limits_at = driver.Now() + Seconds(1);
      limits.Set(services.DescribeCluster().limits);
    }
    services.EndOverdue(is_shut_down);
    has_more = services.ContinueScans();
    if (next == Next::SHUTDOWN) return;
    // Not earlier: ending calls need the queue once more.
    if (is_shut_down && services.idle() && !std::exchange(queue_is_shut_down, true)) {
      queue.Shutdown();
    }
  }
}

void Drain(grpc::ServerCompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) continue;
}

}  // namespace

struct ManagerServer::Parts {
  std::unique_ptr<DataDirectory> directory;
  std::unique_ptr<MetadataStore> store;
  std::unique_ptr<CoreDriver> driver;
  std::unique_ptr<ConnectionDoor> door;
  std::optional<Forecasts> forecasts;
  std::unique_ptr<Services> services;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::Server> server;
  std::thread loop;
  bool is_shut_down = false;  // Set by the loop's thread, which then ends.
  std::atomic<bool> stopping = false;
  ShownLimits limits;
};

Status ManagerServer::StartServer(const ServerOptions& options, Parts& parts) {
  using Acceptors = grpc::ServerBuilder::experimental_type;
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_OPTIMIZATION_TARGET, "latency");
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // As in MakeChannel.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamWindowBytes);
  LimitConnections(builder);
  builder.SetMaxReceiveMessageSize(kClientMessageBytesMax);
  builder.SetMaxSendMessageSize(-1);
  auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      Acceptors::ExternalConnectionType::FROM_FD, MakeServerCredentials(options.secret));
  parts.services->Register(builder);
  parts.queue = builder.AddCompletionQueue();
  parts.server = builder.BuildAndStart();
  if (parts.server == nullptr) {
    Drain(*parts.queue);
    return FailedPreconditionError("gRPC cannot start a server; see its log");
  }
  parts.door->Serve(std::move(acceptor));
  return OkStatus();
}

ManagerServer::ManagerServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ManagerServer::~ManagerServer() { Stop(); }

Result<std::unique_ptr<ManagerServer>> ManagerServer::Start(const ServerOptions& options) {
  MOSA_RETURN_IF_ERROR(CheckListenAddress(options.listen, options.secret.has_value()));
  auto parts = std::make_unique<Parts>();
  MOSA_ASSIGN_OR_RETURN(const std::string boot_id, BootId());
  MOSA_ASSIGN_OR_RETURN(auto directory, DataDirectory::Open(options.data_directory));
  parts->directory = std::make_unique<DataDirectory>(std::move(directory));
  const RoomPlan& room = parts->directory->plan();
  MOSA_ASSIGN_OR_RETURN(parts->store, OpenRocksStore({.path = options.data_directory,
                                                      .fsync = options.fsync,
                                                      .boot_id = boot_id,
                                                      .buffer_bytes = room.buffer_bytes,
                                                      .log_bytes = room.log_bytes}));
  bool fresh = false;
  MOSA_ASSIGN_OR_RETURN(const StoredIdentity identity, LoadIdentity(*parts->store, options, fresh));
  ManagerOptions core_options = options.core;
  core_options.cluster_seed = identity.cluster_seed;
  core_options.first_file_id = FirstAfterRecovery(SystemClock().Now());
  core_options.may_have_forgotten = parts->store->may_have_forgotten() || options.restored;
  const DefaultLimits limits = LimitsFor({.memory_bytes = MemoryBytes(),
                                          .directory_bytes = parts->directory->capacity_bytes(),
                                          .user_share_percent = options.user_share_percent},
                                         options.limits);
  core_options.quotas = limits.quotas;
  core_options.text_bytes_max = limits.text_bytes;
  MOSA_ASSIGN_OR_RETURN(auto core, LoadCore(*parts->store, core_options));
  if (fresh) MOSA_RETURN_IF_ERROR(SaveIdentity(*parts->store, identity));
  parts->driver = std::make_unique<CoreDriver>(
      std::move(core), *parts->store,
      CoreDriverOptions{.capability_key = CapabilityKeyOf(identity, options.secret),
                        .bulk_tls = options.bulk_tls,
                        .directory = parts->directory.get(),
                        .stopping = &parts->stopping});
  auto door = ConnectionDoor::Open(
      options.listen, options.connections.value_or(DoorLimitsFor(RaiseDescriptorLimit())));
  if (!door.ok())
    return FailedPreconditionError(
        fmt::format("{}; choose another address with --listen", MessageOf(door.status())));
  parts->door = *std::move(door);
  parts->forecasts = options.forecasts;
  parts->services = std::make_unique<Services>(
      *parts->driver, *parts->door, parts->forecasts ? &parts->forecasts->reads : nullptr,
      options.residence_wait,
      Services::Limits{.streams_max = core_options.sessions_max + kOtherStreamsMax,
                       .memory_bytes_max = limits.memory_bytes,
                       .secured = options.secret.has_value()});

  MOSA_RETURN_IF_ERROR(StartServer(options, *parts));
  parts->services->Serve(*parts->queue);
  parts->loop = std::thread([&parts = *parts] {
    RunLoop(*parts.queue, *parts.driver, parts.forecasts ? &*parts.forecasts : nullptr,
            *parts.services, parts.is_shut_down, parts.limits);
  });
  return std::unique_ptr<ManagerServer>(new ManagerServer(std::move(parts)));
}

void ManagerServer::Stop() {
  if (parts_ == nullptr) return;
  parts_->stopping = true;
  parts_->door->Close();
  // The loop's thread must notify the clients, since it owns the core.
  Event end([this](bool) { parts_->driver->EndAll(); });
  Event shut_down([this](bool) { parts_->is_shut_down = true; });
  grpc::Alarm end_alarm;
  end_alarm.Set(parts_->queue.get(), gpr_now(GPR_CLOCK_MONOTONIC), &end);
  // Streams that do not end by themselves are cancelled.
  parts_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  grpc::Alarm shut_down_alarm;
  shut_down_alarm.Set(parts_->queue.get(), gpr_now(GPR_CLOCK_MONOTONIC), &shut_down);
  parts_->loop.join();
  parts_.reset();
}

ResidenceSnapshot ManagerServer::Residence() const {
  return SnapshotOf(parts_->driver->residence());
}

std::vector<LimitStatus> ManagerServer::Limits() const { return parts_->limits.Get(); }

const std::string& ManagerServer::address() const { return parts_->door->address(); }

}  // namespace mosa::manager
