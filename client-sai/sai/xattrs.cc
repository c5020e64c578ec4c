// Extended attributes: the manager's, and this mount's counters.
#include <algorithm>
#include <mutex>

#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

constexpr std::string_view kMountCounters = "user.mosa.mount";

// True of attributes that may determine a file's layout, including the aliases.
bool MayBeLayoutHint(std::string_view name) {
  return name.starts_with("user.mosa.") || name == "user.DP" || name == "user.BlockSize";
}

constexpr int kFreezesMax = 20;
constexpr Duration kFreezeDelay = Milliseconds(10);

}  // namespace

bool Filesystem::Impl::DeferHint(Inode& inode, std::string_view attribute, std::string_view value) {
  const AttributeName name = ClassifyAttribute(attribute);
  if (name.kind != AttributeKind::kHint) return false;
  auto canonical = ParseHint(name.hint, name.alias, value);
  if (!canonical.ok()) return false;
  const MutexLock lock(inode.mutex);
  if (inode.make_state != MakeState::kUnsent) return false;
  const bool settles = MaySettle(name.hint);
  if ((settles || IsLayoutHint(name.hint)) && View(inode).size_bytes > 0) return false;
  auto& hints = inode.make.hints;
  // A second value may not have the effect that it has alone.
  if (std::ranges::count(hints, name.hint, &HintValue::name) > 0) return false;
  hints.push_back({std::string(name.hint), *std::move(canonical)});
  if (settles) {
    // Its first byte causes it to be created and bound.
    inode.make.bind = true;
    auto access = std::make_shared<DataAccess>(*inode.access);
    access->inline_bytes_max = 0;
    inode.access = std::move(access);
  }
  return true;
}

// Asks for a change that may need the file's layout frozen.
Outcome<std::vector<Reply>> Filesystem::Impl::AskFreezing(Inode& inode, const Request& request) {
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
    SleepFor(kFreezeDelay);
  }
}

Outcome<bool> Filesystem::Impl::SettleForHint(Inode& inode) {
  bool pinned = false;
  {
    const MutexLock lock(inode.mutex);
    if (inode.write_handles == 0) return inode.passthrough_handles > 0;
    pinned = inode.passthrough_handles > 0;
  }
  RefreshFromKernelWrites(inode);
  Drain(inode);
  bool untold = false;
  {
    const MutexLock lock(inode.mutex);
    untold = inode.unsaved.data_dirty || inode.unsaved.change_failed;
  }
  if (untold) MOSA_RETURN_IF_FAILED(Commit(inode, false));
  return pinned;
}

Outcome<std::string> Filesystem::Impl::GetXattr(FileId file, std::string_view name) {
  if (file == kRootFile && name == kMountCounters) return StatsJson();
  const InodePtr inode = inodes_.Get(file);
  MOSA_RETURN_IF_FAILED(EnsureMade(*inode));
  auto reply = calls_.Ask<GetXattrReply>(GetXattrRequest{file, std::string(name)});
  if (!reply.ok()) return reply.failure();
  return std::move(reply->value);
}

Outcome<std::vector<std::string>> Filesystem::Impl::ListXattrs(FileId file) {
  MOSA_RETURN_IF_FAILED(EnsureMade(*inodes_.Get(file)));
  auto reply = calls_.Ask<ListXattrsReply>(ListXattrsRequest{file});
  if (!reply.ok()) return reply.failure();
  return std::move(reply->names);
}

Outcome<Done> Filesystem::Impl::SetXattr(FileId file, std::string_view name, std::string_view value,
                                         XattrMode mode) {
  if (file == kRootFile && name == kMountCounters)
    return Fail(StatusCode::kPermissionDenied, ErrorReason::kNotPermitted,
                "the counters of a mount are read-only");
  const InodePtr inode = inodes_.Get(file);
  if (mode == XattrMode::kAny && DeferHint(*inode, name, value)) return Done{};
  MOSA_RETURN_IF_FAILED(EnsureMade(*inode));
  SetXattrRequest request{file, std::string(name), std::string(value), mode == XattrMode::kCreate,
                          mode == XattrMode::kReplace};
  std::unique_lock io(inode->io, std::defer_lock);
  if (MayBeLayoutHint(name)) {
    io.lock();
    const auto pinned = SettleForHint(*inode);
    if (!pinned.ok()) return pinned.failure();
    request.pinned = *pinned;
  }
  MOSA_RETURN_IF_FAILED(AskFreezing(*inode, request));
  recalls_.NoteOwn(file);
  const MutexLock lock(inode->mutex);
  ++inode->own_changes;
  inode->attributes_era = 0;
  // A hint may determine where the bytes of the file, or of files created below it, go.
  inode->access_era = 0;
  ++hints_generation_;
  inode->names.inline_bytes_max.reset();
  return Done{};
}

Outcome<Done> Filesystem::Impl::RemoveXattr(FileId file, std::string_view name) {
  const InodePtr inode = inodes_.Get(file);
  MOSA_RETURN_IF_FAILED(EnsureMade(*inode));
  RemoveXattrRequest request{file, std::string(name)};
  std::unique_lock io(inode->io, std::defer_lock);
  if (MayBeLayoutHint(name)) {
    io.lock();
    const auto pinned = SettleForHint(*inode);
    if (!pinned.ok()) return pinned.failure();
    request.pinned = *pinned;
  }
  MOSA_RETURN_IF_FAILED(AskFreezing(*inode, request));
  recalls_.NoteOwn(file);
  const MutexLock lock(inode->mutex);
  ++inode->own_changes;
  inode->attributes_era = 0;
  inode->access_era = 0;
  ++hints_generation_;
  inode->names.inline_bytes_max.reset();
  return Done{};
}

}  // namespace mosa::sai
