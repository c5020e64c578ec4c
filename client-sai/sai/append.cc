#include "client-sai/sai/append.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "client-sai/api/wait_budget.h"
#include "client-sai/sai/attribute_cache.h"
#include "client-sai/sai/failures.h"
#include "client-sai/sai/io_lock.h"

namespace mosa::sai {
namespace {

// The bytes of one call stay together if all of them arrive within this time. Other appenders wait
// at most this long for a program that does not continue.
constexpr Duration kAppendHoldMax = Seconds(5);

}  // namespace

Outcome<Done> Appends::Write(OpenFile& handle, std::span<const std::byte> data,
                             const CallPiece& piece) {
  Inode& inode = *handle.inode;
  inode.io.AssertHeld();
  if (inode.append_hold && !GoesOn(*inode.append_hold, handle.id, data.size(), piece))
    EndOfOthers(inode);
  if (!inode.append_hold) {
    if (WriteUnsent(inode, data)) return Done{};
    MOSA_RETURN_IF_FAILED(Begin(inode, handle.id));
    inode.append_hold->bytes_left = std::max<uint64_t>(piece.call_bytes, data.size());
  }
  AppendHold& hold = *inode.append_hold;
  const Outcome<Done> stored = writer_.WriteAt(inode, hold.end, data, {});
  if (!stored.ok()) {
    // Bytes stored by an earlier piece are committed while nobody else may append.
    if (!End(inode, true).ok()) stats_.Add(Counter::kErrors);
    return stored;
  }
  hold.end += data.size();
  hold.next_offset = piece.offset + data.size();
  hold.bytes_left -= data.size();
  if (hold.bytes_left > 0 && clock_.Monotonic() < hold.until) {
    appending_.Insert(inodes_.Get(inode.file));
    return Done{};
  }
  return End(inode, true);
}

bool Appends::WriteUnsent(Inode& inode, std::span<const std::byte> data) {
  const MutexLock lock(inode.mutex);
  if (inode.making.state != MakeState::kUnsent) return false;
  const uint64_t offset = AttributeCache::View(inode).size_bytes;
  if (offset + data.size() > inode.right.access->inline_bytes_max) return false;
  writer_.PutInline(
      inode,
      {inode.right.access, inode.known.attributes, inode.right.version, inode.known.own_changes},
      offset, data);
  inode.content.appended = true;
  return true;
}

// A lock that was lost with its session no longer excludes others.
bool Appends::GoesOn(const AppendHold& hold, HandleId handle, size_t size_bytes,
                     const CallPiece& piece) const {
  return hold.handle == handle && hold.next_offset == piece.offset &&
         size_bytes <= hold.bytes_left && hold.era == lease_.ValidEra();
}

Outcome<Done> Appends::Begin(Inode& inode, HandleId handle) {
  MOSA_RETURN_IF_FAILED(commits_.EnsureMade(inode));
  write_behind_.Drain(inode);
  MOSA_RETURN_IF_FAILED(writer_.Commit(inode, false));
  Outcome<Done> locked =
      Fail(StatusCode::kDeadlineExceeded, ErrorReason::kTimedOut,
           fmt::format("timed out waiting to append to file {}", inode.file.value));
  AppendHold hold;
  for (uint32_t attempt = 0; attempt < 2000 && !WaitBudget::IsSpent(); ++attempt) {
    // Read before the lock is requested, because a session that begins meanwhile may not hold it.
    hold.era = lease_.ValidEra();
    hold.session = lease_.Session();
    locked = held_locks_.AskToAppend(inode);
    if (locked.ok() || locked.failure().reason != ErrorReason::kWouldBlock) break;
    SleepFor(Milliseconds(attempt < 20 ? 1 : 5));
  }
  MOSA_RETURN_IF_FAILED(locked);
  hold.handle = handle;
  hold.until = clock_.Monotonic() + kAppendHoldMax;
  {
    const MutexLock lock(inode.mutex);
    inode.right.era = 0;
    inode.known.Invalidate();
  }
  auto fresh = rights_.EnsureFresh(inode, true);
  {
    const MutexLock lock(inode.mutex);
    if (fresh.ok()) {
      hold.end = AttributeCache::ViewOn(inode, fresh->attributes).size_bytes;
      hold.data_version = fresh->attributes.data_version;
      inode.append_right = AppendRight{hold.era, hold.data_version};
    }
    hold.errors_before = inode.behind.error_count;
  }
  inode.append_hold = hold;
  if (fresh.ok()) return Done{};
  if (!End(inode, false).ok()) stats_.Add(Counter::kErrors);
  return fresh.failure();
}

Outcome<Done> Appends::End(Inode& inode, bool stored) {
  const AppendHold hold = *std::exchange(inode.append_hold, std::nullopt);
  appending_.Erase(inode.file);
  Outcome<Done> appended = Done{};
  if (stored) {
    write_behind_.Drain(inode);
    appended = writer_.Commit(inode, false);
    if (!appended.ok()) commits_.GiveUpUnsaved(inode, appended.failure());
  }
  {
    const MutexLock lock(inode.mutex);
    inode.append_right.reset();
    const bool counts = stored && appended.ok();
    if (counts && inode.behind.error_count != hold.errors_before) appended = inode.behind.error;
    // The session, and the lock with it, may have ended meanwhile; then others have appended at the
    // same place.
    if (counts && appended.ok() && hold.session != lease_.Session() &&
        inode.known.attributes.data_version > hold.data_version + 1)
      appended = Fail(StatusCode::kAborted, ErrorReason::kStale,
                      fmt::format("other clients appended to file {} while this mount could not "
                                  "reach the manager: the bytes appended here may be lost",
                                  inode.file.value));
  }
  held_locks_.EndAppend(inode);
  return appended;
}

void Appends::EndOf(Inode& inode, HandleId handle) {
  if (inode.append_hold && inode.append_hold->handle == handle) EndOfOthers(inode);
}

// The appending call has returned, so its handle gets the failure with its next call.
void Appends::EndOfOthers(Inode& inode) {
  const Outcome<Done> ended = End(inode, true);
  if (!ended.ok()) write_behind_.NoteError(inode, ended.failure());
}

void Appends::EndOverdue() {
  for (const InodePtr& inode : appending_.All()) {
    if (!inode->io.try_lock()) continue;  // Busy: it is being continued now.
    const IoLock io(*inode, std::adopt_lock);
    if (!inode->append_hold || clock_.Monotonic() < inode->append_hold->until) continue;
    EndOfOthers(*inode);
  }
}

}  // namespace mosa::sai
