// HandleWriter: the write calls of programs, and the kernel's writeback.
//
// Thread-safe. Blocks within the thread's WaitBudget. Borrows the constructor's arguments.
#ifndef MOSA_CLIENT_SAI_SAI_HANDLE_WRITER_H_
#define MOSA_CLIENT_SAI_SAI_HANDLE_WRITER_H_

#include <cstddef>
#include <cstdint>
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
#include "client-sai/sai/write_behind.h"
#include "client-sai/sai/writer.h"
#include "common/base/clock.h"

namespace mosa::sai {

class HandleWriter {
 public:
  HandleWriter(KernelNotifier& notifier, HandleTable& handles, KernelPages& pages,
               WriteBehind& write_behind, Writer& writer, Appends& appends,
               MappedStores& mapped_stores, Stats& stats, const Clock& clock)
      : notifier_(notifier),
        handles_(handles),
        pages_(pages),
        write_behind_(write_behind),
        writer_(writer),
        appends_(appends),
        mapped_stores_(mapped_stores),
        stats_(stats),
        clock_(clock) {}

  // `memory`: the owner of the data, if they may be kept instead of copied.
  Outcome<size_t> Write(HandleId handle, const CallPiece& piece, std::span<const std::byte> data,
                        const Memory& memory);
  Outcome<size_t> WritePages(HandleId handle, uint64_t offset, std::span<const std::byte> data,
                             const Memory& memory);

 private:
  Outcome<Done> WriteThrough(OpenFile& handle, const CallPiece& piece,
                             std::span<const std::byte> data, const Memory& memory);

  KernelNotifier& notifier_;
  HandleTable& handles_;
  KernelPages& pages_;
  WriteBehind& write_behind_;
  Writer& writer_;
  Appends& appends_;
  MappedStores& mapped_stores_;
  Stats& stats_;
  const Clock& clock_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_HANDLE_WRITER_H_
