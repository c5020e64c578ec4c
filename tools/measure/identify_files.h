// Timed operations of a process of `mosa identify` on files of its host's mount.
#ifndef MOSA_TOOLS_MEASURE_IDENTIFY_FILES_H_
#define MOSA_TOOLS_MEASURE_IDENTIFY_FILES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "predictor/identify/probe.h"

namespace mosa::cli {

// The files of one sample: "DIRECTORY/TAG-0" and so on.
struct SampleFiles {
  predict::Probe probe;
  std::string directory;
  std::string tag;
  uint32_t rounds = 1;  // Rounds one after the other, each of `probe.at_once` concurrent
                        // operations.
  uint32_t count() const { return rounds * probe.at_once; }
  std::string path(uint32_t index) const;
};

// How a sample's file is opened for writing, besides being new. `keep_open`: the writer only
// prepares the file, and holds it open until it has been read.
int WriteModeOf(const predict::Probe& probe, bool keep_open);

// One thread, which starts others for concurrent operations.
class IdentifyFiles {
 public:
  IdentifyFiles();
  // Writes the files for whoever operates on them. Errors name the file and the reason.
  Status Write(const SampleFiles& files);
  // Seconds of one round. Looks up whatever must be known before the clock starts.
  Result<double> Operate(const SampleFiles& files);
  Status Remove(const SampleFiles& files);

 private:
  Status WriteOne(const SampleFiles& files, uint32_t index, bool keep_open);
  Status OperateOne(const SampleFiles& files, uint32_t index) const;

  // Whole pages, as programs write: otherwise the kernel splits writes past its cache into two
  // requests.
  struct alignas(4096) Block {
    char bytes[1 << 20];
  };
  std::unique_ptr<Block> block_;
  std::vector<UniqueFd> kept_open_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_IDENTIFY_FILES_H_
