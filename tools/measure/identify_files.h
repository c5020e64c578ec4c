// What a process of `mosa identify` does to files of its host's mount, timed.
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
  uint32_t rounds = 1;  // Operations in a row, each `probe.at_once` times at the same time.
  uint32_t count() const { return rounds * probe.at_once; }
  std::string path(uint32_t index) const;
};

// How a sample's file is opened to be written, besides that it is new. `keep_open`: the writer
// only readies it, and holds it until it was read.
int WriteModeOf(const predict::Probe& probe, bool keep_open);

// One thread, which starts others for what happens at once.
class IdentifyFiles {
 public:
  IdentifyFiles();
  // Writes them, for whoever operates on them. Errors name file and reason.
  Status Write(const SampleFiles& files);
  // Seconds of one round. What has to be known beforehand is looked up before the clock runs.
  Result<double> Operate(const SampleFiles& files);
  Status Remove(const SampleFiles& files);

 private:
  Status WriteOne(const SampleFiles& files, uint32_t index, bool keep_open);
  Status OperateOne(const SampleFiles& files, uint32_t index) const;

  // Whole pages, as programs write: else the kernel cuts what goes past its cache into two
  // requests.
  struct alignas(4096) Block {
    char bytes[1 << 20];
  };
  std::unique_ptr<Block> block_;
  std::vector<UniqueFd> kept_open_;
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_MEASURE_IDENTIFY_FILES_H_
