#include "tests/simulation/history_takeover.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "tests/simulation/history_bytes.h"

namespace mosa::simulation {
namespace {

// By then the manager has not heard of a host for longer than a session's lease.
constexpr Duration kExpiredAfter = kSessionLease + Seconds(1);

}  // namespace

OpenChange::OpenChange(const Host& host, Name& name) : name_(name), host_(host.id) {
  name_.change = this;
}

bool OpenChange::IsOwn(uint64_t at) const {
  return !taken_over_ || std::ranges::any_of(at_stake_, [at](const ByteRange& range) {
    return range.begin <= at && at < range.end;
  });
}

void OpenChange::NoteStale(const Failure& failure) {
  is_stale_ = is_stale_ || failure.reason == ErrorReason::kStale;
}

bool Takeovers::MayTakeOver(const Host& host, size_t at) const {
  const Name& name = state_.names[at];
  // A second fault may keep the session, or meet the manager.
  if (name.change == nullptr || name.change->taken_over_ || name.change->host() == host.id ||
      state_.faults_now != 1)
    return false;
  const auto since = state_.absent_since.find(name.change->host());
  return since != state_.absent_since.end() &&
         state_.scheduler.now() - since->second > kExpiredAfter;
}

void Takeovers::TakeOver(const Host& host, size_t at, Rng& rng) {
  Name& name = state_.names[at];
  OpenChange* const change = name.change;
  change->taken_over_ = true;
  if (!change->is_syncing_) change->at_stake_ = change->unsynced_;
  const uint64_t faults = state_.history.faults;
  const std::string data = state_.Fresh(LengthOf(rng));
  const uint64_t wipes = state_.wipes;
  const bool reads = rng.Chance(500);
  ++name.takeovers;
  state_.network.Note(fmt::format("h{} takes {} over", host.id, NameOf(at)));
  const Outcome<Done> done =
      calls_.InOpen(host, at, O_CREAT | O_RDWR | O_TRUNC,
                    [&](sai::HandleId handle) { return calls_.Write(host, at, handle, 0, data); });
  const bool is_away = name.change == change && state_.faults_now == 1 &&
                       state_.history.faults == faults &&
                       state_.absent_since.contains(change->host());
  --name.takeovers;
  if (name.change == change) {
    change->is_clean_ = done.ok() && is_away;
    change->faults_ = faults;
  }
  if (!done.ok() || !is_away) return;
  name.exists = true;
  name.content = data;
  name.wipes = wipes;
  name.has_copies = state_.store.pessimistic;
  name.has_remains = true;
  name.has_holes = false;
  if (!reads) return;
  const auto content = calls_.Read(host, at);
  if (content.ok() && name.change == change && state_.absent_since.contains(change->host()) &&
      *content != data)
    state_.Problem(fmt::format("h{} reads {} which it has taken over: {}", host.id, NameOf(at),
                               Difference(data, *content)));
}

void Takeovers::End(const Host& host, size_t at, const OpenChange& change,
                    const std::optional<std::string>& content) {
  Name& name = state_.names[at];
  name.has_remains = true;
  while (name.takeovers > 0) SleepFor(Milliseconds(100));
  // Nothing is stored any more of what it has written since its last sync.
  const bool must_be_others =
      change.is_clean_ && !content && change.is_stale_ && state_.history.faults == change.faults_;
  name.certain = must_be_others;
  if (must_be_others || !change.is_clean_ || !content) return;
  const auto read = calls_.Read(host, at);
  if (!read.ok()) return;
  for (const ByteRange& range : change.at_stake_) {
    const uint64_t end = std::min<uint64_t>(range.end, content->size());
    if (range.begin >= end) continue;
    const auto right = std::string_view(*content).substr(range.begin, end - range.begin);
    const auto part = [&](std::string_view whole) {
      return whole.substr(std::min<uint64_t>(range.begin, whole.size()), right.size());
    };
    const std::string got(part(*read));
    // What the manager had been sent before, because the other host asked for the file, is
    // replaced.
    if (got != right && got != part(name.content))
      state_.Problem(
          fmt::format("{} was taken over from h{}, whose close succeeded; from {} it reads: {}",
                      NameOf(at), host.id, range.begin, Difference(std::string(right), got)));
  }
}

}  // namespace mosa::simulation
