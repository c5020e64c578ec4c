#include "predictor/trace/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/base/utf8.h"
#include "predictor/workflow/workflow.h"

namespace mosa::predict {
namespace {

// Operations on adjacent bytes are merged if the gap between them is at most this.
constexpr Duration kMergedGapMax = Milliseconds(1);
constexpr size_t kNone = SIZE_MAX;

// Makes text that JSON can hold and readers accept as a name: escapes bytes that are not UTF-8 and
// control characters, and replaces empty text.
std::string Printable(const std::string& bytes) {
  const bool is_text = IsUtf8(bytes);
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_text)) {
      text += fmt::format("%{:02X}", byte);
    } else {
      text += c;
    }
  }
  if (text.empty()) text.assign(1, '_');
  return text;
}

class Builder {
 public:
  Builder(const TracedRun& run, const std::vector<RecordedTask>& recorded)
      : run_(run), states_(run.files.size()), current_(run.tasks.size(), kNone) {
    for (const RecordedTask& task : recorded) recorded_.emplace(task.id, task);
  }

  Workload Build(std::string name) {
    for (const TracedOperation& operation : run_.operations) Apply(operation);
    workload_.name = std::move(name);
    FinishFiles();
    for (size_t i = 0; i < segments_.size(); ++i) FinishTask(i);
    Connect();
    return std::move(workload_);
  }

 private:
  // What one task wrote to a file since it was last truncated, or what was there before the trace.
  struct Part {
    uint32_t file = 0;  // Index into the run's files.
    size_t producer = kNone;
    std::map<uint64_t, uint64_t> bytes;  // Begin -> end of its ranges in the file, in order.
    bool is_used = false;
    std::string path;
    uint32_t index = 0;  // Index into the workload's files.
    // Place of each range in the workload's file, where the ranges are contiguous.
    std::map<uint64_t, uint64_t> places;  // By the begins of `bytes`.
    uint64_t size_bytes = 0;
  };
  struct State {
    std::map<uint64_t, std::pair<uint64_t, size_t>> cover;  // Begin -> end, part.
    std::vector<size_t> parts;                              // Since it was last truncated.
    bool is_seen = false;
    bool is_new = false;  // Made or truncated to nothing: every byte in it was seen being written.
    size_t remade_by = kNone;  // The task that had removed the previous file of this name.
  };
  struct Step {
    TracedKind kind = TracedKind::kOpen;
    size_t part = kNone;
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
    Time start;
    Time end;
  };
  // A task, or the part of it after something that it had to wait for.
  struct Segment {
    uint32_t task = 0;
    size_t number = 1;  // Counts the task's segments.
    std::set<size_t> before;
    bool has_consumers = false;
    std::set<size_t> inputs;   // Parts.
    std::set<size_t> outputs;  // Parts.
    std::vector<Step> steps;
  };

  size_t SegmentOf(uint32_t task) {
    if (current_[task] == kNone) {
      current_[task] = segments_.size();
      segments_.emplace_back().task = task;
    }
    return current_[task];
  }

  size_t NewPart(uint32_t file, size_t producer) {
    Part& part = parts_.emplace_back();
    part.file = file;
    part.producer = producer;
    states_[file].parts.push_back(parts_.size() - 1);
    if (producer != kNone) segments_[producer].outputs.insert(parts_.size() - 1);
    return parts_.size() - 1;
  }

  // Bytes that were there before any traced write.
  size_t OutsidePart(uint32_t file) {
    for (const size_t part : states_[file].parts)
      if (parts_[part].producer == kNone) return part;
    return NewPart(file, kNone);
  }

  size_t PartOf(uint32_t file, size_t segment) {
    for (const size_t part : states_[file].parts) {
      Part& known = parts_[part];
      if (known.producer == segment) return part;
      // An empty file that some task made beforehand and none has read belongs to its first writer.
      const bool is_free = known.producer != kNone && known.bytes.empty() && !known.is_used;
      if (!is_free) continue;
      segments_[known.producer].outputs.erase(part);
      segments_[segment].outputs.insert(part);
      known.producer = segment;
      return part;
    }
    return NewPart(file, segment);
  }

  static void AddBytes(Part& part, uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    auto at = part.bytes.upper_bound(begin);
    if (at != part.bytes.begin() && std::prev(at)->second >= begin) --at;
    while (at != part.bytes.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = part.bytes.erase(at);
    }
    part.bytes[begin] = end;
  }

  static void TrimBytes(Part& part, uint64_t size) {
    part.bytes.erase(part.bytes.lower_bound(size), part.bytes.end());
    if (!part.bytes.empty()) {
      uint64_t& end = part.bytes.rbegin()->second;
      end = std::min(end, size);
    }
  }

  static void Cover(State& state, uint64_t begin, uint64_t end, size_t part) {
    Uncover(state, begin, end);
    if (begin < end) state.cover[begin] = {end, part};
  }

  static void Uncover(State& state, uint64_t begin, uint64_t end) {
    auto at = state.cover.upper_bound(begin);
    if (at != state.cover.begin()) --at;
    while (at != state.cover.end() && at->first < end) {
      const auto [old_begin, old] = *at;
      if (old.first <= begin) {
        ++at;
        continue;
      }
      at = state.cover.erase(at);
      if (old_begin < begin) state.cover[old_begin] = {begin, old.second};
      if (old.first > end) state.cover[end] = {old.first, old.second};
    }
  }

  void Apply(const TracedOperation& operation) {
    const size_t segment = SegmentOf(operation.task);
    State& state = states_[operation.file];
    switch (operation.kind) {
      case TracedKind::kOpen:
        ApplyOpen(operation, state);
        break;
      case TracedKind::kRead:
        ApplyRead(operation, state);
        break;
      case TracedKind::kWrite: {
        const size_t part = PartOf(operation.file, segment);
        const uint64_t end = operation.offset + operation.size_bytes;
        AddBytes(parts_[part], operation.offset, end);
        Cover(state, operation.offset, end, part);
        AddStep(segment, operation, part, operation.offset, operation.size_bytes);
        break;
      }
      case TracedKind::kCut:
        Cut(state, operation.size_bytes);
        AddStep(segment, operation, kNone, 0, 0);
        break;
      case TracedKind::kUnlink:
        DropEmptyParts(state);
        removed_.emplace(operation.task, run_.files[operation.file].path);
        AddStep(segment, operation, kNone, 0, 0);
        break;
      case TracedKind::kClose:
        AddStep(segment, operation, kNone, 0, 0);
        break;
    }
    state.is_seen = true;
  }

  void ApplyOpen(const TracedOperation& operation, State& state) {
    if (operation.cut) Cut(state, 0);
    state.is_new = state.is_new || operation.made;
    if (operation.made && removed_.contains({operation.task, run_.files[operation.file].path}))
      state.remade_by = operation.task;
    const bool made_before = !state.is_seen && !operation.made;
    if (made_before && !operation.cut && operation.size_bytes > 0) {
      const size_t part = OutsidePart(operation.file);
      AddBytes(parts_[part], 0, operation.size_bytes);
      Cover(state, 0, operation.size_bytes, part);
    }
    size_t segment = SegmentOf(operation.task);
    if (operation.writes && (operation.made || operation.cut) && state.parts.empty())
      NewPart(operation.file, segment);
    if (operation.reads && !operation.writes) {
      // A task that opens it depends on the tasks that wrote it, even if it reads nothing.
      if (state.parts.empty() && !state.is_new) OutsidePart(operation.file);
      for (const size_t part : state.parts) segment = Depend(operation.task, part);
    }
    AddStep(segment, operation, kNone, 0, 0);
  }

  void ApplyRead(const TracedOperation& operation, State& state) {
    uint64_t at = operation.offset;
    const uint64_t end = operation.offset + operation.size_bytes;
    bool is_first = true;
    while (at < end) {
      auto next = state.cover.upper_bound(at);
      size_t part = kNone;
      uint64_t until = next == state.cover.end() ? end : std::min(end, next->first);
      if (next != state.cover.begin() && std::prev(next)->second.first > at) {
        until = std::min(end, std::prev(next)->second.first);
        part = std::prev(next)->second.second;
      } else if (state.is_new) {  // A hole.
        AddStep(SegmentOf(operation.task), operation, kNone, 0, 0);
        at = until;
        continue;
      } else {
        part = OutsidePart(operation.file);
        AddBytes(parts_[part], at, until);
        Cover(state, at, until, part);
      }
      const size_t segment = Depend(operation.task, part);
      TracedOperation piece = operation;
      if (!is_first) piece.start = piece.end;
      AddStep(segment, piece, part, at, until - at);
      is_first = false;
      at = until;
    }
  }

  // A file that was made empty beforehand, and is now truncated or removed, never existed for the
  // workload.
  void DropEmptyParts(const State& state) {
    for (const size_t part : state.parts)
      if (parts_[part].bytes.empty() && !parts_[part].is_used && parts_[part].producer != kNone)
        segments_[parts_[part].producer].outputs.erase(part);
  }

  void Cut(State& state, uint64_t size) {
    if (size == 0) {
      DropEmptyParts(state);
      state.cover.clear();
      state.parts.clear();
      state.is_new = true;
    } else {
      Uncover(state, size, UINT64_MAX);
      for (const size_t part : state.parts) TrimBytes(parts_[part], size);
    }
  }

  // Records that the task uses a part. Returns the segment that does.
  size_t Depend(uint32_t task, size_t part) {
    size_t segment = current_[task];
    parts_[part].is_used = true;
    const size_t producer = parts_[part].producer;
    if (producer == segment) return segment;
    if (segments_[segment].inputs.contains(part)) return segment;
    if (producer != kNone && segments_[segment].has_consumers && Waits(producer, segment)) {
      const size_t number = segments_[segment].number + 1;
      Segment& next = segments_.emplace_back();
      next.task = task;
      next.number = number;
      next.before.insert(segment);
      segments_[segment].has_consumers = true;
      segment = current_[task] = segments_.size() - 1;
    }
    segments_[segment].inputs.insert(part);
    if (producer != kNone) {
      segments_[segment].before.insert(producer);
      segments_[producer].has_consumers = true;
    }
    return segment;
  }

  // Whether `later` depends on `earlier`.
  bool Waits(size_t later, size_t earlier) const {
    std::vector<size_t> waiting = {later};
    std::set<size_t> seen;
    while (!waiting.empty()) {
      const size_t at = waiting.back();
      waiting.pop_back();
      if (at == earlier) return true;
      for (const size_t before : segments_[at].before)
        if (seen.insert(before).second) waiting.push_back(before);
    }
    return false;
  }

  void AddStep(size_t segment, const TracedOperation& operation, size_t part, uint64_t offset,
               uint64_t size_bytes) {
    segments_[segment].steps.push_back(
        {operation.kind, part, offset, size_bytes, operation.start, operation.end});
  }

  // ---- the result

  void FinishFiles() {
    std::set<std::string> taken;  // Includes directories, which cannot be files as well.
    for (const TracedFile& file : run_.files) {
      const std::string path = Printable(file.path);
      for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
        taken.insert(path.substr(0, slash));
    }
    std::vector<bool> wanted(parts_.size(), false);
    for (const Segment& segment : segments_) {
      for (const size_t part : segment.inputs) wanted[part] = true;
      for (const size_t part : segment.outputs) wanted[part] = true;
    }
    std::map<std::string, int> numbers;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!wanted[i]) continue;
      Part& part = parts_[i];
      const std::string path = Printable(run_.files[part.file].path);
      part.path = path;
      for (int& number = numbers.try_emplace(path, 1).first->second;
           !taken.insert(part.path).second;)
        part.path = fmt::format("{}#{}", path, ++number);
      part.index = static_cast<uint32_t>(workload_.files.size());
      for (const auto& [begin, end] : part.bytes) {
        part.places[begin] = part.size_bytes;
        part.size_bytes += end - begin;
      }
      workload_.files.push_back({part.path, part.size_bytes});
    }
  }

  void FinishTask(size_t index) {
    const Segment& segment = segments_[index];
    const TracedTask& traced = run_.tasks[segment.task];
    WorkloadTask task;
    const std::string id = Printable(traced.id);
    task.id = segment.number > 1 ? fmt::format("{}#{}", id, segment.number) : id;
    for (size_t number = segment.number + 1; !ids_.insert(task.id).second; ++number)
      task.id = fmt::format("{}#{}", id, number);
    task.command = {Printable(traced.command.empty() ? traced.id : traced.command)};
    if (task.command[0].find_first_not_of(' ') == std::string::npos) task.command[0].assign(1, '_');
    task.stage = traced.is_process ? task.command[0] : StageOf(id);
    task.host = Printable(traced.host);
    for (const size_t part : segment.inputs)
      if (parts_[part].producer != index) task.inputs.push_back(parts_[part].index);
    for (const size_t part : segment.outputs) task.outputs.push_back(parts_[part].index);
    AddOperations(segment, task);
    const auto recorded = recorded_.find(traced.id);
    if (recorded != recorded_.end()) {
      const RecordedTask& said = recorded->second;
      task.cores = said.cores;
      if (!said.stage.empty()) task.stage = Printable(said.stage);
      if (!said.command.empty()) task.command.clear();
      for (const std::string& word : said.command) task.command.push_back(Printable(word));
    }
    // The rest of the recorded runtime was spent around the operations.
    const bool is_whole = current_[segment.task] == index && segment.number == 1;
    if (recorded != recorded_.end() && is_whole) {
      const Duration around = recorded->second.runtime - task.runtime;
      if (around.ns > 0) {
        task.runtime = recorded->second.runtime;
        if (!task.operations.empty())
          task.operations.front().before = task.operations.front().before + around;
        if (task.start > Time{} + around) task.start = task.start - around;
      }
    }
    workload_.tasks.push_back(std::move(task));
  }

  // The number of the part's bytes below `offset`.
  static uint64_t PlaceIn(const Part& part, uint64_t offset) {
    const auto next = part.bytes.upper_bound(offset);
    if (next == part.bytes.begin()) return 0;
    const auto& [begin, end] = *std::prev(next);
    return part.places.at(begin) + std::min(offset, end) - begin;
  }

  // Whether this is the task's first write to a file that replaces one it removed.
  bool RemovesFirst(const Segment& segment, const Step& step) {
    size_t& remade_by = states_[parts_[step.part].file].remade_by;
    if (step.kind != TracedKind::kWrite || remade_by != segment.task) return false;
    remade_by = kNone;
    return true;
  }

  void AddOperations(const Segment& segment, WorkloadTask& task) {
    if (segment.steps.empty()) return;
    Time end = segment.steps.front().start;
    Duration computed;  // Computing since the last operation.
    Duration gap;       // The part of it since the last merged operation.
    for (const Step& step : segment.steps) {
      const Duration idle = std::max(Duration(), step.start - end);
      computed = computed + idle;
      gap = gap + idle;
      end = std::max(end, step.end);
      if (step.part == kNone || step.size_bytes == 0) continue;
      const Part& part = parts_[step.part];
      const uint64_t place = PlaceIn(part, step.offset);
      const uint64_t size_bytes = PlaceIn(part, step.offset + step.size_bytes) - place;
      if (size_bytes == 0) continue;  // Truncated later.
      WorkloadOperation operation;
      operation.kind = step.kind == TracedKind::kRead ? WorkloadOperation::Kind::kRead
                                                      : WorkloadOperation::Kind::kWrite;
      operation.file = part.index;
      operation.offset = place;
      operation.size_bytes = size_bytes;
      if (RemovesFirst(segment, step))
        task.operations.push_back({std::exchange(computed, Duration()),
                                   WorkloadOperation::Kind::kRemove, part.index, 0, 0});
      if (!task.operations.empty()) {
        WorkloadOperation& last = task.operations.back();
        if (last.kind == operation.kind && last.file == operation.file &&
            last.offset + last.size_bytes == operation.offset && gap <= kMergedGapMax) {
          last.size_bytes += operation.size_bytes;
          gap = Duration();
          continue;  // The computing in between counts before the next operation.
        }
      }
      operation.before = std::exchange(computed, Duration());
      gap = Duration();
      task.operations.push_back(operation);
    }
    if (computed.ns > 0)
      task.operations.push_back({computed, WorkloadOperation::Kind::kCompute, 0, 0, 0});
    task.start = segment.steps.front().start;
    task.runtime = end - task.start;
  }

  // Drops tasks without files, and adds dependencies that no file expresses.
  void Connect() {
    std::vector<uint32_t> places(segments_.size(), 0);
    std::vector<WorkloadTask> kept;
    std::vector<size_t> of;
    for (size_t i = 0; i < segments_.size(); ++i) {
      WorkloadTask& task = workload_.tasks[i];
      if (task.inputs.empty() && task.outputs.empty() && segments_[i].number == 1 &&
          !segments_[i].has_consumers)
        continue;
      places[i] = static_cast<uint32_t>(kept.size());
      kept.push_back(std::move(task));
      of.push_back(i);
    }
    for (size_t i = 0; i < kept.size(); ++i)
      for (const size_t before : segments_[of[i]].before)
        if (segments_[before].task == segments_[of[i]].task)
          kept[i].after.push_back(places[before]);
    workload_.tasks = std::move(kept);
    DropUnusedFiles();
  }

  void DropUnusedFiles() {
    std::vector<bool> used(workload_.files.size(), false);
    for (const WorkloadTask& task : workload_.tasks) {
      for (const uint32_t file : task.inputs) used[file] = true;
      for (const uint32_t file : task.outputs) used[file] = true;
    }
    std::vector<uint32_t> places(workload_.files.size(), 0);
    std::vector<WorkloadFile> kept;
    for (size_t i = 0; i < used.size(); ++i) {
      places[i] = static_cast<uint32_t>(kept.size());
      if (used[i]) kept.push_back(std::move(workload_.files[i]));
    }
    for (WorkloadTask& task : workload_.tasks) {
      for (uint32_t& file : task.inputs) file = places[file];
      for (uint32_t& file : task.outputs) file = places[file];
      std::sort(task.inputs.begin(), task.inputs.end());
      std::sort(task.outputs.begin(), task.outputs.end());
      for (WorkloadOperation& operation : task.operations) operation.file = places[operation.file];
    }
    workload_.files = std::move(kept);
  }

  const TracedRun& run_;
  std::map<std::string, RecordedTask> recorded_;
  std::vector<State> states_;
  std::vector<size_t> current_;  // By task: its last segment.
  std::vector<Segment> segments_;
  std::vector<Part> parts_;
  std::set<std::string> ids_;
  std::set<std::pair<size_t, std::string>> removed_;  // Tasks, and the paths that they removed.
  Workload workload_;
};

}  // namespace

Workload WorkloadOf(const TracedRun& run, std::string name,
                    const std::vector<RecordedTask>& recorded) {
  return Builder(run, recorded).Build(std::move(name));
}

}  // namespace mosa::predict
