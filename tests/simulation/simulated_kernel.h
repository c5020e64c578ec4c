// The kernel of a host, as far as it concerns what programs see of a mount: names, cached pages,
// and file sizes. It calls the mount, and the mount tells it what is outdated, as in Linux FUSE
// (fs/fuse/file.c, inode.c and dir.c, without writeback cache and passthrough).
#ifndef MOSA_TESTS_SIMULATION_SIMULATED_KERNEL_H_
#define MOSA_TESTS_SIMULATION_SIMULATED_KERNEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "client-sai/core/outcome.h"
#include "client-sai/sai/filesystem.h"
#include "common/base/sync.h"
#include "common/model/ranges.h"

namespace mosa::simulation {

class SimulatedKernel final : public sai::KernelNotifier {
 public:
  static constexpr uint64_t kWriteMax = 128 << 10;  // In one request to the mount.

  // Call it before any request.
  void Mount(sai::Filesystem& fs) { fs_ = &fs; }

  // ---- requests of programs
  // FileId{}: there is none.
  sai::Outcome<FileId> Lookup(FileId parent, const std::string& name);
  // The next lookup asks the mount, as for a path whose file was found to be gone.
  void ForgetName(FileId parent, const std::string& name) { names_.erase({parent, name}); }
  sai::Outcome<sai::Done> Unlink(FileId parent, const std::string& name);
  sai::Outcome<sai::Done> Rename(FileId from, const std::string& name, FileId to,
                                 const std::string& new_name);
  sai::Outcome<FileId> Link(FileId file, FileId parent, const std::string& name);
  // The lock of a directory's inode: held while a program looks up a name and then makes it, so
  // that two never make one name.
  Mutex& LockOf(FileId directory) { return directories_[directory]; }
  sai::Outcome<sai::HandleId> Create(const sai::NewEntry& entry, uint32_t flags);
  sai::Outcome<sai::HandleId> Open(FileId file, uint32_t flags, const sai::Caller& caller);
  // At most `length` bytes; fewer only at the end that the kernel knows.
  sai::Outcome<std::string> Read(sai::HandleId handle, uint64_t offset, uint64_t length);
  sai::Outcome<sai::Done> Write(sai::HandleId handle, uint64_t offset, std::string_view data);
  sai::Outcome<sai::AttributesResult> SetSize(FileId file, uint64_t size_bytes);
  // fallocate(2) with FALLOC_FL_PUNCH_HOLE.
  sai::Outcome<sai::Done> Punch(sai::HandleId handle, ByteRange range);
  void Release(sai::HandleId handle);
  FileId FileOf(sai::HandleId handle) const { return handles_.at(handle).file; }

  // ---- sai::KernelNotifier
  Capabilities capabilities() const override {
    return {.passthrough = false, .epoch = true, .drops_pages = true, .maps_direct = true};
  }
  void InvalidateEntries() override { ++epoch_; }
  bool InvalidateFile(FileId file) override;
  void InvalidateAttributes(FileId file) override;

 private:
  struct Name {
    FileId file;
    Time valid_until;
    uint64_t epoch = 0;  // When it was asked for.
  };
  struct File {
    Mutex changes;  // As the inode's lock: writes and truncations, one at a time.
    Mutex pages_locked;
    std::map<uint64_t, std::string> pages;  // By number; each is whole.
    uint64_t size = 0;
    bool size_unstable = false;  // It is being changed, and answers about it are discarded.
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
  void NoteChange(File& file) { file.change = ++last_change_; }
  void NoteName(FileId parent, const std::string& name, const sai::EntryResult& found,
                uint64_t epoch);
  sai::Outcome<sai::Done> AskSize(FileId id);
  sai::Outcome<std::string> ReadPages(File& file, sai::HandleId handle, ByteRange range);
  sai::Outcome<sai::Done> FillPages(File& file, sai::HandleId handle, uint64_t first, uint64_t end);
  sai::Outcome<sai::Done> WritePiece(const Handle& open, sai::HandleId handle, uint64_t offset,
                                     std::string_view data, uint64_t call_bytes);
  static void WriteInPages(File& file, uint64_t offset, std::string_view data);
  static void CutPages(File& file, uint64_t size_bytes);
  static void DropPages(File& file, ByteRange range);
  // Drops whole pages, and clears parts of others.
  static void ClearPages(File& file, ByteRange range);

  sai::Filesystem* fs_ = nullptr;
  std::map<std::pair<FileId, std::string>, Name> names_;
  uint64_t epoch_ = 0;
  uint64_t own_name_changes_ = 0;
  std::map<FileId, Mutex> directories_;
  std::map<FileId, File> files_;
  std::map<sai::HandleId, Handle> handles_;
  uint64_t last_change_ = 0;
};

}  // namespace mosa::simulation

#endif  // MOSA_TESTS_SIMULATION_SIMULATED_KERNEL_H_
