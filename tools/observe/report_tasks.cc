#include "tools/observe/report_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "predictor/compare/seen_run.h"
#include "predictor/model/cost.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::BytesByNodeName;

// What a page has room for; beyond that the tasks that took longest are shown.
constexpr size_t kTasksShownMax = 30'000;
constexpr size_t kFailuresShownMax = 500;
constexpr size_t kTextShownMax = 300;
constexpr double kSumMax = 9e18;

std::string Shortened(const std::string& text) {
  if (text.size() <= kTextShownMax) return text;
  size_t size = kTextShownMax;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size) + "...";
}

int64_t Microseconds(Duration duration) { return std::max<int64_t>(0, duration.ns) / 1000; }

struct StageSum {
  size_t tasks = 0, done = 0, timed = 0;
  Duration begin{INT64_MAX}, end, longest_took{-1};
  double seconds = 0;
  std::string longest;
  uint64_t local_bytes = 0, elsewhere_bytes = 0, written_bytes = 0;
};

using Matrix = std::map<std::string, BytesByNodeName>;  // By host, then node.

json ToJson(const Matrix& matrix, double divisor) {
  json object = json::object();
  for (const auto& [host, nodes] : matrix)
    for (const auto& [node, bytes] : nodes)
      object[host][node] = std::llround(std::min(static_cast<double>(bytes) / divisor, kSumMax));
  return object;
}

void AddTo(const BytesByNodeName& from, BytesByNodeName& sum) {
  for (const auto& [node, bytes] : from) sum[node] += bytes;
}

class Reporter {
 public:
  Reporter(const RunFile& file, const FinishedRuns* finished) : file_(file), finished_(finished) {}

  TasksReport Report() {
    for (size_t i = 0; i < file_.hosts.size(); ++i) hosts_.emplace(file_.hosts[i].name, i);
    if (finished_ != nullptr) {
      const auto& tasks = finished_->asked.inputs.workflow.tasks;
      for (size_t i = 0; i < tasks.size(); ++i) predicted_.emplace(tasks[i].id, i);
    }
    const std::vector<bool> shown = Shown(file_.tasks);
    for (size_t i = 0; i < file_.tasks.size(); ++i) ReadTask(file_.tasks[i], shown[i]);
    Finish();
    return std::move(report_);
  }

 private:
  // If there are more tasks than room, the longest; those of no known time come last.
  std::vector<bool> Shown(const std::vector<RecordedTask>& tasks) const {
    std::vector<bool> shown(tasks.size(), tasks.size() <= kTasksShownMax);
    if (tasks.size() <= kTasksShownMax) return shown;
    std::vector<std::pair<Duration, size_t>> order;  // Shortest last, by what is less.
    for (size_t i = 0; i < tasks.size(); ++i) {
      const auto span = SpanOfRun(tasks[i]);
      order.emplace_back(span ? span->start - span->end : Nanoseconds(1), i);
    }
    const auto end = order.begin() + static_cast<ptrdiff_t>(kTasksShownMax);
    std::nth_element(order.begin(), end, order.end());
    for (auto at = order.begin(); at != end; ++at) shown[at->second] = true;
    return shown;
  }

  // The last attempt, if this run made it.
  std::optional<AttemptSpan> SpanOfRun(const RecordedTask& task) const {
    if (task.kept || task.attempts.empty()) return std::nullopt;
    return SpanOf(task.attempts.back(), file_.start);
  }

  void ReadTask(const RecordedTask& task, bool is_shown) {
    const Attempt last = task.attempts.empty() ? Attempt() : task.attempts.back();
    const std::optional<AttemptSpan> span = SpanOfRun(task);
    if (!task.kept && !task.attempts.empty() && !span) ++impossible_;
    const auto host = hosts_.find(last.host);
    // What an earlier run read and wrote is not of this one; where it lies is.
    const uint64_t in_place = ReadFiles(task, task.kept || host == hosts_.end() ? "" : host->first);
    const uint64_t written = task.kept ? 0 : in_place;
    const uint64_t local = task.kept ? 0 : last.local_bytes;
    const uint64_t elsewhere = task.kept ? 0 : last.remote_bytes;
    StageSum& sum = stages_[task.stage];
    ++sum.tasks;
    sum.done += task.state == "done" ? 1 : 0;
    sum.local_bytes += local;
    sum.elsewhere_bytes += elsewhere;
    sum.written_bytes += written;
    if (span) {
      ++sum.timed;
      sum.begin = std::min(sum.begin, span->start);
      sum.end = std::max(sum.end, span->end);
      sum.seconds += predict::SecondsOf(span->took());
      if (span->took() > sum.longest_took) {
        sum.longest_took = span->took();
        sum.longest = Shortened(task.id);
      }
    }
    if (!task.kept) ReadFailures(task);
    if (!is_shown) {
      ++hidden_;
      return;
    }
    Add("id", Shortened(task.id));
    Add("stage", Number(stage_numbers_, task.stage));
    Add("state", Number(state_numbers_, task.kept ? "kept from an earlier run" : task.state));
    Add("host", host == hosts_.end() ? json() : json(host->second));
    Add("start_us", span ? json(Microseconds(span->start)) : json());
    Add("took_us", span ? json(Microseconds(span->took())) : json());
    Add("local", local);
    Add("elsewhere", elsewhere);
    Add("written", written);
    Add("attempts", task.attempts.size());
    Add("placed", Number(placed_numbers_, last.placed));
    AddPredicted(task.id);
  }

  void AddPredicted(const std::string& id) {
    if (finished_ == nullptr) return;
    const auto found = predicted_.find(id);
    const auto& tasks = finished_->drawn.prediction.tasks;
    const bool ran = found != predicted_.end() && tasks[found->second].ran;
    const predict::PredictedTask* const task = ran ? &tasks[found->second] : nullptr;
    Add("predicted_host", ran ? json(task->host.value) : json());
    Add("predicted_start_us", ran ? json(Microseconds(task->start)) : json());
    Add("predicted_took_us", ran ? json(Microseconds(task->end - task->start)) : json());
  }

  // Counts where the task's files lie, and what moved for them to a host that has a name; returns
  // the bytes of its outputs.
  uint64_t ReadFiles(const RecordedTask& task, const std::string& host) {
    uint64_t written = 0;
    for (const bool output : {false, true}) {
      for (const RecordedFile& file : output ? task.outputs : task.inputs) {
        if (!file.is_possible) ++oversized_;
        if (!file.facts) continue;
        const BytesByNodeName& held = file.facts->bytes_by_node;
        if (!host.empty())
          predict::AddFile(file.facts->size_bytes, held, host, (output ? written_ : read_)[host]);
        if (!output) continue;
        written += file.facts->size_bytes;
        AddTo(held, placement_[task.stage]);
      }
    }
    return written;
  }

  void ReadFailures(const RecordedTask& task) {
    for (const Attempt& attempt : task.attempts) {
      if (attempt.failure.empty() || ++failures_ > kFailuresShownMax) continue;
      const auto span = SpanOf(attempt, file_.start);
      const auto host = hosts_.find(attempt.host);
      report_.failed.push_back({{"id", Shortened(task.id)},
                                {"host", host == hosts_.end() ? json() : json(host->second)},
                                {"start_us", span ? json(Microseconds(span->start)) : json()},
                                {"took_us", span ? json(Microseconds(span->took())) : json()},
                                {"failure", Shortened(attempt.failure)}});
    }
  }

  void Finish() {
    if (!report_.failed.is_array()) report_.failed = json::array();
    for (const auto& [name, numbers] : {std::pair("stages", &stage_numbers_),
                                        {"states", &state_numbers_},
                                        {"reasons", &placed_numbers_}}) {
      std::vector<std::string> names(numbers->size());
      for (const auto& [text, number] : *numbers) names[number] = text;
      report_.tasks[name] = names;
    }
    FinishStages();
    report_.placement = ToJson(placement_, 1);
    report_.traffic = {{"read", ToJson(read_, 1)}, {"written", ToJson(written_, 1)}};
    if (finished_ != nullptr) AddPredictedTraffic();
    const auto note = [&](size_t count, const std::string& what) {
      if (count > 0) report_.notes.push_back(fmt::format("{}: {} {}", file_.path, count, what));
    };
    note(impossible_,
         "tasks have impossible times and are not in the timeline (was a clock set back?)");
    note(oversized_, "files have an impossible size, which is left out");
    note(hidden_,
         fmt::format("tasks are not drawn: the page has room for the {} longest", kTasksShownMax));
    if (failures_ > kFailuresShownMax)
      note(failures_ - kFailuresShownMax, "more failed attempts are not listed");
  }

  void FinishStages() {
    std::vector<std::pair<std::string, StageSum>> ordered(stages_.begin(), stages_.end());
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const auto& a, const auto& b) { return a.second.begin < b.second.begin; });
    report_.stages = json::array();
    for (const auto& [name, sum] : ordered) {
      json stage = {{"name", name},
                    {"tasks", sum.tasks},
                    {"done", sum.done},
                    {"local", sum.local_bytes},
                    {"elsewhere", sum.elsewhere_bytes},
                    {"written", sum.written_bytes}};
      if (sum.timed > 0) {
        stage["begin_s"] = predict::SecondsOf(sum.begin);
        stage["seconds"] = predict::SecondsOf(sum.end - sum.begin);
        stage["mean_s"] = sum.seconds / static_cast<double>(sum.timed);
        stage["longest_s"] = predict::SecondsOf(sum.longest_took);
        stage["longest"] = sum.longest;
      }
      report_.stages.push_back(std::move(stage));
    }
  }

  // The mean of the draws: each is a cluster of its own, which puts files elsewhere.
  void AddPredictedTraffic() {
    Matrix read, written;
    for (const predict::SeenRun& draw : finished_->drawn.draws) {
      for (const predict::SeenTask& task : draw.tasks) {
        if (!task.ran) continue;
        AddTo(task.read, read[draw.hosts[task.host.value]]);
        AddTo(task.written, written[draw.hosts[task.host.value]]);
      }
    }
    const auto draws = static_cast<double>(finished_->drawn.draws.size());
    report_.traffic["predicted_read"] = ToJson(read, draws);
    report_.traffic["predicted_written"] = ToJson(written, draws);
  }

  using Numbers = std::map<std::string, size_t>;
  static size_t Number(Numbers& numbers, const std::string& text) {
    return numbers.emplace(text, numbers.size()).first->second;
  }
  void Add(const char* column, json value) { report_.tasks[column].push_back(std::move(value)); }

  const RunFile& file_;
  const FinishedRuns* const finished_;
  TasksReport report_;
  Numbers hosts_, predicted_;
  Numbers stage_numbers_, state_numbers_, placed_numbers_;
  std::map<std::string, StageSum> stages_;
  Matrix placement_;  // By stage.
  Matrix read_, written_;
  size_t impossible_ = 0, hidden_ = 0, failures_ = 0, oversized_ = 0;
};

}  // namespace

TasksReport ReportTasks(const RunFile& file, const FinishedRuns* finished) {
  return Reporter(file, finished).Report();
}

}  // namespace mosa::cli
