// FileScan: a query over all files, answered in pieces. Examining millions of files at once would
// block all clients, so the caller continues the scan between other commands
// (ManagerCore::ContinueScan). A change made during the scan may or may not be seen.
#ifndef MOSA_MANAGER_CORE_FILE_SCAN_H_
#define MOSA_MANAGER_CORE_FILE_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/model/ids.h"
#include "common/model/staging.h"
#include "common/model/status.h"

namespace mosa::manager {

struct FileScanQuestion {
  enum class Kind : uint8_t { kUnstaged, kLost };
  Kind kind = Kind::kUnstaged;
  size_t files_max = 0;
  FileId after{};  // kUnstaged: only files with greater ids are named.
  auto operator<=>(const FileScanQuestion&) const = default;
};

struct FileScan {
  explicit FileScan(const FileScanQuestion& asked) : question(asked) {}

  const FileScanQuestion question;
  // The answer. Complete at kDone.
  UnstagedFiles unstaged;
  std::vector<FileStatus> lost;

  // ---- position
  // First all files are examined, then the directories that likely name what was found, then all
  // other directories for names that are still missing.
  enum class Stage : uint8_t { kFiles, kLikelyDirectories, kAllDirectories, kDone };
  Stage stage = Stage::kFiles;
  FileId next_file;
  std::pair<FileId, std::string> next_entry;
  std::set<FileId> likely_directories;
  std::map<FileId, UnstagedFile> found_unstaged;
  std::map<FileId, FileStatus> found_lost;
  std::set<FileId> nameless;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_FILE_SCAN_H_
