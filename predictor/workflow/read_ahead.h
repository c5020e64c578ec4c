// ReadAhead: which file each host reads next for tasks that its plan has put there and that have
// not started. A file that a host has read stays in the cache of its kernel, so the task finds it
// there: the link works while processors compute.
//
// A host reads one file at a time, those of tasks with a longer path ahead of them first, as the
// Scheduler starts them. It stops while kAheadBytesMax that no task has used yet are read. Pure:
// the runner and the predictor use the same class. Not thread-safe: one owner, one thread.
#ifndef MOSA_PREDICTOR_WORKFLOW_READ_AHEAD_H_
#define MOSA_PREDICTOR_WORKFLOW_READ_AHEAD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "predictor/workflow/workflow.h"

namespace mosa::predict {

class ReadAhead {
 public:
  // Smaller files are read by their tasks in about the time that it takes to start a reader.
  static constexpr uint64_t kFileBytesMin = 256 << 10;
  static constexpr uint64_t kAheadBytesMax = uint64_t{1} << 30;

  // Reads nothing unless `workflow.reads_ahead`. `workflow` must outlive this.
  ReadAhead(const Workflow& workflow, uint32_t hosts);

  // The file is there; `held` are its bytes on each host that has any.
  void AddFile(PathIndex file, uint64_t size_bytes, const std::map<HostIndex, uint64_t>& held);
  // The file is to be written again.
  void RemoveFile(PathIndex file);
  // The task starts on this host, planned or not.
  void Start(TaskIndex task, HostIndex host);
  // The task need not run.
  void Skip(TaskIndex task) { started_[task.value] = true; }

  // The file that the host should read now, which it is reading until End(); nothing: it need not,
  // or it is reading one. Precondition: not called for a host that is lost.
  std::optional<PathIndex> Next(HostIndex host);
  // The host has read the file, or has failed to.
  void End(HostIndex host, bool has_read);

  uint64_t read_bytes() const { return read_bytes_; }
  // Those among them that a task has then read on the same host.
  uint64_t used_bytes() const { return used_bytes_; }

 private:
  // Longer paths first, then by index.
  using Want = std::tuple<int64_t, TaskIndex, PathIndex>;
  struct Host {
    std::set<Want> wanted;  // Without files that it reads or has read.
    std::map<PathIndex, std::set<TaskIndex>> wanted_by;
    std::map<PathIndex, uint64_t> ahead;  // Read, and not used yet: bytes.
    uint64_t ahead_bytes = 0;
    std::optional<PathIndex> reading;
    bool is_used = false;   // A task that has started reads the file as well.
    bool is_stale = false;  // The file was removed meanwhile.
  };

  Want WantOf(TaskIndex task, PathIndex file) const {
    return {-int64_t{workflow_.at(task).levels_to_end}, task, file};
  }
  void RemoveWant(Host& host, TaskIndex task, PathIndex file);
  void Forget(Host& host, PathIndex file);

  const Workflow& workflow_;
  std::vector<Host> hosts_;
  std::map<PathIndex, uint64_t> sizes_;  // Sizes of the files that are there.
  std::vector<bool> started_;            // By task.
  uint64_t read_bytes_ = 0;
  uint64_t used_bytes_ = 0;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_WORKFLOW_READ_AHEAD_H_
