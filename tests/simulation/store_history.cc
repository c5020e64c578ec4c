#include "tests/simulation/store_history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/sai/filesystem.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/sync.h"
#include "tests/simulation/simulated_node.h"
#include "tests/simulation/simulated_session.h"

namespace mosa::simulation {
namespace {

using sai::Done;
using sai::Outcome;

constexpr HostId kFirstHost = SimulatedManager::kHost + 1;
constexpr Time kHistoryMax{Seconds(3'000).ns};
constexpr uint64_t kNodeBytes = uint64_t{64} << 20;
constexpr uint64_t kSmallNodeBytes = uint64_t{1} << 20;  // At least; twice as much at most.
// A call should take kWaitMax at most; where several faults meet it takes a little longer.
constexpr Duration kCallMax = kWaitMax + Seconds(1);
// A close that waits for copies may take this much longer, for copying that goes on
// (client-sai/core/copy_wait.h).
constexpr Duration kCopyExtension = Seconds(11);
// A write that is first moved off a full node, and then meets a silent one, may take this much
// longer: its store has kStoreMin (client-sai/sai/write_behind.cc) whatever came before.
constexpr Duration kStoreExtension = Seconds(2);
// Until this long after the end of a fault calls may fail for it: sessions and nodes return.
constexpr Duration kSettleMax = Seconds(20);
// Until this long after the last fault copies are made.
constexpr Duration kCopyMax = Seconds(60);

class Kernel final : public sai::KernelNotifier {
 public:
  Capabilities capabilities() const override {
    return {.passthrough = false, .epoch = true, .drops_pages = true, .maps_direct = false};
  }
  void InvalidateEntries() override {}
  bool InvalidateFile(FileId) override { return true; }
  void InvalidateAttributes(FileId) override {}
};

// One host: its node, and its mount, which lives in the host's own threads.
struct Host {
  HostId id = 0;
  std::unique_ptr<SimulatedSession> session;
  std::unique_ptr<sai::NodeApi> nodes;
  Kernel kernel;
  VirtualClock clock;
  std::unique_ptr<sai::Filesystem> fs;
  Duration paused;  // In all.
};

// What a history's seed decides of the store: its nodes, and the hints of all files.
struct Configuration {
  uint64_t node_bytes = kNodeBytes;
  uint32_t replicas = 1;
  bool eager = false;
  bool pessimistic = false;  // A close waits for all copies.

  static Configuration Draw(Rng& rng, uint32_t nodes) {
    Configuration drawn;
    if (rng.Chance(300)) drawn.node_bytes = kSmallNodeBytes + rng.Below(kSmallNodeBytes);
    if (rng.Chance(400)) return drawn;
    drawn.replicas = 2 + static_cast<uint32_t>(rng.Below(nodes - 1));
    drawn.eager = rng.Chance(400);
    drawn.pessimistic = rng.Chance(500);
    return drawn;
  }
  bool may_be_full() const { return node_bytes < kNodeBytes; }
};

// What is known of one name, and by whom it is used.
struct Name {
  Mutex used;
  bool certain = true;  // The rest is known. If not, a call that could change it has failed.
  bool exists = false;
  std::string content;
  uint64_t wipes = 0;       // Nodes that had lost everything before its content was written.
  bool has_copies = false;  // As many as the hints ask for.
  // Bytes of a write that failed may lie behind its end (docs/reference/limitations.md), so it gets
  // no holes until it is removed.
  bool has_remains = false;
};

class Run {
 public:
  explicit Run(const HistoryOptions& options)
      : options_(options),
        scheduler_(options.seed),
        network_(options.trace),
        names_(options.files) {
    Rng rng(options.seed);
    store_ = Configuration::Draw(rng, options.mounts);
  }

  History Do() {
    if (!scheduler_.Run([this] { Main(); }, kHistoryMax)) Problem(scheduler_.problem());
    history_.digest = scheduler_.digest();
    history_.duration = scheduler_.now() - Time{};
    return std::move(history_);
  }

 private:
  // ---- the store

  void Main() {
    manager::ManagerOptions manager;
    manager.chunk_bytes = 64 << 10;
    manager_ = std::make_unique<SimulatedManager>(manager);
    for (uint32_t i = 0; i < options_.mounts; ++i)
      nodes_[kFirstHost + i] = std::make_unique<SimulatedNode>(network_, *manager_, nodes_,
                                                               kFirstHost + i, store_.node_bytes);
    SleepFor(Seconds(1));  // They register.
    running_ = options_.mounts * options_.programs;
    for (uint32_t i = 0; i < options_.mounts; ++i) {
      hosts_.push_back(std::make_unique<Host>());
      hosts_.back()->id = kFirstHost + i;
      scheduler_.Start([this, host = hosts_.back().get()] { RunHost(*host); }, kFirstHost + i);
    }
    if (options_.faults) InjectFaults();
    while (running_ > 0) ended_.Wait(kNever);
    SleepFor(kSettleMax);
    CheckAll();
    if (store_.replicas > 1) CheckCopies();
    End();
  }

  // Unmounts, so that nothing runs any more.
  void End() {
    for (const auto& host : hosts_)
      On(host->id, [this, &host] {
        const ::mosa::Status stopped = host->fs->Stop();
        // It names what a fault has cost.
        if (!stopped.ok() && history_.faults == 0)
          Problem(fmt::format("h{} is not unmounted: {}", host->id, MessageOf(stopped)));
        host->fs = nullptr;
        host->session->Stop();
      });
    for (const auto& [id, node] : nodes_) node->Stop();
    manager_->Stop();
    SleepFor(kSettleMax);
  }

  // Runs `body` as a thread of a host, and waits for its end.
  void On(HostId host, const std::function<void()>& body) {
    bool done = false;
    WaitList ended;
    scheduler_.Start(
        [&] {
          body();
          done = true;
          ended.WakeAll();
        },
        host);
    while (!done) ended.Wait(kNever);
  }

  void RunHost(Host& host) {
    host.session =
        std::make_unique<SimulatedSession>(network_, *manager_, host.id, ClientId{host.id});
    host.nodes = NewSimulatedNodeApi(network_, nodes_, host.id);
    sai::FilesystemOptions fs;
    fs.node_name = fs.host_identity = "h" + std::to_string(host.id);
    fs.mount_point = "/mnt";
    fs.client = ClientId{host.id};
    fs.passthrough = false;
    host.fs = std::make_unique<sai::Filesystem>(std::move(fs), *host.session, *host.nodes,
                                                host.kernel, host.clock);
    const ::mosa::Status started = host.fs->Start();
    if (!started.ok()) Problem(fmt::format("h{} does not mount: {}", host.id, MessageOf(started)));
    SetHints(host);
    for (uint32_t i = 0; i < options_.programs; ++i)
      scheduler_.Start([this, &host, i] { RunProgram(host, i); }, host.id);
  }

  void SetHints(Host& host) {
    const auto set = [&](const std::string& name, std::string_view value) {
      const auto done = host.fs->SetXattr(kRootFile, name, value, sai::XattrMode::kAny);
      if (!done.ok()) Problem(fmt::format("{} cannot be set: {}", name, done.failure().message));
    };
    if (store_.replicas == 1) return;
    set("user.mosa.replicas", std::to_string(store_.replicas));
    set("user.mosa.replicate", store_.eager ? "eager" : "lazy");
    set("user.mosa.ack", store_.pessimistic ? "pessimistic" : "optimistic");
  }

  // ---- faults, one at a time

  void InjectFaults() {
    Rng& rng = scheduler_.rng();
    while (running_ > 0) {
      SleepFor(Milliseconds(static_cast<int64_t>(200 + rng.Below(6'000))));
      if (running_ == 0) return;
      ++history_.faults;
      fault_ = true;
      const Duration length = Milliseconds(static_cast<int64_t>(100 + rng.Below(20'000)));
      const HostId host = kFirstHost + static_cast<HostId>(rng.Below(options_.mounts));
      switch (rng.Below(6)) {
        case 0:
          Note(fmt::format("h{} is paused for {} ms", host, length.ns / 1'000'000));
          Pause(host, length);
          break;
        case 1:
          Note(fmt::format("the link of h{} is down for {} ms", host, length.ns / 1'000'000));
          Cut(host, length);
          break;
        case 2:
          Note(fmt::format("the manager is down for {} ms", length.ns / 4'000'000));
          manager_->Kill();
          SleepFor(Duration{length.ns / 4});
          manager_->Start();
          break;
        case 3:
          Note(fmt::format("the manager is paused for {} ms", length.ns / 1'000'000));
          Pause(SimulatedManager::kHost, length);
          break;
        case 4:
          Note(fmt::format("the manager's link is down for {} ms", length.ns / 1'000'000));
          Cut(SimulatedManager::kHost, length);
          break;
        default:
          Note(fmt::format("the node of h{} loses everything", host));
          ++wipes_;
          nodes_.at(host)->Wipe();
          SleepFor(Milliseconds(static_cast<int64_t>(rng.Below(3'000))));
          nodes_.at(host)->Begin();
      }
      fault_ = false;
      fault_ended_ = scheduler_.now();
      Note("the fault is over");
    }
  }

  void Pause(HostId host, Duration length) {
    scheduler_.Pause(host);
    SleepFor(length);
    if (host >= kFirstHost)
      hosts_[host - kFirstHost]->paused = hosts_[host - kFirstHost]->paused + length;
    scheduler_.Resume(host);
  }

  void Cut(HostId host, Duration length) {
    network_.Cut(host);
    SleepFor(length);
    network_.Mend(host);
  }

  bool MayFail(Time begun) const {
    return fault_ || (history_.faults > 0 && begun < fault_ended_ + kSettleMax);
  }

  // ---- programs

  void RunProgram(Host& host, uint32_t number) {
    Rng rng(options_.seed * 1'000 + host.id * 10 + number);
    for (uint32_t i = 0; i < options_.operations; ++i) {
      SleepFor(Milliseconds(static_cast<int64_t>(rng.Below(rng.Chance(300) ? 3'000 : 300))));
      const size_t at = rng.Below(names_.size());
      Name& name = names_[at];
      const std::unique_lock lock(name.used);
      ++history_.operations;
      switch (rng.Below(11)) {
        case 0:
          Remove(host, at);
          break;
        case 10:
          Rename(host, at, rng);
          break;
        case 1:
          Truncate(host, at, rng);
          break;
        case 2:
        case 3:
          Rewrite(host, at, rng);
          break;
        case 4:
        case 5:
          Change(host, at, rng);
          break;
        default:
          Read(host, at);
      }
    }
    if (--running_ == 0) ended_.WakeAll();
  }

  static std::string NameOf(size_t at) { return "f" + std::to_string(at); }
  static sai::Caller Myself() { return {0, 0, 1, 022}; }

  // Makes one request as the kernel does, and looks at the clock.
  template <typename Call>
  auto Ask(Host& host, const std::string& what, const Call& call, Duration max = kCallMax) {
    const Time begun = scheduler_.now();
    const Duration paused = host.paused;
    const sai::WaitBudget budget(SteadyNow());
    auto outcome = call();
    const Duration took = scheduler_.now() - begun - (host.paused - paused);
    if (took > history_.longest) {
      history_.longest = took;
      history_.longest_call = fmt::format("{} on h{}", what, host.id);
    }
    if (took > (store_.may_be_full() ? max + kStoreExtension : max))
      Problem(fmt::format("{} on h{} took {} ms", what, host.id, took.ns / 1'000'000));
    if (options_.trace)
      Note(fmt::format("h{} {}: {}", host.id, what,
                       outcome.ok() ? "ok" : outcome.failure().message));
    if (!outcome.ok()) {
      ++history_.failed;
      if (outcome.failure().reason != ErrorReason::kNoEntry && !MayFail(begun) &&
          !IsLoss(outcome.failure()) && !IsFull(outcome.failure()))
        Problem(fmt::format("{} on h{} failed without a fault: {}", what, host.id,
                            outcome.failure().message));
    }
    return outcome;
  }
  Duration CloseMax() const { return store_.pessimistic ? kCallMax + kCopyExtension : kCallMax; }
  bool IsFull(const Failure& failure) const {
    return store_.may_be_full() && failure.code == StatusCode::kResourceExhausted;
  }
  // The callers judge whether the file may be lost.
  static bool IsLoss(const Failure& failure) {
    return failure.code == StatusCode::kDataLoss || failure.reason == ErrorReason::kNodeLost;
  }

  Outcome<FileId> Find(Host& host, size_t at) {
    auto found =
        Ask(host, "lookup " + NameOf(at), [&] { return host.fs->Lookup(kRootFile, NameOf(at)); });
    if (!found.ok()) return found.failure();
    return found->entry.file;
  }

  Outcome<sai::HandleId> Open(Host& host, size_t at, uint32_t flags) {
    const auto file = Find(host, at);
    if (!file.ok()) return file.failure();
    if (*file == FileId{}) {
      if ((flags & O_CREAT) == 0)
        return Failure{StatusCode::kNotFound, ErrorReason::kNoEntry, "no such file"};
      const std::string name = NameOf(at);
      auto made = Ask(host, "create " + name, [&] {
        return host.fs->Create({kRootFile, name, 0644, 0, Myself()}, flags);
      });
      if (!made.ok()) return made.failure();
      return made->handle;
    }
    auto opened = Ask(host, "open " + NameOf(at), [&] {
      return host.fs->Open(*file, flags & ~static_cast<uint32_t>(O_CREAT), Myself());
    });
    if (!opened.ok()) return opened.failure();
    return opened->handle;
  }

  // Starts a call that answers through a callback, and waits for its outcome.
  template <typename Value>
  static Outcome<Value> Await(
      const std::function<void(std::function<void(Outcome<Value>)>)>& start) {
    struct State {
      Mutex mutex;
      CondVar told;
      std::optional<Outcome<Value>> outcome;
    };
    const auto state = std::make_shared<State>();
    start([state](Outcome<Value> outcome) {
      const std::lock_guard lock(state->mutex);
      state->outcome = std::move(outcome);
      state->told.notify_all();
    });
    std::unique_lock lock(state->mutex);
    state->told.wait(lock, [&] { return state->outcome.has_value(); });
    return *std::move(state->outcome);
  }

  Outcome<Done> Close(Host& host, size_t at, sai::HandleId handle) {
    const auto flush = [&] {
      return Await<Done>([&](auto done) { host.fs->Flush(handle, 0, std::move(done)); });
    };
    auto closed = Ask(host, "close " + NameOf(at), flush, CloseMax());
    host.fs->Release(handle, std::nullopt);
    return closed;
  }

  // Runs `change` on the open file, and closes it. OK if all of that is.
  Outcome<Done> InOpen(Host& host, size_t at, uint32_t flags,
                       const std::function<Outcome<Done>(sai::HandleId)>& change) {
    const auto handle = Open(host, at, flags);
    if (!handle.ok()) return handle.failure();
    Outcome<Done> changed = change(*handle);
    const Outcome<Done> closed = Close(host, at, *handle);
    return changed.ok() ? closed : changed;
  }

  Outcome<Done> Write(Host& host, size_t at, sai::HandleId handle, uint64_t offset,
                      std::string_view data) {
    const auto written =
        Ask(host, fmt::format("write {} B at {} of {}", data.size(), offset, NameOf(at)), [&] {
          return host.fs->Write(handle, {.offset = offset, .call_bytes = data.size()},
                                std::as_bytes(std::span(data)));
        });
    if (!written.ok()) return written.failure();
    return Done{};
  }

  static uint64_t LengthOf(Rng& rng) {
    return 1 + rng.Below(rng.Chance(400) ? 3'000 : rng.Chance(500) ? 100'000 : 400'000);
  }

  // Bytes that no other write has.
  std::string Fresh(uint64_t length) {
    ++writes_;
    std::string data(length, '\0');
    for (uint64_t i = 0; i < length; ++i)
      data[i] = static_cast<char>(1 + Mix64(writes_ << 20 | i / 512) % 255);
    return data;
  }

  void Rewrite(Host& host, size_t at, Rng& rng) {
    Name& name = names_[at];
    const std::string data = Fresh(LengthOf(rng));
    const uint64_t wipes = wipes_;
    const Outcome<Done> done =
        InOpen(host, at, O_CREAT | O_RDWR | O_TRUNC, [&](sai::HandleId handle) -> Outcome<Done> {
          const uint64_t step = 1 + data.size() / (1 + rng.Below(4));
          for (uint64_t i = 0; i < data.size(); i += step) {
            const auto piece = std::string_view(data).substr(i, step);
            MOSA_RETURN_IF_FAILED(Write(host, at, handle, i, piece));
            if (rng.Chance(200)) SleepFor(Milliseconds(static_cast<int64_t>(rng.Below(5'000))));
            if (rng.Chance(100))
              MOSA_RETURN_IF_FAILED(Ask(host, "fsync", [&] { return host.fs->Fsync(handle); }));
          }
          return Done{};
        });
    name.certain = done.ok();
    name.has_remains = name.has_remains || !done.ok();
    if (!done.ok()) return;
    name.exists = true;
    name.content = data;
    name.wipes = wipes;
    name.has_copies = store_.pessimistic;
  }

  void Change(Host& host, size_t at, Rng& rng) {
    Name& name = names_[at];
    if (!name.certain || !name.exists || MayBeLost(name)) return Read(host, at);
    const Time begun = scheduler_.now();
    const bool appends = rng.Chance(300);
    const std::string data = Fresh(LengthOf(rng));
    const uint64_t gap = name.has_remains ? 1 : 5'000;
    const uint64_t offset = appends ? name.content.size() : rng.Below(name.content.size() + gap);
    const Outcome<Done> done = InOpen(
        host, at, O_RDWR | (appends ? uint32_t{O_APPEND} : 0),
        [&](sai::HandleId handle) { return Write(host, at, handle, appends ? 0 : offset, data); });
    if (!done.ok()) CheckFailure(host, at, begun, done.failure());
    name.certain = done.ok();
    name.has_remains = name.has_remains || !done.ok();
    if (!done.ok()) return;
    if (name.content.size() < offset + data.size()) name.content.resize(offset + data.size());
    name.content.replace(offset, data.size(), data);
  }

  void Truncate(Host& host, size_t at, Rng& rng) {
    Name& name = names_[at];
    if (!name.certain || !name.exists || MayBeLost(name)) return Read(host, at);
    const Time begun = scheduler_.now();
    const uint64_t longest = name.content.size() * (name.has_remains ? 1 : 2);
    const uint64_t size = rng.Chance(300) ? 0 : rng.Below(longest + 1);
    const auto file = Find(host, at);
    if (!CheckFound(host, at, file) || !file.ok()) return;
    sai::AttributeChanges changes;
    changes.size_bytes = size;
    const auto resize = [&] {
      return Await<sai::AttributesResult>(
          [&](auto done) { host.fs->SetAttributes(*file, changes, std::move(done)); });
    };
    const auto cut =
        Ask(host, fmt::format("truncate {} to {}", NameOf(at), size), resize, CloseMax());
    if (!cut.ok()) CheckFailure(host, at, begun, cut.failure());
    name.certain = cut.ok();
    if (cut.ok()) name.content.resize(size);
  }

  void Remove(Host& host, size_t at) {
    Name& name = names_[at];
    const auto removed =
        Ask(host, "unlink " + NameOf(at), [&] { return host.fs->Unlink(kRootFile, NameOf(at)); });
    if (!removed.ok() && removed.failure().reason == ErrorReason::kNoEntry) {
      if (name.certain && name.exists)
        Problem(fmt::format("unlink on h{}: {} is absent", host.id, NameOf(at)));
      return;
    }
    if (removed.ok() && name.certain && !name.exists)
      Problem(fmt::format("unlink on h{}: {} was there", host.id, NameOf(at)));
    name.certain = removed.ok();
    name.has_remains = !removed.ok();
    name.exists = false;
    name.content.clear();
    name.wipes = wipes_;
  }

  // Moves the file to a name with a higher number, or over its file. So the names are locked in one
  // order everywhere.
  void Rename(Host& host, size_t at, Rng& rng) {
    if (at + 1 == names_.size()) return Read(host, at);
    const size_t target = at + 1 + rng.Below(names_.size() - at - 1);
    Name& from = names_[at];
    Name& to = names_[target];
    const std::unique_lock lock(to.used);
    const std::string what = fmt::format("rename {} to {}", NameOf(at), NameOf(target));
    const auto moved = Ask(host, what, [&] {
      return host.fs->Rename(kRootFile, NameOf(at), kRootFile, NameOf(target), 0);
    });
    const bool absent = !moved.ok() && moved.failure().reason == ErrorReason::kNoEntry;
    if (from.certain && absent == from.exists && (absent || moved.ok()))
      Problem(fmt::format("{} on h{}: it {} there", what, host.id, absent ? "is not" : "was"));
    if (absent) return;
    from.certain = from.certain && moved.ok();
    to.certain = from.certain;
    to.exists = true;
    to.content = std::move(from.content);
    to.wipes = from.wipes;
    to.has_copies = from.has_copies;
    to.has_remains = from.has_remains || !moved.ok();
    if (!moved.ok()) {
      from.has_remains = true;
      return;
    }
    from.certain = true;
    from.exists = from.has_remains = false;
    from.content.clear();
    from.wipes = wipes_;
  }

  bool MayBeLost(const Name& name) const {
    return wipes_ - name.wipes >= (name.has_copies ? store_.replicas : 1);
  }

  // False if it is not there, and should be, or the other way round.
  bool CheckFound(Host& host, size_t at, const Outcome<FileId>& file) {
    const Name& name = names_[at];
    if (!file.ok()) return false;
    const bool found = *file != FileId{};
    if (!name.certain || found == name.exists) return found;
    Problem(fmt::format("h{} finds {} {}", host.id, NameOf(at),
                        found ? "although it was removed" : "absent although it was closed"));
    return false;
  }

  void Read(Host& host, size_t at) {
    const Name& name = names_[at];
    const Time begun = scheduler_.now();
    const auto file = Find(host, at);
    if (!CheckFound(host, at, file)) return;
    const auto opened =
        Ask(host, "open " + NameOf(at), [&] { return host.fs->Open(*file, O_RDONLY, Myself()); });
    if (!opened.ok()) return CheckFailure(host, at, begun, opened.failure());
    std::string content;
    std::optional<Failure> failure;
    for (;;) {
      const auto part = Ask(host, "read " + NameOf(at), [&] {
        return host.fs->Read(opened->handle, content.size(), 128 << 10);
      });
      if (!part.ok()) failure = part.failure();
      if (!part.ok() || part->size_bytes == 0) break;
      AddTo(content, *part);
    }
    const auto closed = Close(host, at, opened->handle);
    if (failure) return CheckFailure(host, at, begun, *failure);
    if (name.certain && content != name.content)
      Problem(Difference(host, at, name.content, content));
  }

  static void AddTo(std::string& content, const sai::ReadResult& part) {
    std::string bytes(part.size_bytes, '\0');
    if (part.descriptor >= 0) {
      MOSA_CHECK(pread(part.descriptor, bytes.data(), bytes.size(),
                       static_cast<off_t>(part.offset)) == static_cast<ssize_t>(bytes.size()));
    } else {
      bytes.assign(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
    }
    content += bytes;
  }

  void CheckFailure(Host& host, size_t at, Time begun, const Failure& failure) {
    const Name& name = names_[at];
    if (!name.certain || MayFail(begun) || IsFull(failure)) return;
    if (MayBeLost(name) && IsLoss(failure)) return;
    Problem(fmt::format("h{} cannot use {}: {}", host.id, NameOf(at), failure.message));
  }

  std::string Difference(Host& host, size_t at, const std::string& right, const std::string& read) {
    size_t i = 0;
    while (i < right.size() && i < read.size() && right[i] == read[i]) ++i;
    size_t last = i;
    for (size_t j = i; j < std::min(right.size(), read.size()); ++j)
      if (right[j] != read[j]) last = j;
    const auto byte = [i](const std::string& bytes) {
      return i < bytes.size() ? static_cast<int>(static_cast<unsigned char>(bytes[i])) : -1;
    };
    return fmt::format(
        "h{} reads {} bytes of {}, which has {}; wrong ones are from {} to {}, the first is {} "
        "instead of {}",
        host.id, read.size(), NameOf(at), right.size(), i, last, byte(read), byte(right));
  }

  // At the end everybody sees the same.
  void CheckAll() {
    for (size_t at = 0; at < names_.size(); ++at)
      for (const auto& host : hosts_) On(host->id, [&] { Read(*host, at); });
  }

  // Once nothing has changed for long, every file has its copies, and one node less loses none.
  void CheckCopies() {
    SleepFor(kCopyMax);
    for (size_t at = 0; at < names_.size(); ++at) {
      Name& name = names_[at];
      if (!name.certain || !name.exists || MayBeLost(name)) continue;
      const std::optional<uint32_t> copies = manager_->CopiesOf("/" + NameOf(at));
      name.has_copies = copies && *copies >= store_.replicas;
      if (name.has_copies) name.wipes = wipes_;
      if (copies && *copies < store_.replicas && !store_.may_be_full())
        Problem(fmt::format("{} has {} of {} copies", NameOf(at), *copies, store_.replicas));
    }
    const HostId host = kFirstHost + static_cast<HostId>(scheduler_.rng().Below(options_.mounts));
    Note(fmt::format("at the end, the node of h{} loses everything", host));
    ++history_.faults;
    ++wipes_;
    nodes_.at(host)->Wipe();
    SleepFor(kSettleMax);
    CheckAll();
  }

  void Problem(std::string what) {
    Note("PROBLEM " + what);
    history_.problems.push_back(fmt::format("at {} ms: {}", scheduler_.now().ns / 1'000'000, what));
  }

  void Note(const std::string& what) const { network_.Note(what); }

  const HistoryOptions options_;
  Configuration store_;
  Scheduler scheduler_;
  Network network_;
  std::unique_ptr<SimulatedManager> manager_;
  SimulatedNodes nodes_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<Name> names_;
  History history_;
  WaitList ended_;
  uint32_t running_ = 0;
  bool fault_ = false;
  Time fault_ended_;
  uint64_t wipes_ = 0;
  uint64_t writes_ = 0;
};

}  // namespace

History RunHistory(const HistoryOptions& options) {
  auto run = std::make_unique<Run>(options);
  History history = run->Do();
  // Threads that have not ended still refer to it.
  if (!history.problems.empty()) static_cast<void>(run.release());
  return history;
}

}  // namespace mosa::simulation
