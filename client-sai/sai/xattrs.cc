#include "client-sai/sai/xattrs.h"

#include <algorithm>
#include <optional>

#include "client-sai/sai/failures.h"
#include "client-sai/sai/io_lock.h"
#include "common/base/sync.h"

namespace mosa::sai {
namespace {

constexpr std::string_view kMountCounters = "user.mosa.mount";
constexpr std::string_view kChecksum = "user.mosa.checksum";

// True of attributes that may determine a file's layout, including the aliases.
bool MayBeLayoutHint(std::string_view name) {
  return name.starts_with("user.mosa.") || name == "user.DP" || name == "user.BlockSize";
}

}  // namespace

Outcome<std::string> Xattrs::Get(FileId file, std::string_view name) {
  if (file == kRootFile && name == kMountCounters) return stats_.Json(mapped_stores_.Files());
  const InodePtr inode = inodes_.Get(file);
  MOSA_RETURN_IF_FAILED(commits_.EnsureMade(*inode));
  if (name == kChecksum) return Checksum(inode);
  auto reply = calls_.Ask<GetXattrReply>(GetXattrRequest{file, std::string(name)});
  if (!reply.ok()) return reply.failure();
  return std::move(reply->value);
}

Outcome<std::string> Xattrs::Checksum(const InodePtr& inode) {
  const auto type_of = [&] {
    const MutexLock lock(inode->mutex);
    return inode->known.attributes.type;
  };
  if (type_of() != FileType::kRegular)
    return Fail(StatusCode::kNotFound, ErrorReason::kNoAttribute,
                "only regular files have a checksum");
  return reader_.Checksum(inode);
}

Outcome<std::vector<std::string>> Xattrs::List(FileId file) {
  MOSA_RETURN_IF_FAILED(commits_.EnsureMade(*inodes_.Get(file)));
  auto reply = calls_.Ask<ListXattrsReply>(ListXattrsRequest{file});
  if (!reply.ok()) return reply.failure();
  return std::move(reply->names);
}

Outcome<Done> Xattrs::Set(FileId file, std::string_view name, std::string_view value,
                          XattrMode mode) {
  if (file == kRootFile && name == kMountCounters)
    return Fail(StatusCode::kPermissionDenied, ErrorReason::kNotPermitted,
                "the counters of a mount are read-only");
  const InodePtr inode = inodes_.Get(file);
  if (mode == XattrMode::kAny && DeferHint(*inode, name, value)) return Done{};
  MOSA_RETURN_IF_FAILED(commits_.EnsureMade(*inode));
  SetXattrRequest request{file, std::string(name), std::string(value), mode == XattrMode::kCreate,
                          mode == XattrMode::kReplace};
  std::optional<IoLock> io;
  if (MayBeLayoutHint(name)) {
    io.emplace(*inode);
    const auto pinned = SettleForHint(*inode);
    if (!pinned.ok()) return pinned.failure();
    request.pinned = *pinned;
  }
  MOSA_RETURN_IF_FAILED(gate_.AskFreezing(*inode, request));
  recalls_.NoteOwn(file);
  const MutexLock lock(inode->mutex);
  ++inode->known.own_changes;
  inode->known.Invalidate();
  // A hint may determine where the bytes of the file, or of files created below it, go.
  inode->right.era = 0;
  name_cache_.NoteHintsChanged();
  inode->names.inline_bytes_max.reset();
  return Done{};
}

Outcome<Done> Xattrs::Remove(FileId file, std::string_view name) {
  const InodePtr inode = inodes_.Get(file);
  MOSA_RETURN_IF_FAILED(commits_.EnsureMade(*inode));
  RemoveXattrRequest request{file, std::string(name)};
  std::optional<IoLock> io;
  if (MayBeLayoutHint(name)) {
    io.emplace(*inode);
    const auto pinned = SettleForHint(*inode);
    if (!pinned.ok()) return pinned.failure();
    request.pinned = *pinned;
  }
  MOSA_RETURN_IF_FAILED(gate_.AskFreezing(*inode, request));
  recalls_.NoteOwn(file);
  const MutexLock lock(inode->mutex);
  ++inode->known.own_changes;
  inode->known.Invalidate();
  inode->right.era = 0;
  name_cache_.NoteHintsChanged();
  inode->names.inline_bytes_max.reset();
  return Done{};
}

Outcome<bool> Xattrs::SettleForHint(Inode& inode) {
  bool pinned = false;
  {
    const MutexLock lock(inode.mutex);
    if (inode.uses.write_handles == 0) return inode.kernel.passthrough_handles > 0;
    pinned = inode.kernel.passthrough_handles > 0;
  }
  attributes_.NoteKernelWrites(inode);
  write_behind_.Drain(inode);
  bool untold = false;
  {
    const MutexLock lock(inode.mutex);
    untold = inode.unsaved.data_dirty || inode.unsaved.change_failed;
  }
  if (untold) MOSA_RETURN_IF_FAILED(writer_.Commit(inode, false));
  return pinned;
}

bool Xattrs::DeferHint(Inode& inode, std::string_view attribute, std::string_view value) {
  const AttributeName name = ClassifyAttribute(attribute);
  if (name.kind != AttributeKind::kHint) return false;
  auto canonical = ParseHint(name.hint, name.alias, value);
  if (!canonical.ok()) return false;
  const MutexLock lock(inode.mutex);
  if (inode.making.state != MakeState::kUnsent) return false;
  const bool settles = MaySettle(name.hint);
  if ((settles || IsLayoutHint(name.hint)) && AttributeCache::View(inode).size_bytes > 0)
    return false;
  auto& hints = inode.making.request.hints;
  // A second value may not have the effect that it has alone.
  if (std::ranges::count(hints, name.hint, &HintValue::name) > 0) return false;
  hints.push_back({std::string(name.hint), *std::move(canonical)});
  if (settles) {
    // Its first byte causes it to be created and bound.
    inode.making.request.bind = true;
    auto access = std::make_shared<DataAccess>(*inode.right.access);
    access->inline_bytes_max = 0;
    inode.right.access = std::move(access);
  }
  return true;
}

}  // namespace mosa::sai
