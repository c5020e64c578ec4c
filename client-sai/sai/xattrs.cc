// Extended attributes: the manager's, and this mount's counters.
#include "client-sai/sai/impl.h"

namespace mosa::sai {
namespace {

constexpr std::string_view kMountCounters = "user.mosa.mount";

// True of what may settle a file's layout, also in the ancestor's words.
bool MayBeLayoutHint(std::string_view name) {
  return name.starts_with("user.mosa.") || name == "user.DP" || name == "user.BlockSize";
}

}  // namespace

Outcome<bool> Filesystem::Impl::SettleForHint(Inode& inode) {
  bool pinned = false;
  {
    const std::lock_guard lock(inode.mutex);
    if (inode.write_handles == 0) return inode.passthrough_handles > 0;
    pinned = inode.passthrough_handles > 0;
  }
  RefreshFromKernelWrites(inode);
  Drain(inode);
  bool dirty = false;
  {
    const std::lock_guard lock(inode.mutex);
    dirty = inode.data_dirty;
  }
  if (dirty) MOSA_RETURN_IF_FAILED(Commit(inode, false));
  return pinned;
}

Outcome<std::string> Filesystem::Impl::GetXattr(FileId file, std::string_view name) {
  if (file == kRootFile && name == kMountCounters) return StatsJson();
  const InodePtr inode = Get(file);
  MOSA_RETURN_IF_FAILED(EnsureMade(*inode));
  auto reply = Ask<GetXattrReply>(GetXattrRequest{file, std::string(name)});
  if (!reply.ok()) return reply.failure();
  return std::move(reply->value);
}

Outcome<std::vector<std::string>> Filesystem::Impl::ListXattrs(FileId file) {
  MOSA_RETURN_IF_FAILED(EnsureMade(*Get(file)));
  auto reply = Ask<ListXattrsReply>(ListXattrsRequest{file});
  if (!reply.ok()) return reply.failure();
  return std::move(reply->names);
}

Outcome<Done> Filesystem::Impl::SetXattr(FileId file, std::string_view name, std::string_view value,
                                         XattrMode mode) {
  if (file == kRootFile && name == kMountCounters)
    return Fail(StatusCode::kPermissionDenied, ErrorReason::kNotPermitted,
                "the counters of a mount cannot be set");
  const InodePtr inode = Get(file);
  MOSA_RETURN_IF_FAILED(EnsureMade(*inode));
  SetXattrRequest request{file, std::string(name), std::string(value), mode == XattrMode::kCreate,
                          mode == XattrMode::kReplace};
  std::unique_lock<decltype(inode->io)> io;
  if (MayBeLayoutHint(name)) {
    io = std::unique_lock(inode->io);
    const auto pinned = SettleForHint(*inode);
    if (!pinned.ok()) return pinned.failure();
    request.pinned = *pinned;
  }
  MOSA_RETURN_IF_FAILED(AskAll({std::move(request)}));
  recalls_.NoteOwn(file);
  const std::lock_guard lock(inode->mutex);
  inode->attributes_era = 0;
  // A hint may settle where the bytes of the file, or of what is made below, go.
  inode->access_era = 0;
  ++hints_generation_;
  inode->names.inline_bytes_max.reset();
  return Done{};
}

Outcome<Done> Filesystem::Impl::RemoveXattr(FileId file, std::string_view name) {
  const InodePtr inode = Get(file);
  MOSA_RETURN_IF_FAILED(EnsureMade(*inode));
  RemoveXattrRequest request{file, std::string(name)};
  std::unique_lock<decltype(inode->io)> io;
  if (MayBeLayoutHint(name)) {
    io = std::unique_lock(inode->io);
    const auto pinned = SettleForHint(*inode);
    if (!pinned.ok()) return pinned.failure();
    request.pinned = *pinned;
  }
  MOSA_RETURN_IF_FAILED(AskAll({std::move(request)}));
  recalls_.NoteOwn(file);
  const std::lock_guard lock(inode->mutex);
  inode->attributes_era = 0;
  inode->access_era = 0;
  ++hints_generation_;
  inode->names.inline_bytes_max.reset();
  return Done{};
}

}  // namespace mosa::sai
