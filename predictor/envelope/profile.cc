#include "predictor/envelope/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace mosa::predict {
namespace {

struct Call {
  enum class Kind : uint8_t { kOpen, kCreate, kRead, kWrite };
  Kind kind = Kind::kOpen;
  PathIndex file;
  uint64_t size_bytes = 0;
};

bool IsOwnOutput(const Workflow& workflow, TaskIndex task, PathIndex file) {
  return workflow.at(file).producer == task;
}

// Returns the task's calls in order. Files are opened on first use. Files that it names but never
// reads or writes are opened or created at the end.
std::vector<Call> CallsOf(const Workflow& workflow, TaskIndex index) {
  const Task& task = workflow.at(index);
  std::vector<Call> calls;
  std::set<PathIndex> used;
  const auto open = [&](PathIndex file) {
    if (!used.insert(file).second) return;
    calls.push_back(
        {IsOwnOutput(workflow, index, file) ? Call::Kind::kCreate : Call::Kind::kOpen, file, 0});
  };
  const auto move = [&](Call::Kind kind, PathIndex file, uint64_t bytes) {
    open(file);
    if (bytes > 0) calls.push_back({kind, file, bytes});
  };
  if (task.operations.empty()) {
    for (const PathIndex file : task.inputs)
      move(Call::Kind::kRead, file, workflow.at(file).size_bytes.value_or(0));
    for (const PathIndex file : task.outputs)
      move(Call::Kind::kWrite, file, workflow.at(file).size_bytes.value_or(0));
    return calls;
  }
  for (const TaskOperation& operation : task.operations) {
    if (operation.kind == TaskOperation::Kind::kRead)
      move(Call::Kind::kRead, operation.file, operation.size_bytes);
    if (operation.kind == TaskOperation::Kind::kWrite)
      move(Call::Kind::kWrite, operation.file, operation.size_bytes);
  }
  for (const PathIndex file : task.inputs) open(file);
  for (const PathIndex file : task.outputs) open(file);
  return calls;
}

// Totals of all calls of a stage's tasks at one position.
struct Position {
  uint64_t opens = 0, creates = 0, reads = 0, writes = 0;
  uint64_t bytes_read = 0, bytes_written = 0;
  std::map<Sharing, uint64_t> opened;
};

class Stage {
 public:
  Stage(const Workflow& workflow, std::string name, std::vector<TaskIndex> tasks)
      : workflow_(workflow), tasks_(std::move(tasks)) {
    profile_.name = std::move(name);
    profile_.tasks = tasks_.size();
  }

  StageProfile Profile() {
    for (const TaskIndex task : tasks_) {
      calls_.push_back(CallsOf(workflow_, task));
      if (workflow_.at(task).operations.empty()) profile_.calls_known = false;
      for (const PathIndex file : OpenedBy(calls_.back())) ++readers_[file];
    }
    for (const std::vector<Call>& calls : calls_) {
      Align(calls);
      CountFiles(calls);
    }
    for (const Position& position : positions_) CountPosition(position);
    profile_.trace_length = positions_.size();
    return profile_;
  }

 private:
  static std::set<PathIndex> OpenedBy(const std::vector<Call>& calls) {
    std::set<PathIndex> files;
    for (const Call& call : calls) {
      if (call.kind == Call::Kind::kOpen) files.insert(call.file);
    }
    return files;
  }

  Sharing SharingOf(PathIndex file) const {
    const uint64_t readers = readers_.at(file);
    if (readers == 1) return Sharing::kOneToOne;
    return readers == tasks_.size() ? Sharing::kAllToOne : Sharing::kFewToOne;
  }

  void Align(const std::vector<Call>& calls) {
    if (positions_.size() < calls.size()) positions_.resize(calls.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      Position& position = positions_[i];
      switch (calls[i].kind) {
        case Call::Kind::kOpen:
          ++position.opens;
          ++position.opened[SharingOf(calls[i].file)];
          break;
        case Call::Kind::kCreate:
          ++position.creates;
          break;
        case Call::Kind::kRead:
          ++position.reads;
          position.bytes_read += calls[i].size_bytes;
          break;
        case Call::Kind::kWrite:
          ++position.writes;
          position.bytes_written += calls[i].size_bytes;
          break;
      }
    }
  }

  // Counts one task's files.
  void CountFiles(const std::vector<Call>& calls) {
    std::map<PathIndex, uint64_t> read, written;
    for (const Call& call : calls) {
      if (call.kind == Call::Kind::kOpen) read.try_emplace(call.file, 0);
      if (call.kind == Call::Kind::kCreate) written.try_emplace(call.file, 0);
      // Reading back its own output does not make it an input.
      if (call.kind == Call::Kind::kRead && read.contains(call.file))
        read[call.file] += call.size_bytes;
      if (call.kind == Call::Kind::kWrite) written[call.file] += call.size_bytes;
    }
    profile_.tasks_creating += written.empty() ? 0 : 1;
    profile_.files_read += read.size();
    profile_.files_written += written.size();
    for (const auto& [file, bytes] : read) {
      const Sharing sharing = SharingOf(file);
      ++profile_.files_by_sharing[sharing];
      profile_.bytes_read += bytes;
      const auto operation =
          sharing == Sharing::kAllToOne ? EnvelopeOperation::kSharedRead : EnvelopeOperation::kRead;
      ++profile_.transfers[{operation, bytes}];
    }
    for (const auto& [file, bytes] : written) {
      profile_.bytes_written += bytes;
      ++profile_.transfers[{EnvelopeOperation::kWrite, bytes}];
    }
  }

  void CountPosition(const Position& position) {
    const auto is_spike = [this](uint64_t count) { return count * 2 >= profile_.tasks; };
    const auto raise = [](uint64_t& most, uint64_t count) { most = std::max(most, count); };
    raise(profile_.open_concurrency_max, position.opens);
    raise(profile_.create_concurrency_max, position.creates);
    raise(profile_.read_concurrency_max, position.reads);
    raise(profile_.write_concurrency_max, position.writes);
    raise(profile_.bytes_read_per_call_max, position.bytes_read);
    raise(profile_.bytes_written_per_call_max, position.bytes_written);
    if (is_spike(position.creates)) ++profile_.create_spikes;
    if (!is_spike(position.opens)) return;
    ++profile_.open_spikes;
    const auto most =
        std::max_element(position.opened.begin(), position.opened.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    ++profile_.read_spikes[most->first];
  }

  const Workflow& workflow_;
  const std::vector<TaskIndex> tasks_;
  StageProfile profile_;
  std::vector<std::vector<Call>> calls_;   // By task.
  std::map<PathIndex, uint64_t> readers_;  // The number of the stage's tasks that open the file.
  std::vector<Position> positions_;
};

// Files that are read or written whole must have a size.
Status CheckSizes(const Workflow& workflow) {
  for (const Task& task : workflow.tasks) {
    if (!task.operations.empty()) continue;
    for (const auto* files : {&task.inputs, &task.outputs}) {
      for (const PathIndex file : *files) {
        if (workflow.at(file).size_bytes) continue;
        return InvalidArgumentError(fmt::format(
            "file '{}' of {} has no size: give it in the workflow, or give the task's operations",
            workflow.at(file).path, Describe(task)));
      }
    }
  }
  return OkStatus();
}

}  // namespace

TransferAmount AmountOf(const StageProfile& stage, EnvelopeOperation operation) {
  TransferAmount amount;
  for (const auto& [key, count] : stage.transfers) {
    if (key.first != operation) continue;
    amount.files += static_cast<double>(count);
    amount.bytes += static_cast<double>(count) * static_cast<double>(key.second);
  }
  return amount;
}

Result<std::vector<StageProfile>> ProfileOf(const Workflow& workflow) {
  MOSA_RETURN_IF_ERROR(CheckSizes(workflow));
  std::vector<std::pair<std::string, std::vector<TaskIndex>>> stages;
  std::map<std::string, size_t> known;
  for (const TaskIndex index : workflow.order) {
    const auto [place, fresh] = known.try_emplace(workflow.at(index).stage, stages.size());
    if (fresh) stages.push_back({workflow.at(index).stage, {}});
    stages[place->second].second.push_back(index);
  }
  std::vector<StageProfile> profiles;
  for (auto& [name, tasks] : stages)
    profiles.push_back(Stage(workflow, name, std::move(tasks)).Profile());
  return profiles;
}

}  // namespace mosa::predict
