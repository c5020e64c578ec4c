// HandleWriter: the write calls of programs, and the kernel's writeback.
//
// Thread-safe. Blocks within the thread's WaitBudget. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_HANDLE_WRITER_H_
#define MOSA_CLIENT_SAI_SAI_HANDLE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "client-sai/core/outcome.h"
#include "client-sai/core/write_buffer.h"
#include "client-sai/sai/append.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/handle_table.h"
#include "client-sai/sai/inode.h"
#include "client-sai/sai/kernel_pages.h"
#include "client-sai/sai/mapped_stores.h"
#include "client-sai/sai/stats.h"
#include "client-sai/sai/stream_waits.h"
#include "client-sai/sai/write_behind.h"
#include "client-sai/sai/writer.h"
#include "common/base/clock.h"
#include "common/base/sync.h"

namespace mosa::sai {

class HandleWriter {
 public:
  HandleWriter(KernelNotifier& notifier, HandleTable& handles, KernelPages& pages,
               WriteBehind& write_behind, Writer& writer, Appends& appends,
               MappedStores& mapped_stores, StreamWaits& stream_waits, Stats& stats,
               const Clock& clock)
      : notifier_(notifier),
        handles_(handles),
        pages_(pages),
        write_behind_(write_behind),
        writer_(writer),
        appends_(appends),
        mapped_stores_(mapped_stores),
        stream_waits_(stream_waits),
        stats_(stats),
        clock_(clock) {}

  // `memory`: the owner of the data, if they may be kept instead of copied.
  Outcome<size_t> Write(HandleId handle, const CallPiece& piece, std::span<const std::byte> data,
                        const Memory& memory);
  // Streams: tells the manager of what was written a while ago.
  void PublishDue();
  Outcome<size_t> WritePages(HandleId handle, uint64_t offset, std::span<const std::byte> data,
                             const Memory& memory);

 private:
  // A stream that was written to lately.
  struct Stream {
    InodePtr inode;
    Time published;      // When it was last published.
    uint64_t bytes = 0;  // Written since then.
  };
  // Publishes if there is enough. The caller must hold the inode's io.
  void NoteStreamed(const InodePtr& inode, uint64_t bytes);
  // The caller must hold the inode's io.
  void Publish(const InodePtr& inode);
  Outcome<Done> WriteThrough(OpenFile& handle, const CallPiece& piece,
                             std::span<const std::byte> data, const Memory& memory);

  KernelNotifier& notifier_;
  HandleTable& handles_;
  KernelPages& pages_;
  WriteBehind& write_behind_;
  Writer& writer_;
  Appends& appends_;
  MappedStores& mapped_stores_;
  StreamWaits& stream_waits_;
  Stats& stats_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<FileId, Stream> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_HANDLE_WRITER_H_
