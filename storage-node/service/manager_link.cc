#include "storage-node/service/manager_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <variant>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/model/session.h"
#include "proto/convert/node.h"
#include "proto/convert/protocol_version.h"
#include "proto/convert/residence.h"
#include "proto/convert/status.h"

namespace mosa::node {
namespace {

constexpr Duration kBackOffMin = Milliseconds(50);
constexpr Duration kBackOffMax = Seconds(1);
constexpr Duration kConnectWait = Seconds(1);
constexpr Duration kSlice = Milliseconds(100);  // Maximum delay in noticing a stop.

std::chrono::nanoseconds Chrono(Duration duration) { return std::chrono::nanoseconds(duration.ns); }

// Returns true if the manager will always give the same answer.
bool IsFinal(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnauthenticated:
    case StatusCode::kPermissionDenied:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

}  // namespace

ManagerLink::ManagerLink(ManagerLinkOptions options, ObjectEngine& engine, AccessGate& gate,
                         Copier& copier, std::function<void(Status)> on_shutdown)
    : options_(std::move(options)),
      engine_(engine),
      gate_(gate),
      copier_(copier),
      on_shutdown_(std::move(on_shutdown)),
      channel_(MakeChannel(options_.manager_address, options_.secret)),
      stub_(v1::NodeSessionService::NewStub(channel_)) {}

ManagerLink::~ManagerLink() { Stop(); }

Status ManagerLink::Start(Duration wait, const std::function<bool()>& give_up) {
  session_thread_ = std::thread([this] { RunSession(); });
  heartbeat_thread_ = std::thread([this] { RunHeartbeats(); });
  SystemMutexLock lock(mutex_);
  const auto settled = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return started_ && (started_->ok() || IsFinal(*started_));
  };
  const auto end = std::chrono::steady_clock::now() + Chrono(wait);
  while (!changed_.wait_for(lock, kSlice, settled)) {
    if (give_up()) {
      return AbortedError(
          fmt::format("node {} was told to stop before the manager at {} accepted it",
                      options_.registration.name, options_.manager_address));
    }
    if (std::chrono::steady_clock::now() >= end) break;
  }
  if (settled()) return *started_;
  return UnavailableError(
      fmt::format("the manager at {} did not accept node {} within {} ms{}{}; is it running there?",
                  options_.manager_address, options_.registration.name, wait.ns / 1'000'000,
                  started_ ? ": " : "", started_ ? MessageOf(*started_) : ""));
}

void ManagerLink::Stop() {
  {
    const SystemMutexLock lock(mutex_);
    stopping_ = true;
    if (context_ != nullptr) context_->TryCancel();
    changed_.notify_all();
  }
  if (session_thread_.joinable()) session_thread_.join();
  if (heartbeat_thread_.joinable()) heartbeat_thread_.join();
}

void ManagerLink::AwaitManager() {
  for (Duration waited; waited < kConnectWait; waited = waited + kSlice) {
    {
      const SystemMutexLock lock(mutex_);
      if (stopping_) return;
    }
    if (AwaitConnection(*channel_, kSlice)) return;
  }
}

bool ManagerLink::BackOff(Duration delay) {
  SystemMutexLock lock(mutex_);
  return !changed_.wait_for(lock, delay,
                            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
}

// ---- the stream

void ManagerLink::RunSession() {
  Duration delay = kBackOffMin;
  std::string last_message;
  bool ever_registered = false;
  do {
    bool was_registered = false;
    const Status ended = RunStream(was_registered);
    {
      const SystemMutexLock lock(mutex_);
      if (stopping_) return;
      if (!started_ || !started_->ok()) started_ = ended;
      changed_.notify_all();
    }
    if (was_registered) delay = kBackOffMin;
    // Repeating the same message every second would flood the log.
    if (was_registered || MessageOf(ended) != last_message)
      LogWarning("no session with the manager: {}", MessageOf(ended));
    last_message = MessageOf(ended);
    ever_registered = ever_registered || was_registered;
    // A manager of another version will refuse the next attempt too.
    const bool other_version = ended.code() == StatusCode::kUnimplemented && ever_registered;
    if (other_version || (IsFinal(ended) && was_registered)) on_shutdown_(ended);
  } while (BackOff(std::exchange(delay, std::min(delay * 2, kBackOffMax))));
}

Status ManagerLink::RunStream(bool& was_registered) {
  AwaitManager();
  grpc::ClientContext context;
  {
    const SystemMutexLock lock(mutex_);
    if (stopping_) return UnavailableError("the node is stopping");
    context_ = &context;
  }
  const std::unique_ptr<Stream> stream = stub_->Session(&context);
  Status status = Register(*stream);
  v1::ManagerToNode wire;
  while (status.ok() && stream->Read(&wire)) {
    if (!was_registered) status = CheckManagerOf(context, "storage node");
    if (status.ok()) status = Carry(wire);
    if (!status.ok() || was_registered || !wire.has_registered()) continue;
    was_registered = true;
    const SystemMutexLock write_lock(write_mutex_);
    stream_ = stream.get();
    const SystemMutexLock lock(mutex_);
    started_ = OkStatus();
    beat_now_ = true;
    changed_.notify_all();
  }
  // Ends a write that the manager does not accept. If the manager has ended the stream, cancelling
  // it would hide the reason.
  if (!status.ok()) context.TryCancel();
  {
    const SystemMutexLock write_lock(write_mutex_);
    stream_ = nullptr;
  }
  const grpc::Status finished = stream->Finish();
  const SystemMutexLock lock(mutex_);
  context_ = nullptr;
  if (!status.ok()) return status;
  return finished.ok() ? UnavailableError("the manager ended the session") : FromGrpc(finished);
}

Status ManagerLink::Register(Stream& stream) {
  NodeRegistration registration = options_.registration;
  const StoreRecord record = engine_.store().record();
  registration.cluster_name = record.cluster_name;
  registration.incarnation = record.incarnation;
  registration.used_bytes = engine_.used_bytes();
  engine_.ListHeld(registration.objects, registration.sizes);
  registration.aside = engine_.aside().List();
  for (const v1::NodeMessage& message : ToProto(registration)) {
    // Finish reports why the stream broke.
    if (!stream.Write(message)) break;
  }
  return OkStatus();
}

Status ManagerLink::Carry(const v1::ManagerToNode& wire) {
  MOSA_ASSIGN_OR_RETURN(ManagerToNode message, FromProto(wire));
  if (const auto* registered = std::get_if<NodeRegistered>(&message)) return Adopt(*registered);
  if (const auto* refused = std::get_if<Failure>(&message))
    return Status(refused->code, refused->message);
  if (const auto* query = std::get_if<ResidenceQuery>(&message)) {
    const ResidenceReport report = ReportOf(*query, Answer(*query));
    Tell(NodeResidence::kResidenceReport, [&report] { return report; });
    return OkStatus();
  }
  Obey(std::get<NodeOrder>(std::move(message)));
  return OkStatus();
}

ResidenceSnapshot ManagerLink::Answer(const ResidenceQuery& query) {
  ResidenceSnapshot snapshot = engine_.SnapshotOfResidence();
  ObeyQuery(query, options_.registration.name, engine_.residence().log, snapshot);
  return snapshot;
}

void ManagerLink::Obey(NodeOrder order) {
  DurationTable& parts = engine_.residence().parts;
  if (auto* copy = std::get_if<CopyOrder>(&order)) {
    const TimedRequest timed(&parts, NodeResidence::kCopyOrder);
    return copier_.Take(std::move(*copy));
  }
  if (const auto* cancel = std::get_if<CancelCopyOrder>(&order)) {
    const TimedRequest timed(&parts, NodeResidence::kCancelOrder);
    return copier_.Cancel(std::span(&cancel->file, 1));
  }
  if (const auto* aside = std::get_if<AsideOrder>(&order)) {
    if (aside->action == AsideAction::kSetAside) copier_.Cancel(aside->files);
    engine_.aside().Obey(*aside);
    return TellAside();
  }
  const TimedRequest timed(&parts, NodeResidence::kDropOrder);
  const auto& drop = std::get<DropObjectsOrder>(order);
  copier_.Cancel(drop.files);  // A copy order would make the objects again.
  for (const auto& [file, generation] : drop.generations)
    engine_.RefuseStoresUpTo(file, generation);
  engine_.Drop(drop.files, drop.number);
  drops_.Info("dropped {} objects; {} bytes are used now", drop.files.size(), engine_.used_bytes());
  const SystemMutexLock lock(mutex_);
  beat_now_ = true;
  changed_.notify_all();
}

Status ManagerLink::Adopt(const NodeRegistered& registered) {
  MOSA_RETURN_IF_ERROR(engine_.store().SetCluster(registered.cluster_name));
  gate_.SetKey(registered.capability_key, registered.now, registered.epoch, registered.bulk_tls);
  copier_.CancelAll();  // The manager orders again what should continue.
  engine_.RepeatReports();
  LogInfo("registered as node {} of cluster {}", registered.node.value, registered.cluster_name);
  return OkStatus();
}

// ---- heartbeats

void ManagerLink::RunHeartbeats() {
  while (true) {
    {
      SystemMutexLock lock(mutex_);
      changed_.wait_for(lock, kHeartbeatEvery, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || beat_now_;
      });
      if (stopping_) return;
      beat_now_ = false;
    }
    Beat();
  }
}

void ManagerLink::Beat() {
  Tell(NodeResidence::kHeartbeat, [this] { return engine_.TakeHeartbeat(); });
}

void ManagerLink::Send(const CopyReport& report) {
  Tell(NodeResidence::kCopyReport, [&report] { return report; });
}

void ManagerLink::TellAside() {
  const SystemMutexLock write_lock(write_mutex_);
  if (stream_ == nullptr) return;
  for (const v1::NodeMessage& page : ToProto(NodeAside{engine_.aside().List()}))
    stream_->Write(page);
}

// The reader notices a broken stream; reports are repeated on the next one.
template <typename Content>
void ManagerLink::Tell(DurationTable::ClassId kind, const Content& content) {
  const SystemMutexLock write_lock(write_mutex_);
  if (stream_ == nullptr) return;
  const TimedRequest timed(&engine_.residence().parts, kind);
  v1::NodeMessage message;
  ToProto(content(), &message);
  stream_->Write(message);
}

}  // namespace mosa::node
