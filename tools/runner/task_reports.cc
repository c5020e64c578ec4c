#include "tools/runner/task_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>

#include "common/base/clock.h"
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
    EndEarlierRun(record.store_run, mount);
    record.store_run.clear();
    return OkStatus();
  }
  if (record.store_run.empty()) {
    std::random_device random;
    record.store_run = OwnRunName(uint64_t{random()} << 32 | random());
  }
  const Status begun = mount.BeginWorkflow(record.store_run);
  record.reports_tasks = begun.ok();
  return begun;
}

void EndEarlierRun(const std::string& run, HostMount& mount) {
  if (!run.empty()) (void)mount.EndWorkflow(run);
}

void TaskReports::Tell(HostMount& mount, Time now) {
  if (is_telling_ && !Take(mount, Duration()).ok()) retry_ = now + kRetryEach;
  if (is_telling_ || noted_.empty() || now < retry_) return;
  const size_t count = std::min(noted_.size(), kToldAtOnce);
  is_telling_ =
      mount.PostTasks({noted_.begin(), noted_.begin() + static_cast<std::ptrdiff_t>(count)}).ok();
  if (!is_telling_) retry_ = now + kRetryEach;
}

Status TaskReports::Take(HostMount& mount, Duration at_most) {
  const Result<std::optional<size_t>> answered = mount.TakeTasks(at_most);
  if (!answered.ok()) {
    is_telling_ = false;
    return answered.status();
  }
  if (!*answered) return OkStatus();
  is_telling_ = false;
  noted_.erase(noted_.begin(),
               noted_.begin() + static_cast<std::ptrdiff_t>(std::min(**answered, noted_.size())));
  return **answered > 0 ? OkStatus() : UnavailableError("the manager is starting again");
}

Status TaskReports::Finish(HostMount& mount, bool done) {
  if (run_.empty()) return OkStatus();
  const SystemClock clock;
  const Time limit = clock.Monotonic() + kFinishMax;
  Status told;
  retry_ = Time();
  while (told.ok() && (is_telling_ || !noted_.empty()) && clock.Monotonic() < limit) {
    Tell(mount, clock.Monotonic());
    if (is_telling_)
      told = Take(mount, limit - clock.Monotonic());
    else if (!noted_.empty())
      told = UnavailableError("the manager does not take the reports");
  }
  if (told.ok() && (is_telling_ || !noted_.empty()))
    told = UnavailableError(fmt::format("{} reports were left", noted_.size()));
  if (done) {
    const Status ended = mount.EndWorkflow(run_);
    if (!ended.ok())
      return Status(ended.code(),
                    fmt::format("the store keeps the temporary files of this run ({}): remove them "
                                "with 'mosa workflow end {}'",
                                MessageOf(ended), run_));
  }
  if (told.ok() || told.code() == StatusCode::kAborted) return OkStatus();
  return Status(told.code(),
                fmt::format("the store does not know of all tasks that have succeeded ({}): files "
                            "of lifetime=readers:N may stay",
                            MessageOf(told)));
}

}  // namespace mosa::cli
