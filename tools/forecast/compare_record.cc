#include "tools/forecast/compare_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "tools/runner/record.h"

namespace mosa::cli {
namespace {

using predict::PathIndex;
using predict::SeenTask;
using predict::Workflow;

// Smaller differences of a file's size are not noted.
constexpr double kSizeShare = 0.01;
constexpr double kSecondsMax = 1e9;  // No run is longer.

bool ArePossible(const std::vector<RecordedFile>& files) {
  return std::ranges::all_of(files, &RecordedFile::is_possible);
}

// Counts the tasks or files with one property and names the first.
class Several {
 public:
  void Add(const std::string& example) {
    if (count_++ == 0) example_ = example;
  }
  // "run.json: WHAT: 'make_1' and 2 more".
  void Say(const std::string& path, const char* what, std::vector<std::string>& notes) const {
    if (count_ == 0) return;
    notes.push_back(fmt::format("{}: {}: '{}'{}", path, what, example_,
                                count_ > 1 ? fmt::format(" and {} more", count_ - 1) : ""));
  }
  size_t count() const { return count_; }

 private:
  size_t count_ = 0;
  std::string example_;
};

struct Faults {
  Several unknown, unlike, kept, not_done, repeated, impossible, silent, resized;
  Several unasked, restarted, truncated, untimed;  // Daemons.
  Several unused;                                  // Machines.
};

class Reader {
 public:
  Reader(const RunFile& file, const Workflow& workflow) : file_(file), workflow_(workflow) {}

  Result<MeasuredRun> Read() {
    measured_.seen.name = file_.path;
    for (const RunHost& host : file_.hosts) {
      hosts_.emplace(host.name, static_cast<uint32_t>(hosts_.size()));
      measured_.seen.hosts.push_back(host.name);
    }
    measured_.seen.tasks.resize(workflow_.tasks.size());
    std::map<std::string, size_t> places;
    for (size_t i = 0; i < workflow_.tasks.size(); ++i) places.emplace(workflow_.tasks[i].id, i);
    std::set<size_t> met;
    for (const RecordedTask& task : file_.tasks) {
      const auto place = places.find(task.id);
      if (place == places.end()) {
        faults_.unknown.Add(task.id);
      } else if (task.digest != DigestOf(workflow_, workflow_.tasks[place->second])) {
        faults_.unlike.Add(task.id);
      } else {
        met.insert(place->second);
        ReadTask(task, place->second);
      }
    }
    if (met.empty())
      return InvalidArgumentError(fmt::format(
          "{} is a run of another workflow ('{}'): none of its tasks matches a task of '{}' by "
          "name, command and files; give the --workload that was run",
          file_.path, file_.workflow.name, workflow_.name));
    for (size_t i = 0; i < workflow_.tasks.size(); ++i)
      if (!met.contains(i)) missing_.Add(workflow_.tasks[i].id);
    ReadRequests();
    ReadMachines();
    Say();
    return std::move(measured_);
  }

 private:
  void ReadTask(const RecordedTask& recorded, size_t index) {
    const std::string& id = recorded.id;
    if (recorded.kept) return faults_.kept.Add(id);
    if (recorded.state != "done" || recorded.attempts.empty()) return faults_.not_done.Add(id);
    // All that it computes would count as off.
    if (!workflow_.tasks[index].expected && workflow_.tasks[index].operations.empty())
      return faults_.silent.Add(id);
    if (recorded.attempts.size() > 1) faults_.repeated.Add(id);
    const Attempt& last = recorded.attempts.back();
    const std::optional<AttemptSpan> span = SpanOf(last, file_.start);
    const auto host = hosts_.find(last.host);
    if (host == hosts_.end() || !span || !ArePossible(recorded.inputs) ||
        !ArePossible(recorded.outputs))
      return faults_.impossible.Add(id);
    SeenTask& task = measured_.seen.tasks[index];
    task.ran = true;
    task.host = predict::HostIndex{host->second};
    task.start = std::max(span->start, Duration());
    task.end = std::max(span->end, Duration());
    task.processor = last.processor;
    AddFiles(recorded.inputs, workflow_.tasks[index].inputs, host->first, task.read);
    AddFiles(recorded.outputs, workflow_.tasks[index].outputs, host->first, task.written);
  }

  // The files are in the order of the task's, as its digest is the same.
  void AddFiles(const std::vector<RecordedFile>& list, const std::vector<PathIndex>& files,
                const std::string& host, predict::BytesByNodeName& found) {
    for (size_t i = 0; i < list.size() && i < files.size(); ++i) {
      if (!list[i].facts) continue;
      const FileFacts& facts = *list[i].facts;
      predict::AddFile(facts.size_bytes, facts.bytes_by_node, host, found);
      if (facts.chunk_bytes > 0 && chunked_.insert(files[i]).second)
        measured_.seen.bytes_by_chunk[facts.chunk_bytes] += facts.size_bytes;
      for (const auto& [node, bytes] : facts.bytes_by_node)
        if (!hosts_.contains(node)) other_nodes_.insert(node);
      const predict::WorkflowFile& file = workflow_.at(files[i]);
      const auto said = static_cast<double>(file.size_bytes.value_or(facts.size_bytes));
      if (std::abs(said - static_cast<double>(facts.size_bytes)) > kSizeShare * said &&
          resized_.insert(files[i]).second)
        faults_.resized.Add(file.path);
    }
  }

  // Requests between the run's begin and end, if the cluster was asked.
  void ReadRequests() {
    for (const RecordedDaemon& daemon : file_.daemons) {
      const std::string name = daemon.component == "manager"
                                   ? daemon.component
                                   : fmt::format("the {} of {}", daemon.component, daemon.host);
      if (!daemon.failure.empty())
        faults_.unasked.Add(fmt::format("{} ({})", name, daemon.failure));
      if (daemon.since_start) faults_.restarted.Add(name);
      if (daemon.truncated) faults_.truncated.Add(name);
      // What a mount that began in the run read from other nodes is not known.
      if (daemon.component == "mount" && !daemon.since_start && daemon.bytes_read_remote)
        measured_.seen.fetched[daemon.host] += *daemon.bytes_read_remote;
      if (!daemon.is_possible) {
        faults_.untimed.Add(name);
        continue;
      }
      for (const RecordedRequests& row : daemon.requests)
        predict::Add({row.count, static_cast<double>(row.sum_ns) / 1e9, row.p50_us / 1e6,
                      row.p90_us / 1e6, row.times ? predict::ModesOf(*row.times) : std::nullopt},
                     measured_.seen.requests[{daemon.component, row.name, daemon.host, row.peer}]);
    }
    if (!file_.daemons.empty())
      measured_.seen.knows_all_requests =
          file_.rows_left_out == 0 && faults_.truncated.count() + faults_.unasked.count() +
                                              faults_.restarted.count() + faults_.untimed.count() ==
                                          0;
  }

  // Takes the machines whose load by others is known.
  void ReadMachines() {
    for (const MachineUse& machine : file_.machines) {
      const auto processors = static_cast<double>(machine.processors);
      const double others_s = machine.others_s.value_or(0);
      const double waited_s = machine.waited_s.value_or(0);
      // Kernels count in hundredths of a second, and are not read at the same moment.
      const double possible_s = (1.1 * machine.seconds + 0.1) * processors;
      const auto is_in = [](double seconds, double most_s) {
        return seconds >= 0 && seconds <= most_s;
      };
      if (!(machine.seconds > 0 && machine.seconds <= kSecondsMax && processors >= 1 &&
            is_in(others_s, possible_s) && is_in(machine.stolen_s, possible_s) &&
            is_in(waited_s, kSecondsMax))) {
        faults_.unused.Add(fmt::format("{}", fmt::join(machine.hosts, ", ")));
        continue;
      }
      if (!machine.others_s) continue;
      const double all_s = machine.seconds * processors;
      predict::SeenMachine& seen = measured_.seen.machines.emplace_back();
      seen.hosts.assign(machine.hosts.begin(), machine.hosts.end());
      seen.has_runner = machine.has_runner;
      seen.has_manager = machine.has_manager;
      seen.others_share = std::clamp((others_s - machine.stolen_s) / all_s, 0.0, 1.0);
      seen.stolen_share = std::min(1.0, machine.stolen_s / all_s);
      if (machine.waited_s) seen.waited_share = std::min(1.0, waited_s / machine.seconds);
    }
  }

  void Say() {
    std::vector<std::string>& notes = measured_.notes;
    if (file_.outcome != "done")
      notes.push_back(
          fmt::format("{}: the run is '{}', not done: only tasks that ended are compared",
                      file_.path, file_.outcome));
    if (!file_.hosts_lost.empty())
      notes.push_back(fmt::format("{}: the run lost {}, so its total time is not compared",
                                  file_.path, fmt::join(file_.hosts_lost, ", ")));
    const bool stepped = file_.end < file_.start;
    if (stepped)
      notes.push_back(
          fmt::format("{}: the run ends before it begins: its clock was set back", file_.path));
    const auto say = [&](const Several& some, const char* what) {
      some.Say(file_.path, what, notes);
    };
    say(faults_.unknown, "not in the workload, left out");
    say(faults_.unlike, "another command or other files than in the workload, left out");
    say(missing_, "in the workload, but not in the run");
    say(faults_.kept, "kept from an earlier run, left out");
    say(faults_.not_done, "not done, left out");
    say(faults_.repeated, "done at a second or later attempt; the last attempt is compared");
    say(faults_.impossible,
        "impossible times, an unknown host or an impossible file size, left out (was a clock set "
        "back?)");
    say(faults_.silent,
        "the workload does not say how long it computes, left out (give a --workload that does)");
    say(faults_.resized, "another size in the run than in the workload");
    say(faults_.unasked, "residence times are unknown for");
    say(faults_.restarted,
        "started or restarted during the run, so its requests are counted from then on");
    say(faults_.truncated,
        "reported only its largest classes and peers of requests, so the others are not compared");
    say(faults_.untimed, "impossible times or numbers of requests, which are not compared");
    say(faults_.unused, "impossible times, so the load is unknown for");
    if (file_.rows_left_out > 0)
      notes.push_back(fmt::format(
          "{}: the record has only the classes and peers of requests that took most time; the {} "
          "smaller ones are not compared",
          file_.path, file_.rows_left_out));
    if (!other_nodes_.empty())
      notes.push_back(fmt::format(
          "{}: files are on nodes that are not hosts of the run: {}; give 'storage=' in --config "
          "if these are separate hosts",
          file_.path, fmt::join(other_nodes_, ", ")));
    measured_.seen.whole = file_.outcome == "done" && file_.hosts_lost.empty() && !stepped &&
                           missing_.count() + faults_.unknown.count() + faults_.kept.count() +
                                   faults_.not_done.count() + faults_.impossible.count() +
                                   faults_.silent.count() ==
                               0;
  }

  const RunFile& file_;
  const Workflow& workflow_;
  MeasuredRun measured_;
  std::map<std::string, uint32_t> hosts_;
  Faults faults_;
  Several missing_;
  std::set<std::string> other_nodes_;
  std::set<PathIndex> chunked_, resized_;  // Each file counts once, however many tasks use it.
};

}  // namespace

Result<MeasuredRun> ReadMeasured(const RunFile& file, const Workflow& workflow) {
  MOSA_RETURN_IF_ERROR(CheckFaults(file));
  return Reader(file, workflow).Read();
}

size_t FillSizes(const RunFile& file, Workflow& workflow) {
  std::map<std::string, uint64_t> sizes;
  for (const RecordedTask& task : file.tasks)
    for (const auto* list : {&task.inputs, &task.outputs})
      for (const RecordedFile& recorded : *list)
        if (recorded.facts) sizes[recorded.path] = recorded.facts->size_bytes;
  size_t filled = 0;
  for (predict::WorkflowFile& known : workflow.files) {
    const auto size = sizes.find(known.path);
    if (known.size_bytes || size == sizes.end()) continue;
    known.size_bytes = size->second;
    ++filled;
  }
  return filled;
}

}  // namespace mosa::cli
