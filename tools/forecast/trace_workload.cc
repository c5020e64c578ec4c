#include "tools/forecast/trace_workload.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <set>

#include "common/base/text_file.h"
#include "predictor/trace/traced_run.h"
#include "tools/forecast/predict_inputs.h"
#include "tools/forecast/trace_record.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kTraceBytesMax = uintmax_t{4} << 30;

}  // namespace

Result<Traces> ReadTraces(const std::vector<std::string>& paths) {
  Traces traces;
  std::set<std::string> seen;
  size_t records_left = kTraceRecordsMax;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!seen.insert(fs::weakly_canonical(path, error)).second)
      return InvalidArgumentError(fmt::format("{} is given twice", path));
    MOSA_ASSIGN_OR_RETURN(const std::string bytes, ReadText(path, kTraceBytesMax));
    Result<TraceFile> file = ParseTrace(bytes, records_left);
    if (!file.ok())
      return InvalidArgumentError(fmt::format("{}: {}", path, MessageOf(file.status())));
    records_left -= file->records.size();
    if (!file->fault.empty()) traces.faults.push_back(fmt::format("{} {}", path, file->fault));
    traces.files.push_back(*std::move(file));
  }
  return traces;
}

Status Incomplete(const std::vector<std::string>& faults) {
  if (faults.empty()) return OkStatus();
  std::string all;
  for (const std::string& fault : faults) all += (all.empty() ? "" : "; ") + fault;
  return DataLossError(fmt::format("not the whole run: {}", all));
}

Result<RunWorkload> WorkloadOfRun(const std::vector<std::string>& traces, const std::string& record,
                                  const std::string& name) {
  if (traces.empty() && record.empty())
    return InvalidArgumentError("give traces, or --record with the record of a 'mosa run'");
  MOSA_ASSIGN_OR_RETURN(const Traces read, ReadTraces(traces));
  std::optional<RecordedRun> recorded;
  if (!record.empty()) {
    MOSA_ASSIGN_OR_RETURN(recorded, ReadRecordedRun(record));
  }
  RunWorkload run;
  run.workload =
      traces.empty()
          ? recorded->workload
          : predict::WorkloadOf(predict::MergeTraces(read.files), name,
                                recorded ? recorded->tasks : std::vector<predict::RecordedTask>());
  if (run.workload.tasks.empty())
    return FailedPreconditionError("no task of the trace has read or written a file");
  run.incomplete = Incomplete(read.faults);
  run.workload.description = traces.empty()
                                 ? fmt::format("from the record {}", record)
                                 : fmt::format("from {} traces{}", read.files.size(),
                                               recorded ? fmt::format(" and {}", record) : "");
  if (!run.incomplete.ok()) run.workload.description += "; " + MessageOf(run.incomplete);
  return run;
}

}  // namespace mosa::cli
