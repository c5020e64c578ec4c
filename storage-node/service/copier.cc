#include "storage-node/service/copier.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/sync.h"
#include "common/model/checksum_blocks.h"

namespace mosa::node {
namespace {

constexpr size_t kFetchesMax = 16;
// Each source of a file may hold one, plus one of the previous order while that lasts.
constexpr size_t kHoldsMax = 16;
constexpr size_t kThreads = kFetchesMax + kHoldsMax + 2;  // Two for questions that are not held.
static_assert(kFetchesMax + kHoldsMax == Copier::kCallsMax);
constexpr size_t kFinishedMax = 4096;  // Finished orders remembered for nodes that copy from here.
constexpr Duration kHoldMax = Seconds(1);
constexpr Duration kHoldMin = Milliseconds(50);
constexpr Duration kCapabilityLife = Seconds(60);
constexpr Duration kIdle = Seconds(5);     // After this, connections to other nodes are closed.
constexpr size_t kPieceBytes = 256 << 10;  // Stored per hold of the object's lock.
constexpr size_t kPage = 4096;
// Minimum length of a hole that is kept within a block with data.
constexpr size_t kHoleBytesMin = 4 * kPage;

bool IsZero(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

struct Stretch {
  ByteRange range;
  bool zero = false;
};

// Splits the bytes fetched for `range` into data and holes. A whole block of zeroes is data, since
// the source has stored it.
std::vector<Stretch> FindHoles(ByteRange range, std::span<const std::byte> bytes) {
  std::vector<Stretch> stretches;
  const auto add = [&](uint64_t begin, uint64_t end, bool zero) {
    if (begin == end) return;
    if (!stretches.empty() && stretches.back().zero == zero) {
      stretches.back().range.end = end;
    } else {
      stretches.push_back({{begin, end}, zero});
    }
  };
  for (uint64_t at = range.begin; at < range.end;) {
    const uint64_t end = at + BytesInBlock(at, range.end - at);
    const auto block = bytes.subspan(at - range.begin, end - at);
    uint64_t data_begin = at;
    uint64_t zero_begin = at;  // From here to the current page everything is zero.
    for (uint64_t page = at; page < end;) {
      const uint64_t page_end = std::min(end, (page / kPage + 1) * kPage);
      if (!IsZero(block.subspan(page - at, page_end - page))) {
        if (page - zero_begin >= kHoleBytesMin) {
          add(data_begin, zero_begin, false);
          add(zero_begin, page, true);
          data_begin = page;
        }
        zero_begin = page_end;
      }
      page = page_end;
    }
    const bool hole_at_end = end - zero_begin >= kHoleBytesMin && zero_begin > at;
    add(data_begin, hole_at_end ? zero_begin : end, false);
    if (hole_at_end) add(zero_begin, end, true);
    at = end;
  }
  return stretches;
}

Status CheckOrder(const CopyOrder& order) {
  const auto wrong = [&](std::string_view what) {
    return InvalidArgumentError(
        fmt::format("copy order {} for file {}: {}", order.order, order.file.value, what));
  };
  if (!order.sources.bound() || order.sources.chunk_bytes == 0) return wrong("it names no sources");
  for (const Segment& segment : order.sources.segments) {
    if (segment.width == 0 || segment.nodes.size() != segment.width)
      return wrong("it names several sources for the same bytes");
  }
  for (const NodeId node : order.sources.Nodes()) {
    if (node != kNoNode &&
        std::ranges::find(order.nodes, node, &NodeAddress::node) == order.nodes.end())
      return wrong(fmt::format("source {} has no address", node.value));
  }
  return OkStatus();
}

// Nothing was committed on the source yet, or it is still fetching the file itself.
bool IsRelay(const CopyOrder& order, NodeId source) {
  return std::ranges::find(order.relays, source, &CopyRelay::node) != order.relays.end();
}

bool MayBeAbsent(const CopyOrder& order, NodeId source) {
  return std::ranges::find(order.empty_sources, source) != order.empty_sources.end() ||
         IsRelay(order, source);
}

ErrorReason ReasonFor(StatusCode code) {
  if (code == StatusCode::kResourceExhausted) return ErrorReason::kNoSpace;
  if (code == StatusCode::kDataLoss) return ErrorReason::kCorrupt;
  return ErrorReason::kNone;
}

}  // namespace

struct Copier::Job {
  Job(CopyOrder order, const CopyLimits& limits)
      : file(order.file), epoch(order.epoch), task(std::move(order), limits) {}

  const FileId file;
  std::atomic<uint64_t> epoch;  // Epoch of the latest order.
  CopyTask task;                // Guarded by Copier::mutex_.
  Time reported_at;
  uint64_t reported_bytes = 0;

  // Once Cancel() returns, nobody changes the object for this job any more.
  void Cancel() {
    MutexLock lock(changes_mutex);
    cancelled = true;
    while (changes > 0) changes_ended.wait(lock);
  }

  Mutex changes_mutex;
  CondVar changes_ended;
  size_t changes ABSL_GUARDED_BY(changes_mutex) = 0;  // In progress.
  bool cancelled ABSL_GUARDED_BY(changes_mutex) = false;
};

// A change of the object for a job, for as long as it lives, unless the job was cancelled.
class Copier::ObjectChange {
 public:
  explicit ObjectChange(Job& job) : job_(job) {
    const MutexLock lock(job_.changes_mutex);
    may_begin_ = !job_.cancelled;
    if (may_begin_) ++job_.changes;
  }
  ObjectChange(const ObjectChange&) = delete;
  ~ObjectChange() {
    if (!may_begin_) return;
    const MutexLock lock(job_.changes_mutex);
    if (--job_.changes == 0) job_.changes_ended.notify_all();
  }
  Status status() const {
    return may_begin_ ? OkStatus() : AbortedError("the order was cancelled");
  }

 private:
  Job& job_;
  bool may_begin_ = false;
};

Copier::Copier(ObjectEngine& engine, const AccessGate& gate, const Clock& clock,
               std::unique_ptr<sai::NodeApi> nodes, CopyLimits limits)
    : engine_(engine), gate_(gate), limits_(limits), clock_(clock), nodes_(std::move(nodes)) {}

Copier::~Copier() { Stop(); }

void Copier::Start(Report report) {
  report_ = std::move(report);
  for (size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Run(); });
}

void Copier::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    nodes_->SetNodes({});  // Ends calls in progress.
    changed_.notify_all();
  }
  for (Thread& thread : threads_) thread.join();
  threads_.clear();
}

// ---- orders

void Copier::Take(CopyOrder order) {
  const FileId file = order.file;
  const Status wrong = CheckOrder(order);
  if (!wrong.ok()) {
    LogError("{}", MessageOf(wrong));
    Cancel(std::span(&file, 1));
    CopyReport report{
        .file = file, .order = order.order, .data_version = order.data_version, .failure = {}};
    report.failure = Failure{wrong.code(), ErrorReason::kInvalid, MessageOf(wrong)};
    report_(report);
    return;
  }
  if (GoOn(order)) return;
  auto job = std::make_shared<Job>(std::move(order), limits_);
  Cancel(std::span(&file, 1));
  MutexLock lock(mutex_);
  NoteNodes(job->task.order());
  jobs_[file] = job;
  if (job->task.finished()) {  // This node has nothing to hold.
    Retire(job);
    const auto report = ReportOf(*job, clock_.Monotonic());
    lock.unlock();
    return report_(*report);
  }
  active_.insert(file);
  changed_.notify_one();
}

bool Copier::GoOn(const CopyOrder& order) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(order.file);
  if (found == jobs_.end() || !found->second->task.GoesOnAs(order)) return false;
  NoteNodes(order);
  found->second->epoch = order.epoch;
  found->second->task.GoOnAs(order);
  changed_.notify_one();
  return true;
}

void Copier::NoteNodes(const CopyOrder& order) {
  for (NodeAddress address : order.nodes) {
    address.state = NodeState::kLive;  // The manager considers it reachable.
    known_nodes_[address.node] = std::move(address);
  }
  RefreshNodes();
}

void Copier::Cancel(std::span<const FileId> files) {
  for (const FileId file : files) {
    JobRef job;
    {
      const MutexLock lock(mutex_);
      const auto found = jobs_.find(file);
      if (found == jobs_.end()) continue;
      job = std::move(found->second);
      jobs_.erase(found);
      active_.erase(file);
    }
    job->Cancel();
  }
}

void Copier::CancelAll() {
  std::vector<FileId> files;
  {
    const MutexLock lock(mutex_);
    for (const auto& [file, job] : jobs_) files.push_back(file);
  }
  Cancel(files);
}

void Copier::RefreshNodes() {
  std::vector<NodeAddress> nodes;
  for (const auto& [id, address] : known_nodes_) nodes.push_back(address);
  nodes_->SetIdentity(gate_.IdentityAtNodes());
  if (!stopping_) nodes_->SetNodes(nodes);
}

void Copier::DescribeOrder(FileId file, ByteRange range, BlockSums& sums,
                           std::vector<bool>& settled) const {
  settled.assign(BlocksTouched(range.begin, range.size()), false);
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(file);
  if (found == jobs_.end() || found->second->task.order().follow) return;
  const CopyTask& task = found->second->task;
  sums.order = task.order().order;
  // Slightly early: bytes after an end not reached yet are requested by range.
  sums.tail_settled = task.done();
  if (task.done() || task.Settled(range)) {
    settled.assign(settled.size(), true);
    return;
  }
  for (size_t i = 0; i < settled.size(); ++i) {
    const uint64_t block =
        range.begin / kChecksumBlockBytes * kChecksumBlockBytes + i * kChecksumBlockBytes;
    settled[i] = task.Settled(
        {std::max(range.begin, block), std::min(range.end, block + kChecksumBlockBytes)});
  }
}

// ---- the pool

void Copier::Run() {
  std::vector<std::byte> scratch(kChecksumBlockBytes);
  while (std::optional<Turn> turn = NextTurn()) {
    if (turn->action.kind == CopyAction::Kind::kFetch && turn->buffer == nullptr)
      turn->buffer = std::make_unique_for_overwrite<std::byte[]>(limits_.fetch_bytes);
    Perform(*turn, scratch);
  }
}

std::optional<Copier::Turn> Copier::NextTurn() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    std::optional<Time> wake_at;
    const Time now = clock_.Monotonic();
    if (auto turn = PickTurn(now, wake_at)) {
      changed_.notify_one();  // There may be more to do.
      return turn;
    }
    Duration wait = kIdle;
    if (wake_at) wait = std::max(Milliseconds(1), *wake_at - now);
    changed_.wait_for(lock, wait);
    const bool idle = clock_.Monotonic() - worked_last_ >= kIdle;
    if (idle && active_.empty() && fetching_ + holding_ == 0 && !known_nodes_.empty()) {
      known_nodes_.clear();
      buffers_.clear();
      RefreshNodes();
    }
  }
  return std::nullopt;
}

std::optional<Copier::Turn> Copier::PickTurn(Time now, std::optional<Time>& wake_at) {
  auto next = active_.upper_bound(served_last_);
  for (size_t i = 0; i < active_.size(); ++i, ++next) {
    if (next == active_.end()) next = active_.begin();
    const JobRef& job = jobs_.at(*next);
    const auto action =
        job->task.Next(now, {.fetches = fetching_ < kFetchesMax, .holds = holding_ < kHoldsMax});
    if (!action) {
      const auto at = job->task.next_time(now);
      if (at && (!wake_at || *at < *wake_at)) wake_at = at;
      continue;
    }
    served_last_ = *next;
    worked_last_ = now;
    Turn turn{job,
              *action,
              {},
              nullptr,
              MayBeAbsent(job->task.order(), action->source),
              Changer::OfOrder(job->task.order().generation),
              job->task.order().follow,
              action->settles || !IsRelay(job->task.order(), action->source)};
    if (action->hold) {
      ++holding_;
      const auto share = static_cast<int64_t>(active_.size() / kHoldsMax);
      turn.hold = std::max(kHoldMin, Duration{kHoldMax.ns / std::max<int64_t>(1, share)});
      // Other questions may be waiting for a slot.
      if (holding_ == kHoldsMax) turn.hold = kHoldMin;
    } else if (action->kind == CopyAction::Kind::kFetch) {
      ++fetching_;
      if (!buffers_.empty()) {
        turn.buffer = std::move(buffers_.back());
        buffers_.pop_back();
      }
    }
    return turn;
  }
  return std::nullopt;
}

void Copier::Perform(Turn& turn, std::span<std::byte> scratch) {
  Job& job = *turn.job;
  const CopyAction& action = turn.action;
  BlockSums theirs;
  BlockSums own;
  Status status;
  if (action.kind == CopyAction::Kind::kAsk) {
    status = Ask(turn, scratch, theirs, own);
  } else if (action.kind == CopyAction::Kind::kFetch) {
    status = Fetch(turn, {turn.buffer.get(), limits_.fetch_bytes});
  } else {
    status = Change(turn, action.kind, action.range);
  }
  MutexLock lock(mutex_);
  if (action.hold) --holding_;
  if (action.kind == CopyAction::Kind::kFetch) {
    --fetching_;
    buffers_.push_back(std::move(turn.buffer));
  }
  const auto current = jobs_.find(job.file);
  if (current == jobs_.end() || current->second != turn.job) return;
  const Time now = clock_.Monotonic();
  worked_last_ = now;
  if (!status.ok()) {
    job.task.OnFailed(action, status, now);
  } else if (action.kind == CopyAction::Kind::kAsk) {
    job.task.OnSums(action, theirs, own, now);
  } else {
    job.task.OnDone(action, now);
  }
  const std::vector<ByteRange> settled = job.task.TakeSettled();
  std::optional<CopyReport> report = ReportOf(job, now);
  if (job.task.finished() && active_.erase(job.file) > 0) Retire(turn.job);
  // Other threads can begin the next action now.
  if (!settled.empty() || report) changed_.notify_one();
  lock.unlock();
  if (!settled.empty()) engine_.sums().NoteChanged(job.file, settled);
  if (!report) return;
  if (report->failure) {
    // The manager may order a drop of the object at once: nobody may store into it after this.
    job.Cancel();
  }
  if (const auto description = engine_.Describe(job.file); description.ok())
    report->allocated_bytes = description->stat.allocated_bytes;
  if (report->failure)
    failures_.Warning("cannot copy file {}: {}", report->file.value, report->failure->message);
  report_(*report);
}

// Finished orders are remembered for a while, for nodes that copy from here.
void Copier::Retire(const JobRef& job) {
  if (job->task.failure()) {
    jobs_.erase(job->file);
    return;
  }
  finished_.push_back(job);
  if (finished_.size() <= kFinishedMax) return;
  const JobRef oldest = finished_.front().lock();
  finished_.pop_front();
  if (oldest == nullptr) return;
  const auto found = jobs_.find(oldest->file);
  if (found != jobs_.end() && found->second == oldest) jobs_.erase(found);
}

std::optional<CopyReport> Copier::ReportOf(Job& job, Time now) {
  const CopyTask& task = job.task;
  const bool has_news = task.copied_bytes() != job.reported_bytes;
  if (!task.finished() && (!has_news || now - job.reported_at < kCopyReportEvery))
    return std::nullopt;
  job.reported_at = now;
  job.reported_bytes = task.copied_bytes();
  CopyReport report{.file = job.file,
                    .order = task.order().order,
                    .data_version = task.order().data_version,
                    .copied_bytes = task.copied_bytes(),
                    .fetched_bytes = task.fetched_bytes(),
                    .allocated_bytes = 0,
                    .done = task.done(),
                    .failure = task.failure()};
  if (report.failure) report.failure->reason = ReasonFor(report.failure->code);
  return report;
}

// ---- actions

Status Copier::Ask(const Turn& turn, std::span<std::byte> scratch, BlockSums& theirs,
                   BlockSums& own) {
  const FileId file = turn.job->file;
  MOSA_ASSIGN_OR_RETURN(const std::string capability,
                        gate_.SealForReading(file, kCapabilityLife, turn.job->epoch));
  MOSA_ASSIGN_OR_RETURN(theirs, nodes_->Sums({turn.action.source, file, capability},
                                             {.range = turn.action.range,
                                              .after_change = turn.action.after_change,
                                              .wait = turn.hold,
                                              .about = turn.action.about}));
  if (theirs.absent && !turn.may_be_absent) {
    return DataLossError(fmt::format("node {} has lost its object of file {}",
                                     turn.action.source.value, file.value));
  }
  MOSA_RETURN_IF_ERROR(engine_.sums().SumBlocks(file, turn.action.range, own, scratch));
  // While the file is followed nothing is final, and its writer may be a program on this host.
  if (own.quiet || turn.follows) return OkStatus();
  // Fails as if the file had another first copy by now: compared bytes might change unnoticed.
  return FailedPreconditionError(
      fmt::format("a program on this host has the object of file {} open for writing, so it cannot "
                  "become a copy: close the file there",
                  file.value));
}

Status Copier::Fetch(const Turn& turn, std::span<std::byte> buffer) {
  const FileId file = turn.job->file;
  const ByteRange range = turn.action.range;
  MOSA_CHECK(range.size() <= buffer.size());
  MOSA_ASSIGN_OR_RETURN(const std::string capability,
                        gate_.SealForReading(file, kCapabilityLife, turn.job->epoch));
  const auto bytes = buffer.first(range.size());
  MOSA_RETURN_IF_ERROR(nodes_->Read({turn.action.source, file, capability}, range.begin, bytes));
  for (const Stretch& stretch : FindHoles(range, bytes)) {
    // What a relay lacks is not a hole.
    if (stretch.zero && !turn.may_clear) continue;
    if (stretch.zero) {
      MOSA_RETURN_IF_ERROR(Change(turn, CopyAction::Kind::kClear, stretch.range));
    } else {
      MOSA_RETURN_IF_ERROR(
          Store(turn, stretch.range,
                bytes.subspan(stretch.range.begin - range.begin, stretch.range.size())));
    }
  }
  return OkStatus();
}

Status Copier::Store(const Turn& turn, ByteRange range, std::span<const std::byte> bytes) {
  const ObjectChange change(*turn.job);
  MOSA_RETURN_IF_ERROR(change.status());
  MOSA_ASSIGN_OR_RETURN(
      ObjectEngine::Writer writer,
      engine_.BeginWrite(turn.job->file, turn.changer, range.begin, range.size()));
  for (uint64_t at = range.begin; at < range.end;) {
    const uint64_t n = std::min(range.end - at, kPieceBytes - at % kChecksumBlockBytes);
    const auto piece = bytes.subspan(at - range.begin, n);
    MOSA_RETURN_IF_ERROR(writer.WritePiece(at, piece, BlockChecksums(at, piece)));
    at += n;
  }
  return OkStatus();
}

Status Copier::Change(const Turn& turn, CopyAction::Kind kind, ByteRange range) {
  const ObjectChange change(*turn.job);
  MOSA_RETURN_IF_ERROR(change.status());
  const FileId file = turn.job->file;
  const Status changed =
      kind == CopyAction::Kind::kCut
          ? engine_.Truncate(file, turn.changer, range.begin)
          : engine_.Allocate(file, turn.changer, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, range);
  // A copy of holes needs no object.
  return changed.code() == StatusCode::kNotFound ? OkStatus() : changed;
}

}  // namespace mosa::node
