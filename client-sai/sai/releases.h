// Releases: reports to the manager that this mount does not write a file any more, or does not use
// it at all, queued because nobody waits for them. A mount that becomes a writer again takes its
// report back.
//
// Thread-safe. Borrows its arguments.
#ifndef MOSA_CLIENT_SAI_SAI_RELEASES_H_
#define MOSA_CLIENT_SAI_SAI_RELEASES_H_

#include <vector>

#include "client-sai/sai/inode_table.h"
#include "client-sai/sai/manager_calls.h"
#include "common/base/sync.h"
#include "common/model/messages.h"

namespace mosa::sai {

class Releases {
 public:
  Releases(InodeTable& inodes, ManagerCalls& calls) : inodes_(inodes), calls_(calls) {}

  void Queue(ReleaseRequest release);
  struct TakenBack {
    bool any = false;
    bool uncommitted = false;  // As in the request.
  };
  // Withdraws what is queued of the file, except for reports of readers.
  TakenBack TakeBack(FileId file);
  // Sends what is queued. Does not wait for replies.
  void Send();

 private:
  InodeTable& inodes_;
  ManagerCalls& calls_;
  // Held while requests are sent, so that an open which takes its file out of the queue cannot be
  // overtaken. Taken before an inode's mutex. The handlers of the manager's messages never take it.
  Mutex mutex_;
  std::vector<ReleaseRequest> queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_RELEASES_H_
