// Appending: the bytes of one appending system call go to the file's end in one step, while other
// mounts append too. Callers hold the inode's io, except in RenewAppendRight.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// Above every range that a program can lock (fcntl ends at 2^63 - 1).
constexpr uint64_t kAppendLockByte = (uint64_t{1} << 63) + 1;
constexpr uint64_t kAppendLockOwner = UINT64_MAX;
// The bytes of one call stay together if all of them arrive within this time. Other appenders wait
// at most this long for a program that does not continue.
constexpr Duration kAppendHoldMax = Seconds(5);

Lock AppendLock(LockType type) {
  return {type, kAppendLockByte, kAppendLockByte, kAppendLockOwner, 0, false};
}

}  // namespace

bool Filesystem::Impl::AppendUnsent(Inode& inode, std::span<const std::byte> data) {
  const MutexLock lock(inode.mutex);
  if (inode.make_state != MakeState::kUnsent) return false;
  const uint64_t offset = View(inode).size_bytes;
  if (offset + data.size() > inode.access->inline_bytes_max) return false;
  PutInline(inode, {inode.access, inode.attributes, inode.access_version, inode.own_changes},
            offset, data);
  inode.appended = true;
  return true;
}

// Other mounts may append at the same time. An internal lock, invisible to programs, makes size,
// bytes and commit one step, for all of one system call, which the kernel may send in pieces.
Outcome<Done> Filesystem::Impl::Append(OpenFile& handle, std::span<const std::byte> data,
                                       const CallPiece& piece) {
  Inode& inode = *handle.inode;
  inode.io.AssertHeld();
  if (inode.append_hold && !GoesOn(*inode.append_hold, handle.id, data.size(), piece))
    EndAppendOfOthers(inode);
  if (!inode.append_hold) {
    if (AppendUnsent(inode, data)) return Done{};
    MOSA_RETURN_IF_FAILED(BeginAppend(inode, handle.id));
    inode.append_hold->bytes_left = std::max<uint64_t>(piece.call_bytes, data.size());
  }
  AppendHold& hold = *inode.append_hold;
  const Outcome<Done> stored = WriteAt(inode, hold.end, data, {});
  if (!stored.ok()) {
    // Bytes stored by an earlier piece are committed while nobody else may append.
    if (!EndAppend(inode, true).ok()) stats_.Add(Counter::kErrors);
    return stored;
  }
  hold.end += data.size();
  hold.next_offset = piece.offset + data.size();
  hold.bytes_left -= data.size();
  if (hold.bytes_left > 0 && clock_.Monotonic() < hold.until) {
    appending_.Insert(inodes_.Get(inode.file));
    return Done{};
  }
  return EndAppend(inode, true);
}

// A lock that was lost with its session no longer excludes others.
bool Filesystem::Impl::GoesOn(const AppendHold& hold, HandleId handle, size_t size_bytes,
                              const CallPiece& piece) const {
  return hold.handle == handle && hold.next_offset == piece.offset &&
         size_bytes <= hold.bytes_left && hold.era == lease_.ValidEra();
}

Outcome<Done> Filesystem::Impl::BeginAppend(Inode& inode, HandleId handle) {
  MOSA_RETURN_IF_FAILED(EnsureMade(inode));
  Drain(inode);
  MOSA_RETURN_IF_FAILED(Commit(inode, false));
  Outcome<Done> locked =
      Fail(StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
           fmt::format("timed out waiting to append to file {}", inode.file.value));
  AppendHold hold;
  for (uint32_t attempt = 0; attempt < 2000 && !WaitBudget::IsSpent(); ++attempt) {
    // Read before the lock is requested, because a session that begins meanwhile may not hold it.
    hold.era = lease_.ValidEra();
    hold.session = sessions_;
    locked = AskForLock(inode, AppendLock(LockType::kExclusive));
    if (locked.ok() || locked.failure().reason != ErrorReason::kWouldBlock) break;
    SleepFor(Milliseconds(attempt < 20 ? 1 : 5));
  }
  MOSA_RETURN_IF_FAILED(locked);
  hold.handle = handle;
  hold.until = clock_.Monotonic() + kAppendHoldMax;
  {
    const MutexLock lock(inode.mutex);
    inode.access_era = inode.attributes_era = 0;
  }
  auto fresh = EnsureFresh(inode, true);
  {
    const MutexLock lock(inode.mutex);
    if (fresh.ok()) {
      hold.end = ViewOn(inode, fresh->attributes).size_bytes;
      hold.data_version = fresh->attributes.data_version;
      inode.append_right = AppendRight{hold.era, hold.data_version};
    }
    hold.errors_before = inode.error_count;
  }
  inode.append_hold = hold;
  if (fresh.ok()) return Done{};
  if (!EndAppend(inode, false).ok()) stats_.Add(Counter::kErrors);
  return fresh.failure();
}

// The session that held the lock is over. A client that was granted the lock meanwhile has
// committed before releasing it.
Outcome<Done> Filesystem::Impl::RenewAppendRight(Inode& inode) {
  const MutexLock renewing(inode.renewing);
  const uint64_t era = lease_.ValidEra();
  {
    const MutexLock lock(inode.mutex);
    if (!inode.append_right || inode.append_right->era == era) return Done{};
  }
  const Outcome<Done> locked = AskForLock(inode, AppendLock(LockType::kExclusive));
  const auto now = calls_.Ask<AttributesReply>(GetAttributesRequest{inode.file});
  MutexLock lock(inode.mutex);
  if (!inode.append_right) {
    lock.unlock();
    if (locked.ok()) GiveUpLock(inode, AppendLock(LockType::kExclusive));  // The call is over.
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

Outcome<Done> Filesystem::Impl::EndAppend(Inode& inode, bool stored) {
  const AppendHold hold = *std::exchange(inode.append_hold, std::nullopt);
  appending_.Erase(inode.file);
  Outcome<Done> appended = Done{};
  if (stored) {
    Drain(inode);
    appended = Commit(inode, false);
    if (!appended.ok()) GiveUpUnsaved(inode, appended.failure());
  }
  {
    const MutexLock lock(inode.mutex);
    inode.append_right.reset();
    const bool counts = stored && appended.ok();
    if (counts && inode.error_count != hold.errors_before) appended = inode.error;
    // The session, and the lock with it, may have ended meanwhile; then others have appended at the
    // same place.
    if (counts && appended.ok() && hold.session != sessions_ &&
        inode.attributes.data_version > hold.data_version + 1)
      appended = Fail(StatusCode::kAborted, ErrorReason::kStale,
                      fmt::format("other clients appended to file {} while this mount could not "
                                  "reach the manager: the bytes appended here may be lost",
                                  inode.file.value));
  }
  GiveUpLock(inode, AppendLock(LockType::kExclusive));
  return appended;
}

void Filesystem::Impl::EndAppendOf(Inode& inode, HandleId handle) {
  if (inode.append_hold && inode.append_hold->handle == handle) EndAppendOfOthers(inode);
}

// The appending call has returned, so its handle gets the failure with its next call.
void Filesystem::Impl::EndAppendOfOthers(Inode& inode) {
  const Outcome<Done> ended = EndAppend(inode, true);
  if (!ended.ok()) NoteError(inode, ended.failure());
}

void Filesystem::Impl::EndOverdueAppends() {
  for (const InodePtr& inode : appending_.All()) {
    if (!inode->io.try_lock()) continue;  // Busy: it is being continued now.
    const MutexLock io(inode->io, std::adopt_lock);
    if (!inode->append_hold || clock_.Monotonic() < inode->append_hold->until) continue;
    EndAppendOfOthers(*inode);
  }
}

}  // namespace mosa::sai
