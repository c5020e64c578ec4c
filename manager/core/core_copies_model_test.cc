// Random test: writers, some of which die midway; nodes that carry out orders late or never, damage
// objects, die, and return with or without their objects; and managers that restart. Every copy
// that a reader is sent to holds what was committed, or what a dead writer has stored since, and
// all these copies are equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "common/base/units.h"
#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

constexpr uint32_t kNodes = 5;

// The true state of a storage node: the version of each position of a file. Positions that it lacks
// read as zeroes. It processes orders and reports in order, but late.
struct ModelNode {
  bool up = true;
  bool mute = false;  // Its stream is open, but it sends no heartbeats.
  uint64_t incarnation = 7;
  std::map<std::pair<FileId, size_t>, uint64_t> versions;
  std::set<std::pair<FileId, size_t>> damaged;  // Found by its scrubber.
  std::map<FileId, CopyOrder> orders;
  std::set<FileId> completed;                   // Completed entries of `orders`.
  std::set<std::pair<FileId, size_t>> settled;  // Positions that other nodes may rely on.
  std::deque<NodeOrder> inbox;
  std::deque<CopyReport> outbox;
  uint64_t drops_done = 0;  // The number of the last drop order.
};

class CopiesModel : public CoreFixture {
 public:
  void TestBody() override {}

  void Run(uint64_t seed, int steps) {
    Rng rng(seed);
    StartAll();
    for (uint32_t number = 1; number <= kNodes; ++number) Register(number);
    std::vector<FileId> files;
    for (int i = 0; i < 12; ++i) files.push_back(MakeFile(rng));
    for (int step = 0; step < steps && !HasFailure(); ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(step));
      const FileId f = files[rng.Below(files.size())];
      Act(rng, f);
      ReportDamage();
      ConfirmAll();
      Hear();
      for (const FileId each : files)
        if (each == f || step % 20 == 0) CheckReaders(each);
    }
    if (HasFailure()) return;
    SCOPED_TRACE("seed " + std::to_string(seed) + " at the end");
    Settle(rng);
  }

 private:
  void StartAll() {
    for (const ClientId client : {kAnna, kBen}) Start(client);
  }
  void Register(uint32_t number) {
    ModelNode& node = model_[NodeId(number)];
    node.orders.clear();
    node.completed.clear();
    node.settled.clear();
    node.inbox.clear();
    node.outbox.clear();
    node.drops_done = 0;
    std::set<FileId> objects;
    for (const auto& [where, version] : node.versions) objects.insert(where.first);
    AddNode("n" + std::to_string(number), uint64_t{1} << 40, node.incarnation,
            {objects.begin(), objects.end()});
    node.up = true;
    node.mute = false;
    told_damaged_[NodeId(number)].clear();  // It reports the damage again.
    ReportDamage();
  }
  FileId MakeFile(Rng& rng) {
    MakeRequest make = MakeOf(kAnna, kRootFile, "");
    make.name = std::to_string(make.file.value);
    const FileId file = Ok<MakeReply>(kAnna, make).entry.file;
    SetHint(file, "placement", rng.Chance(500) ? "local" : "stripe");
    SetHint(file, "replicas", std::to_string(1 + rng.Below(4)));
    SetHint(file, "replicate", rng.Chance(500) ? "eager" : "lazy");
    return file;
  }
  void SetHint(FileId file, const std::string& name, const std::string& value) {
    Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa." + name, value, false, false});
  }

  void Act(Rng& rng, FileId f) {
    const uint64_t choice = rng.Below(100);
    const auto number = static_cast<uint32_t>(1 + rng.Below(kNodes));
    if (choice < 15) {
      Write(rng, f);
    } else if (choice < 65) {
      Work(rng, NodeId(number));
    } else if (choice < 69) {
      Break(rng);
    } else if (choice < 73) {
      AdvanceSome(rng, 8);
    } else if (choice < 75) {
      Step(DrainNode{"n" + std::to_string(number), rng.Chance(400)});
    } else if (choice < 78) {
      SetHint(f, "replicas", std::to_string(1 + rng.Below(4)));
    } else if (choice < 79) {
      RestartAll();
    } else if (choice < 80) {
      Mute(number, !model_[NodeId(number)].mute);
    } else if (choice < 81) {
      Damage(rng, NodeId(number));
    }
  }

  // Corrupts a block of one of the node's objects; the scrubber finds it.
  void Damage(Rng& rng, NodeId id) {
    ModelNode& node = model_[id];
    if (!node.up || node.versions.empty()) return;
    const auto at =
        std::next(node.versions.begin(), static_cast<int64_t>(rng.Below(node.versions.size())));
    node.damaged.insert(at->first);
    told_damaged_[id].erase(at->first.first);
  }

  static std::set<FileId> DamagedFiles(const ModelNode& node) {
    std::set<FileId> files;
    for (const auto& [file, position] : node.damaged) files.insert(file);
    return files;
  }

  // The content of heartbeats: objects with damage, and healed objects.
  void ReportDamage() {
    for (auto& [id, node] : model_) {
      if (!node.up) continue;
      NodeHeartbeat beat{.limit_bytes = uint64_t{1} << 40, .drops_done = node.drops_done};
      const std::set<FileId> now = DamagedFiles(node);
      std::set<FileId>& told = told_damaged_[id];
      for (const FileId file : now)
        if (!told.contains(file)) beat.corrupt_objects.push_back(file);
      for (const FileId file : told)
        if (!now.contains(file)) beat.healed_objects.push_back(file);
      told = now;
      if (!beat.corrupt_objects.empty() || !beat.healed_objects.empty()) Step(NodeReport{id, beat});
    }
  }

  void Store(ModelNode& node, FileId file, size_t position, uint64_t version) {
    node.versions[{file, position}] = version;
    node.damaged.erase({file, position});
  }

  void RestartAll() {
    now_ = now_ + Seconds(1);
    orders_.clear();
    Restart();
    StartAll();
    for (uint32_t number = 1; number <= kNodes; ++number)
      if (model_[NodeId(number)].up) Register(number);
  }

  // Moves the manager's messages to the nodes' inboxes.
  void Hear() {
    for (auto& [id, order] : std::exchange(orders_, {}))
      if (model_[id].up) model_[id].inbox.push_back(std::move(order));
  }

  void Receive(ModelNode& node) {
    const NodeOrder order = std::move(node.inbox.front());
    node.inbox.pop_front();
    if (const auto* copy = std::get_if<CopyOrder>(&order)) {
      node.orders.insert_or_assign(copy->file, *copy);
      node.completed.erase(copy->file);
      std::erase_if(node.settled, [&](const auto& e) { return e.first == copy->file; });
    } else if (const auto* cancel = std::get_if<CancelCopyOrder>(&order)) {
      node.orders.erase(cancel->file);
    } else {
      const auto& drop = std::get<DropObjectsOrder>(order);
      for (const FileId file : drop.files) {
        Empty(node, file);
        node.orders.erase(file);
      }
      node.drops_done = drop.number;
    }
  }

  static void Empty(ModelNode& node, FileId file) {
    std::erase_if(node.versions, [&](const auto& e) { return e.first.first == file; });
    std::erase_if(node.damaged, [&](const auto& e) { return e.first == file; });
  }

  // A node takes messages, carries out one of its orders as far as it can, and reports.
  void Work(Rng& rng, NodeId id) {
    ModelNode& node = model_[id];
    if (!node.up) return;
    Hear();
    while (!node.inbox.empty() && rng.Chance(800)) Receive(node);
    std::vector<FileId> open;
    for (const auto& [file, order] : node.orders)
      if (!node.completed.contains(file)) open.push_back(file);
    if (!open.empty()) CarryOut(rng, node, node.orders.at(open[rng.Below(open.size())]));
    while (!node.outbox.empty() && rng.Chance(800)) {
      const CopyReport report = node.outbox.front();
      node.outbox.pop_front();
      Step(NodeCopyReport{id, report});
      Hear();
    }
  }

  void CarryOut(Rng& rng, ModelNode& node, const CopyOrder& order) {
    const FileId file = order.file;
    CopyReport report{.file = file, .order = order.order, .data_version = order.data_version};
    report.copied_bytes = order.size_bytes;
    const bool stops_early = rng.Chance(200);
    bool is_final = !order.follow;
    for (size_t i = 0; i < order.sources.segments[0].nodes.size() && !report.failure; ++i) {
      const NodeId id = order.sources.segments[0].nodes[i];
      if (id == kNoNode) continue;
      if (stops_early && rng.Chance(500)) {
        is_final = is_final && node.settled.contains({file, i});
        continue;
      }
      const ModelNode& source = model_[id];
      if (!source.up || source.incarnation != IncarnationIn(order, id)) {
        report.failure = Failure{StatusCode::kUnavailable, ErrorReason::kNone, "no answer"};
        break;
      }
      if (source.damaged.contains({file, i})) {
        report.failure = Failure{StatusCode::kDataLoss, ErrorReason::kCorrupt, "corrupt"};
        break;
      }
      const auto theirs = source.versions.find({file, i});
      const auto relay = std::find_if(order.relays.begin(), order.relays.end(),
                                      [id](const CopyRelay& r) { return r.node == id; });
      const bool is_settled = relay == order.relays.end() || PassesOn(source, *relay, file, i);
      // An object that the source has dropped meanwhile is not a hole.
      if (relay == order.relays.end() && !HasObject(source, file) &&
          std::ranges::find(order.empty_sources, id) == order.empty_sources.end()) {
        report.failure = Failure{StatusCode::kDataLoss, ErrorReason::kCorrupt, "no object"};
        break;
      }
      // Nor is a position that a relay lacks.
      if (is_settled || theirs != source.versions.end())
        Store(node, file, i, theirs == source.versions.end() ? 0 : theirs->second);
      if (is_settled) {
        if (!order.follow) node.settled.emplace(file, i);
      } else {
        is_final = false;
      }
    }
    if (!report.failure && faults_ && rng.Chance(50))
      report.failure = Failure{StatusCode::kResourceExhausted, ErrorReason::kNoSpace, "full"};
    report.done = !report.failure && is_final;
    report.allocated_bytes = HasBytes(node, file) ? order.size_bytes : 0;
    if (!report.done && !report.failure) return;
    node.outbox.push_back(report);
    if (report.failure) {
      node.orders.erase(file);
    } else {
      node.completed.insert(file);
    }
  }

  static bool HasBytes(const ModelNode& node, FileId file) {
    return std::ranges::any_of(node.versions, [&](const auto& each) {
      return each.first.first == file && each.second > 0;
    });
  }

  static bool HasObject(const ModelNode& node, FileId file) {
    const auto first = node.versions.lower_bound({file, 0});
    return first != node.versions.end() && first->first.first == file;
  }

  // A relay vouches for what it has settled under its order, and for what its order does not cover.
  static bool PassesOn(const ModelNode& source, const CopyRelay& relay, FileId file, size_t i) {
    const auto its = source.orders.find(file);
    if (its == source.orders.end() || its->second.order < relay.order || its->second.follow)
      return false;
    return its->second.sources.segments[0].nodes[i] == kNoNode ||
           source.settled.contains({file, i});
  }

  static uint64_t IncarnationIn(const CopyOrder& order, NodeId id) {
    for (const NodeAddress& address : order.nodes)
      if (address.node == id) return address.incarnation;
    ADD_FAILURE() << "node " << id.value << " has no address";
    return 0;
  }

  void Write(Rng& rng, FileId f) {
    const Reply reply = Call1(kAnna, OpenRequest{f, true, ""});
    const auto* open = std::get_if<OpenReply>(&reply);
    if (!open) return;
    Layout layout = open->access.layout;
    if (!layout.bound()) {
      const Reply bound = Call1(kAnna, BindRequest{f, kMiB});
      if (const auto* bind = std::get_if<BindReply>(&bound)) layout = bind->access.layout;
    }
    if (!layout.bound()) {  // No node accepts new bytes.
      Ok<EmptyReply>(kAnna, ReleaseRequest{f});
      return;
    }
    uint64_t version = open->attributes.data_version + 1;
    // A file that has lost bytes is written from the beginning. What was cut off must not be read
    // in its holes.
    const bool is_cut = open->access.lost || rng.Chance(200);
    if (is_cut) {
      version = Cut(rng, f, layout) + 1;
      if (!layout.bound()) {
        Ok<EmptyReply>(kAnna, ReleaseRequest{f});
        return;
      }
    }
    const std::vector<NodeId>& nodes = layout.segments[0].nodes;
    ASSERT_EQ(nodes.size(), layout.segments[0].width)
        << "who writes is sent to the first copy only";
    for (const NodeId node : nodes) {
      if (model_[node].up) continue;
      Ok<EmptyReply>(kAnna, ReleaseRequest{f});
      return;
    }
    const bool dies = rng.Chance(200);
    if (dies) version = (uint64_t{1} << 40) + ++dirty_;
    CommitRequest commit{.file = f, .size_bytes = 8 * kMiB};
    std::set<size_t> holes;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (dies && rng.Chance(300)) continue;
      if (is_cut && rng.Chance(400)) {
        holes.insert(i);
        continue;
      }
      Store(model_[nodes[i]], f, i, version);
      commit.nodes.push_back({nodes[i], kMiB, 0});
      if (dies && allowed_.contains(f)) allowed_[f][i].insert(version);
    }
    // Until the close other nodes copy, nodes die, and time passes.
    Hear();
    for (uint32_t i = 1; i <= kNodes; ++i) Work(rng, NodeId(i));
    if (rng.Chance(200)) Break(rng);
    if (rng.Chance(300)) AdvanceSome(rng, 8);
    if (dies) return Die(rng);
    commit.last_close = true;
    const Reply told = Call1(kAnna, commit);
    if (const auto* failure = std::get_if<Failure>(&told)) {
      // A node has come back empty meanwhile, and the writer learns of it. Its bytes may be on the
      // other nodes.
      ASSERT_EQ(failure->reason, ErrorReason::kStale) << failure->message;
      for (size_t i = 0; i < nodes.size() && allowed_.contains(f); ++i)
        allowed_[f][i].insert(version);
      return;
    }
    allowed_[f].clear();
    for (size_t i = 0; i < nodes.size(); ++i) allowed_[f][i] = {holes.contains(i) ? 0 : version};
  }

  // Cuts the file to nothing as a mount does, and returns its version. `layout` becomes the one by
  // which it can be written, if there is one.
  uint64_t Cut(Rng& rng, FileId f, Layout& layout) {
    SetAttributesRequest cut{.file = f, .size_bytes = 0};
    for (const NodeId node : layout.Nodes())
      cut.lay_out_anew = cut.lay_out_anew || !model_[node].up || model_[node].mute;
    if (!cut.lay_out_anew)
      for (const NodeId node : layout.Nodes()) Empty(model_[node], f);
    Reply reply = Call1(kAnna, cut);
    if (const auto* failure = std::get_if<Failure>(&reply)) {
      EXPECT_EQ(failure->reason, ErrorReason::kBusy) << failure->message;
      Ok<BindReply>(kAnna, FreezeRequest{f});
      reply = Call1(kAnna, cut);
    }
    const auto* done = std::get_if<AttributesReply>(&reply);
    EXPECT_NE(done, nullptr);
    allowed_.erase(f);  // The file is empty.
    const uint64_t version = done ? done->attributes.data_version : 0;
    if (!cut.lay_out_anew) return version;
    layout = {};
    for (int i = 0; i < 4 && !layout.bound(); ++i) {
      const Reply bound = Call1(kAnna, BindRequest{f, kMiB});
      if (const auto* bind = std::get_if<BindReply>(&bound)) layout = bind->access.layout;
      if (!layout.bound()) AdvanceSome(rng, 2);
    }
    return version;
  }

  // The writer's mount is killed, and maybe the manager too, before it has noticed.
  void Die(Rng& rng) {
    if (rng.Chance(200)) return RestartAll();
    if (rng.Chance(500)) {
      Start(kAnna);  // It has forgotten its open files.
    } else {
      Step(SessionClosed{kAnna});
      ConfirmAll();
      Start(kAnna);
    }
  }

  // Messages in transit arrive meanwhile.
  void AdvanceSome(Rng& rng, uint64_t seconds_max) {
    for (uint64_t i = rng.Below(seconds_max + 1); i > 0; --i) {
      Hear();
      for (auto& [id, node] : model_)
        while (!node.inbox.empty()) Receive(node);
      now_ = now_ + Seconds(1);
      for (const ClientId client : {kAnna, kBen}) Step(SessionRequest{client, {}});
      for (const auto& [id, node] : model_)
        if (node.up && !node.mute) Beat(id);
      Step(Tick{});
      ConfirmAll();
      Hear();
    }
  }

  void Mute(uint32_t number, bool mute) {
    ModelNode& node = model_[NodeId(number)];
    node.mute = mute;
    if (node.up && !mute) Beat(NodeId(number));
  }
  void Beat(NodeId id) {
    NodeHeartbeat beat{.used_bytes = 0, .limit_bytes = uint64_t{1} << 40};
    beat.drops_done = model_[id].drops_done;
    Step(NodeReport{id, beat});
  }

  void Break(Rng& rng) {
    const auto number = static_cast<uint32_t>(1 + rng.Below(kNodes));
    ModelNode& node = model_[NodeId(number)];
    if (node.up) {
      node.up = false;
      Step(NodeStreamLost{NodeId(number)});
      return;
    }
    if (rng.Chance(200)) {
      node.versions.clear();
      node.damaged.clear();
      ++node.incarnation;
    }
    Register(number);
  }

  uint64_t VersionOn(NodeId id, FileId f, size_t position) const {
    const auto& versions = model_.at(id).versions;
    const auto found = versions.find({f, position});
    return found == versions.end() ? 0 : found->second;
  }

  bool HasAllowed(NodeId id, FileId f, size_t position) const {
    const auto known = allowed_.find(f);
    return known == allowed_.end() ||
           (known->second.at(position).contains(VersionOn(id, f, position)) &&
            !model_.at(id).damaged.contains({f, position}));
  }

  // Checks every copy that a reader may be sent to and that answers: it holds what was committed,
  // or what a dead writer has stored since, and equals the others. Damaged bytes appear only if no
  // other node has them, and then the file is listed.
  void CheckReaders(FileId f) {
    const Reply reply = Call1(kBen, OpenRequest{f, false, ""});
    const FileStatus status = *core_->GetFileStatus("/" + std::to_string(f.value));
    const Layout& first = status.layout;
    if (const auto* failure = std::get_if<Failure>(&reply)) {
      ASSERT_EQ(failure->reason, ErrorReason::kNodeLost);
      bool gone = false;
      for (size_t i = 0; i < first.segments[0].width; ++i) {
        const NodeId id = first.segments[0].nodes[i];
        // Where zeroes are allowed, a lost object looks like a hole.
        gone = gone || !model_[id].up || model_[id].mute || VersionOn(id, f, i) == 0 ||
               !HasAllowed(id, f, i);
      }
      EXPECT_TRUE(gone) << "the first copies are all there, but " << failure->message;
      return;
    }
    if (!allowed_.contains(f)) return;
    const Segment& segment = std::get<OpenReply>(reply).access.layout.segments.at(0);
    std::map<size_t, uint64_t> seen;
    for (size_t i = 0; i < segment.nodes.size(); ++i) {
      const size_t position = i % segment.width;
      const NodeId node = segment.nodes[i];
      ASSERT_NE(node, kNoNode);
      if (!model_[node].up) continue;
      const uint64_t version = VersionOn(node, f, position);
      EXPECT_TRUE(HasAllowed(node, f, position) || !status.damage.empty())
          << "file " << f.value << " position " << position << " node " << node.value << " has "
          << version;
      EXPECT_EQ(seen.try_emplace(position, version).first->second, version)
          << "file " << f.value << " position " << position << " differs on node " << node.value;
    }
  }

  // With all nodes up and no writer, everything not lost gets all its copies in the end.
  void Settle(Rng& rng) {
    faults_ = false;
    for (uint32_t number = 1; number <= kNodes; ++number) {
      Mute(number, false);
      if (!model_[NodeId(number)].up) Register(number);
      Step(DrainNode{"n" + std::to_string(number), false});
    }
    for (int i = 0; i < 800; ++i) {
      Work(rng, NodeId(static_cast<uint32_t>(1 + rng.Below(kNodes))));
      ReportDamage();
      ConfirmAll();
      if (i % 25 == 0) AdvanceSome(rng, 10);
    }
    for (const auto& [f, versions] : allowed_) {
      const auto status = *core_->GetFileStatus("/" + std::to_string(f.value));
      if (status.lost || !status.damage.empty()) continue;
      EXPECT_EQ(status.copies_valid, status.copies_wanted) << "file " << f.value;
      CheckReaders(f);
    }
  }

  std::map<NodeId, ModelNode> model_;
  // The versions of each position that readers may see; absent: nothing was committed yet.
  std::map<FileId, std::map<size_t, std::set<uint64_t>>> allowed_;
  std::map<NodeId, std::set<FileId>> told_damaged_;  // Damage that was reported to the manager.
  uint64_t dirty_ = 0;                               // Versions stored and not committed.
  bool faults_ = true;                               // Copies fail for lack of room.
};

// Seeds that once found a bug, then many others.
TEST(CopiesModelTest, ReadersAreSentOnlyToWhatWasCommitted) {
  std::vector<uint64_t> seeds{20261121, 2,   3,   11,  78,   135,  238,   332,
                              423,      554, 682, 786, 1702, 7905, 18681, 24128};
  for (uint64_t seed = 100; seed < 120; ++seed) seeds.push_back(seed);
  if (const char* given = std::getenv("MOSA_SEED")) {
    const uint64_t first = std::strtoull(given, nullptr, 10);
    const char* count = std::getenv("MOSA_SEEDS");
    seeds.clear();
    for (uint64_t i = 0; i < (count ? std::strtoull(count, nullptr, 10) : 1); ++i)
      seeds.push_back(first + i);
  }
  for (const uint64_t seed : seeds) {
    CopiesModel model;
    model.Run(seed, 600);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace mosa::manager
