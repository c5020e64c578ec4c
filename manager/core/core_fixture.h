// Fixture for tests of ManagerCore: a core, its durable image, and clients that record what they
// receive.
#ifndef MOSA_MANAGER_CORE_CORE_FIXTURE_H_
#define MOSA_MANAGER_CORE_CORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "manager/core/access_file.h"
#include "manager/core/manager_core.h"

namespace mosa::manager {

inline constexpr ClientId kAnna{101};
inline constexpr ClientId kBen{102};
inline constexpr ClientId kCarl{103};
// Users.
inline constexpr uint32_t kAlice = 1000;
inline constexpr uint32_t kBob = 1001;

class CoreFixture : public ::testing::Test {
 protected:
  CoreFixture() { core_ = std::make_unique<ManagerCore>(options_); }

  Effects Step(const Command& command) {
    Effects effects = core_->Step(command, now_);
    for (const KvBatch::Write& write : effects.writes.writes) {
      if (write.value) {
        image_.insert_or_assign(write.key, *write.value);
      } else {
        image_.erase(write.key);
      }
    }
    for (const ToClient& to : effects.to_clients) Deliver(to);
    for (const ToNode& to : effects.to_nodes) {
      if (std::holds_alternative<NodeRegistered>(to.message)) drops_done_[to.node] = 0;
      if (const auto* order = std::get_if<NodeOrder>(&to.message)) {
        if (const auto* drop = std::get_if<DropObjectsOrder>(order)) {
          dropped_[to.node].insert(dropped_[to.node].end(), drop->files.begin(), drop->files.end());
          if (carries_out_drops_) drops_done_[to.node] = drop->number;
        }
        orders_.emplace_back(to.node, *order);
      }
    }
    for (const auto* const lines : {&effects.log, &effects.frequent_log})
      log_.insert(log_.end(), lines->begin(), lines->end());
    return effects;
  }

  void Start(ClientId client, SessionStart start = {}) {
    start.client = client;
    if (start.node_name.empty()) start.node_name = "n1";
    Step(StartSession{start});
  }
  NodeId AddNode(const std::string& name, uint64_t limit_bytes = uint64_t{1} << 30,
                 uint64_t incarnation = 7, std::vector<FileId> objects = {}) {
    NodeRegistration registration{
        .name = name, .incarnation = incarnation, .limit_bytes = limit_bytes};
    registration.objects = std::move(objects);
    const Effects effects = Step(RegisterNode{registration});
    for (const ToNode& to : effects.to_nodes) {
      if (std::holds_alternative<NodeRegistered>(to.message)) return to.node;
    }
    return kNoNode;
  }
  void Advance(Duration by) {
    now_ = now_ + by;
    Step(Tick{});
  }
  // Advances time while these clients send keep-alives.
  void AdvanceAlive(Duration by, const std::vector<ClientId>& clients,
                    const std::vector<NodeId>& nodes = {}) {
    for (int64_t passed = 0; passed < by.ns; passed += Seconds(1).ns) {
      now_ = now_ + Seconds(1);
      for (const ClientId client : clients) Step(SessionRequest{client, {}});
      for (const NodeId node : nodes)
        Step(NodeReport{node, {.limit_bytes = uint64_t{1} << 30, .drops_done = drops_done_[node]}});
      Step(Tick{});
    }
  }

  // Sends an envelope. Its replies appear in `replies_`.
  RequestId Send(ClientId client, std::vector<Request> requests) {
    const RequestId id(++last_request_[client]);
    for (size_t i = 0; i < requests.size(); ++i) {
      asked_[{client, id}].push_back(AccessFileOf(requests[i]));
      // As a mount does, unless the test sets it.
      if (auto* commit = std::get_if<CommitRequest>(&requests[i]); commit && !names_generations_)
        commit->generation = generations_[{client, commit->file}];
      if (auto* cut = std::get_if<SetAttributesRequest>(&requests[i]);
          cut && !names_generations_ && cut->generation == 0)
        cut->generation = generations_[{client, cut->file}];
    }
    Step(SessionRequest{client, {id, RequestId(0), std::move(requests)}});
    return id;
  }
  bool Answered(ClientId client, RequestId id) const { return replies_.contains({client, id}); }
  // Sends requests and confirms all recalls that they cause. Returns the replies.
  std::vector<Reply> Call(ClientId client, std::vector<Request> requests) {
    const RequestId id = Send(client, std::move(requests));
    if (!Answered(client, id)) ConfirmAll();
    EXPECT_TRUE(Answered(client, id));
    return replies_[{client, id}];
  }
  Reply Call1(ClientId client, Request request) {
    auto replies = Call(client, {std::move(request)});
    EXPECT_EQ(replies.size(), 1U);
    return replies.empty() ? Reply() : replies[0];
  }
  template <typename T>
  T Ok(ClientId client, Request request) {
    Reply reply = Call1(client, std::move(request));
    if (const auto* failure = std::get_if<Failure>(&reply)) ADD_FAILURE() << failure->message;
    T* value = std::get_if<T>(&reply);
    EXPECT_NE(value, nullptr);
    return value ? *value : T();
  }
  ErrorReason Refused(ClientId client, Request request) {
    const Reply reply = Call1(client, std::move(request));
    const auto* failure = std::get_if<Failure>(&reply);
    if (failure) {
      EXPECT_FALSE(failure->message.empty());
    }
    return failure ? failure->reason : ErrorReason::kNone;
  }
  void Confirm(ClientId client, bool holds_open = false) {
    for (const RecallPush& recall : std::exchange(recalls_[client], {}))
      Send(client, {RecallDoneRequest{recall.recall, holds_open}});
  }
  void ConfirmAll() {
    for (int round = 0; round < 8; ++round) {
      for (const ClientId client : {kAnna, kBen, kCarl}) Confirm(client);
    }
  }

  FileId NewId(ClientId client) {
    FileIdRangeReply& range = ready_[client].file_ids;
    return FileId(range.first.value++);
  }
  MakeRequest MakeOf(ClientId client, FileId parent, std::string name,
                     FileType type = FileType::kRegular, bool open = false) {
    MakeRequest request{
        .parent = parent, .name = std::move(name), .file = NewId(client), .type = type};
    request.permissions = type == FileType::kDirectory ? 0755 : 0644;
    request.now = now_;
    request.open = open;
    if (type == FileType::kSymlink) request.symlink_target = "target";
    return request;
  }
  FileId Make(ClientId client, FileId parent, std::string name, FileType type = FileType::kRegular,
              bool open = false) {
    return Ok<MakeReply>(client, MakeOf(client, parent, std::move(name), type, open)).entry.file;
  }
  // A file with objects: made, bound, and committed with this many bytes on each node of its
  // layout.
  FileId MakeBound(ClientId client, FileId parent, std::string name, uint64_t bytes_each) {
    const FileId file = Make(client, parent, std::move(name), FileType::kRegular, true);
    const auto bound = Ok<BindReply>(client, BindRequest{file, bytes_each});
    CommitRequest commit{.file = file, .size_bytes = 0};
    for (const NodeId node : bound.access.layout.Nodes()) {
      commit.nodes.push_back({node, bytes_each, 0});
      commit.size_bytes += bytes_each;
    }
    commit.last_close = true;
    Ok<AttributesReply>(client, commit);
    return file;
  }

  // The manager dies, and another one loads the durable image.
  void Restart() {
    core_ = std::make_unique<ManagerCore>(options_);
    for (const auto& [key, value] : image_) {
      const Status loaded = core_->LoadRecord(key, value);
      ASSERT_TRUE(loaded.ok()) << loaded;
    }
    const Status finished = core_->FinishLoad(now_);
    ASSERT_TRUE(finished.ok()) << finished;
    recalls_.clear();
  }

  ManagerOptions options_;
  std::unique_ptr<ManagerCore> core_;
  std::map<std::string, std::string> image_;
  Time now_{Seconds(1'700'000'000).ns};
  std::map<ClientId, SessionReady> ready_;
  std::map<ClientId, uint64_t> last_request_;
  std::map<std::pair<ClientId, RequestId>, std::vector<Reply>> replies_;
  std::map<ClientId, std::vector<RecallPush>> recalls_;
  std::map<ClientId, std::vector<NodesPush>> node_pushes_;
  std::map<ClientId, std::vector<GrantRecallPush>> grant_recalls_;
  std::map<ClientId, int> ends_;
  std::map<ClientId, std::string> refused_;
  std::map<NodeId, std::vector<FileId>> dropped_;
  // The last drop order that each node has carried out. It reports that in AdvanceAlive().
  std::map<NodeId, uint64_t> drops_done_;
  bool carries_out_drops_ = true;
  std::vector<std::pair<NodeId, NodeOrder>> orders_;
  std::vector<std::string> log_;
  std::map<std::pair<ClientId, RequestId>, std::vector<FileId>> asked_;
  std::map<std::pair<ClientId, FileId>, uint64_t> generations_;  // The last generations received.
  bool names_generations_ = false;  // The test sets the generations of its commits.

 private:
  void NoteGenerations(ClientId client, const ReplyEnvelope& envelope) {
    const std::vector<FileId>& files = asked_[{client, envelope.id}];
    for (size_t i = 0; i < std::min(files.size(), envelope.replies.size()); ++i) {
      uint64_t& generation = generations_[{client, files[i]}];
      if (const auto* open = std::get_if<OpenReply>(&envelope.replies[i]))
        generation = open->access.generation;
      if (const auto* bind = std::get_if<BindReply>(&envelope.replies[i]))
        generation = bind->access.generation;
      if (const auto* make = std::get_if<MakeReply>(&envelope.replies[i]); make && make->access)
        generation = make->access->generation;
    }
  }
  void Deliver(const ToClient& to) {
    if (const auto* ready = std::get_if<SessionReady>(&to.message)) {
      ready_[to.client] = *ready;
    } else if (const auto* reply = std::get_if<ReplyEnvelope>(&to.message)) {
      replies_[{to.client, reply->id}] = reply->replies;
      NoteGenerations(to.client, *reply);
    } else if (const auto* failure = std::get_if<Failure>(&to.message)) {
      refused_[to.client] = failure->message;
    } else {
      const Push& push = std::get<Push>(to.message);
      if (const auto* recall = std::get_if<RecallPush>(&push))
        recalls_[to.client].push_back(*recall);
      if (const auto* nodes = std::get_if<NodesPush>(&push))
        node_pushes_[to.client].push_back(*nodes);
      if (const auto* grant = std::get_if<GrantRecallPush>(&push))
        grant_recalls_[to.client].push_back(*grant);
      if (std::holds_alternative<SessionEndPush>(push)) ++ends_[to.client];
    }
  }
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_CORE_FIXTURE_H_
