// StreamWaits: reads at the end of a stream that wait for more. They hold no thread.
//
// Thread-safe. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_STREAM_WAITS_H_
#define MOSA_CLIENT_SAI_SAI_STREAM_WAITS_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include "client-sai/sai/access_rights.h"
#include "client-sai/sai/executor.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/inode.h"
#include "common/base/sync.h"
#include "common/model/ids.h"

namespace mosa::sai {

class StreamWaits {
 public:
  explicit StreamWaits(AccessRights& rights) : rights_(rights) {}

  // Gets true: read again. False: the handle or the mount has ended.
  using Done = std::function<void(bool may_read)>;
  // Calls `done`, on a thread of this object, once the file is longer than `offset`, or does not
  // grow any more, or this cannot be found out. It may block.
  void Wait(const OpenFilePtr& handle, uint64_t offset, Done done);
  // What is known of the file may be out of date. Does not block.
  void NoteChanged(FileId file);
  // Asks the manager about all files that are waited for, whatever is known of them. Call it about
  // once a second: a change of which this mount was not told ends no wait otherwise.
  void LookAgain();
  void EndOf(HandleId handle);
  // Ends all waits, and waits for what they call.
  void Stop();

 private:
  struct Waiting {
    OpenFilePtr handle;
    uint64_t offset = 0;
    Done done;
  };
  // Ends the waits of this file that have something to read.
  void Look(const InodePtr& inode);
  void EndIf(bool may_read, const std::function<bool(const Waiting&)>& ends);

  // Reads that go on after a wait wait for other threads of the mount.
  static constexpr uint32_t kThreadsMax = 32;

  AccessRights& rights_;
  Mutex mutex_;
  std::list<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Executor> executor_ ABSL_GUARDED_BY(mutex_);  // Null before the first wait.
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_STREAM_WAITS_H_
