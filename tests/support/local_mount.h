// A mount without a kernel: a Filesystem on a cluster in this process, and calls by path as a
// program would make them.
#ifndef MOSA_TESTS_SUPPORT_LOCAL_MOUNT_H_
#define MOSA_TESTS_SUPPORT_LOCAL_MOUNT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client-sai/sai/filesystem.h"
#include "tests/support/local_manager.h"
#include "tests/support/local_nodes.h"

namespace mosa::testing {

// Counts what the kernel would have been told.
class CountingNotifier final : public sai::KernelNotifier {
 public:
  Capabilities capabilities() const override { return can; }
  void InvalidateEntries() override { ++entries; }
  bool InvalidateFile(FileId) override {
    ++files;
    if (on_file) on_file();
    return unknown == 0 || unknown-- == 0;
  }
  void InvalidateAttributes(FileId) override { ++attributes; }

  Capabilities can{.passthrough = false, .epoch = true, .drops_pages = true};
  std::atomic<uint64_t> entries{0};
  std::atomic<uint64_t> files{0};
  std::atomic<uint64_t> attributes{0};
  std::atomic<int> unknown{0};    // So often the kernel does not know the file that it is told of.
  std::function<void()> on_file;  // Set while nothing runs.
};

class LocalMount {
 public:
  // On the host `node_name`, whose storage node, if there is one, is near.
  LocalMount(LocalManager& manager, LocalNodes& nodes, const std::string& node_name,
             const Clock& clock, bool passthrough = false, sai::FilesystemOptions options = {});
  ~LocalMount();

  sai::Filesystem& fs() { return *filesystem_; }
  CountingNotifier& notifier() { return notifier_; }
  // While frozen it hears nothing of the manager, and the manager nothing of it but requests.
  void Freeze(bool frozen);
  // While unheard its requests reach the manager only once they have expired.
  void SetUnheard(bool unheard);
  // As LocalManagerApi's.
  void OnAnswer(std::function<void(const std::vector<Request>&)> hook);
  void OnSend(std::function<void(const std::vector<Request>&)> hook);

  // By absolute path; failures are those of the step that failed.
  sai::Outcome<FileId> Find(std::string_view path);
  sai::Outcome<Attributes> Stat(std::string_view path);
  sai::Outcome<FileId> MakeDirectory(std::string_view path);
  sai::Outcome<sai::OpenResult> Open(std::string_view path, uint32_t flags);
  sai::Outcome<sai::Done> Close(sai::HandleId handle, uint64_t owner = 0);
  sai::Outcome<sai::Done> Flush(sai::HandleId handle, uint64_t owner);
  sai::Outcome<std::string> Read(sai::HandleId handle, uint64_t offset, size_t size_bytes);
  sai::Outcome<size_t> Write(sai::HandleId handle, uint64_t offset, std::string_view data);
  sai::Outcome<sai::Done> WriteFile(std::string_view path, std::string_view content);
  sai::Outcome<std::string> ReadFile(std::string_view path);
  sai::Outcome<sai::Done> Truncate(std::string_view path, uint64_t size_bytes);
  sai::Outcome<sai::Done> Unlink(std::string_view path);
  sai::Outcome<sai::Done> Rename(std::string_view from, std::string_view to);
  sai::Outcome<sai::Done> SetXattr(std::string_view path, std::string_view name,
                                   std::string_view value);
  sai::Outcome<std::vector<std::string>> List(std::string_view path);

 private:
  struct Place {
    FileId parent;
    std::string name;
  };
  sai::Outcome<Place> PlaceOf(std::string_view path);

  CountingNotifier notifier_;
  std::unique_ptr<sai::ManagerApi> manager_;
  std::unique_ptr<sai::NodeApi> nodes_;
  std::unique_ptr<sai::Filesystem> filesystem_;
};

}  // namespace mosa::testing

#endif  // MOSA_TESTS_SUPPORT_LOCAL_MOUNT_H_
