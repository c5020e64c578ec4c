// fcntl(2) record locks and flock(2).
#include <sys/file.h>

#include <cerrno>

#include "client-sai/fuse/convert.h"
#include "client-sai/fuse/operations.h"

namespace mosa::sai {

namespace {

void GetLock(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info, struct flock* asked) {
  const Outcome<std::optional<Lock>> conflict =
      MountOf(request).filesystem.GetLock(FileId{ino}, ToLock(*asked, info->lock_owner));
  if (!conflict.ok()) {
    ReplyFailure(request, conflict.failure(), "getlk", FileId{ino});
    return;
  }
  const struct flock reply = conflict->has_value() ? FromLock(**conflict) : NoLock(*asked);
  fuse_reply_lock(request, &reply);
}

void Set(fuse_req_t request, FileId file, const Lock& lock, bool wait) {
  Mount& mount = MountOf(request);
  if (wait && lock.type != LockType::kUnlock) {
    mount.lock_waiters.Wait(request, file, lock);
    return;
  }
  ReplyDone(request, mount.filesystem.SetLock(file, lock), "lock", file);
}

void SetLock(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info, struct flock* wanted,
             int wait) {
  MountOf(request).filesystem.NoteLockOwner(DecodeHandle(info->fh).handle, info->lock_owner);
  Set(request, FileId{ino}, ToLock(*wanted, info->lock_owner), wait != 0);
}

void SetFlock(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info, int operation) {
  Lock lock;
  switch (operation & ~LOCK_NB) {
    case LOCK_SH:
      lock.type = LockType::kShared;
      break;
    case LOCK_EX:
      lock.type = LockType::kExclusive;
      break;
    case LOCK_UN:
      lock.type = LockType::kUnlock;
      break;
    default:
      fuse_reply_err(request, EINVAL);
      return;
  }
  lock.owner = info->lock_owner;
  lock.pid = static_cast<uint32_t>(fuse_req_ctx(request)->pid);
  lock.whole_file = true;
  MountOf(request).filesystem.NoteLockOwner(DecodeHandle(info->fh).handle, info->lock_owner);
  Set(request, FileId{ino}, lock, (operation & LOCK_NB) == 0);
}

}  // namespace

void AddLockOperations(fuse_lowlevel_ops& table) {
  table.getlk = GetLock;
  table.setlk = SetLock;
  table.flock = SetFlock;
}

}  // namespace mosa::sai
