#include "common/observe/duration_table.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace mosa {

void DurationHistogram::Add(Duration duration) {
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(0, duration.ns));
  counts_[DurationBucketOf(duration)].fetch_add(1, std::memory_order_relaxed);
  uint64_t max_ns = max_ns_.load(std::memory_order_relaxed);
  while (ns > max_ns && !max_ns_.compare_exchange_weak(max_ns, ns, std::memory_order_relaxed)) {
  }
  sum_ns_.fetch_add(ns, std::memory_order_release);
}

DurationCounts DurationHistogram::Read() const {
  DurationCounts read;
  // Read the sum first: its durations are then in the counts too, so no mean exceeds the maximum.
  read.sum_ns = sum_ns_.load(std::memory_order_acquire);
  read.max_ns = max_ns_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < counts_.size(); ++i)
    read.counts[i] = counts_[i].load(std::memory_order_relaxed);
  return read;
}

DurationTable::DurationTable(std::vector<std::string> classes, size_t peers_max, RequestLog* log)
    : classes_(std::move(classes)),
      peers_max_(peers_max),
      log_(log),
      log_table_(log == nullptr ? 0 : log->AddTable(classes_)),
      row_peers_(peers_max + 2),
      rows_(std::make_unique<std::atomic<DurationHistogram*>[]>(classes_.size() * row_peers_)) {}

DurationTable::~DurationTable() {
  for (size_t i = 0; i < classes_.size() * row_peers_; ++i) delete rows_[i].load();
}

DurationTable::PeerId DurationTable::PeerOf(std::string_view name) {
  const SystemMutexLock lock(mutex_);
  const auto found = std::ranges::find(peers_, name);
  const auto at = static_cast<size_t>(found - peers_.begin());
  if (found == peers_.end() && peers_.size() < peers_max_) {
    peers_.emplace_back(name);
    if (log_ != nullptr) log_->AddPeer(log_table_, name);
  }
  return PeerId{std::min(at, peers_max_) + 1};
}

void DurationTable::Add(ClassId kind, PeerId peer, Duration duration) {
  MOSA_CHECK(kind.value < classes_.size() && peer.value < row_peers_);
  std::atomic<DurationHistogram*>& row = rows_[RowOf(kind, peer)];
  DurationHistogram* histogram = row.load(std::memory_order_acquire);
  if (histogram == nullptr) {
    auto made = std::make_unique<DurationHistogram>();
    // Another thread may have been first.
    if (row.compare_exchange_strong(histogram, made.get(), std::memory_order_acq_rel))
      histogram = made.release();
  }
  histogram->Add(duration);
}

void DurationTable::Log(ClassId kind, PeerId peer, const Logged& request) {
  log_->Add({.trace = request.span.own.trace,
             .span = request.span.own.span,
             .parent = request.span.parent,
             .link = request.link,
             .begin_ns = request.begin.ns,
             .duration_ns = request.duration.ns,
             .bytes = request.bytes,
             .table = static_cast<uint16_t>(log_table_),
             .kind = static_cast<uint16_t>(kind.value),
             .peer = static_cast<uint32_t>(peer.value)});
}

void DurationTable::Visit(const Visitor& visit) const {
  std::vector<std::string> peers;
  {
    const SystemMutexLock lock(mutex_);
    peers = peers_;
  }
  peers.insert(peers.begin(), "");
  for (size_t kind = 0; kind < classes_.size(); ++kind) {
    for (size_t peer = 0; peer < row_peers_; ++peer) {
      const DurationHistogram* const histogram =
          rows_[RowOf(ClassId{kind}, PeerId{peer})].load(std::memory_order_acquire);
      // A peer that became known meanwhile is shown next time.
      const bool others = peer == row_peers_ - 1;
      if (histogram == nullptr || (!others && peer >= peers.size())) continue;
      const DurationCounts counts = histogram->Read();
      if (counts.Count() == 0) continue;
      visit(classes_[kind], others ? std::string(kOtherPeers) : peers[peer], counts);
    }
  }
}

}  // namespace mosa
