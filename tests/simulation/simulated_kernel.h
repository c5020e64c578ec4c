// The kernel of a host, as far as it concerns what programs read of a mount: the pages that it
// keeps, and the size that it believes. It calls the mount and is told by it what is outdated, as
// FUSE in Linux (fs/fuse/file.c, inode.c and dir.c, without writeback cache and passthrough).
#ifndef MOSA_TESTS_SIMULATION_SIMULATED_KERNEL_H_
#define MOSA_TESTS_SIMULATION_SIMULATED_KERNEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "client-sai/core/outcome.h"
#include "client-sai/sai/filesystem.h"
#include "common/base/sync.h"
#include "common/model/ranges.h"

namespace mosa::simulation {

class SimulatedKernel final : public sai::KernelNotifier {
 public:
  // Call it before any request.
  void Mount(sai::Filesystem& fs) { fs_ = &fs; }

  // ---- requests of programs
  sai::Outcome<FileId> Lookup(FileId parent, std::string_view name);
  sai::Outcome<sai::HandleId> Create(const sai::NewEntry& entry, uint32_t flags);
  sai::Outcome<sai::HandleId> Open(FileId file, uint32_t flags, const sai::Caller& caller);
  // At most `length` bytes; fewer only at the end that the kernel believes.
  sai::Outcome<std::string> Read(sai::HandleId handle, uint64_t offset, uint64_t length);
  sai::Outcome<sai::Done> Write(sai::HandleId handle, uint64_t offset, std::string_view data);
  sai::Outcome<sai::AttributesResult> SetSize(FileId file, uint64_t size_bytes);
  void Release(sai::HandleId handle);
  FileId FileOf(sai::HandleId handle) const { return handles_.at(handle).file; }

  // ---- sai::KernelNotifier
  Capabilities capabilities() const override {
    return {.passthrough = false, .epoch = true, .drops_pages = true, .maps_direct = true};
  }
  void InvalidateEntries() override {}
  bool InvalidateFile(FileId file) override;
  void InvalidateAttributes(FileId file) override;

 private:
  struct File {
    Mutex pages_locked;                     // By a request that reads or writes some of them.
    std::map<uint64_t, std::string> pages;  // By number; each is whole.
    uint64_t size = 0;
    Time size_valid_until;
    uint64_t change = 0;  // The number of the last change of its size, or notice.
  };
  struct Handle {
    FileId file;
    bool direct = false;
    bool append = false;
  };

  void Opened(FileId file, sai::HandleId handle, const sai::OpenMode& mode, uint32_t flags);
  // `asked`: last_change_ when the question was sent. What was overtaken by a change is discarded.
  void Learn(FileId file, const Attributes& attributes, Duration valid, uint64_t asked);
  void Change(File& file) { file.change = ++last_change_; }
  sai::Outcome<sai::Done> AskSize(FileId id);
  sai::Outcome<std::string> ReadPages(File& file, sai::HandleId handle, ByteRange range);
  sai::Outcome<sai::Done> FillPages(File& file, sai::HandleId handle, uint64_t first, uint64_t end);
  static void WriteInPages(File& file, uint64_t offset, std::string_view data);
  static void CutPages(File& file, uint64_t size_bytes);
  static void DropPages(File& file, ByteRange range);

  sai::Filesystem* fs_ = nullptr;
  std::map<FileId, File> files_;
  std::map<sai::HandleId, Handle> handles_;
  uint64_t last_change_ = 0;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_SIMULATED_KERNEL_H_
