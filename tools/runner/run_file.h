// The record of a run as its file has it: the one form in which 'mosa run' writes a record and in
// which every command reads one. docs/reference/formats.md describes the fields. No threads.
#ifndef MOSA_TOOLS_RUNNER_RUN_FILE_H_
#define MOSA_TOOLS_RUNNER_RUN_FILE_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/duration_counts.h"
#include "common/base/status.h"
#include "common/base/time.h"
#include "predictor/workflow/scheduler.h"
#include "predictor/workflow/workflow.h"
#include "tools/hosts/files.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

struct Attempt {
  std::string host;
  Time start;
  Time end;
  int exit_code = 0;
  int signal = 0;
  std::string failure;                // One sentence; empty if it succeeded.
  std::optional<Duration> processor;  // Its own processor time; unknown if --exec started it.
  std::string placed;                 // Why on this host.
  // Bytes of its inputs on this host and elsewhere at its start.
  uint64_t local_bytes = 0;
  uint64_t remote_bytes = 0;
  std::string output_path;
  std::string error_path;
};

struct AttemptSpan {
  Duration start, end;  // From the run's beginning.
  Duration took() const { return end - start; }
};
// None if the times are impossible: an end before the start, or a start before the run's.
std::optional<AttemptSpan> SpanOf(const Attempt& attempt, Time run_start);

struct RecordedFile {
  std::string path;
  std::optional<FileFacts> facts;
  predict::HintMap hints;
  bool is_possible = true;  // False: its facts were not numbers that a file can have.
};

struct RecordedTask {
  std::string id, stage, state;
  bool kept = false;  // An earlier run did it.
  std::string digest;
  uint32_t cores = 0;  // That it asked for; 0: one.
  std::vector<std::string> command;
  std::vector<RecordedFile> inputs, outputs;
  std::vector<Attempt> attempts;
};

struct RecordedWorkflow {
  std::string name, path;
};

// What kept the processors of one machine busy, in processor seconds.
struct MachineUse {
  std::set<std::string> hosts;
  bool has_runner = false, has_manager = false;
  uint64_t processors = 0;
  double seconds = 0;  // The length of the interval.
  double busy_s = 0, stolen_s = 0, daemons_s = 0, tasks_s = 0;
  std::optional<double> waited_s, others_s;
  bool operator==(const MachineUse&) const = default;
};

// The requests of one class and peer to a daemon.
struct RecordedRequests {
  std::string name, peer;
  uint64_t count = 0, sum_ns = 0;
  double p50_us = 0, p90_us = 0;
  std::optional<DurationCounts> times;
};

struct RecordedDaemon {
  std::string component, host, failure;
  bool since_start = false, truncated = false;
  std::vector<RecordedRequests> requests;
  bool is_possible = true;  // False: some requests had times or counts that none can have.
  std::optional<uint64_t> bytes_read_remote;
};

struct RunFile {
  std::string path;     // The file's own.
  bool is_cut = false;  // Its text ends among the tasks: those before the end are here.
  // Fields that are missing or of another type, such as "'tasks[3].id' is missing"; these have
  // their default values. Empty unless such records were asked for.
  std::vector<std::string> faults;

  std::map<std::string, std::string> versions;
  // Variables of the run's environment that determine which programs run, and how.
  std::map<std::string, std::string> environment;
  RecordedWorkflow workflow;
  std::string rules_path;  // Empty: none.
  std::string plan_path;   // Empty: none.
  std::string store_run;   // The name that the store knows the run by; empty: it knows of none.
  predict::System system = predict::System::kWass;
  std::string outcome;
  Time start, end;
  std::optional<double> turnaround_s;  // Absent if it is impossible: a clock was set back.
  std::vector<RunHost> hosts;
  std::vector<std::string> hosts_lost;
  std::vector<RecordedTask> tasks;
  // What hosts read for tasks before they started, and those among them that the tasks then read.
  uint64_t read_ahead_bytes = 0;
  uint64_t read_ahead_used_bytes = 0;
  std::vector<MachineUse> machines;
  nlohmann::json residence;  // ResidenceFromJson() reads it; null: not in the record.
  // Taken from `residence`; not written.
  std::string cluster, residence_failure;
  uint64_t rows_left_out = 0;
  std::vector<RecordedDaemon> daemons;
};

// What to do with a record that ends in the middle or has faulty fields.
enum class CutFiles : uint8_t { kRefuse, kReadAsFarAsTheyGo };

// NotFound if the file cannot be opened. InvalidArgument names the file and the first faulty field:
// the text is not JSON, another version, a field of another type, a missing field, or no hosts.
Result<RunFile> ReadRunFile(const std::string& path, CutFiles cut);
Result<RunFile> ParseRunFile(const std::string& text, const std::string& path, CutFiles cut);
// InvalidArgument if the record has faults: for readers that need all of it.
Status CheckFaults(const RunFile& file);

nlohmann::json ToJson(const RunFile& file);
nlohmann::json ToJson(const std::vector<MachineUse>& machines);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_RUNNER_RUN_FILE_H_
