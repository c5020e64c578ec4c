#include "tools/observe/report_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "predictor/compare/seen_run.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::BytesByNodeName;

// What a page has room for; beyond that the tasks that took longest are shown.
constexpr size_t kTasksShownMax = 30'000;
constexpr size_t kFailuresShownMax = 500;
constexpr size_t kTextShownMax = 300;
// What is said to be larger is no size.
constexpr uint64_t kBytesMax = uint64_t{1} << 60;
constexpr double kSumMax = 9e18;
// Times are rounded in records, so that one may begin as much too early.
constexpr double kRoundedSeconds = 1e-5;

std::string Shortened(const std::string& text) {
  if (text.size() <= kTextShownMax) return text;
  size_t size = kTextShownMax;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size) + "...";
}

// As many bytes as a file can have.
bool IsPossible(const json& bytes) {
  return bytes.is_number_unsigned() && bytes.get<uint64_t>() <= kBytesMax;
}
uint64_t BytesOf(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && IsPossible(*found) ? found->get<uint64_t>() : 0;
}
bool IsKept(const json& task) {
  const auto found = task.find("kept");
  return found != task.end() && found->is_boolean() && found->get<bool>();
}
const json& ListOf(const json& object, const char* name) {
  static const json kNone = json::array();
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? *found : kNone;
}

struct Span {
  double start_s = 0;  // From the run's beginning.
  double end_s = 0;
};

// None if the attempt's times are impossible.
std::optional<Span> SpanOf(const json& attempt, double run_start_s) {
  const auto start = attempt.find("start");
  const auto end = attempt.find("end");
  if (start == attempt.end() || end == attempt.end() || !start->is_number() || !end->is_number())
    return std::nullopt;
  const Span span{start->get<double>() - run_start_s, end->get<double>() - run_start_s};
  if (!(span.start_s >= -kRoundedSeconds) || !(span.end_s >= span.start_s) ||
      span.end_s > kSecondsMax)
    return std::nullopt;
  return span;
}

const json& LastAttempt(const json& task) {
  static const json kNone = json::object();
  const json& attempts = ListOf(task, "attempts");
  return attempts.empty() || !attempts.back().is_object() ? kNone : attempts.back();
}

int64_t Microseconds(double seconds) { return std::llround(std::max(0.0, seconds) * 1e6); }
int64_t Microseconds(Duration duration) { return duration.ns / 1000; }

struct StageSum {
  size_t tasks = 0, done = 0, timed = 0;
  double begin_s = kSecondsMax, end_s = 0, seconds = 0, longest_s = -1;
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
    const json& tasks = ListOf(file_.root, "tasks");
    const std::vector<bool> shown = Shown(tasks);
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].is_object())
        ReadTask(tasks[i], shown[i]);
      else
        ++strange_;
    }
    Finish();
    return std::move(report_);
  }

 private:
  // If there are more tasks than room, the longest; those of no known time come last.
  std::vector<bool> Shown(const json& tasks) const {
    std::vector<bool> shown(tasks.size(), tasks.size() <= kTasksShownMax);
    if (tasks.size() <= kTasksShownMax) return shown;
    std::vector<std::pair<double, size_t>> order;  // Shortest last, by what is less.
    for (size_t i = 0; i < tasks.size(); ++i) {
      const auto span = tasks[i].is_object() ? SpanOfRun(tasks[i]) : std::nullopt;
      order.emplace_back(span ? span->start_s - span->end_s : 1, i);
    }
    const auto end = order.begin() + static_cast<ptrdiff_t>(kTasksShownMax);
    std::nth_element(order.begin(), end, order.end());
    for (auto at = order.begin(); at != end; ++at) shown[at->second] = true;
    return shown;
  }

  // The last attempt, if this run made it.
  std::optional<Span> SpanOfRun(const json& task) const {
    return IsKept(task) ? std::nullopt : SpanOf(LastAttempt(task), file_.start_s);
  }

  void ReadTask(const json& task, bool is_shown) {
    const std::string id = TextOf(task, "id");
    const std::string stage = TextOf(task, "stage");
    const json& attempts = ListOf(task, "attempts");
    const bool kept = IsKept(task);
    const std::string state = TextOf(task, "state");
    const json& last = LastAttempt(task);
    const std::optional<Span> span = SpanOfRun(task);
    if (!kept && !attempts.empty() && !span) ++impossible_;
    const auto host = hosts_.find(TextOf(last, "host"));
    // What an earlier run read and wrote is not of this one; where it lies is.
    const uint64_t in_place =
        ReadFiles(task, stage, kept || host == hosts_.end() ? "" : host->first);
    const uint64_t written = kept ? 0 : in_place;
    const uint64_t local = kept ? 0 : BytesOf(last, "input_bytes_local");
    const uint64_t elsewhere = kept ? 0 : BytesOf(last, "input_bytes_remote");
    StageSum& sum = stages_[stage];
    ++sum.tasks;
    sum.done += state == "done" ? 1 : 0;
    sum.local_bytes += local;
    sum.elsewhere_bytes += elsewhere;
    sum.written_bytes += written;
    if (span) {
      ++sum.timed;
      sum.begin_s = std::min(sum.begin_s, span->start_s);
      sum.end_s = std::max(sum.end_s, span->end_s);
      const double took_s = span->end_s - span->start_s;
      sum.seconds += took_s;
      if (took_s > sum.longest_s) {
        sum.longest_s = took_s;
        sum.longest = Shortened(id);
      }
    }
    if (!kept) ReadFailures(id, attempts);
    if (!is_shown) {
      ++hidden_;
      return;
    }
    Add("id", Shortened(id));
    Add("stage", Number(stage_numbers_, stage));
    Add("state", Number(state_numbers_, kept ? "kept from an earlier run" : state));
    Add("host", host == hosts_.end() ? json() : json(host->second));
    Add("start_us", span ? json(Microseconds(span->start_s)) : json());
    Add("took_us", span ? json(Microseconds(span->end_s - span->start_s)) : json());
    Add("local", local);
    Add("elsewhere", elsewhere);
    Add("written", written);
    Add("attempts", attempts.size());
    Add("placed", Number(placed_numbers_, TextOf(last, "placed")));
    AddPredicted(id);
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
  uint64_t ReadFiles(const json& task, const std::string& stage, const std::string& host) {
    uint64_t written = 0;
    for (const bool output : {false, true}) {
      for (const json& file : ListOf(task, output ? "outputs" : "inputs")) {
        if (!file.is_object()) continue;
        const uint64_t size_bytes = BytesOf(file, "size_bytes");
        if (file.contains("size_bytes") && !IsPossible(file.at("size_bytes"))) ++oversized_;
        BytesByNodeName held;
        const auto nodes = file.find("nodes");
        if (nodes != file.end() && nodes->is_object())
          for (const auto& [node, bytes] : nodes->items())
            if (IsPossible(bytes)) held[node] = bytes.get<uint64_t>();
        if (!host.empty())
          predict::AddFile(size_bytes, held, host, (output ? written_ : read_)[host]);
        if (!output) continue;
        written += size_bytes;
        AddTo(held, placement_[stage]);
      }
    }
    return written;
  }

  void ReadFailures(const std::string& id, const json& attempts) {
    for (const json& attempt : attempts) {
      const std::string failure = attempt.is_object() ? TextOf(attempt, "failure") : "";
      if (failure.empty() || ++failures_ > kFailuresShownMax) continue;
      const auto span = SpanOf(attempt, file_.start_s);
      const auto host = hosts_.find(TextOf(attempt, "host"));
      report_.failed.push_back(
          {{"id", Shortened(id)},
           {"host", host == hosts_.end() ? json() : json(host->second)},
           {"start_us", span ? json(Microseconds(span->start_s)) : json()},
           {"took_us", span ? json(Microseconds(span->end_s - span->start_s)) : json()},
           {"failure", Shortened(failure)}});
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
    note(strange_, "entries of 'tasks' are no tasks: left out");
    note(impossible_,
         "tasks have impossible times (an end before the begin, or a begin before the run's: was a "
         "clock set back?): they are not in the timeline");
    note(oversized_, "files have a size that no file has: it is left out");
    note(hidden_,
         fmt::format("tasks are not drawn: the page has room for the {} longest", kTasksShownMax));
    if (failures_ > kFailuresShownMax)
      note(failures_ - kFailuresShownMax, "failed attempts more are not listed");
  }

  void FinishStages() {
    std::vector<std::pair<std::string, StageSum>> ordered(stages_.begin(), stages_.end());
    std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
      return a.second.begin_s < b.second.begin_s;
    });
    report_.stages = json::array();
    for (const auto& [name, sum] : ordered) {
      json stage = {{"name", name},
                    {"tasks", sum.tasks},
                    {"done", sum.done},
                    {"local", sum.local_bytes},
                    {"elsewhere", sum.elsewhere_bytes},
                    {"written", sum.written_bytes}};
      if (sum.timed > 0) {
        stage["begin_s"] = sum.begin_s;
        stage["seconds"] = sum.end_s - sum.begin_s;
        stage["mean_s"] = sum.seconds / static_cast<double>(sum.timed);
        stage["longest_s"] = sum.longest_s;
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
  size_t strange_ = 0, impossible_ = 0, hidden_ = 0, failures_ = 0, oversized_ = 0;
};

}  // namespace

std::string TextOf(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

TasksReport ReportTasks(const RunFile& file, const FinishedRuns* finished) {
  return Reporter(file, finished).Report();
}

}  // namespace mosa::cli
