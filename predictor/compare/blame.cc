#include "predictor/compare/blame.h"

#include <algorithm>
#include <map>

#include "predictor/compare/cells.h"
#include "predictor/model/cost.h"

namespace mosa::predict {
namespace {

// A suspect that explains only this much less than the best cannot be told apart from it by tasks
// alone: other deviations in a real run hide differences of this size.
constexpr double kTied = 0.15;
// A part that explains less is not a suspect, whatever requests say.
constexpr double kTiedMin = 0.25;

// Sums over tasks for one suspect: the usage squared, and the usage times the deviation.
struct Fit {
  double used_squared = 0;
  double used_off = 0;
};

class Fits {
 public:
  void Add(Suspect suspect, double used, double off_s) {
    if (used <= 0) return;
    Fit& fit = fits_[std::move(suspect)];
    fit.used_squared += used * used;
    fit.used_off += used * off_s;
  }
  void AddOff(double off_s) {
    off_ += off_s;
    off_squared_ += off_s * off_s;
  }
  std::vector<Blame> Ranked(std::optional<bool> slower) const {
    std::vector<Blame> ranked;
    if (off_squared_ <= 0) return ranked;
    const double direction = slower ? (*slower ? 1 : -1) : off_;
    for (const auto& [suspect, fit] : fits_) {
      if (fit.used_off * direction <= 0) continue;
      ranked.push_back({suspect, fit.used_off * fit.used_off / (fit.used_squared * off_squared_),
                        fit.used_off / fit.used_squared, std::nullopt, ""});
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Blame& a, const Blame& b) { return a.explained > b.explained; });
    return ranked;
  }

 private:
  std::map<Suspect, Fit> fits_;
  double off_ = 0;
  double off_squared_ = 0;
};

// Adds which nodes hold the task's bytes and which links they cross.
void AddBytes(const SeenTask& task, const std::string& host, double off_s, Fits& fits) {
  BytesByNodeName moved = task.read;
  for (const auto& [node, bytes] : task.written) moved[node] += bytes;
  uint64_t all = 0, elsewhere = 0;
  for (const auto& [node, bytes] : moved) {
    const auto count = static_cast<double>(bytes);
    all += bytes;
    fits.Add({Part::kNode, node}, count, off_s);
    if (node == host) continue;
    elsewhere += bytes;
    fits.Add({Part::kLink, node}, count, off_s);
  }
  fits.Add({Part::kLink, host}, static_cast<double>(elsewhere), off_s);
  fits.Add({Part::kNetwork, ""}, static_cast<double>(elsewhere), off_s);
  fits.Add({Part::kMounts, ""}, static_cast<double>(all), off_s);
}

// By stage, how many times as long as predicted its tasks took on the other hosts.
std::map<std::string, double> PaceBeside(const Workflow& workflow, const SeenRun& run,
                                         const std::vector<double>& typical_s,
                                         const std::string& host) {
  struct Sum {
    double seconds = 0, typical_s = 0;
  };
  std::map<std::string, Sum> sums;
  for (size_t i = 0; i < run.tasks.size(); ++i) {
    const SeenTask& task = run.tasks[i];
    if (!task.ran || run.hosts[task.host.value] == host) continue;
    Sum& sum = sums[workflow.tasks[i].stage];
    sum.seconds += SecondsOf(run, task);
    sum.typical_s += typical_s[i];
  }
  std::map<std::string, double> paces;
  for (const auto& [stage, sum] : sums)
    if (sum.typical_s > 0) paces[stage] = sum.seconds / sum.typical_s;
  return paces;
}

}  // namespace

const char* ToText(Part part) {
  static constexpr const char* kNames[] = {"host",       "processor", "link",    "storage node",
                                           "page cache", "computing", "network", "mounts",
                                           "manager",    "launch",    "mount",   "placement"};
  return kNames[static_cast<size_t>(part)];
}

std::vector<Blame> BlameFor(const Workflow& workflow, const std::vector<SeenRun>& runs,
                            const std::vector<double>& typical_s,
                            const std::vector<Duration>& computing, const BlameQuestion& question) {
  Fits fits;
  for (const size_t index : question.runs) {
    const SeenRun& run = runs[index];
    std::map<std::string, double> paces;
    if (!question.beside_host.empty())
      paces = PaceBeside(workflow, run, typical_s, question.beside_host);
    for (uint32_t i = 0; i < run.tasks.size(); ++i) {
      const SeenTask& seen = run.tasks[i];
      const Task& task = workflow.tasks[i];
      if (!seen.ran || typical_s[i] <= 0) continue;
      if (!question.stage.empty() && task.stage != question.stage) continue;
      double expected_s = typical_s[i];
      if (!question.beside_host.empty()) {
        const auto pace = paces.find(task.stage);
        if (pace == paces.end()) continue;
        expected_s *= pace->second;
      }
      const double off_s = SecondsOf(run, seen) - expected_s;
      const std::string& host = run.hosts[seen.host.value];
      fits.AddOff(off_s);
      fits.Add({Part::kHost, host}, expected_s, off_s);
      fits.Add({Part::kProcessor, host}, SecondsOf(computing[i]), off_s);
      fits.Add({Part::kComputing, ""}, SecondsOf(computing[i]), off_s);
      fits.Add({Part::kManager, ""}, static_cast<double>(task.inputs.size() + task.outputs.size()),
               off_s);
      fits.Add({Part::kLaunch, ""}, 1, off_s);
      AddBytes(seen, host, off_s, fits);
    }
  }
  return fits.Ranked(question.slower);
}

std::map<std::string, TaskTimes> TaskTimesByHost(const Workflow& workflow,
                                                 const std::vector<SeenRun>& runs,
                                                 const std::vector<double>& typical_s,
                                                 const std::vector<Duration>& computing,
                                                 const BlameQuestion& question) {
  std::map<std::string, TaskTimes> times;
  for (const size_t index : question.runs) {
    const SeenRun& run = runs[index];
    for (size_t i = 0; i < run.tasks.size(); ++i) {
      const SeenTask& task = run.tasks[i];
      if (!task.ran || typical_s[i] <= 0) continue;
      if (!question.stage.empty() && workflow.tasks[i].stage != question.stage) continue;
      TaskTimes& of_host = times[run.hosts[task.host.value]];
      of_host.moving_s += std::max(0.0, typical_s[i] - SecondsOf(computing[i]));
      of_host.more_s += std::max(0.0, SecondsOf(run, task) - typical_s[i]);
    }
  }
  return times;
}

void BreakTies(const std::map<Suspect, double>& of_requests, std::vector<Blame>& blamed) {
  if (blamed.empty()) return;
  const double least = std::max(kTiedMin, blamed.front().explained - kTied);
  const auto tied_end = std::find_if(blamed.begin(), blamed.end(), [least](const Blame& blame) {
    return blame.explained < least;
  });
  const auto share = [&of_requests](const Blame& blame) {
    const auto found = of_requests.find(blame.suspect);
    return found == of_requests.end() ? 0 : found->second;
  };
  if (std::none_of(blamed.begin(), tied_end,
                   [&share](const Blame& blame) { return share(blame) >= kExplainedMin; }))
    return;
  for (auto blame = blamed.begin(); blame != tied_end; ++blame) blame->of_requests = share(*blame);
  std::stable_sort(blamed.begin(), tied_end,
                   [](const Blame& a, const Blame& b) { return a.weight() > b.weight(); });
}

void PutFirst(const Suspect& suspect, const std::string& evidence, std::vector<Blame>& blamed) {
  auto found = std::find_if(blamed.begin(), blamed.end(),
                            [&](const Blame& blame) { return blame.suspect == suspect; });
  if (found == blamed.end()) found = blamed.insert(blamed.end(), {suspect, 0, 0, std::nullopt, ""});
  found->evidence = evidence;
  std::rotate(blamed.begin(), found, found + 1);
}

void PutLast(const std::set<std::string>& hosts, std::vector<Blame>& blamed) {
  const auto rank = [&hosts](const Blame& blame) {
    const Part part = blame.suspect.part;
    if (blame.explained < kTiedMin) return 2;
    return (part == Part::kLink || part == Part::kNode) && hosts.contains(blame.suspect.host) ? 1
                                                                                              : 0;
  };
  std::stable_sort(blamed.begin(), blamed.end(),
                   [&rank](const Blame& a, const Blame& b) { return rank(a) < rank(b); });
}

}  // namespace mosa::predict
