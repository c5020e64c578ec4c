#include "client-sai/fuse/operations.h"

#include "client-sai/core/rules.h"
#include "client-sai/fuse/convert.h"
#include "client-sai/fuse/to_errno.h"
#include "nlohmann/json.hpp"

namespace mosa::sai {

fuse_lowlevel_ops MountOperations() {
  fuse_lowlevel_ops table{};
  AddNameOperations(table);
  AddFileOperations(table);
  AddAttributeOperations(table);
  AddLockOperations(table);
  return table;
}

std::string MountStatsJson(const Mount& mount) {
  const KernelAgreement& agreement = mount.session.agreement();
  nlohmann::json stats = nlohmann::json::parse(mount.filesystem.StatsJson(), nullptr, false);
  if (!stats.is_object()) stats = nlohmann::json::object();
  stats["fuse"] = {{"protocol", fmt::format("7.{}", agreement.protocol_minor)},
                   {"flags", fmt::format("{:#x}", agreement.flags)},
                   {"epoch", agreement.epoch},
                   {"drops_pages", agreement.drops_pages},
                   {"passthrough", agreement.passthrough},
                   {"passthrough_reason", agreement.passthrough_reason},
                   {"backing_files", mount.session.backing_files().size()},
                   {"workers", mount.session.workers()},
                   {"parked", mount.session.parked()},
                   {"requests", mount.session.requests()}};
  return stats.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Caller CallerOf(fuse_req_t request) {
  const fuse_ctx& context = *fuse_req_ctx(request);
  return {context.uid, context.gid, static_cast<uint32_t>(context.pid), context.umask};
}

void ReplyFailure(fuse_req_t request, const Failure& failure, std::string_view what, FileId file) {
  const int error = ToErrno(failure);
  // Errors without an errno of their own are faults of Mosa or of the cluster; others are everyday
  // answers to programs.
  const bool unusual = error == EIO || error == ETIMEDOUT;
  Log(unusual ? LogLevel::kWarning : LogLevel::kDebug, "{} of file {} for pid {}: {} ({})", what,
      file.value, fuse_req_ctx(request)->pid, failure.message, strerrorname_np(error));
  fuse_reply_err(request, error);
}

void ReplyDone(fuse_req_t request, const Outcome<Done>& done, std::string_view what, FileId file) {
  if (done.ok()) {
    fuse_reply_err(request, 0);
  } else {
    ReplyFailure(request, done.failure(), what, file);
  }
}

void ReplyEntry(fuse_req_t request, const Outcome<EntryResult>& result, std::string_view what,
                FileId parent) {
  if (!result.ok()) {
    ReplyFailure(request, result.failure(), what, parent);
    return;
  }
  Mount& mount = MountOf(request);
  const fuse_entry_param entry = ToEntryParam(*result);
  if (fuse_reply_entry(request, &entry) != 0 && entry.ino != 0) {
    mount.filesystem.Forget(result->entry.file, 1);
  }
}

void TraceName(Mount& mount, FileId parent, std::string_view name, FileId file) {
  if (!mount.tracer.on() || file == FileId{}) return;
  TraceEvent event;
  event.kind = TraceKind::kName;
  event.file = file;
  event.parent = parent;
  mount.tracer.Note(event, name);
}

void KillPrivileges(Mount& mount, FileId file) {
  const Outcome<Attributes> current = mount.filesystem.GetUnsettledAttributes(file);
  if (!current.ok() || current->type != FileType::kRegular) return;
  AttributeChanges changes;
  changes.permissions = WithoutPrivileges(current->permissions);
  if (*changes.permissions == current->permissions) return;
  const Outcome<AttributesResult> changed = mount.filesystem.SetAttributes(file, changes);
  // The reply to the program does not carry its permissions, so the kernel would keep those that it
  // knows.
  mount.session.InvalidateAttributes(file);
  if (!changed.ok()) {
    mount.failures.Warning("cannot clear the set-user-id bits of file {}: {}", file.value,
                           changed.failure().message);
  }
}

}  // namespace mosa::sai
