#include "client-sai/sai/store_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "client-sai/api/wait_budget.h"
#include "client-sai/core/rules.h"
#include "client-sai/sai/failures.h"
#include "client-sai/sai/node_objects.h"

namespace mosa::sai {
namespace {

// A store that is refused this often, each time with a new right, will never succeed.
constexpr int kStoresMax = 50;
constexpr int kFreezesMax = 20;

}  // namespace

Outcome<AccessPtr> StoreGate::Begin(Inode& inode, IfLost if_lost) {
  for (;;) {
    auto access = EnsureThawed(inode);
    if (!access.ok()) return access;
    MOSA_RETURN_IF_FAILED(CheckBound(inode, **access));
    if ((*access)->lost && if_lost == IfLost::kFail) return NodeObjects::LostBytes(inode);
    MutexLock lock(inode.mutex);
    while (inode.gate.fenced || !inode.gate.unconfirmed.empty()) inode.changed.wait(lock);
    // A layout that was recalled meanwhile may no longer be used.
    if (inode.right.access != *access || inode.right.era == 0 ||
        inode.right.era != lease_.ValidEra())
      continue;
    if (inode.append_right && inode.append_right->era != inode.right.era) {
      lock.unlock();
      MOSA_RETURN_IF_FAILED(RenewAppendRight(inode));
      continue;
    }
    if (std::optional<Failure> late = OwnBytesAreLate(inode, **access)) return *std::move(late);
    ++inode.gate.stores;
    inode.unsaved.stored_by = OlderGeneration(inode.unsaved.stored_by, (*access)->generation);
    return access;
  }
}

void StoreGate::End(Inode& inode) {
  std::vector<UnconfirmedRecall> confirmed;
  {
    const MutexLock lock(inode.mutex);
    if (--inode.gate.stores > 0) return;
    confirmed = std::exchange(inode.gate.unconfirmed, {});
    inode.changed.notify_all();
  }
  for (const UnconfirmedRecall& recall : confirmed) ConfirmRecall(inode.file, recall);
}

Outcome<Done> StoreGate::Run(Inode& inode,
                             const std::function<Outcome<Done>(const DataAccess&)>& store,
                             IfLost if_lost) {
  for (int attempt = 1;; ++attempt) {
    {
      const StoreSection section(*this, inode, if_lost);
      if (!section.access().ok()) return section.access().failure();
      Outcome<Done> stored = store(**section.access());
      if (stored.ok() || stored.failure().code != StatusCode::kAborted || attempt == kStoresMax)
        return stored;
      if (WaitBudget::IsSpent())
        return Fail(StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
                    fmt::format("bytes of file {} could not be stored in time: {}",
                                inode.file.value, stored.failure().message));
    }
    Pause(attempt);
  }
}

Outcome<AccessPtr> StoreGate::EnsureThawed(Inode& inode) {
  const Time begun = clock_.Monotonic();
  const Duration patience = WaitBudget::Patience();
  for (;;) {
    auto access = rights_.Ensure(inode, true);
    if (!access.ok()) return access;
    if (!(*access)->frozen) {
      const MutexLock lock(inode.mutex);
      if (inode.right.access == *access) return access;
    }
    if (clock_.Monotonic() - begun > patience) return FrozenTooLong(inode, patience);
    SleepFor(kFrozenDelay);  // Frozen, or the answer was overtaken by a later change.
    const MutexLock lock(inode.mutex);
    inode.right.era = 0;
  }
}

void StoreGate::Thaw(Inode& inode) {
  {
    const MutexLock lock(inode.mutex);
    if (inode.content.moves) return;
  }
  // If this fails, the freeze ends by timeout.
  if (!calls_.Ask<BindReply>(RelocateRequest{inode.file, 0, 0, {}}).ok())
    stats_.Add(Counter::kErrors);
}

bool StoreGate::MayStillStore(Inode& inode) {
  const MutexLock lock(inode.mutex);
  return inode.right.era != 0 && inode.right.era == lease_.ValidEra();
}

Failure StoreGate::FrozenTooLong(const Inode& inode, Duration waited) {
  return Fail(
      StatusCode::kUnavailable, ErrorReason::kTimedOut,
      fmt::format(
          "another client has kept the layout of file {} frozen for more than {} ms: try again",
          inode.file.value, waited.ns / 1'000'000));
}

std::optional<Failure> StoreGate::OwnBytesAreLate(const Inode& inode, const DataAccess& access) {
  const uint64_t stored_by = OlderGeneration(inode.unsaved.stored_by, inode.committing.stored_by);
  if (stored_by == 0 || stored_by >= access.kept_since) return std::nullopt;
  if (access.lost) return NodeObjects::LostBytes(inode);
  return Fail(
      StatusCode::kFailedPrecondition, ErrorReason::kStale,
      fmt::format("other mounts may have written file {} while this mount could not reach the "
                  "manager: bytes written here since the last sync are not stored",
                  inode.file.value));
}

Outcome<Done> StoreGate::CheckBound(const Inode& inode, const DataAccess& access) {
  if (access.layout.bound()) return Done{};
  return Fail(
      StatusCode::kAborted, ErrorReason::kBusy,
      fmt::format("another client emptied file {} while it was being written", inode.file.value));
}

// The first attempts do not wait: usually the layout has changed, and the manager knows the new
// one.
void StoreGate::Pause(int attempt) {
  if (attempt < 3) return;
  SleepFor(Milliseconds(std::min(10 * attempt, 100)));
}

void StoreGate::ConfirmRecall(FileId file, UnconfirmedRecall recall) {
  RecallDoneRequest done{recall.recall};
  const InodePtr inode = inodes_.Find(file);
  // Held until the message is sent, so that a later commit cannot report the end of writing before
  // it. Send never runs its callback on this thread.
  std::unique_lock<Mutex> lock;
  if (inode) {
    lock = std::unique_lock(inode->mutex);
    inode->mutex.AssertHeld();
    done.holds_open = inode->uses.handles > 0;
    done.pinned = inode->kernel.passthrough_handles > 0;
    // After a reported close, another descriptor of the same open may still exist. The mount learns
    // this only at the kernel's release, which follows the reply to a close that waits for copies.
    done.writes = inode->MayWriteUnasked() ||
                  (inode->uses.write_handles > 0 && inode->uses.closes_waiting == 0);
    inode->uses.told_held = inode->uses.told_held || done.holds_open;
  }
  // Another session has its own recall numbers.
  if (recall.session != lease_.Session()) return;
  if (inode && done.writes) {
    inode->mutex.AssertHeld();
    inode->uses.manager_counts_open = true;
  }
  calls_.Tell(done);
}

// The session that held the lock is over. A client that was granted the lock meanwhile has
// committed before releasing it.
Outcome<Done> StoreGate::RenewAppendRight(Inode& inode) {
  const MutexLock renewing(inode.renewing);
  const uint64_t era = lease_.ValidEra();
  {
    const MutexLock lock(inode.mutex);
    if (!inode.append_right || inode.append_right->era == era) return Done{};
  }
  const Outcome<Done> locked = held_locks_.AskToAppend(inode);
  const auto now = calls_.Ask<AttributesReply>(GetAttributesRequest{inode.file});
  MutexLock lock(inode.mutex);
  if (!inode.append_right) {
    lock.unlock();
    if (locked.ok()) held_locks_.EndAppend(inode);  // The call is over.
    return Done{};
  }
  if (locked.ok() && now.ok() && now->attributes.data_version == inode.append_right->data_version) {
    inode.append_right->era = era;
    return Done{};
  }
  return Fail(StatusCode::kFailedPrecondition, ErrorReason::kStale,
              fmt::format("other clients may have appended to file {} while this mount could not "
                          "reach the manager: this append is not stored",
                          inode.file.value));
}

void StoreGate::Close(Inode& inode) {
  MutexLock lock(inode.mutex);
  inode.gate.fenced = true;
  while (inode.gate.stores > 0) inode.changed.wait(lock);
}

void StoreGate::Open(Inode& inode) {
  const MutexLock lock(inode.mutex);
  inode.gate.fenced = false;
  inode.changed.notify_all();
}

// Asks for a change that may need the file's layout frozen.
Outcome<std::vector<Reply>> StoreGate::AskFreezing(Inode& inode, const Request& request) {
  bool is_frozen = false;
  for (int attempt = 1;; ++attempt) {
    auto asked = calls_.AskAll({request});
    if (asked.ok()) return asked;
    const bool is_busy = asked.failure().code == StatusCode::kAborted &&
                         asked.failure().reason == ErrorReason::kBusy;
    if (!is_busy || attempt == kFreezesMax) {
      if (is_frozen) Thaw(inode);
      return asked.failure();
    }
    const auto frozen = calls_.Ask<BindReply>(FreezeRequest{inode.file});
    // A freeze whose answer is late is in effect, too.
    is_frozen = is_frozen || frozen.ok() || frozen.failure().reason == ErrorReason::kTimedOut;
    if (frozen.ok()) continue;
    // Another client is deciding where the file's bytes go.
    if (frozen.failure().code != StatusCode::kAborted) {
      if (is_frozen) Thaw(inode);
      return frozen.failure();
    }
    SleepFor(kFrozenDelay);
  }
}

}  // namespace mosa::sai
