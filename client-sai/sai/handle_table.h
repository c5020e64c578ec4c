// HandleTable: the files and directories that programs have open through this mount. Thread-safe;
// no method blocks.
#ifndef MOSA_CLIENT_SAI_SAI_HANDLE_TABLE_H_
#define MOSA_CLIENT_SAI_SAI_HANDLE_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "client-sai/sai/inode.h"
#include "common/base/sync.h"

namespace mosa::sai {

using OpenFilePtr = std::shared_ptr<OpenFile>;
using ListingPtr = std::shared_ptr<Listing>;

class HandleTable {
 public:
  // Returns an id that no handle has had.
  HandleId NewId() { return HandleId{next_++}; }

  void AddFile(OpenFilePtr file);
  // Null if there is none.
  OpenFilePtr FindFile(HandleId id) const;
  OpenFilePtr TakeFile(HandleId id);
  // The files that are open for writing, each once.
  std::vector<InodePtr> Written() const;

  // Names the task that reads through the handle, if it is still open.
  void SetReader(HandleId id, std::string task);
  // True if the task that reads through `file` also does so through another handle of the table.
  bool HasOtherReader(const OpenFile& file) const;

  void AddListing(ListingPtr listing);
  // Null if there is none.
  ListingPtr FindListing(HandleId id) const;
  void RemoveListing(HandleId id);

 private:
  std::atomic<uint64_t> next_{1};
  mutable Mutex mutex_;
  std::unordered_map<uint64_t, OpenFilePtr> files_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, ListingPtr> listings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_HANDLE_TABLE_H_
