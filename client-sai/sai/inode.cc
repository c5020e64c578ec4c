#include "client-sai/sai/inode.h"

#include <utility>

#include "client-sai/sai/failures.h"

namespace mosa::sai {

Outcome<Done> OpenFile::UntoldError() const {
  const MutexLock lock(inode->mutex);
  if (errors_seen == inode->behind.error_count) return Done{};
  return inode->behind.error;
}

Outcome<Done> OpenFile::TellError() {
  const MutexLock lock(inode->mutex);
  if (std::exchange(errors_seen, inode->behind.error_count) == inode->behind.error_count)
    return Done{};
  return inode->behind.error;
}

// A close of this handle's only descriptor looks like that of one of several. After it the manager
// may have been told that nobody writes the file any more.
Outcome<Done> OpenFile::EnsureCounted() {
  const MutexLock lock(inode->mutex);
  // The program was killed: nobody would commit what its last request writes.
  if (ended)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                "the file was closed before the write began");
  wrote = true;
  if (std::exchange(closed, false)) ++inode->uses.unclosed_writers;
  inode->AskIfUncounted();
  return Done{};
}

}  // namespace mosa::sai
