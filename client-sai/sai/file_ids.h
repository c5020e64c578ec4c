// FileIds: numbers for files that this mount creates, from ranges that the manager gives out.
//
// Thread-safe. Borrows its arguments; stop the manager before destroying this.
#ifndef MOSA_CLIENT_SAI_SAI_FILE_IDS_H_
#define MOSA_CLIENT_SAI_SAI_FILE_IDS_H_

#include <deque>

#include "client-sai/api/manager_api.h"
#include "client-sai/core/outcome.h"
#include "client-sai/sai/manager_calls.h"
#include "common/base/sync.h"

namespace mosa::sai {

class FileIds {
 public:
  FileIds(ManagerApi& manager, ManagerCalls& calls) : manager_(manager), calls_(calls) {}

  // Returns an id that nobody has. Asks for more in good time, so that it rarely blocks.
  Outcome<FileId> Take();
  // A session began: forgets the ranges that were received before it. `first` came with it, and
  // may be empty.
  void Reset(const FileIdRangeReply& first);

 private:
  void AskForMore();

  ManagerApi& manager_;
  ManagerCalls& calls_;
  Mutex mutex_;
  std::deque<FileIdRangeReply> ranges_ ABSL_GUARDED_BY(mutex_);
  bool is_asking_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_FILE_IDS_H_
