// What is to be staged: the files below the sources, and the directories that were made for them.
//
// Temporaries of `mosa stage` are passed over in sources; what an interrupted run left in a
// target's directories is removed. A directory that everything goes to stays as it is if it was
// there before. One thread.
#ifndef MOSA_TOOLS_STAGE_TREE_H_
#define MOSA_TOOLS_STAGE_TREE_H_

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace mosa::cli {

// What every temporary's name begins with.
inline constexpr const char* kStagePrefix = ".mosa-stage-";

struct StageFile {
  std::string source;  // As seen from here.
  std::string target;
  uint64_t bytes = 0;
  bool regular = false;  // Not a symbolic link, or something that cannot be staged.
};

struct StageFailure {
  std::string path;
  Status status;
};

// Makes a directory and those above it; those that got a new entry.
Result<std::vector<std::string>> MakeDirectories(const std::string& path);

class StageTree {
 public:
  // Temporaries of this run begin with `own_prefix`, those of all runs to the same target with
  // `run_prefix`. A directory on device `forbidden` is refused: it is the store itself.
  StageTree(std::string run_prefix, std::string own_prefix, dev_t forbidden)
      : run_prefix_(std::move(run_prefix)),
        own_prefix_(std::move(own_prefix)),
        forbidden_(forbidden) {}

  // Where everything goes; `fresh` are the directories that got a new entry on the way there, none
  // if it was there before.
  void Open(const std::string& target, const std::vector<std::string>& fresh);
  // Takes up `source`, which becomes `target`, with all that is below it. Symbolic links are not
  // followed.
  void Add(const std::string& source, const std::string& target);
  // Takes up a file that becomes the same path below `target_root` as it has below `source_root`.
  void AddBelow(const std::string& source_root, const std::string& target_root,
                const std::string& path);
  // Gives the directories the modes and times of their sources. Call it when all files are there.
  void FinishDirectories();

  const std::vector<StageFile>& files() const { return files_; }
  // Every directory in which something was put, and those above it that are new.
  const std::set<std::string>& directories() const { return directories_; }
  std::vector<StageFailure>& failures() { return failures_; }
  // Temporaries of other runs, in sources.
  const std::vector<std::string>& passed_over() const { return passed_over_; }

 private:
  bool MakeDirectory(const std::string& source, const std::string& target);
  void AddEntries(const std::string& source, const std::string& target,
                  std::vector<std::pair<std::string, std::string>>& open);
  void RemoveLeftovers(const std::string& directory);
  void Fail(const std::string& path, Status status) { failures_.push_back({path, status}); }

  const std::string run_prefix_, own_prefix_;
  const dev_t forbidden_;
  std::string untouched_;  // The target that was there before.
  std::vector<StageFile> files_;
  struct Made {
    struct stat source {};
    bool is_new = false;
  };
  std::map<std::string, Made> made_;  // By target.
  std::set<std::string> targets_;     // The targets of files_.
  std::vector<std::string> passed_over_;
  std::set<std::string> directories_;
  std::vector<StageFailure> failures_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_STAGE_TREE_H_
