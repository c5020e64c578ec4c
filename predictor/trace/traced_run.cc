#include "predictor/trace/traced_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "common/model/task_names.h"

namespace mosa::predict {
namespace {

constexpr int kDepthMax = 256;
constexpr FileId kRoot{1};
// The task's name of a process without MOSA_TASK begins with this.
constexpr std::string_view kNoTask = "sid:";

// Upper bounds for a file's size and an operation's duration, so that sums over a damaged trace do
// not overflow.
constexpr uint64_t kBytesMax = uint64_t{1} << 60;
// The kernel reads ahead this far at once, and not in order.
constexpr uint64_t kReadAheadBytesMax = uint64_t{4} << 20;
constexpr Duration kWaitMax = Seconds(1'000'000);

Time Sane(Time time) { return {std::clamp<int64_t>(time.ns, 0, int64_t{1} << 62)}; }

// Makes a valid name of a directory entry, even from a damaged trace.
std::string Component(const std::string& name) {
  std::string component;
  for (const char c : name) component += c == '/' ? "%2F" : c == '\0' ? "%00" : std::string(1, c);
  if (component.empty() || component == "." || component == "..") component += "%";
  return component;
}

// Returns the task of an open's text, "task NUL command"; empty if the process has no MOSA_TASK.
std::string NamedTask(std::string_view text) {
  const std::string_view task = text.substr(0, text.find('\0'));
  return task.starts_with(kNoTask) ? std::string() : std::string(task);
}

// Names over time: which file had which name.
class Names {
 public:
  explicit Names(const std::vector<TraceFile>& traces) {
    std::vector<const TraceRecord*> changes;
    for (const TraceFile& trace : traces)
      for (const TraceRecord& record : trace.records)
        if (record.kind == TraceKind::kName || record.kind == TraceKind::kRename ||
            record.kind == TraceKind::kUnlink)
          changes.push_back(&record);
    std::stable_sort(changes.begin(), changes.end(),
                     [](const auto* a, const auto* b) { return a->start < b->start; });
    for (const TraceRecord* change : changes) Apply(*change);
  }

  std::string PathOf(FileId file) const {
    std::vector<std::string_view> parts;
    FileId at = file;
    std::string begin;
    while (at != kRoot) {
      const auto name = last_.find(at);
      if (name == last_.end() || parts.size() >= kDepthMax) {
        begin = fmt::format("#{}{}", at.value, parts.empty() ? "" : "/");
        break;
      }
      parts.push_back(name->second.second);
      at = name->second.first;
    }
    std::string path = begin;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part != parts.rbegin()) path += '/';
      path += *part;
    }
    return path;
  }

  // The file whose name the record removed, if that is known.
  std::optional<FileId> UnlinkedBy(const TraceRecord& unlink) const {
    const auto file = unlinked_.find(&unlink);
    if (file == unlinked_.end()) return std::nullopt;
    return file->second;
  }
  uint64_t renames() const { return renames_; }
  uint64_t unlinks() const { return unlinks_; }

 private:
  using Place = std::pair<FileId, std::string>;

  void Apply(const TraceRecord& change) {
    if (change.kind == TraceKind::kName) {
      last_[change.file] = {change.parent, Component(change.text)};
      files_[{change.parent, change.text}] = change.file;
      return;
    }
    const size_t end = std::min(change.text.find('\0'), change.text.size());
    const auto old = files_.find({change.parent, change.text.substr(0, end)});
    if (change.kind == TraceKind::kUnlink) {
      ++unlinks_;
      if (old == files_.end()) return;
      unlinked_[&change] = old->second;
      files_.erase(old);
      return;
    }
    ++renames_;
    if (old == files_.end() || end == change.text.size()) return;
    const FileId file = old->second;
    files_.erase(old);
    const Place place{change.target, change.text.substr(end + 1)};
    files_[place] = file;
    last_[file] = {place.first, Component(place.second)};
  }

  std::map<FileId, Place> last_;
  std::map<Place, FileId> files_;
  std::map<const TraceRecord*, FileId> unlinked_;
  uint64_t renames_ = 0;
  uint64_t unlinks_ = 0;
};

class Merger {
 public:
  explicit Merger(const std::vector<TraceFile>& traces) : traces_(traces), names_(traces) {}

  TracedRun Merge() {
    for (trace_ = 0; trace_ < traces_.size(); ++trace_) {
      const TraceFile& trace = traces_[trace_];
      if (trace.foot) {
        run_.stats += trace.foot->stats;
        run_.lookups += trace.foot->lookups;
      }
      handles_.clear();
      processes_.clear();
      FindProcesses(trace);
      // A read may precede its open in the trace, since each thread has its own queue.
      for (const TraceRecord& record : trace.records)
        if (record.kind == TraceKind::kOpen || record.kind == TraceKind::kCreate) Open(record);
      for (const TraceRecord& record : trace.records) FindUser(record);
      for (const TraceRecord& record : trace.records) Operate(record);
      for (const auto& [handle, opened] : handles_) Finish(opened);
    }
    run_.renames = names_.renames();
    run_.unlinks = names_.unlinks();
    NameProcesses();
    Sort();
    AddCuts();
    Sort();
    LeaveOutReadAhead();
    return std::move(run_);
  }

 private:
  struct Opened {
    uint32_t task = 0;
    bool has_user = false;  // `task` is that of a process that uses a handle opened by another.
    uint32_t file = 0;
    uint8_t flags = 0;
    bool made = false;
    uint32_t pid = 0;
    uint64_t size_at_open = 0;
    uint64_t size_at_end = 0;
    uint64_t bytes_read = 0;
    Time opened;
    Time closed;
    bool is_closed = false;
  };
  // One process with a given pid, known from its opens and closes.
  struct Process {
    uint64_t start = 0;
    Time last;  // Time of its last open or close.
    uint32_t task = 0;
  };

  uint32_t FileOf(FileId file) {
    const auto [known, fresh] = files_.try_emplace(file, static_cast<uint32_t>(run_.files.size()));
    if (fresh) run_.files.push_back({file, names_.PathOf(file)});
    return known->second;
  }

  // It is the runner's doing, and no task's.
  void LeaveOutReadAhead() {
    const auto found = tasks_.find(std::string(kReadAheadTask));
    if (found == tasks_.end()) return;
    std::erase_if(run_.operations,
                  [&](const TracedOperation& each) { return each.task == found->second; });
  }

  uint32_t TaskOf(const std::string& name, bool is_process) {
    const std::string key(is_process ? name : WithoutOwnRun(name));
    const auto [known, fresh] = tasks_.try_emplace(key, static_cast<uint32_t>(run_.tasks.size()));
    if (fresh)
      run_.tasks.push_back({is_process ? "" : key, "", traces_[trace_].head.host, is_process});
    return known->second;
  }

  static bool HasProcess(const TraceRecord& record) {
    return record.kind == TraceKind::kOpen || record.kind == TraceKind::kCreate ||
           record.kind == TraceKind::kFlush;
  }

  void FindProcesses(const TraceFile& trace) {
    std::vector<const TraceRecord*> records;
    for (const TraceRecord& record : trace.records)
      if (HasProcess(record)) records.push_back(&record);
    std::stable_sort(records.begin(), records.end(),
                     [](const auto* a, const auto* b) { return a->start < b->start; });
    // A process that is ending has lost its environment: keep the name it had before.
    std::map<std::pair<uint32_t, uint64_t>, std::string> named;
    for (const TraceRecord* record : records) {
      const std::string task = NamedTask(record->text);
      if (!task.empty()) named.try_emplace({record->pid, record->process_start}, task);
    }
    for (const TraceRecord* record : records) {
      const auto name = named.find({record->pid, record->process_start});
      const bool is_process = name == named.end();
      // A task's name cannot contain NUL.
      const std::string key = is_process ? '\0' + fmt::format("{} {} {}", trace.head.host,
                                                              record->pid, record->process_start)
                                         : name->second;
      const uint32_t task = TaskOf(key, is_process);
      if (is_process) pids_[task] = record->pid;
      // A process may begin as a shell's fork and then execute the real program: the last command
      // wins.
      const size_t end = record->text.find('\0');
      if (end != std::string::npos && end + 1 < record->text.size())
        run_.tasks[task].command = record->text.substr(end + 1);
      std::vector<Process>& same = processes_[record->pid];
      if (same.empty() || same.back().start != record->process_start)
        same.push_back({record->process_start, {}, task});
      same.back().last = record->start;
    }
  }

  // Returns the task of the process that had this pid at that time; nothing if it has neither
  // opened nor closed a file.
  std::optional<uint32_t> TaskOfProcess(uint32_t pid, Time then) const {
    const auto same = processes_.find(pid);
    if (pid == 0 || same == processes_.end()) return std::nullopt;
    for (const Process& process : same->second)
      if (then <= process.last) return process.task;
    return same->second.back().task;
  }

  // A process that removes a name may have opened nothing, so the record itself carries its task,
  // if named.
  std::optional<uint32_t> TaskOfUnlink(const TraceRecord& record) {
    const size_t end = record.text.find('\0');
    if (end != std::string::npos) {
      const std::string task = NamedTask(std::string_view(record.text).substr(end + 1));
      if (!task.empty()) return TaskOf(task, false);
    }
    return TaskOfProcess(record.pid, record.start);
  }

  // The opener's task, unless another process operates on an inherited handle.
  uint32_t TaskOfOperation(const TraceRecord& record, const Opened& opened) const {
    const auto task = TaskOfProcess(record.pid, record.start);
    if (!task || (run_.tasks[*task].is_process && !run_.tasks[opened.task].is_process))
      return opened.task;
    return *task;
  }

  void Open(const TraceRecord& record) {
    Opened opened;
    opened.task = TaskOfProcess(record.pid, record.start).value_or(0);
    opened.file = FileOf(record.file);
    opened.flags = record.flags;
    opened.made = record.kind == TraceKind::kCreate && record.size_bytes == 0;
    opened.pid = record.pid;
    opened.size_at_open = opened.size_at_end = std::min(record.size_bytes, kBytesMax);
    opened.opened = Sane(record.end);
    handles_[record.handle] = opened;
  }

  // A handle that a shell opens for its programs belongs to the program that reads or writes it.
  void FindUser(const TraceRecord& record) {
    const bool moves = record.kind == TraceKind::kRead || record.kind == TraceKind::kWrite;
    if (!moves && record.kind != TraceKind::kFlush) return;
    Opened& opened = HandleOf(record);
    if (opened.has_user || record.pid == opened.pid) return;
    const uint32_t task = TaskOfOperation(record, opened);
    opened.has_user = task != opened.task;
    opened.task = task;
  }

  TracedOperation OperationOf(const TraceRecord& record, const Opened& opened, TracedKind kind) {
    TracedOperation operation;
    operation.kind = kind;
    operation.task = opened.task;
    operation.file = opened.file;
    operation.offset = std::min(record.offset, kBytesMax);
    operation.size_bytes = std::min(record.size_bytes, kBytesMax);
    operation.start = Sane(record.start);
    operation.end = std::clamp(Sane(record.end), operation.start, operation.start + kWaitMax);
    return operation;
  }

  void Operate(const TraceRecord& record) {
    switch (record.kind) {
      case TraceKind::kOpen:
      case TraceKind::kCreate: {
        const Opened& opened = HandleOf(record);
        TracedOperation operation = OperationOf(record, opened, TracedKind::kOpen);
        operation.made = opened.made;
        operation.cut = (record.flags & kTraceCut) != 0;
        operation.reads = (record.flags & kTraceForReading) != 0;
        operation.writes = (record.flags & kTraceForWriting) != 0;
        run_.operations.push_back(operation);
        break;
      }
      case TraceKind::kRead:
      case TraceKind::kWrite: {
        Opened& opened = HandleOf(record);
        const bool reads = record.kind == TraceKind::kRead;
        if (reads) opened.bytes_read += std::min(record.size_bytes, kBytesMax);
        TracedOperation operation =
            OperationOf(record, opened, reads ? TracedKind::kRead : TracedKind::kWrite);
        operation.task = TaskOfOperation(record, opened);
        run_.operations.push_back(operation);
        break;
      }
      case TraceKind::kTruncate: {
        // A truncation by name may have no opener.
        const auto opened = handles_.find(record.handle);
        if (opened != handles_.end()) {
          run_.operations.push_back(OperationOf(record, opened->second, TracedKind::kCut));
        } else {
          Opened nobody;
          nobody.file = FileOf(record.file);
          cuts_.push_back(OperationOf(record, nobody, TracedKind::kCut));
        }
        break;
      }
      case TraceKind::kFlush: {
        Opened& opened = HandleOf(record);
        if (record.size_bytes > 0) opened.size_at_end = std::min(record.size_bytes, kBytesMax);
        TracedOperation operation = OperationOf(record, opened, TracedKind::kClose);
        operation.task = TaskOfOperation(record, opened);
        run_.operations.push_back(operation);
        break;
      }
      case TraceKind::kClose: {
        Opened& opened = HandleOf(record);
        if (record.size_bytes > 0) opened.size_at_end = std::min(record.size_bytes, kBytesMax);
        opened.closed = Sane(record.start);
        opened.is_closed = true;
        break;
      }
      case TraceKind::kUnlink: {
        const auto file = names_.UnlinkedBy(record);
        if (!file) break;
        const auto task = TaskOfUnlink(record);
        if (!task) break;
        Opened nobody;
        nobody.task = *task;
        nobody.file = FileOf(*file);
        run_.operations.push_back(OperationOf(record, nobody, TracedKind::kUnlink));
        break;
      }
      default:
        break;
    }
  }

  // The task of a handle that was opened before the trace is unknown.
  Opened& HandleOf(const TraceRecord& record) {
    const auto known = handles_.find(record.handle);
    if (known != handles_.end()) return known->second;
    Opened opened;
    opened.task = TaskOf("opened-before-the-trace", false);
    opened.file = FileOf(record.file);
    opened.size_at_open = opened.size_at_end = std::min(record.size_bytes, kBytesMax);
    return handles_[record.handle] = opened;
  }

  // Adds estimates for what the mount did not see of an open.
  void Finish(const Opened& opened) {
    const bool light = traces_[trace_].head.light;
    const bool unseen = light || (opened.flags & kTracePassthrough) != 0;
    const bool reads = (opened.flags & kTraceForReading) != 0;
    const bool writes = (opened.flags & kTraceForWriting) != 0;
    TracedOperation operation;
    operation.estimated = true;
    operation.task = opened.task;
    operation.file = opened.file;
    const bool kept = (opened.flags & kTraceKeptPages) != 0;
    if (reads && !writes && (unseen || kept) && opened.size_at_end > opened.bytes_read) {
      operation.kind = TracedKind::kRead;
      operation.offset = opened.bytes_read;
      operation.size_bytes = opened.size_at_end - opened.bytes_read;
      operation.start = operation.end = opened.opened;
      run_.operations.push_back(operation);
    }
    const uint64_t before =
        opened.made || (opened.flags & kTraceCut) != 0 ? 0 : opened.size_at_open;
    if (writes && unseen && opened.size_at_end > before) {
      operation.kind = TracedKind::kWrite;
      operation.offset = before;
      operation.size_bytes = opened.size_at_end - before;
      operation.start = operation.end = opened.is_closed ? opened.closed : opened.opened;
      run_.operations.push_back(operation);
    }
  }

  // "sort.4711", with the host if two hosts have one of that name.
  void NameProcesses() {
    std::set<std::string> taken;
    for (const TracedTask& task : run_.tasks)
      if (!task.is_process) taken.insert(task.id);
    for (uint32_t i = 0; i < run_.tasks.size(); ++i) {
      TracedTask& task = run_.tasks[i];
      if (!task.is_process) continue;
      if (task.command.empty()) task.command = "process";
      task.id = fmt::format("{}.{}", task.command, pids_[i]);
      if (taken.contains(task.id)) task.id += fmt::format("#{}", task.host);
      const std::string name = task.id;
      for (int again = 2; !taken.insert(task.id).second; ++again)
        task.id = fmt::format("{}#{}", name, again);
    }
  }

  void Sort() {
    std::stable_sort(run_.operations.begin(), run_.operations.end(),
                     [](const auto& a, const auto& b) { return a.start < b.start; });
  }

  void AddCuts() {
    // A truncation by name is attributed to the task that next uses the file. Without one it is
    // dropped.
    for (TracedOperation cut : cuts_) {
      const auto next = std::find_if(
          run_.operations.begin(), run_.operations.end(), [&](const TracedOperation& operation) {
            return operation.file == cut.file && operation.start >= cut.start;
          });
      if (next == run_.operations.end()) continue;
      cut.task = next->task;
      run_.operations.push_back(cut);
    }
  }

  const std::vector<TraceFile>& traces_;
  const Names names_;
  TracedRun run_;
  uint32_t trace_ = 0;  // Index of the trace being merged.
  std::map<uint64_t, Opened> handles_;
  std::map<FileId, uint32_t> files_;
  std::map<std::string, uint32_t> tasks_;
  std::map<uint32_t, uint32_t> pids_;                   // By task.
  std::map<uint32_t, std::vector<Process>> processes_;  // By pid.
  std::vector<TracedOperation> cuts_;
};

}  // namespace

TracedRun MergeTraces(const std::vector<TraceFile>& traces) { return Merger(traces).Merge(); }

std::vector<TraceSummaryRow> Summarize(const TracedRun& run) {
  struct Sum {
    TraceSummaryRow row;
    uint64_t read_end = 0;
    uint64_t write_end = 0;
    std::map<uint64_t, uint64_t> ahead;  // Begin -> end of reads that came ahead of their turn.
    void EndReads() {
      row.sequential = row.sequential && ahead.empty();
      ahead.clear();
      read_end = 0;
    }
    void Read(uint64_t begin, uint64_t end) {
      const bool early = begin > read_end && begin - read_end <= kReadAheadBytesMax;
      row.sequential = row.sequential && (begin == read_end || early);
      if (early) {
        ahead[begin] = end;
        return;
      }
      read_end = end;
      for (auto next = ahead.find(read_end); next != ahead.end(); next = ahead.find(read_end)) {
        read_end = next->second;
        ahead.erase(next);
      }
    }
  };
  std::map<std::pair<uint32_t, uint32_t>, Sum> sums;
  for (const TracedOperation& operation : run.operations) {
    Sum& sum = sums[{operation.task, operation.file}];
    TraceSummaryRow& row = sum.row;
    row.task = operation.task;
    row.file = operation.file;
    row.waited = row.waited + (operation.end - operation.start);
    row.estimated = row.estimated || operation.estimated;
    const bool read = operation.kind == TracedKind::kRead;
    if (operation.kind == TracedKind::kOpen) {
      ++row.opens;
      // Each open starts a new sequence.
      sum.EndReads();
      sum.write_end = operation.cut || operation.made ? 0 : operation.size_bytes;
    } else if (read || operation.kind == TracedKind::kWrite) {
      const uint64_t end = operation.offset + operation.size_bytes;
      if (read) {
        sum.Read(operation.offset, end);
      } else {
        // A rewrite usually begins at the file's beginning.
        row.sequential = row.sequential && (operation.offset == sum.write_end ||
                                            (sum.write_end > 0 && operation.offset == 0));
        sum.write_end = end;
      }
      ++(read ? row.reads : row.writes);
      (read ? row.bytes_read : row.bytes_written) += operation.size_bytes;
    }
  }
  std::vector<TraceSummaryRow> rows;
  // A process that has only closed a file inherited it and left it to others.
  for (auto& [key, sum] : sums) {
    sum.EndReads();
    if (sum.row.opens + sum.row.reads + sum.row.writes > 0) rows.push_back(sum.row);
  }
  return rows;
}

}  // namespace mosa::predict
