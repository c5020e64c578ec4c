// Random operations against a naive reference, a tree of maps. In between, the manager dies and is
// loaded again from its durable image.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/base/rng.h"
#include "manager/core/core_fixture.h"

namespace mosa::manager {
namespace {

struct ModelFile {
  FileType type = FileType::kRegular;
  uint64_t size_bytes = 0;
  uint32_t permissions = 0;
  std::map<std::string, std::shared_ptr<ModelFile>> entries;
  std::map<std::string, std::string> attributes;
};
using ModelPointer = std::shared_ptr<ModelFile>;

bool IsBelow(const ModelPointer& directory, const ModelPointer& wanted) {
  if (directory == wanted) return true;
  for (const auto& [name, child] : directory->entries) {
    if (child->type == FileType::kDirectory && IsBelow(child, wanted)) return true;
  }
  return false;
}

uint32_t CountNames(const ModelPointer& directory, const ModelPointer& file) {
  uint32_t count = 0;
  for (const auto& [name, child] : directory->entries) {
    count += child == file ? 1 : 0;
    if (child->type == FileType::kDirectory) count += CountNames(child, file);
  }
  return count;
}

class CoreModel : public CoreFixture {
 protected:
  CoreModel() {
    root_->type = FileType::kDirectory;
    files_[kRootFile] = root_;
  }

  FileId AnyFile(Rng& rng) {
    auto at = files_.begin();
    std::advance(at, static_cast<ptrdiff_t>(rng.Below(files_.size())));
    return at->first;
  }
  FileId AnyDirectory(Rng& rng) {
    for (int tries = 0; tries < 50; ++tries) {
      const FileId file = AnyFile(rng);
      if (files_[file]->type == FileType::kDirectory) return file;
    }
    return kRootFile;
  }
  static std::string AnyName(Rng& rng) {
    return std::string(1, static_cast<char>('a' + rng.Below(6)));
  }

  ErrorReason Expect(FileId parent, const std::string& name, ModelPointer& child) {
    const auto& entries = files_[parent]->entries;
    const auto found = entries.find(name);
    if (found == entries.end()) return ErrorReason::kNoEntry;
    child = found->second;
    return ErrorReason::kNone;
  }
  void Forget(const ModelPointer& file) {
    if (file->type != FileType::kDirectory && CountNames(root_, file) > 0) return;
    std::erase_if(files_, [&](const auto& entry) { return entry.second == file; });
  }

  void Make(Rng& rng, ClientId client) {
    const FileId parent = AnyDirectory(rng);
    const std::string name = AnyName(rng);
    const FileType types[] = {FileType::kRegular, FileType::kRegular, FileType::kDirectory,
                              FileType::kSymlink};
    const FileType type = types[rng.Below(4)];
    const MakeRequest request = MakeOf(client, parent, name, type);
    const bool exists = files_[parent]->entries.contains(name);
    ASSERT_EQ(Refused(client, request), exists ? ErrorReason::kExists : ErrorReason::kNone);
    if (exists) return;
    auto file = std::make_shared<ModelFile>();
    file->type = type;
    file->permissions = request.permissions;
    if (type == FileType::kSymlink) file->size_bytes = 6;
    files_[parent]->entries[name] = file;
    files_[request.file] = file;
  }

  void Link(Rng& rng, ClientId client) {
    const FileId file = AnyFile(rng);
    const FileId parent = AnyDirectory(rng);
    const std::string name = AnyName(rng);
    ErrorReason expected = ErrorReason::kNone;
    if (files_[file]->type == FileType::kDirectory) {
      expected = ErrorReason::kNotPermitted;
    } else if (files_[parent]->entries.contains(name)) {
      expected = ErrorReason::kExists;
    }
    ASSERT_EQ(Refused(client, LinkRequest{file, parent, name}), expected);
    if (expected == ErrorReason::kNone) files_[parent]->entries[name] = files_[file];
  }

  void Remove(Rng& rng, ClientId client) {
    const FileId parent = AnyDirectory(rng);
    const std::string name = AnyName(rng);
    const bool directory = rng.Chance(500);
    ModelPointer child;
    ErrorReason expected = Expect(parent, name, child);
    if (child) {
      const bool is_directory = child->type == FileType::kDirectory;
      if (is_directory && !directory) expected = ErrorReason::kIsDirectory;
      if (!is_directory && directory) expected = ErrorReason::kNotDirectory;
      if (is_directory && directory && !child->entries.empty()) expected = ErrorReason::kNotEmpty;
    }
    ASSERT_EQ(Refused(client, RemoveRequest{parent, name, directory, false}), expected);
    if (expected != ErrorReason::kNone) return;
    files_[parent]->entries.erase(name);
    Forget(child);
  }

  ErrorReason ExpectRename(const RenameRequest& r, ModelPointer& moved, ModelPointer& target) {
    const ErrorReason found = Expect(r.old_parent, r.old_name, moved);
    Expect(r.new_parent, r.new_name, target);
    if (found != ErrorReason::kNone || (r.exchange && !target)) return ErrorReason::kNoEntry;
    const bool moves_directory = moved->type == FileType::kDirectory;
    const bool below = moves_directory && IsBelow(moved, files_[r.new_parent]);
    if (r.exchange) {
      const bool above =
          target->type == FileType::kDirectory && IsBelow(target, files_[r.old_parent]);
      return moved != target && (below || above) ? ErrorReason::kInvalid : ErrorReason::kNone;
    }
    if (moved == target) return r.no_replace ? ErrorReason::kExists : ErrorReason::kNone;
    if (target && r.no_replace) return ErrorReason::kExists;
    if (below) return ErrorReason::kInvalid;
    if (!target) return ErrorReason::kNone;
    if (target->type == FileType::kDirectory && !moves_directory) return ErrorReason::kIsDirectory;
    if (target->type != FileType::kDirectory && moves_directory) return ErrorReason::kNotDirectory;
    return target->entries.empty() ? ErrorReason::kNone : ErrorReason::kNotEmpty;
  }

  void Rename(Rng& rng, ClientId client) {
    RenameRequest request{.old_parent = AnyDirectory(rng), .old_name = AnyName(rng)};
    request.new_parent = AnyDirectory(rng);
    request.new_name = AnyName(rng);
    request.no_replace = rng.Chance(200);
    request.exchange = !request.no_replace && rng.Chance(200);
    ModelPointer moved, target;
    const ErrorReason expected = ExpectRename(request, moved, target);
    ASSERT_EQ(Refused(client, request), expected);
    if (expected != ErrorReason::kNone || moved == target) return;
    auto& from = files_[request.old_parent]->entries;
    auto& onto = files_[request.new_parent]->entries;
    from.erase(request.old_name);
    onto[request.new_name] = moved;
    if (request.exchange) {
      from[request.old_name] = target;
    } else if (target) {
      Forget(target);
    }
  }

  void Change(Rng& rng, ClientId client) {
    const FileId file = AnyFile(rng);
    ModelFile& model = *files_[file];
    if (rng.Chance(300) && model.type != FileType::kSymlink) {
      const std::string name = "user." + AnyName(rng);
      model.attributes[name] = std::to_string(rng.Below(100));
      ASSERT_EQ(Refused(client, SetXattrRequest{file, name, model.attributes[name], false, false}),
                ErrorReason::kNone);
      return;
    }
    SetAttributesRequest request{.file = file};
    model.permissions = static_cast<uint32_t>(rng.Below(01000));
    request.permissions = model.permissions;
    if (model.type == FileType::kRegular) request.size_bytes = model.size_bytes = rng.Below(100000);
    ASSERT_EQ(Refused(client, request), ErrorReason::kNone);
  }

  void Compare(FileId id, const ModelPointer& model) {
    const Attributes a = Ok<AttributesReply>(kAnna, GetAttributesRequest{id}).attributes;
    ASSERT_EQ(a.type, model->type);
    EXPECT_EQ(a.permissions, model->permissions);
    EXPECT_EQ(Ok<ListXattrsReply>(kAnna, ListXattrsRequest{id}).names.size(),
              model->attributes.size());
    for (const auto& [name, value] : model->attributes)
      EXPECT_EQ(Ok<GetXattrReply>(kAnna, GetXattrRequest{id, name}).value, value);
    if (model->type != FileType::kDirectory) {
      EXPECT_EQ(a.size_bytes, model->size_bytes);
      EXPECT_EQ(a.link_count, CountNames(root_, model));
      return;
    }
    const auto list = Ok<ListDirectoryReply>(kAnna, ListDirectoryRequest{id, ""});
    ASSERT_EQ(list.items.size(), model->entries.size());
    uint32_t subdirectories = 0;
    for (const auto& item : list.items) {
      ASSERT_TRUE(model->entries.contains(item.name));
      const ModelPointer& child = model->entries[item.name];
      ASSERT_EQ(files_[item.entry.file], child);
      subdirectories += child->type == FileType::kDirectory ? 1 : 0;
      if (child->type == FileType::kDirectory) {
        EXPECT_EQ(Ok<EntryReply>(kAnna, LookupRequest{item.entry.file, ".."}).entry.file, id);
      }
      Compare(item.entry.file, child);
    }
    EXPECT_EQ(a.link_count, 2 + subdirectories);
  }

  void Run(uint64_t seed, int steps) {
    Rng rng(seed);
    root_->permissions = 01777;
    Start(kAnna);
    Start(kBen);
    for (int step = 0; step < steps; ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(step));
      now_ = now_ + Milliseconds(static_cast<int64_t>(rng.Below(50)));
      const ClientId client = rng.Chance(500) ? kAnna : kBen;
      const uint64_t choice = rng.Below(100);
      if (choice < 35)
        Make(rng, client);
      else if (choice < 45)
        Link(rng, client);
      else if (choice < 62)
        Remove(rng, client);
      else if (choice < 80)
        Rename(rng, client);
      else
        Change(rng, client);
      if (step % 10 == 0)
        for (const ClientId each : {kAnna, kBen}) Step(SessionRequest{each, {}});
      if (step % 500 == 250) {
        Restart();
        Start(kAnna);
        Start(kBen);
        Compare(kRootFile, root_);
      }
      if (HasFailure()) return;
    }
    Compare(kRootFile, root_);
    Advance(Milliseconds(250));  // A client may just have been opening it.
    ASSERT_EQ(core_->GetClusterStatus(now_).files + core_->GetClusterStatus(now_).directories,
              files_.size());
  }

  ModelPointer root_ = std::make_shared<ModelFile>();
  std::map<FileId, ModelPointer> files_;
};

TEST_F(CoreModel, AgreesWithATreeOfMapsThroughRestarts) {
  const char* given = std::getenv("MOSA_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : 20261121;
  std::printf("seed %llu (MOSA_SEED chooses another)\n", static_cast<unsigned long long>(seed));
  Run(seed, 4000);
}

// ---- determinism

class Digest {
 public:
  void Add(std::string_view text) { value_ = HashCombine(value_, Hash64(text)); }
  void Add(uint64_t number) { value_ = HashCombine(value_, number); }
  void Add(const Effects& effects) {
    for (const auto& write : effects.writes.writes) {
      Add(write.key);
      Add(write.value.value_or("deleted"));
    }
    for (const ToClient& to : effects.to_clients) {
      Add(to.client.value);
      Add(to.message.index());
      if (const auto* reply = std::get_if<ReplyEnvelope>(&to.message)) {
        Add(reply->id.value);
        for (const Reply& each : reply->replies) {
          Add(each.index());
          if (const auto* failure = std::get_if<Failure>(&each)) Add(failure->message);
        }
      }
    }
    for (const ToNode& to : effects.to_nodes) {
      Add(to.node.value);
      Add(to.message.index());
      if (const auto* order = std::get_if<NodeOrder>(&to.message)) Add(*order);
    }
    for (const std::string& line : effects.log) Add(line);
    for (const std::string& line : effects.frequent_log) Add(line);
    Add(effects.wake_at ? static_cast<uint64_t>(effects.wake_at->ns) : 0);
  }
  void Add(const NodeOrder& order) {
    Add(order.index());
    if (const auto* drop = std::get_if<DropObjectsOrder>(&order))
      for (const FileId file : drop->files) Add(file.value);
    const auto* copy = std::get_if<CopyOrder>(&order);
    if (!copy) return;
    Add(copy->file.value);
    Add(copy->order);
    Add(copy->size_bytes);
    for (const Segment& segment : copy->sources.segments)
      for (const NodeId node : segment.nodes) Add(node.value);
    for (const CopyRelay& relay : copy->relays) Add(relay.node.value);
    ++copy_orders_;
  }
  uint64_t value() const { return value_; }
  size_t copy_orders() const { return copy_orders_; }

 private:
  uint64_t value_ = 0;
  size_t copy_orders_ = 0;
};

SetXattrRequest AnyHint(Rng& rng, FileId file, const std::string& other) {
  const std::pair<const char*, std::vector<std::string>> hints[] = {
      {"placement", {"local", "stripe", other}},
      {"replicas", {"auto", "auto", "2", "9", other}},
      {"replicate", {"eager", "lazy"}},
      {"ack", {"pessimistic", "2"}},
      {"strict", {"1", "0"}}};
  const auto& [name, values] = hints[rng.Below(std::size(hints))];
  return {file, std::string("user.mosa.") + name, values[rng.Below(values.size())], rng.Chance(100),
          false};
}

MakeRequest AnyMake(Rng& rng, FileId parent, FileId file, const std::string& name) {
  MakeRequest make{.parent = parent, .name = name, .file = file};
  make.type = static_cast<FileType>(rng.Below(9));
  if (rng.Chance(500)) {
    make.parent = kRootFile;
    make.type = FileType::kRegular;
    make.hints = {{"replicas", "auto"}, {"replicate", rng.Chance(500) ? "eager" : "lazy"}};
  }
  make.now = Time{static_cast<int64_t>(rng.Next())};
  make.open = rng.Chance(500);
  make.bind = rng.Chance(300);
  make.symlink_target = name;
  return make;
}

Request AnyRelocate(Rng& rng, FileId file, uint64_t begin, NodeId node) {
  if (rng.Chance(500)) return FreezeRequest{file};
  if (rng.Chance(800)) begin = begin / kSegmentUnit * kSegmentUnit;
  const uint64_t end = rng.Chance(500) ? UINT64_MAX : begin + rng.Below(8) * kSegmentUnit;
  return RelocateRequest{file, begin, end, {node}};
}

CommitRequest AnyCommit(Rng& rng, FileId file, NodeId node) {
  const auto number = [&] { return rng.Chance(800) ? rng.Below(1 << 20) : rng.Next(); };
  CommitRequest commit{.file = file, .size_bytes = number()};
  commit.size_is_exact = rng.Chance(500);
  if (rng.Chance(300)) commit.inline_data = std::string(rng.Below(20000), 'x');
  if (rng.Chance(300)) commit.modify_time = Time{static_cast<int64_t>(rng.Next())};
  commit.nodes = {{node, number(), number()}};
  commit.last_close = rng.Chance(500);
  return commit;
}

// Requests with arbitrary values, as a hostile client would send them.
Request AnyRequest(Rng& rng) {
  const auto file = [&] { return FileId(rng.Chance(900) ? rng.Below(60) : rng.Next()); };
  const auto name = [&] {
    return rng.Chance(950) ? std::string(1, static_cast<char>('a' + rng.Below(4)))
                           : std::string(rng.Below(300), '.');
  };
  const auto number = [&] { return rng.Chance(800) ? rng.Below(1 << 20) : rng.Next(); };
  const auto node = [&] { return NodeId(static_cast<uint32_t>(rng.Below(4))); };
  switch (rng.Below(21)) {
    case 0: {
      LookupRequest lookup{file(), name()};
      if (rng.Chance(500)) lookup.reserve_for = static_cast<uint32_t>(number());
      return lookup;
    }
    case 1:
      return GetAttributesRequest{file()};
    case 2:
      return ListDirectoryRequest{file(), name(), static_cast<uint32_t>(number())};
    case 3:
    case 4:
      return AnyMake(rng, file(), file(), name());
    case 5:
      return LinkRequest{file(), file(), name()};
    case 6:
      return RemoveRequest{file(), name(), rng.Chance(500), rng.Chance(500)};
    case 7:
      return RenameRequest{file(),          name(),          file(),         name(),
                           rng.Chance(200), rng.Chance(200), rng.Chance(500)};
    case 8: {
      SetAttributesRequest set{.file = file()};
      if (rng.Chance(500)) set.size_bytes = number();
      return set;
    }
    case 9:
      return OpenRequest{file(), rng.Chance(500), name()};
    case 10:
      return BindRequest{file(), number()};
    case 11:
      return AnyRelocate(rng, file(), number(), node());
    case 12:
    case 13:
      return AnyCommit(rng, file(), node());
    case 14:
      return ReleaseRequest{file()};
    case 15:
      return GrantRequest{node(), number(), number(), number()};
    case 16:
      if (rng.Chance(600)) return AnyHint(rng, file(), name());
      return SetXattrRequest{file(), "user.a", name(), rng.Chance(100), false};
    case 17:
      return SetLockRequest{file(),
                            {static_cast<LockType>(rng.Below(5)), number(), number(), rng.Below(3),
                             1, rng.Chance(300)},
                            rng.Chance(300)};
    case 18:
      return RecallDoneRequest{RecallId(rng.Below(40)), rng.Chance(300)};
    case 19:
      return AwaitCopiesRequest{file(), rng.Below(4), static_cast<uint32_t>(rng.Below(5))};
    default:
      return GetXattrRequest{file(),
                             rng.Chance(500) ? "user.mosa.location.chunks" : "user.mosa.layout"};
  }
}

Command AnyCommand(Rng& rng, std::map<uint64_t, uint64_t>& next_request) {
  const ClientId client(1 + rng.Below(4));
  const uint64_t choice = rng.Below(100);
  if (choice < 4) {
    SessionStart start{.client = client};
    start.node_name = "n1";
    start.opens = {{FileId(rng.Below(60)), rng.Chance(500)}};
    start.delegations = {FileId(rng.Below(60))};
    start.names = {{FileId(rng.Below(60)), std::string(1, static_cast<char>('a' + rng.Below(4)))},
                   {FileId(1), rng.Chance(500) ? "a" : ""}};
    start.grants = {{NodeId(static_cast<uint32_t>(rng.Below(4))), rng.Next()}};
    start.locks = {
        {FileId(rng.Below(60)), {LockType::kExclusive, rng.Below(9), rng.Below(9), 1, 1, false}}};
    return StartSession{start};
  }
  if (choice < 5) return SessionClosed{client};
  if (choice < 6) return SessionLost{client};
  if (choice < 8) {
    NodeRegistration registration{.name = "n" + std::to_string(rng.Below(3))};
    registration.incarnation = rng.Below(2);
    registration.limit_bytes = rng.Below(1 << 24);
    registration.objects = {FileId(rng.Below(60)), FileId(rng.Next())};
    return RegisterNode{registration};
  }
  if (choice < 12) {
    NodeHeartbeat heartbeat{.used_bytes = rng.Below(1 << 24)};
    heartbeat.limit_bytes = rng.Below(1 << 24);
    return NodeReport{NodeId(static_cast<uint32_t>(rng.Below(5))), heartbeat};
  }
  if (choice < 13) return NodeStreamLost{NodeId(static_cast<uint32_t>(rng.Below(5)))};
  if (choice < 15) return Tick{};
  if (choice < 16) {
    SetCopiesForecast forecast{static_cast<uint32_t>(rng.Below(5)), {}};
    for (uint64_t count = rng.Below(4); count > 0; --count)
      forecast.sizes.push_back({rng.Below(1 << 20), static_cast<uint32_t>(rng.Below(5))});
    if (rng.Chance(800))
      std::sort(forecast.sizes.begin(), forecast.sizes.end(),
                [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    return forecast;
  }
  SessionRequest request{client, {}};
  request.envelope.id = RequestId(rng.Chance(900) ? ++next_request[client.value] : rng.Below(50));
  if (rng.Chance(100)) request.envelope.answered_below = RequestId(next_request[client.value]);
  for (uint64_t count = 1 + rng.Below(3); count > 0; --count)
    request.envelope.requests.push_back(AnyRequest(rng));
  return request;
}

// Runs hostile commands. Loads the durable image now and then, since it must always be consistent.
uint64_t RunHostile(uint64_t seed, int steps, size_t* copy_orders = nullptr) {
  Rng rng(seed);
  Digest digest;
  ManagerOptions options;
  options.sessions_max = 3;
  options.turns_to_share = 1;
  auto core = std::make_unique<ManagerCore>(options);
  std::map<std::string, std::string> image;
  std::map<uint64_t, uint64_t> next_request;
  Time now{Seconds(1000).ns};
  for (int step = 0; step < steps; ++step) {
    now = now + Milliseconds(static_cast<int64_t>(rng.Below(rng.Chance(20) ? 8000 : 100)));
    const Effects effects = core->Step(AnyCommand(rng, next_request), now);
    digest.Add(effects);
    for (const auto& write : effects.writes.writes) {
      if (write.value)
        image.insert_or_assign(write.key, *write.value);
      else
        image.erase(write.key);
    }
    if (step % 1000 != 999) continue;
    core = std::make_unique<ManagerCore>(options);
    for (const auto& [key, value] : image) {
      const Status loaded = core->LoadRecord(key, value);
      EXPECT_TRUE(loaded.ok()) << loaded << " seed " << seed << " step " << step;
    }
    const Status finished = core->FinishLoad(now);
    EXPECT_TRUE(finished.ok()) << finished << " seed " << seed << " step " << step;
    if (!finished.ok()) return 0;
  }
  if (copy_orders != nullptr) *copy_orders += digest.copy_orders();
  return digest.value();
}

TEST(CoreHostile, AnyCommandsAreSurvivedAndTheImageStaysWhole) {
  size_t copy_orders = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    ASSERT_NE(RunHostile(seed, 5000, &copy_orders), 0U);
  }
  EXPECT_GT(copy_orders, 0U);
}

TEST(CoreHostile, TheSameCommandsGiveTheSameEffects) {
  EXPECT_EQ(RunHostile(99, 3000), RunHostile(99, 3000));
  EXPECT_NE(RunHostile(99, 3000), RunHostile(98, 3000));
}

}  // namespace
}  // namespace mosa::manager
