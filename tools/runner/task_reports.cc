#include "tools/runner/task_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "common/model/task_names.h"

namespace mosa::cli {

bool GoesByItself(const RunRecord& record, predict::PathIndex file) {
  const auto hints = record.hints.find(file);
  if (hints == record.hints.end()) return false;
  const auto lifetime = hints->second.find("lifetime");
  return lifetime != hints->second.end() &&
         (lifetime->second == "temporary" || lifetime->second.starts_with("readers:"));
}

Status BeginInStore(HostMount& mount, RunRecord& record) {
  const bool any = std::any_of(record.hints.begin(), record.hints.end(), [&](const auto& hints) {
    return GoesByItself(record, hints.first);
  });
  if (!any) {
    record.store_run.clear();
    return OkStatus();
  }
  if (record.store_run.empty()) {
    std::random_device random;
    record.store_run = OwnRunName(uint64_t{random()} << 32 | random());
  }
  return mount.BeginWorkflow(record.store_run);
}

void EndEarlierRun(const std::string& path, HostMount& mount) {
  const Result<RunFile> earlier = ReadRunFile(path, CutFiles::kReadAsFarAsTheyGo);
  if (earlier.ok() && !earlier->store_run.empty() && earlier->outcome != "done")
    (void)mount.EndWorkflow(earlier->store_run);
}

void TaskReports::Tell(HostMount& mount, Time now) {
  if (noted_.empty() || now < retry_) return;
  if (mount.EndTasks(noted_).ok()) {
    noted_.clear();
  } else {
    retry_ = now + kRetryEach;
  }
}

Status TaskReports::Finish(HostMount& mount, bool done) {
  if (run_.empty()) return OkStatus();
  Status told = noted_.empty() ? OkStatus() : mount.EndTasks(noted_);
  if (told.ok() && done) told = mount.EndWorkflow(run_);
  if (told.ok()) return told;
  return Status(told.code(), fmt::format("the store still holds files of this run that should have "
                                         "gone ({}): remove them with 'mosa workflow end {}'",
                                         MessageOf(told), run_));
}

}  // namespace mosa::cli
