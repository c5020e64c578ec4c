#include "client-sai/sai/tracing.h"

#include <utility>

#include "client-sai/sai/impl.h"
#include "common/base/sync.h"

namespace mosa::sai {

std::vector<TracedMount::NamedFile> Filesystem::Impl::KnownNames() {
  std::vector<TracedMount::NamedFile> names;
  for (const InodePtr& inode : inodes_.All()) {
    const MutexLock lock(inode->mutex);
    for (const auto& [name, file] : inode->names.entries)
      if (file != FileId{}) names.push_back({file, inode->file, name});
  }
  return names;
}

uint64_t Filesystem::Impl::KnownSize(FileId file) {
  const InodePtr inode = inodes_.Find(file);
  if (!inode) return 0;
  const MutexLock lock(inode->mutex);
  return inode->known.received ? AttributeCache::View(*inode).size_bytes : 0;
}

Time TracedFilesystem::TraceTime() { return filesystem_.ManagerNow(); }
void TracedFilesystem::SetPassthrough(bool allowed) { filesystem_.SetPassthrough(allowed); }
std::vector<TracedMount::NamedFile> TracedFilesystem::KnownNames() {
  return filesystem_.KnownNames();
}
void TracedFilesystem::RecallNames() {
  if (notifier_.capabilities().epoch) notifier_.InvalidateEntries();
}

}  // namespace mosa::sai
