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
using sai::ObjectTarget;

constexpr Duration kReconnectEvery = Milliseconds(300);
// How long a node does not know that a caller has gone.
constexpr Duration kCloseTravels = Milliseconds(1);

// Reads from `offset` what the engine gives of an object: the end of `out` stays zero.
::mosa::Status ReadObject(SimulatedNode& node, FileId file, uint64_t offset, std::string& out) {
  MOSA_ASSIGN_OR_RETURN(
      node::ReadPlan plan,
      node.engine().PlanRead(
          {.file = file, .offset_bytes = offset, .length_bytes = out.size(), .verify = true},
          node.scratch()));
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

::mosa::Status WriteObject(SimulatedNode& node, FileId file, const node::Changer& changer,
                           uint64_t offset, const std::string& data) {
  MOSA_ASSIGN_OR_RETURN(ObjectEngine::Writer writer,
                        node.engine().BeginWrite(file, changer, offset, data.size()));
  const auto bytes = std::as_bytes(std::span(data));
  const std::vector<uint32_t> crcs = BlockChecksums(offset, bytes);
  return writer.WritePiece(offset, bytes, crcs);
}

class SimulatedNodeApi final : public sai::NodeApi {
 public:
  SimulatedNodeApi(Network& network, SimulatedNodes& nodes, HostId host)
      : network_(network), nodes_(nodes), host_(host) {}

  void SetNodes(const std::vector<NodeAddress>& nodes) override {
    for (const NodeAddress& node : nodes)
      for (const auto& [host, simulated] : nodes_)
        if (simulated->name() == node.name) hosts_[node.node] = host;
  }
  void SetIdentity(const BulkIdentity& identity) override { client_ = identity.client; }

  ::mosa::Status Read(const ObjectTarget& target, uint64_t offset,
                      std::span<std::byte> out) override {
    const auto read = std::make_shared<std::string>(out.size(), '\0');
    const auto answer =
        Ask<bool>(target, false,
                  [offset, read](SimulatedNode& node, const Capability& right) -> Result<bool> {
                    MOSA_RETURN_IF_ERROR(ReadObject(node, right.file, offset, *read));
                    return true;
                  });
    if (answer.ok()) std::memcpy(out.data(), read->data(), read->size());
    return answer.status();
  }
  ::mosa::Status Write(const ObjectTarget& target, uint64_t offset,
                       std::span<const std::byte> data) override {
    return Change(target, [offset, bytes = std::string(reinterpret_cast<const char*>(data.data()),
                                                       data.size())](SimulatedNode& node,
                                                                     const Capability& right) {
      return WriteObject(node, right.file, node::Changer::OfLayout(right.generation), offset,
                         bytes);
    });
  }
  ::mosa::Status Truncate(const ObjectTarget& target, uint64_t size_bytes) override {
    return Change(target, [size_bytes](SimulatedNode& node, const Capability& right) {
      return node.engine().Truncate(right.file, node::Changer::OfLayout(right.generation),
                                    size_bytes);
    });
  }
  ::mosa::Status Allocate(const ObjectTarget& target, int mode, uint64_t offset,
                          uint64_t length) override {
    return Change(target, [=](SimulatedNode& node, const Capability& right) {
      return node.engine().Allocate(right.file, node::Changer::OfLayout(right.generation), mode,
                                    {offset, offset + length});
    });
  }
  Result<sai::ObjectStatus> Stat(const ObjectTarget& target) override {
    return Ask<sai::ObjectStatus>(
        target, false,
        [](SimulatedNode& node, const Capability& right) -> Result<sai::ObjectStatus> {
          MOSA_ASSIGN_OR_RETURN(const ObjectEngine::Description description,
                                node.engine().Describe(right.file));
          return sai::ObjectStatus{.size_bytes = description.stat.size_bytes,
                                   .allocated_bytes = description.stat.allocated_bytes,
                                   .modify_time = description.stat.modify_time,
                                   .sealed = description.sealed};
        });
  }
  Result<uint64_t> Seek(const ObjectTarget& target, uint64_t offset, bool data) override {
    return Ask<uint64_t>(target, false, [=](SimulatedNode& node, const Capability& right) {
      return node.engine().Seek(right.file, offset, data);
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
        target, write, [write, fd](SimulatedNode& node, const Capability& right) -> Result<bool> {
          Result<UniqueFd> opened = write
                                        ? node.engine().OpenLocalToWrite(
                                              right.file, node::Changer::OfLayout(right.generation))
                                        : node.engine().OpenLocal(right.file);
          if (!opened.ok()) return opened.status();
          *fd = *std::move(opened);
          return true;
        });
    if (!answer.ok()) return answer.status();
    return std::move(*fd);
  }
  ::mosa::Status FinishLocalWrites(const ObjectTarget& target) override {
    return Change(target, [](SimulatedNode& node, const Capability& right) {
      return node.engine().FinishLocalWrites(right.file);
    });
  }
  Result<sai::LocalWrites> LookAtLocalWrites(const ObjectTarget& target,
                                             const sai::LookQuestion& question) override {
    return Ask<sai::LocalWrites>(
        target, false,
        [question](SimulatedNode& node, const Capability& right) -> Result<sai::LocalWrites> {
          MOSA_ASSIGN_OR_RETURN(
              const ObjectEngine::LocalWrites look,
              node.engine().LookAtLocalWrites(right.file, question.from_bytes,
                                              question.while_written, node.scratch()));
          return sai::LocalWrites{.writers_left = look.writers_left,
                                  .changed = look.changed,
                                  .unknown = look.unknown,
                                  .complete = look.complete,
                                  .next_bytes = look.next_bytes};
        });
  }
  ::mosa::Status NoteWritten(const ObjectTarget& target, uint64_t offset,
                             uint64_t length) override {
    return Change(target, [=](SimulatedNode& node, const Capability& right) {
      return node.engine().NoteLocalWrite(right.file, {offset, offset + length});
    });
  }

 private:
  template <typename Value>
  using Operation = std::function<Result<Value>(SimulatedNode&, const Capability&)>;

  template <typename Value>
  struct Answer {
    std::optional<Result<Value>> value;
    std::optional<Time> given_up;
    WaitList arrived;
  };

  // The operation runs when the message arrives, unless the caller has closed the connection by
  // then: the real node looks at that before it stores.
  template <typename Value>
  Result<Value> Ask(const ObjectTarget& target, bool write, Operation<Value> operation) {
    const auto host = hosts_.find(target.node);
    if (host == hosts_.end()) return UnavailableError("nobody knows the node");
    SimulatedNode& node = *nodes_.at(host->second);
    const auto answer = std::make_shared<Answer<Value>>();
    Scheduler& scheduler = *Scheduler::Current();
    const auto serve = [this, &node, answer, write, file = target.file,
                        sealed = std::string(target.capability), client = client_,
                        operation = std::move(operation)] {
      network_.Travel(host_, node.host());
      Result<Value> result = UnavailableError("the node does not listen");
      if (answer->given_up && clock_.Monotonic() - *answer->given_up > kCloseTravels) return;
      if (node.is_up()) {
        node::AccessGate::Shown shown{.client = client, .sealed = {}, .capability = {}};
        const Result<Capability> right = node.gate().Check(sealed, file, write, shown);
        result = right.ok() ? operation(node, *right) : Result<Value>(right.status());
      }
      network_.Travel(node.host(), host_);
      answer->value = std::move(result);
      answer->arrived.WakeAll();
    };
    scheduler.Start(serve, node.host());
    const Time end = scheduler.now() + sai::WaitBudget::ForTransfer();
    while (!answer->value)
      if (!answer->arrived.Wait(end) && !answer->value) {
        answer->given_up = clock_.Monotonic();
        return DeadlineExceededError(fmt::format("node {} does not answer", target.node.value));
      }
    sai::WaitBudget::NoteAnswer();
    return *std::move(answer->value);
  }
  ::mosa::Status Change(
      const ObjectTarget& target,
      std::function<::mosa::Status(SimulatedNode&, const Capability&)> operation) {
    return Ask<bool>(target, true,
                     [operation = std::move(operation)](SimulatedNode& node,
                                                        const Capability& right) -> Result<bool> {
                       MOSA_RETURN_IF_ERROR(operation(node, right));
                       return true;
                     })
        .status();
  }

  Network& network_;
  SimulatedNodes& nodes_;
  const HostId host_;
  const VirtualClock clock_;
  ClientId client_;
  std::map<NodeId, HostId> hosts_;
};

}  // namespace

SimulatedNode::SimulatedNode(Network& network, SimulatedManager& manager, HostId host,
                             uint64_t limit_bytes)
    : network_(network),
      manager_(manager),
      host_(host),
      limit_bytes_(limit_bytes),
      scratch_(1 << 20) {
  Begin();
}

void SimulatedNode::Begin() {
  ++process_;
  gate_ = std::make_unique<node::AccessGate>(clock_);
  auto engine = ObjectEngine::Open(node::NewMemoryStore(name()), limit_bytes_, clock_);
  MOSA_CHECK(engine.ok());
  engine_ = *std::move(engine);
  Scheduler::Current()->Start(
      [this, process = process_] {
        while (process == process_ && is_up() && !stopping_) {
          RunConnection();
          SleepFor(kReconnectEvery);
        }
      },
      host_);
}

void SimulatedNode::Wipe() {
  engine_ = nullptr;
  gate_ = nullptr;
}

void SimulatedNode::RunConnection() {
  const uint64_t process = process_;
  const auto connection = std::make_shared<Connection<ToNodeMessage>>();
  NodeRegistration registration;
  registration.name = name();
  registration.address = registration.host_identity = name();
  const node::StoreRecord record = engine_->store().record();
  registration.cluster_name = record.cluster_name;
  registration.incarnation = record.incarnation;
  registration.limit_bytes = limit_bytes_;
  registration.used_bytes = engine_->used_bytes();
  engine_->ListHeld(registration.objects, registration.sizes);
  registration.aside = engine_->ListAside();
  Scheduler::Current()->Start(
      [this, connection, registration] {
        network_.Travel(host_, SimulatedManager::kHost);
        if (!connection->broken()) manager_.RegisterNode(connection, registration);
      },
      host_);
  const auto is_mine = [&] { return process == process_ && is_up() && !stopping_; };
  bool registered = false;
  Time heard = Scheduler::Current()->now();
  Time beat_due;
  while (is_mine() && !connection->broken()) {
    const Time now = Scheduler::Current()->now();
    // As the node's stream, it is given up when nothing is heard for long.
    if (!registered && now - heard > kSessionLease) break;
    if (registered && now >= beat_due) {
      beat_due = now + kHeartbeatEvery;
      engine_->Account();
      const NodeHeartbeat beat = engine_->TakeHeartbeat();
      Scheduler::Current()->Start(
          [this, connection, beat, id = id_] {
            network_.Travel(host_, SimulatedManager::kHost);
            manager_.Report(id, connection, beat);
          },
          host_);
    }
    auto message = connection->Take(now + kHeartbeatEvery);
    if (!message) continue;
    network_.Travel(SimulatedManager::kHost, host_);
    if (!is_mine()) break;
    heard = Scheduler::Current()->now();
    if (const auto* adopted = std::get_if<NodeRegistered>(&*message)) {
      MOSA_CHECK(engine_->store().SetCluster(adopted->cluster_name).ok());
      gate_->SetKey(adopted->capability_key, adopted->now, adopted->epoch, false);
      engine_->RepeatReports();
      id_ = adopted->node;
      registered = true;
    } else if (const auto* order = std::get_if<NodeOrder>(&*message)) {
      Obey(*order);
      beat_due = {};
    } else {
      break;
    }
  }
  connection->Break();
  // The manager notices the end of the stream when a message says so.
  if (registered)
    Scheduler::Current()->Start(
        [this, connection, id = id_] {
          network_.Travel(host_, SimulatedManager::kHost);
          manager_.Break(id, connection);
        },
        host_);
}

void SimulatedNode::Obey(const NodeOrder& order) {
  if (const auto* aside = std::get_if<AsideOrder>(&order)) return engine_->Obey(*aside);
  const auto* drop = std::get_if<DropObjectsOrder>(&order);
  if (drop == nullptr) return;  // Copies are not simulated.
  for (const auto& [file, generation] : drop->generations)
    engine_->RefuseStoresUpTo(file, generation);
  engine_->Drop(drop->files, drop->number);
}

std::unique_ptr<sai::NodeApi> NewSimulatedNodeApi(Network& network, SimulatedNodes& nodes,
                                                  HostId host) {
  return std::make_unique<SimulatedNodeApi>(network, nodes, host);
}

}  // namespace mosa::simulation
