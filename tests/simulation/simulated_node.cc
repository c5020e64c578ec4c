#include "tests/simulation/simulated_node.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "common/base/check.h"
#include "common/model/checksum_blocks.h"
#include "proto/convert/capability.h"

namespace mosa::simulation {
namespace {

using node::ObjectEngine;
using Process = SimulatedNode::Process;
using sai::ObjectTarget;

constexpr Duration kReconnectEvery = Milliseconds(300);
// How long a node does not know that a caller has gone.
constexpr Duration kCloseTravels = Milliseconds(1);
// How often a held question looks for changes.
constexpr Duration kLookEvery = Milliseconds(50);
// Long enough that a thread which repeats a call does not do so for ever at one time.
constexpr Duration kKilledCall = Milliseconds(10);

// Reads from `offset` what the engine gives of an object: the end of `out` stays zero.
::mosa::Status ReadObject(Process& node, FileId file, uint64_t offset, std::string& out) {
  MOSA_ASSIGN_OR_RETURN(
      node::ReadPlan plan,
      node.engine->PlanRead(
          {.file = file, .offset_bytes = offset, .length_bytes = out.size(), .verify = true},
          node.scratch));
  std::string bytes(plan.length_bytes, '\0');
  if (plan.fd) {
    const ssize_t got =
        pread(plan.fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(plan.offset_bytes));
    MOSA_CHECK(got == static_cast<ssize_t>(bytes.size()));
  } else if (!bytes.empty()) {
    std::memcpy(bytes.data(), plan.buffer.bytes().data(), bytes.size());
  }
  const uint64_t end = plan.offset_bytes + bytes.size();
  if (end > offset) {
    const uint64_t count = std::min<uint64_t>(out.size(), end - offset);
    out.replace(0, count, bytes, offset - plan.offset_bytes, count);
  }
  return OkStatus();
}

::mosa::Status WriteObject(Process& node, FileId file, const node::Changer& changer,
                           uint64_t offset, const std::string& data) {
  MOSA_ASSIGN_OR_RETURN(ObjectEngine::Writer writer,
                        node.engine->BeginWrite(file, changer, offset, data.size()));
  const auto bytes = std::as_bytes(std::span(data));
  const std::vector<uint32_t> crcs = BlockChecksums(offset, bytes);
  return writer.WritePiece(offset, bytes, crcs);
}

std::string TextOf(const NodeOrder& order) {
  if (const auto* copy = std::get_if<CopyOrder>(&order)) {
    std::string from;
    for (const Segment& segment : copy->sources.segments) {
      from += fmt::format(" from {}:", segment.begin);
      for (const NodeId node : segment.nodes) from += fmt::format(" {}", node.value);
    }
    return fmt::format("order {}: {} file {} at version {}, {} bytes, generation {}, nodes{}",
                       copy->order, copy->follow ? "follow" : "copy", copy->file.value,
                       copy->data_version, copy->size_bytes, copy->generation, from);
  }
  if (const auto* cancel = std::get_if<CancelCopyOrder>(&order))
    return fmt::format("order to cancel the copy of file {}", cancel->file.value);
  if (const auto* drop = std::get_if<DropObjectsOrder>(&order)) {
    std::string files;
    for (const FileId file : drop->files) files += fmt::format(" {}", file.value);
    return fmt::format("order to drop files{}", files);
  }
  return "order about objects aside";
}

std::string TextOf(const CopyReport& report) {
  return fmt::format("order {}: {} bytes of file {} are copied{}", report.order,
                     report.copied_bytes, report.file.value,
                     report.done      ? ", done"
                     : report.failure ? ": " + report.failure->message
                                      : "");
}

class SimulatedNodeApi final : public sai::NodeApi {
 public:
  SimulatedNodeApi(Network& network, SimulatedNodes& nodes, HostId host,
                   std::optional<Duration> call_wait, const bool* killed)
      : network_(network), nodes_(nodes), host_(host), call_wait_(call_wait), killed_(killed) {}

  void SetNodes(const std::vector<NodeAddress>& nodes) override {
    for (const NodeAddress& node : nodes)
      for (const auto& [host, simulated] : nodes_)
        if (simulated->name() == node.name) hosts_[node.node] = host;
  }
  void SetIdentity(const BulkIdentity& identity) override { client_ = identity.client; }

  ::mosa::Status Read(const ObjectTarget& target, uint64_t offset,
                      std::span<std::byte> out) override {
    const auto read = std::make_shared<std::string>(out.size(), '\0');
    const auto answer = Ask<bool>(
        target, false, [offset, read](Process& node, const Capability& right) -> Result<bool> {
          MOSA_RETURN_IF_ERROR(ReadObject(node, right.file, offset, *read));
          return true;
        });
    if (answer.ok()) std::memcpy(out.data(), read->data(), read->size());
    return answer.status();
  }
  ::mosa::Status Write(const ObjectTarget& target, uint64_t offset,
                       std::span<const std::byte> data) override {
    return Change(
        target, [offset, bytes = std::string(reinterpret_cast<const char*>(data.data()),
                                             data.size())](Process& node, const Capability& right) {
          return WriteObject(node, right.file, node::Changer::OfLayout(right.generation), offset,
                             bytes);
        });
  }
  ::mosa::Status Truncate(const ObjectTarget& target, uint64_t size_bytes) override {
    return Change(target, [size_bytes](Process& node, const Capability& right) {
      return node.engine->Truncate(right.file, node::Changer::OfLayout(right.generation),
                                   size_bytes);
    });
  }
  ::mosa::Status Allocate(const ObjectTarget& target, int mode, uint64_t offset,
                          uint64_t length) override {
    return Change(target, [=](Process& node, const Capability& right) {
      return node.engine->Allocate(right.file, node::Changer::OfLayout(right.generation), mode,
                                   {offset, offset + length});
    });
  }
  Result<sai::ObjectStatus> Stat(const ObjectTarget& target) override {
    return Ask<sai::ObjectStatus>(
        target, false, [](Process& node, const Capability& right) -> Result<sai::ObjectStatus> {
          MOSA_ASSIGN_OR_RETURN(const ObjectEngine::Description description,
                                node.engine->Describe(right.file));
          return sai::ObjectStatus{.size_bytes = description.stat.size_bytes,
                                   .allocated_bytes = description.stat.allocated_bytes,
                                   .modify_time = description.stat.modify_time,
                                   .sealed = description.sealed};
        });
  }
  Result<uint64_t> Seek(const ObjectTarget& target, uint64_t offset, bool data) override {
    return Ask<uint64_t>(target, false, [=](Process& node, const Capability& right) {
      return node.engine->Seek(right.file, offset, data);
    });
  }

  bool IsLocal(NodeId node) const override {
    const auto found = hosts_.find(node);
    return found != hosts_.end() && found->second == host_;
  }
  Result<UniqueFd> OpenLocal(const ObjectTarget& target, bool write) override {
    // A descriptor cannot be copied, and does not travel.
    const auto fd = std::make_shared<UniqueFd>();
    const auto answer = Ask<bool>(
        target, write, [write, fd](Process& node, const Capability& right) -> Result<bool> {
          Result<UniqueFd> opened = write
                                        ? node.engine->local().OpenToWrite(
                                              right.file, node::Changer::OfLayout(right.generation))
                                        : node.engine->local().OpenToRead(right.file);
          if (!opened.ok()) return opened.status();
          *fd = *std::move(opened);
          return true;
        });
    if (!answer.ok()) return answer.status();
    return std::move(*fd);
  }
  ::mosa::Status FinishLocalWrites(const ObjectTarget& target) override {
    return Change(target, [](Process& node, const Capability& right) {
      return node.engine->local().Finish(right.file, node.scratch);
    });
  }
  Result<sai::LocalWrites> LookAtLocalWrites(const ObjectTarget& target,
                                             const sai::LookQuestion& question) override {
    return Ask<sai::LocalWrites>(
        target, false,
        [question](Process& node, const Capability& right) -> Result<sai::LocalWrites> {
          MOSA_ASSIGN_OR_RETURN(const node::LocalWrites look,
                                node.engine->local().Look(right.file, question.from_bytes,
                                                          question.while_written, node.scratch));
          return sai::LocalWrites{.writers_left = look.writers_left,
                                  .changed = look.changed,
                                  .unknown = look.unknown,
                                  .complete = look.complete,
                                  .next_bytes = look.next_bytes};
        });
  }
  ::mosa::Status NoteWritten(const ObjectTarget& target, uint64_t offset,
                             uint64_t length) override {
    return Change(target, [=](Process& node, const Capability& right) {
      return node.engine->sums().NoteLocalWrite(right.file, {offset, offset + length});
    });
  }
  // As BulkConnection::Sum.
  Result<BlockSums> Sums(const ObjectTarget& target, const sai::SumsQuestion& question) override {
    return Ask<BlockSums>(
        target, false,
        [question](Process& node, const Capability& right) -> Result<BlockSums> {
          const Time end = Scheduler::Current()->now() + question.wait;
          BlockSums sums = node.engine->sums().ChangesSince(right.file, question.after_change);
          while (!sums.all_changed && sums.changed.empty() && Scheduler::Current()->now() < end) {
            SleepFor(kLookEvery);
            sums = node.engine->sums().ChangesSince(right.file, question.after_change);
          }
          std::vector<bool> settled;
          node.copier->DescribeOrder(right.file, question.range, sums, settled);
          MOSA_RETURN_IF_ERROR(
              node.engine->sums().SumBlocks(right.file, question.range, sums, node.scratch));
          for (size_t i = 0; i < sums.blocks.size(); ++i) sums.blocks[i].settled = settled[i];
          return sums;
        },
        question.wait);
  }

 private:
  template <typename Value>
  using Operation = std::function<Result<Value>(Process&, const Capability&)>;

  template <typename Value>
  struct Answer {
    std::optional<Result<Value>> value;
    std::optional<Time> given_up;
    WaitList arrived;
  };

  // The operation runs when the message arrives, unless the caller has closed the connection by
  // then: the real node looks at that before it stores.
  template <typename Value>
  Result<Value> Ask(const ObjectTarget& target, bool write, Operation<Value> operation,
                    Duration longer = {}) {
    const auto host = hosts_.find(target.node);
    if (host == hosts_.end()) return UnavailableError("nobody knows the node");
    if (killed_ != nullptr && *killed_) {
      SleepFor(kKilledCall);
      return UnavailableError("the process was killed");
    }
    SimulatedNode& node = *nodes_.at(host->second);
    const auto answer = std::make_shared<Answer<Value>>();
    Scheduler& scheduler = *Scheduler::Current();
    // It may outlive this api, which ends with the process of a node that copies.
    const auto serve = [&network = network_, from = host_, &node, answer, write, file = target.file,
                        sealed = std::string(target.capability), client = client_,
                        operation = std::move(operation)] {
      network.Travel(from, node.host());
      Result<Value> result = UnavailableError("the node does not listen");
      if (answer->given_up && Scheduler::Current()->now() - *answer->given_up > kCloseTravels)
        return;
      if (const std::shared_ptr<Process> process = node.process()) {
        node::AccessGate::Shown shown{.client = client, .sealed = {}, .capability = {}};
        const Result<Capability> right = process->gate.Check(sealed, file, write, shown);
        result = right.ok() ? operation(*process, *right) : Result<Value>(right.status());
        // What a process that is gone meanwhile would have said.
        if (node.process() != process) result = UnavailableError("the connection broke");
      }
      network.Travel(node.host(), from);
      answer->value = std::move(result);
      answer->arrived.WakeAll();
    };
    scheduler.Start(serve, node.host());
    const Time begun = scheduler.now();
    const Time end = begun + call_wait_.value_or(sai::WaitBudget::ForTransfer()) + longer;
    while (!answer->value)
      if (!answer->arrived.Wait(end) && !answer->value) {
        answer->given_up = scheduler.now();
        network_.Note(fmt::format("h{} has not heard of node {} about file {} for {} ms", host_,
                                  target.node.value, target.file.value,
                                  (scheduler.now() - begun).ns / 1'000'000));
        return DeadlineExceededError(fmt::format("node {} does not answer", target.node.value));
      }
    sai::WaitBudget::NoteAnswer();
    return *std::move(answer->value);
  }
  ::mosa::Status Change(const ObjectTarget& target,
                        std::function<::mosa::Status(Process&, const Capability&)> operation) {
    return Ask<bool>(target, true,
                     [operation = std::move(operation)](Process& node,
                                                        const Capability& right) -> Result<bool> {
                       MOSA_RETURN_IF_ERROR(operation(node, right));
                       return true;
                     })
        .status();
  }

  Network& network_;
  SimulatedNodes& nodes_;
  const HostId host_;
  const std::optional<Duration> call_wait_;
  const bool* const killed_;
  const VirtualClock clock_;
  ClientId client_;
  std::map<NodeId, HostId> hosts_;
};

}  // namespace

SimulatedNode::SimulatedNode(Network& network, SimulatedManager& manager, SimulatedNodes& nodes,
                             HostId host, uint64_t limit_bytes)
    : network_(network), manager_(manager), nodes_(nodes), host_(host), limit_bytes_(limit_bytes) {
  Begin();
}

void SimulatedNode::Begin() {
  const auto process = std::make_shared<Process>(clock_);
  if (objects_ == nullptr) objects_ = node::NewMemoryStore(name());
  auto objects = std::make_unique<node::FaultyObjectStore>(
      objects_, UnavailableError("the node's process has ended"));
  process->objects = objects.get();
  auto engine = ObjectEngine::Open(std::move(objects), limit_bytes_, clock_);
  MOSA_CHECK(engine.ok());
  process->engine = *std::move(engine);
  process->copier = std::make_unique<node::Copier>(
      *process->engine, process->gate, clock_,
      NewSimulatedNodeApi(network_, nodes_, host_, node::Copier::kCallWait));
  process_ = process;
  Scheduler& scheduler = *Scheduler::Current();
  scheduler.Start(
      [this, process] {
        process->copier->Start([this, raw = process.get()](const CopyReport& report) {
          if (network_.traces()) network_.Note(fmt::format("{} {}", name(), TextOf(report)));
          Tell(*raw, [this, report](NodeId node, const NodeConnection& connection) {
            manager_.ReportCopy(node, connection, report);
          });
        });
        while (process == process_) {
          RunConnection(process);
          SleepFor(kReconnectEvery);
        }
        process->copier->Stop();
      },
      host_);
  scheduler.Start([this, process] { RunSender(process); }, host_);
}

void SimulatedNode::Stop() {
  const std::shared_ptr<Process> ended = std::exchange(process_, nullptr);
  if (ended == nullptr) return;
  ended->objects->FailFromNowOn();
  ended->outbox_filled.WakeAll();
  if (ended->connection != nullptr) ended->connection->Break();
}

void SimulatedNode::Wipe() {
  Stop();
  objects_ = nullptr;
}

void SimulatedNode::Tell(
    Process& process, std::function<void(NodeId node, const NodeConnection& connection)> report) {
  if (process.connection == nullptr) return;
  process.outbox.emplace_back([report = std::move(report), id = process.id,
                               connection = process.connection] { report(id, connection); },
                              Scheduler::Current()->now());
  process.outbox_filled.WakeAll();
}

void SimulatedNode::RunSender(const std::shared_ptr<Process>& process) {
  while (process == process_) {
    if (process->outbox.empty()) {
      process->outbox_filled.Wait(kNever);
      continue;
    }
    const auto [message, sent] = std::move(process->outbox.front());
    process->outbox.pop_front();
    network_.Travel(host_, SimulatedManager::kHost, sent);
    message();
  }
}

void SimulatedNode::RunConnection(const std::shared_ptr<Process>& process) {
  ObjectEngine& engine = *process->engine;
  const auto connection = std::make_shared<Connection<ToNodeMessage>>();
  NodeRegistration registration;
  registration.name = name();
  registration.address = registration.host_identity = name();
  const node::StoreRecord record = engine.store().record();
  registration.cluster_name = record.cluster_name;
  registration.incarnation = record.incarnation;
  registration.limit_bytes = limit_bytes_;
  registration.used_bytes = engine.used_bytes();
  engine.ListHeld(registration.objects, registration.sizes);
  registration.aside = engine.aside().List();
  Scheduler::Current()->Start(
      [this, connection, registration] {
        network_.Travel(host_, SimulatedManager::kHost);
        if (!connection->broken()) manager_.RegisterNode(connection, registration);
      },
      host_);
  Time heard = Scheduler::Current()->now();
  Time beat_due;
  while (process == process_ && !connection->broken()) {
    const Time now = Scheduler::Current()->now();
    const bool registered = process->connection != nullptr;
    // As the node's stream, it is given up when nothing is heard for long.
    if (!registered && now - heard > kSessionLease) break;
    if (registered && now >= beat_due) {
      beat_due = now + kHeartbeatEvery;
      engine.Account();
      Tell(*process,
           [this, beat = engine.TakeHeartbeat()](NodeId node, const NodeConnection& current) {
             manager_.Report(node, current, beat);
           });
    }
    auto message = connection->Take(now + kHeartbeatEvery);
    if (!message) continue;
    network_.Travel(SimulatedManager::kHost, host_, connection->sent());
    if (process != process_) break;
    heard = Scheduler::Current()->now();
    if (const auto* adopted = std::get_if<NodeRegistered>(&*message)) {
      MOSA_CHECK(engine.store().SetCluster(adopted->cluster_name).ok());
      process->gate.SetKey(adopted->capability_key, adopted->now, adopted->epoch, false);
      process->copier->CancelAll();
      engine.RepeatReports();
      process->id = adopted->node;
      process->connection = connection;
    } else if (auto* order = std::get_if<NodeOrder>(&*message)) {
      Obey(*process, std::move(*order));
      beat_due = {};
    } else {
      break;
    }
  }
  connection->Break();
  if (std::exchange(process->connection, nullptr) == nullptr) return;
  // The manager notices the end of the stream when a message says so.
  Scheduler::Current()->Start(
      [this, connection, id = process->id] {
        network_.Travel(host_, SimulatedManager::kHost);
        manager_.Break(id, connection);
      },
      host_);
}

// As ManagerLink::Obey.
void SimulatedNode::Obey(Process& process, NodeOrder order) {
  if (network_.traces()) network_.Note(fmt::format("{} {}", name(), TextOf(order)));
  if (auto* copy = std::get_if<CopyOrder>(&order)) return process.copier->Take(std::move(*copy));
  if (const auto* cancel = std::get_if<CancelCopyOrder>(&order))
    return process.copier->Cancel(std::span(&cancel->file, 1));
  if (const auto* aside = std::get_if<AsideOrder>(&order)) {
    if (aside->action == AsideAction::kSetAside) process.copier->Cancel(aside->files);
    return process.engine->aside().Obey(*aside);
  }
  const auto& drop = std::get<DropObjectsOrder>(order);
  process.copier->Cancel(drop.files);
  for (const auto& [file, generation] : drop.generations)
    process.engine->RefuseStoresUpTo(file, generation);
  process.engine->Drop(drop.files, drop.number);
}

std::unique_ptr<sai::NodeApi> NewSimulatedNodeApi(Network& network, SimulatedNodes& nodes,
                                                  HostId host, std::optional<Duration> call_wait,
                                                  const bool* killed) {
  return std::make_unique<SimulatedNodeApi>(network, nodes, host, call_wait, killed);
}

}  // namespace mosa::simulation
