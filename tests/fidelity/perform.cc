// The real side: Filesystems on a manager's core and storage nodes of this process.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "predictor/run/simulated_manager.h"
#include "tests/fidelity/histories.h"
#include "tests/support/local_mount.h"

namespace mosa::fidelity {
namespace {

using Kind = Operation::Kind;

constexpr uint64_t kNodeBytes = uint64_t{8} << 30;
// How long requests that are expected are waited for.
constexpr auto kPatience = std::chrono::seconds(2);
// So that a copy is made behind the answer to the close that caused it, as between hosts.
constexpr auto kCopyTime = std::chrono::milliseconds(1);
// Longer than the manager's clock takes to tick: copies that had to wait are ordered then.
constexpr auto kOrdered = std::chrono::milliseconds(45);

sai::Caller Myself() { return {0, 0, static_cast<uint32_t>(getpid()), 022}; }

// What the kernel keeps of a mount's names, and asks of them.
class Kernel {
 public:
  Kernel(testing::LocalManager& manager, testing::LocalNodes& nodes, const std::string& host,
         ClientId client, const Clock& clock)
      : mount_(manager, nodes, host, clock, /*passthrough=*/false, {.client = client}) {}

  testing::LocalMount& mount() { return mount_; }
  sai::Filesystem& fs() { return mount_.fs(); }

  struct Place {
    FileId parent;
    std::string name;
  };
  std::optional<Place> PlaceOf(const std::string& path) {
    Place place{kRootFile, path};
    for (size_t slash; (slash = place.name.find('/')) != std::string::npos;) {
      const FileId found = Lookup(place.parent, place.name.substr(0, slash));
      if (found == FileId{}) return std::nullopt;
      place = {found, place.name.substr(slash + 1)};
    }
    return place;
  }
  // FileId{}: there is none.
  FileId Lookup(FileId parent, const std::string& name) {
    if (const uint64_t told = mount_.notifier().entries; std::exchange(told_, told) != told)
      names_.clear();
    if (const auto known = names_.find({parent, name}); known != names_.end()) return known->second;
    const auto found = fs().Lookup(parent, name, Myself().uid);
    return found.ok() ? Keep(parent, name, *found) : FileId{};
  }
  FileId Find(const std::string& path) {
    const auto place = PlaceOf(path);
    return place ? Lookup(place->parent, place->name) : FileId{};
  }
  FileId Keep(FileId parent, const std::string& name, const sai::EntryResult& result) {
    if (result.entry_valid.ns > 0) names_[{parent, name}] = result.entry.file;
    return result.entry.file;
  }
  // open(2) with O_CREAT if `makes`.
  std::optional<sai::HandleId> Open(const std::string& path, uint32_t flags, bool makes) {
    const auto place = PlaceOf(path);
    if (!place) return std::nullopt;
    if (const FileId file = Lookup(place->parent, place->name); file != FileId{}) {
      const auto opened = fs().Open(file, flags, Myself());
      return opened.ok() ? std::optional(opened->handle) : std::nullopt;
    }
    if (!makes) return std::nullopt;
    names_.erase({place->parent, place->name});
    const auto made = fs().Create({place->parent, place->name, 0644, 0, Myself()}, flags | O_CREAT);
    if (!made.ok()) return std::nullopt;
    Keep(place->parent, place->name, made->entry);
    return made->handle;
  }
  bool MakeDirectory(const std::string& path) {
    const auto place = PlaceOf(path);
    if (!place) return false;
    if (Lookup(place->parent, place->name) != FileId{}) return true;
    names_.erase({place->parent, place->name});
    const auto made = fs().MakeDirectory({place->parent, place->name, 0755, 0, Myself()});
    if (made.ok()) Keep(place->parent, place->name, *made);
    return made.ok();
  }
  bool Remove(const std::string& path) {
    const auto place = PlaceOf(path);
    if (!place || Lookup(place->parent, place->name) == FileId{}) return false;
    names_.erase({place->parent, place->name});
    return fs().Unlink(place->parent, place->name).ok();
  }
  bool Tag(const std::string& path, const HintMap& hints) {
    return std::ranges::all_of(hints, [&](const auto& hint) {
      return fs()
          .SetXattr(Find(path), "user.mosa." + hint.first, hint.second, sai::XattrMode::kAny)
          .ok();
    });
  }
  // As the runner: by its times, a file that a task left untouched is told from one that it wrote.
  bool MarkAsMade(FileId file) {
    sai::AttributeChanges changes;
    changes.access_time = changes.modify_time = Time{};
    std::promise<bool> done;
    fs().SetAttributes(file, changes, [&done](const auto& set) { done.set_value(set.ok()); });
    return done.get_future().get();
  }

 private:
  testing::LocalMount mount_;
  uint64_t told_ = 0;
  std::map<std::pair<FileId, std::string>, FileId> names_;
};

predict::Access AccessOf(testing::LocalNodes::Access what) {
  switch (what) {
    case testing::LocalNodes::Access::kRead:
      return predict::Access::kRead;
    case testing::LocalNodes::Access::kWrite:
      return predict::Access::kWrite;
    case testing::LocalNodes::Access::kCut:
      return predict::Access::kCut;
    case testing::LocalNodes::Access::kStat:
      return predict::Access::kStat;
  }
  return predict::Access::kStat;
}

class RealSide {
 public:
  explicit RealSide(const History& history)
      : history_(history),
        manager_(std::make_unique<testing::LocalManager>(
            predict::ManagerOptionsOf(history.configuration), clock_)),
        nodes_(*manager_) {
    const predict::Configuration& configuration = history.configuration;
    const uint32_t first = configuration.storage_hosts == 0 ? 0 : configuration.hosts;
    for (uint32_t i = 0; i < predict::NodesOf(configuration); ++i)
      nodes_.Add(fmt::format("h{}", first + i + 1), kNodeBytes);
    nodes_.on_access = [this](const std::string& host, testing::LocalNodes::Access what,
                              const sai::ObjectTarget& target, ByteRange range) {
      if (nodes_.Get(target.node).name() == host) return;  // No message between hosts.
      const ClientId mount{std::stoull(host.substr(1))};
      const auto access = AccessOf(what);
      const SystemMutexLock lock(mutex_);
      now_.nodes.push_back(NodeText(mount, access, target.node, target.file, range));
    };
    nodes_.copy_later = [this](std::function<void()> copy) {
      const SystemMutexLock lock(mutex_);
      if (ending_) return;
      copies_.emplace_back([copy = std::move(copy)] {
        std::this_thread::sleep_for(kCopyTime);
        copy();
      });
    };
    for (uint32_t i = 0; i < configuration.hosts; ++i) {
      mounts_.push_back(std::make_unique<Kernel>(*manager_, nodes_, fmt::format("h{}", i + 1),
                                                 ClientId{i + 1}, clock_));
      mounts_.back()->mount().OnSend([this, i](const std::vector<Request>& requests) {
        const SystemMutexLock lock(mutex_);
        NoteCall(now_, history_.has_copies, ClientId{i + 1}, requests);
      });
    }
  }
  ~RealSide() {
    {
      const SystemMutexLock lock(mutex_);
      ending_ = true;
    }
    AwaitCopies();
    mounts_.clear();
    manager_.reset();  // It asks nodes for heartbeats until it ends.
  }
  RealSide(const RealSide&) = delete;
  RealSide& operator=(const RealSide&) = delete;

  Actions Do(const Operation& operation, const Actions& simulated) {
    const bool done = Try(*mounts_[operation.mount], operation, simulated);
    // What is kept for a moment only must be old for both sides. But no lease may end.
    clock_.Advance(std::min(simulated.took, sai::kSharedAttributesFor * 2));
    Await(simulated);
    AwaitCopies();
    if (history_.has_copies && operation.kind != Kind::kRead) {
      std::this_thread::sleep_for(kOrdered);
      AwaitCopies();
    }
    Await(simulated);
    const SystemMutexLock lock(mutex_);
    Actions actions = std::exchange(now_, {});
    actions.failed = !done;
    Sort(actions);
    return actions;
  }

  // What comes behind the last operation.
  Actions Rest() {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const SystemMutexLock lock(mutex_);
    Sort(now_);
    return std::exchange(now_, {});
  }

 private:
  void AwaitCopies() {
    for (;;) {
      std::vector<std::thread> copies;
      {
        const SystemMutexLock lock(mutex_);
        copies = std::exchange(copies_, {});
      }
      if (copies.empty()) return;
      for (std::thread& copy : copies) copy.join();
    }
  }
  // Until as many requests were sent as the simulated mount has sent. What else is sent is seen in
  // this operation or in the next.
  void Await(const Actions& simulated, bool nodes_only = false) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < until) {
      {
        const SystemMutexLock lock(mutex_);
        Actions until_now = now_;
        Sort(until_now);
        if (until_now.nodes.size() >= simulated.nodes.size() &&
            (nodes_only || (until_now.calls.size() >= simulated.calls.size() &&
                            until_now.releases >= simulated.releases)))
          return;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  static bool Write(Kernel& kernel, const Operation& operation, bool replaces,
                    const Actions& simulated) {
    const auto handle = kernel.Open(
        operation.path, O_WRONLY | (replaces ? static_cast<uint32_t>(O_TRUNC) : 0U), replaces);
    if (!handle) return false;
    bool written = true;
    for (const KernelRequest& request : simulated.kernel) {
      const std::string bytes(request.range.size(), 'x');
      written = kernel.mount().Write(*handle, request.range.begin, bytes).ok() && written;
    }
    return kernel.mount().Close(*handle).ok() && written;
  }
  static bool Prepare(Kernel& kernel, const Operation& operation) {
    if (kernel.Find(operation.path) != FileId{} || operation.hints.empty()) return true;
    const auto handle = kernel.Open(operation.path, O_WRONLY | O_EXCL, true);
    if (!handle || !kernel.mount().Close(*handle).ok()) return false;
    return kernel.Tag(operation.path, operation.hints) &&
           kernel.MarkAsMade(kernel.Find(operation.path));
  }
  bool Read(Kernel& kernel, const Operation& operation, const Actions& simulated) {
    const auto handle = kernel.Open(operation.path, O_RDONLY, false);
    if (!handle) return false;
    bool read = true;
    for (const KernelRequest& request : simulated.kernel)
      read = kernel.mount().Read(*handle, request.range.begin, request.range.size()).ok() && read;
    Await(simulated, /*nodes_only=*/true);
    return kernel.mount().Close(*handle).ok() && read;
  }
  bool Try(Kernel& kernel, const Operation& operation, const Actions& simulated) {
    switch (operation.kind) {
      case Kind::kMakeDirectory:
        return kernel.MakeDirectory(operation.path) &&
               kernel.Tag(operation.path, operation.hints);
      case Kind::kPrepare:
        return Prepare(kernel, operation);
      case Kind::kWrite:
        return Write(kernel, operation, true, simulated);
      case Kind::kUpdate:
        return Write(kernel, operation, false, simulated);
      case Kind::kRemove:
        return kernel.Remove(operation.path);
      case Kind::kRead:
        return Read(kernel, operation, simulated);
    }
    return false;
  }

  const History& history_;
  // Goes on with the operations, as that of the simulated side: a slow machine lets nothing expire.
  ManualClock clock_{SystemClock().Now()};
  SystemMutex mutex_;
  Actions now_;                      // Guarded by mutex_.
  std::vector<std::thread> copies_;  // Likewise.
  bool ending_ = false;              // Likewise: no copy begins any more.
  std::unique_ptr<testing::LocalManager> manager_;
  testing::LocalNodes nodes_;
  std::vector<std::unique_ptr<Kernel>> mounts_;
};

}  // namespace

std::vector<Actions> Perform(const History& history, const std::vector<Actions>& simulated) {
  RealSide real(history);
  std::vector<Actions> actions;
  for (size_t i = 0; i < history.operations.size(); ++i)
    actions.push_back(real.Do(history.operations[i], simulated[i]));
  actions.push_back(real.Rest());
  return actions;
}

}  // namespace mosa::fidelity
