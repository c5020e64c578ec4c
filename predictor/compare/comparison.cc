#include "predictor/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "predictor/compare/busy.h"
#include "predictor/compare/judging.h"
#include "predictor/compare/own_times.h"
#include "predictor/compare/read_again.h"
#include "predictor/compare/sentence.h"

namespace mosa::predict {
namespace {

// Misplaced files explain a deviation if moving them takes at least this share of it.
constexpr double kMovingShareMin = 0.25;
// Consults requests if tasks may have waited for them for this share of their excess time.
constexpr double kWaitingShareMin = 0.25;
// Explain at most this many single-task anomalies.
constexpr size_t kTaskAnomaliesMax = 100;
// On a busy machine every time deviates: a difference between hosts must be this unlikely by
// chance.
constexpr double kChanceOnBusy = 0.001;
// Fewer tasks cannot tell parts apart.
constexpr size_t kTasksBlamedMin = 3;

// The times of a cell, next to its JudgedValue (with the same index).
struct Timed {
  std::vector<double> seconds;                 // By draw.
  std::vector<std::optional<CellValue>> runs;  // By run.
};

// In one run, it is chance which of several hosts is the last where tasks wait for each other.
bool CanStandAlone(Level level) { return level != Level::kHost && level != Level::kTask; }

double SumOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

class Comparer {
 public:
  Comparer(const Workflow& workflow, const std::vector<SeenRun>& draws,
           const std::vector<SeenRun>& runs, const CompareOptions& options)
      : workflow_(workflow),
        draws_(draws),
        runs_(runs),
        options_(options),
        first_judged_(FirstJudged(runs.size())),
        typical_s_(TypicalSeconds(workflow, draws)),
        computing_(workflow.tasks.size()) {
    for (const SeenRun& draw : draws)
      for (size_t i = 0; i < computing_.size(); ++i)
        computing_[i] = std::max(computing_[i], draw.tasks[i].computing);
    usual_s_ = UsualSecondsOf(runs, typical_s_, computing_);
    for (size_t i = 0; i < workflow.tasks.size(); ++i) task_of_id_.emplace(workflow.tasks[i].id, i);
  }

  Comparison Compare() {
    for (const SeenRun& run : runs_) comparison_.runs.push_back(run.name);
    comparison_.judged.assign(comparison_.runs.begin() + static_cast<ptrdiff_t>(first_judged_),
                              comparison_.runs.end());
    comparison_.draws = static_cast<uint32_t>(draws_.size());
    CollectCells();
    decided_ = judged_;
    Judge(options_.rules, runs_.size(), judged_);
    if (TakeOthersOff()) {
      Judge(options_.rules, runs_.size(), decided_);
    } else {
      decided_ = judged_;
    }
    for (size_t cell = 0; cell < judged_.size(); ++cell) MeasureCell(cell);
    ComparePlaces();
    CompareRequestTimes();
    if (!comparison_.machine_busy.empty()) KeepWhatHostsShow();
    FindWitnessed();
    FindOddRuns();
    BlameQuestion of_all;
    for (size_t run = first_judged_; run < runs_.size(); ++run) of_all.runs.push_back(run);
    comparison_.blamed = BlameOf(of_all);
    for (const size_t cell : AnomalousCells()) AddAnomaly(cell);
    std::stable_sort(comparison_.anomalies.begin(), comparison_.anomalies.end(),
                     [](const Anomaly& a, const Anomaly& b) {
                       return std::abs(a.effect_share) > std::abs(b.effect_share);
                     });
    return std::move(comparison_);
  }

 private:
  // Collects the cells that enough draws have.
  void CollectCells() {
    std::map<CellName, std::pair<JudgedValue, Timed>> found;
    for (const SeenRun& draw : draws_) {
      for (const auto& [name, value] : CellsOf(workflow_, draw, typical_s_, options_.slots)) {
        auto& [judged, timed] = found[name];
        judged.drawn.push_back(value.place);
        timed.seconds.push_back(value.seconds);
      }
    }
    std::vector<Cells> measured;
    for (const SeenRun& run : runs_)
      measured.push_back(CellsOf(workflow_, run, typical_s_, options_.slots));
    for (auto& [name, cell] : found) {
      auto& [judged, timed] = cell;
      if (judged.drawn.size() < kDrawsMin) continue;
      if (name.level == Level::kWorkflow) workflow_s_ = Median(timed.seconds);
      // Single tasks form their own family: thousands of them would hide a host or a stage.
      judged.surest = options_.surest;
      judged.family = name.level == Level::kTask ? "tasks" : "others";
      judged.group = ToText(name.level);
      judged.is_off_if_slower_only = name.level == Level::kHost;
      judged.can_stand_alone = CanStandAlone(name.level);
      comparison_.cells.emplace_back().cell = name;
      judged_.push_back(std::move(judged));
      timed_.push_back(std::move(timed));
      for (const Cells& cells : measured) AddRun(cells);
    }
  }
  // Adds a run to the last cell.
  void AddRun(const Cells& cells) {
    const size_t cell = judged_.size() - 1;
    auto& in_run = judged_[cell].runs.emplace_back();
    auto& timed = timed_[cell].runs.emplace_back();
    const auto value = cells.find(comparison_.cells[cell].cell);
    if (value == cells.end()) return;
    timed = value->second;
    in_run.emplace().place = value->second.place;
    in_run->effect_share = EffectOf(cell, value->second);
  }

  // What is predicted of the cell, given what was measured in this run.
  double PredictedOf(size_t cell, const CellValue& value) const {
    if (comparison_.cells[cell].cell.level != Level::kHost) return Median(timed_[cell].seconds);
    const std::vector<double>& places = judged_[cell].drawn;
    return value.expected_s * std::exp(SumOf(places) / static_cast<double>(places.size()));
  }
  // Precondition: the workflow's cell comes first, as its name sorts.
  double EffectOf(size_t cell, const CellValue& value) const {
    if (workflow_s_ <= 0) return 0;
    return (value.seconds - PredictedOf(cell, value)) * value.rounds / workflow_s_;
  }

  // Removes from decided_ what the work of others on the machines explains. Returns whether any
  // machine was busy.
  bool TakeOthersOff() {
    std::vector<const SeenRun*> judged;
    for (size_t run = first_judged_; run < runs_.size(); ++run) {
      judged.push_back(&runs_[run]);
      for (const SeenMachine& machine : runs_[run].machines)
        comparison_.machines.emplace_back(runs_[run].name, machine);
    }
    comparison_.machine_busy = SayBusy(judged);
    const bool are_busy = std::any_of(runs_.begin(), runs_.end(), [](const SeenRun& run) {
      return TakenShare(run) > kBusyShare;
    });
    for (size_t cell = 0; are_busy && cell < decided_.size(); ++cell) {
      JudgedValue& value = decided_[cell];
      const double predicted_place = MeanOf(value.drawn);
      for (size_t run = 0; run < runs_.size(); ++run)
        if (value.runs[run])
          value.runs[run] = WithoutOthers(*value.runs[run], predicted_place,
                                          ExcuseOf(comparison_.cells[cell].cell, run));
    }
    return are_busy;
  }
  // The excuse for the machines on which the cell's time was spent in this run.
  Excuse ExcuseOf(const CellName& cell, size_t run) {
    if (TakenShare(runs_[run]) <= kBusyShare) return {};
    const std::string stage = StageOf(cell);
    const auto [known, is_new] = taken_.try_emplace({run, stage});
    TakenFromTasks& taken = known->second.first;
    bool& compute_longer = known->second.second;
    if (is_new) {
      taken = TakenFrom(workflow_, runs_[run], stage);
      compute_longer = ComputeLonger(
          OwnSecondsOf(workflow_, runs_[run], typical_s_, usual_s_, stage), taken.had);
    }
    if (compute_longer) return {};
    switch (cell.level) {
      case Level::kWorkflow:
      case Level::kStage:
        return {ExcuseFor(taken.most).share, 0};
      case Level::kTasks:
        return {taken.mean.share, 0};
      case Level::kStart: {
        const Excuse of_runner = ExcuseFor(TakenShareAtRunner(runs_[run]));
        return {std::max(taken.mean.share, of_runner.share),
                std::max(taken.mean.delay_s, of_runner.delay_s)};
      }
      case Level::kHost:
        return {ExcuseFor(TakenShareBeside(runs_[run], cell.name)).share, 0};
      case Level::kTask:
        return {ExcuseFor(TakenShareAt(runs_[run], HostOfTask(cell.name, run))).share, 0};
    }
    return {};
  }
  const std::string& HostOfTask(const std::string& id, size_t run) const {
    return runs_[run].hosts[runs_[run].tasks[task_of_id_.at(id)].host.value];
  }
  // Hosts on the same machine suffer from the same others in the same run, so evidence from their
  // requests to each other remains. So does a part's own work that exceeds what others explain.
  void KeepWhatHostsShow() {
    for (size_t index = 0; index < judged_.size(); ++index) {
      ComparedCell& cell = comparison_.cells[index];
      const std::vector<size_t>& shown = judged_[index].shown;
      if (cell.verdict != Verdict::kMachineBusy ||
          !IsShownByPart(index, judged_[index], shown, kChanceOnBusy))
        continue;
      cell.verdict = Verdict::kAnomaly;
      decided_[index].shown = shown;
      kept_.insert(index);
    }
  }
  // Accepts a deviation at the lower bar if the own time or bytes of a part confirm it: two
  // witnesses that agree.
  void FindWitnessed() {
    JudgeRules rules = options_.rules;
    rules.rate = rules.rate_witnessed;
    std::vector<size_t> cells;  // Single tasks are another family.
    std::vector<JudgedValue> off;
    for (size_t index = 0; index < decided_.size(); ++index) {
      if (comparison_.cells[index].cell.level == Level::kTask) continue;
      cells.push_back(index);
      off.push_back(decided_[index]);
    }
    Judge(rules, runs_.size(), off);
    for (size_t i = 0; i < off.size(); ++i) {
      ComparedCell& cell = comparison_.cells[cells[i]];
      const std::vector<size_t>& shown = off[i].shown;
      if (shown.empty() || cell.verdict == Verdict::kAnomaly ||
          cell.verdict == Verdict::kMachineBusy || !IsShownByPart(cells[i], off[i], shown, 1))
        continue;
      cell.verdict = Verdict::kAnomaly;
      cell.p = off[i].p;
      decided_[cells[i]].shown = shown;
    }
  }
  // For a cell that is slower in these runs because of its tasks, and not because of others. If the
  // evidence is a difference between hosts, its chance must be at most `beside_p_max`.
  bool IsShownByPart(size_t index, const JudgedValue& value, const std::vector<size_t>& shown,
                     double beside_p_max) {
    const CellName& cell = comparison_.cells[index].cell;
    if (cell.level > Level::kTasks || value.runs[shown.front()]->residual.size <= 0 ||
        LiesBetweenTasks(cell) || StageBlamed(cell) != StageOf(cell))
      return false;
    const BlameQuestion question = {shown, StageBlamed(cell), "", true};
    BlameOf(question);
    const auto own = own_times_.find(question);
    return own != own_times_.end() && !own->second.is_beside_others &&
           own->second.beside_p.value_or(0) <= beside_p_max && Stays(own->second, shown);
  }
  // Whether others cannot have caused it in any of these runs.
  bool Stays(const OwnTime& own, const std::vector<size_t>& runs) const {
    return !own.beside_p || std::ranges::all_of(runs, [&](size_t run) {
      return TakenShareBeside(runs_[run], own.suspect.host) <= kBusyShare;
    });
  }
  // Finds the largest deviation of each odd run.
  void FindOddRuns() {
    std::map<size_t, size_t> cells;
    for (size_t index = 0; index < decided_.size(); ++index) {
      const auto& odd = decided_[index].odd;
      const Verdict verdict = comparison_.cells[index].verdict;
      if (!odd || verdict == Verdict::kAnomaly || verdict == Verdict::kMachineBusy) continue;
      const auto effect = [&](size_t cell) { return decided_[cell].runs[*odd]->effect_share; };
      const auto [largest, is_new] = cells.try_emplace(*odd, index);
      if (!is_new && effect(index) > effect(largest->second)) largest->second = index;
    }
    for (const auto& [run, index] : cells) {
      std::vector<double> others;
      for (size_t other = first_judged_; other < runs_.size(); ++other)
        if (other != run && timed_[index].runs[other])
          others.push_back(timed_[index].runs[other]->seconds);
      const CellValue& value = *timed_[index].runs[run];
      comparison_.odd_runs.push_back(
          {runs_[run].name, SayOdd(runs_[run].name, comparison_.cells[index].cell, value.seconds,
                                   PredictedOf(index, value), others)});
    }
    FindOddRequests(cells);
  }
  // Adds runs with odd requests but no odd cell.
  void FindOddRequests(const std::map<size_t, size_t>& known) {
    std::map<size_t, const RequestCell*> largest;
    for (const RequestCell& cell : comparison_.requests) {
      if (!cell.odd_run || known.contains(*cell.odd_run)) continue;
      const RequestCell*& most = largest[*cell.odd_run];
      if (most == nullptr || OddMoreOf(cell) > OddMoreOf(*most)) most = &cell;
    }
    for (const auto& [run, cell] : largest)
      comparison_.odd_runs.push_back({runs_[run].name, SayOddRequests(*cell, runs_[run].name)});
  }

  void MeasureCell(size_t index) {
    const Timed& timed = timed_[index];
    ComparedCell& cell = comparison_.cells[index];
    cell.predicted_interval_s = NineOfTen(timed.seconds);
    std::vector<double> seconds, predicted, effects;
    std::vector<size_t> measured;
    for (size_t run = first_judged_; run < runs_.size(); ++run) {
      if (!timed.runs[run]) continue;
      measured.push_back(run);
      seconds.push_back(timed.runs[run]->seconds);
      predicted.push_back(PredictedOf(index, *timed.runs[run]));
      effects.push_back(judged_[index].runs[run]->effect_share);
    }
    cell.predicted_s = predicted.empty() ? Median(timed.seconds) : Median(predicted);
    cell.runs = static_cast<uint32_t>(seconds.size());
    if (seconds.empty()) return;
    if (cell.cell.level == Level::kHost)
      cell.predicted_interval_s = HostInterval(judged_[index].drawn, cell);
    const Residual residual = ResidualIn(judged_[index], measured);
    cell.p = decided_[index].shown.empty() ? judged_[index].p : decided_[index].p;
    cell.measured_s = Median(seconds);
    const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
    cell.measured_range_s = {*least, *most};
    cell.residual_s = cell.measured_s - cell.predicted_s;
    cell.residual_share = std::exp(residual.size) - 1;
    cell.residual_share_interval = SharesOf(residual);
    cell.effect_share = Median(effects);
    cell.verdict = VerdictOf(index);
  }
  // What the runs predict of the host, widened by how the draws differ.
  static std::optional<Interval<double>> HostInterval(const std::vector<double>& places,
                                                      const ComparedCell& cell) {
    auto interval = NineOfTen(places);
    if (!interval) return std::nullopt;
    const double mean = SumOf(places) / static_cast<double>(places.size());
    return Interval<double>{cell.predicted_s * std::exp(interval->low - mean),
                            cell.predicted_s * std::exp(interval->high - mean)};
  }

  Verdict VerdictOf(size_t cell) const {
    if (!decided_[cell].shown.empty()) return Verdict::kAnomaly;
    if (!judged_[cell].shown.empty()) return Verdict::kMachineBusy;
    const ComparedCell& compared = comparison_.cells[cell];
    if (judged_[cell].is_faster) return Verdict::kOthersSlower;
    if (!judged_[cell].stands) return Verdict::kAsPredicted;
    return std::abs(compared.effect_share) < options_.rules.share_min ? Verdict::kSmall
                                                                      : Verdict::kNotYet;
  }

  void ComparePlaces() {
    std::vector<const SeenRun*> whole;
    for (size_t run = first_judged_; run < runs_.size(); ++run)
      if (runs_[run].whole) whole.push_back(&runs_[run]);
    ComparedPlaces places = CompareBytes(workflow_, draws_, whole);
    comparison_.stage_bytes = std::move(places.stages);
    comparison_.link_bytes = std::move(places.links);
    comparison_.node_bytes = std::move(places.nodes);
    comparison_.chunks = CompareChunks(draws_.front(), whole);
    if (AreInOtherChunks(comparison_.chunks))
      comparison_.other_chunks = SayOtherChunks(comparison_.chunks);
  }

  void CompareRequestTimes() {
    std::vector<RequestTimes> requests;
    for (size_t run = first_judged_; run < runs_.size(); ++run)
      if (!runs_[run].requests.empty()) requests.push_back(runs_[run].requests);
    comparison_.slow_requests = FindSlowRequests(requests, options_.rules.share_min * workflow_s_);
    const bool are_measured =
        std::any_of(runs_.begin() + static_cast<ptrdiff_t>(first_judged_), runs_.end(),
                    [](const SeenRun& run) { return !run.requests.empty(); });
    if (draws_.front().requests.empty() || (!are_measured && !runs_.empty())) return;
    comparison_.requests = CompareRequests(draws_, runs_, options_.rules, workflow_s_);
    ExplainRequests(comparison_.requests);
  }

  // Several anomalies ask the same question.
  const std::vector<Blame>& BlameOf(const BlameQuestion& question) {
    const auto known = blames_.find(question);
    if (known != blames_.end()) return known->second;
    std::vector<Blame> blamed = BlameFor(workflow_, runs_, typical_s_, computing_, question);
    const bool is_slower = !blamed.empty() && blamed.front().factor > 0;
    if (is_slower && question.beside_host.empty()) AskRequests(question, blamed);
    return blames_.emplace(question, std::move(blamed)).first->second;
  }
  void AskRequests(const BlameQuestion& question, std::vector<Blame>& blamed) {
    const auto times = TaskTimesByHost(workflow_, runs_, typical_s_, computing_, question);
    auto own = FindColdPages({workflow_, draws_, runs_, question.runs, question.stage, times,
                              options_.link_bytes_per_second});
    if (!own) own = FindOwnTime({comparison_.requests, runs_, question.runs}, times, blamed);
    if (!own && !question.stage.empty() && Explains(blamed)) {
      if (const auto of_all = OwnTimeOfAll(question, blamed))
        return PutFirst(of_all->suspect, "over the whole run, " + of_all->evidence, blamed);
    }
    if (own) {
      own_times_.emplace(question, *own);
      if (own->or_else) PutFirst(*own->or_else, own->evidence, blamed);
      return PutFirst(own->suspect, own->evidence, blamed);
    }
    const RequestScope scope = {question.runs, &times};
    if (WaitingShare(comparison_.requests, scope) >= kWaitingShareMin)
      BreakTies(RequestEvidence(comparison_.requests, scope), blamed);
    PutLast(HostsAsOthers({comparison_.requests, runs_, question.runs}), blamed);
  }

  // Requests are recorded by run, not by stage. If a stage's tasks blame a host, what all tasks
  // waited for tells which part of the host it is. It does not tell that the stage is slow.
  std::optional<OwnTime> OwnTimeOfAll(BlameQuestion question, const std::vector<Blame>& blamed) {
    question.stage.clear();
    BlameOf(question);
    const auto found = own_times_.find(question);
    if (found == own_times_.end()) return std::nullopt;
    const OwnTime& own = found->second;
    const bool is_there =
        !own.suspect.host.empty() && own.suspect.host == blamed.front().suspect.host;
    if (!is_there || own.suspect.part == Part::kPageCache || IsOutweighed(own, blamed))
      return std::nullopt;
    return own;
  }

  // In order of cells; only the largest single tasks.
  std::vector<size_t> AnomalousCells() {
    std::vector<size_t> found, tasks;
    for (size_t cell = 0; cell < judged_.size(); ++cell) {
      if (comparison_.cells[cell].verdict != Verdict::kAnomaly) continue;
      (comparison_.cells[cell].cell.level == Level::kTask ? tasks : found).push_back(cell);
    }
    std::stable_sort(tasks.begin(), tasks.end(), [this](size_t a, size_t b) {
      return std::abs(comparison_.cells[a].effect_share) >
             std::abs(comparison_.cells[b].effect_share);
    });
    const size_t explained = std::min(tasks.size(), kTaskAnomaliesMax);
    comparison_.anomalies_left_out = tasks.size() - explained;
    found.insert(found.end(), tasks.begin(), tasks.begin() + static_cast<ptrdiff_t>(explained));
    return found;
  }
  void AddAnomaly(size_t index) {
    const ComparedCell& cell = comparison_.cells[index];
    Anomaly anomaly;
    anomaly.cell = index;
    anomaly.judged = runs_.size() - first_judged_;
    const std::vector<size_t>& shown = decided_[index].shown;
    std::vector<double> seconds, predicted, effects;
    for (const size_t run : shown) {
      const CellValue& value = *timed_[index].runs[run];
      anomaly.shown_in.push_back(runs_[run].name);
      anomaly.slower = judged_[index].runs[run]->residual.size > 0;
      seconds.push_back(value.seconds);
      predicted.push_back(PredictedOf(index, value));
      effects.push_back(judged_[index].runs[run]->effect_share);
    }
    anomaly.measured_s = Median(seconds);
    anomaly.predicted_s = Median(predicted);
    anomaly.effect_share = Median(effects);
    anomaly.residual_share_interval = SharesOf(ResidualIn(judged_[index], shown));
    anomaly.since = Since(index, anomaly.slower, anomaly.shown_in.front());
    const BlameQuestion question = {shown, StageBlamed(cell.cell), "", anomaly.slower};
    if (cell.cell.level != Level::kStart) anomaly.blamed = BlameOf(question);
    bool beside = cell.cell.level == Level::kHost && !BlamesHost(anomaly.blamed, cell.cell.name);
    if (beside) {
      const std::vector<Blame>& by_others = BlameOf({shown, "", cell.cell.name, anomaly.slower});
      // A part's own evidence remains if differences between hosts explain nothing, and so does a
      // part of this host that explains no more than something that all hosts share.
      beside =
          Explains(by_others) || anomaly.blamed.empty() ||
          (anomaly.blamed.front().evidence.empty() &&
           !(Explains(anomaly.blamed) && anomaly.blamed.front().suspect.host == cell.cell.name));
      if (beside) anomaly.blamed = by_others;
    }
    Explain({&cell, LiesBetweenTasks(cell.cell), beside, Misplaced(cell.cell, anomaly),
             FullerNode(anomaly), options_.link_bytes_per_second, OwnSecondsIn(shown, cell.cell),
             OthersIn(shown, cell.cell), beside ? std::nullopt : BesideIn(question)},
            anomaly);
    comparison_.anomalies.push_back(std::move(anomaly));
  }
  // Own processor seconds of the cell's tasks in these runs, if they are known in all of them.
  std::optional<OwnSeconds> OwnSecondsIn(const std::vector<size_t>& runs,
                                         const CellName& cell) const {
    OwnSeconds all;
    for (const size_t run : runs) {
      const OwnSeconds own =
          OwnSecondsOf(workflow_, runs_[run], typical_s_, usual_s_, StageOf(cell));
      if (own.tasks == 0) return std::nullopt;
      all.tasks += own.tasks;
      all.measured += own.measured;
      all.own_s += own.own_s;
      all.usual_s += own.usual_s;
      all.more_s += own.more_s;
    }
    return all;
  }
  // Medians for the machines that ran the cell's tasks, if known in all these runs.
  std::optional<OthersFacts> OthersIn(const std::vector<size_t>& runs, const CellName& cell) const {
    std::vector<double> shares, taken;
    for (const size_t run : runs) {
      const TakenFromTasks from = TakenFrom(workflow_, runs_[run], StageOf(cell));
      if (!from.is_known) return std::nullopt;
      shares.push_back(from.had);
      taken.push_back(from.most);
    }
    return OthersFacts{Median(std::move(shares)), Median(std::move(taken)) >= kBusyShare};
  }
  // How likely it is by chance that a comparison of hosts blames the suspect.
  std::optional<double> BesideIn(const BlameQuestion& question) const {
    const auto found = own_times_.find(question);
    return found == own_times_.end() ? std::nullopt : found->second.beside_p;
  }
  // The earliest run going back from the last, until two in a row do not show it; `first` if the
  // last two do not.
  std::string Since(size_t cell, bool slower, const std::string& first) const {
    const JudgedValue& value = kept_.contains(cell) ? judged_[cell] : decided_[cell];
    std::string since = first;
    size_t missed = 0;
    for (size_t run = runs_.size(); run-- > 0 && missed <= 1;) {
      if (ShowsAs(value, run, slower)) {
        since = runs_[run].name;
        missed = 0;
      } else {
        ++missed;
      }
    }
    return since;
  }
  // Empty: all stages.
  std::string StageOf(const CellName& cell) const {
    if (cell.level == Level::kStage || cell.level == Level::kTasks || cell.level == Level::kStart)
      return cell.name;
    if (cell.level != Level::kTask) return "";
    return workflow_.tasks[task_of_id_.at(cell.name)].stage;
  }
  size_t TasksOf(const std::string& stage) const {
    return static_cast<size_t>(
        std::count_if(workflow_.tasks.begin(), workflow_.tasks.end(),
                      [&](const Task& task) { return task.stage == stage; }));
  }
  // The stage whose tasks can tell parts apart; empty: all.
  std::string StageBlamed(const CellName& cell) const {
    const std::string stage = StageOf(cell);
    return TasksOf(stage) < kTasksBlamedMin ? "" : stage;
  }
  double EffectAt(Level level, const std::string& stage) const {
    double effect = 0;
    for (const ComparedCell& cell : comparison_.cells)
      if (cell.cell.level == level && (stage.empty() || cell.cell.name == stage))
        effect += cell.effect_share;
    return effect;
  }
  bool LiesBetweenTasks(const CellName& cell) const {
    if (cell.level == Level::kStart) return true;
    if (cell.level != Level::kWorkflow && cell.level != Level::kStage) return false;
    const std::string stage = cell.level == Level::kStage ? cell.name : "";
    return std::abs(EffectAt(Level::kStart, stage)) > std::abs(EffectAt(Level::kTasks, stage));
  }
  // The node that holds most bytes beyond the prediction, if its link takes long enough to carry
  // them.
  const ComparedBytes* FullerNode(const Anomaly& anomaly) const {
    if (!anomaly.slower || options_.link_bytes_per_second == 0) return nullptr;
    const ComparedBytes* most = nullptr;
    for (const ComparedBytes& bytes : comparison_.node_bytes)
      if (bytes.off && bytes.more > 0 && (most == nullptr || bytes.more > most->more))
        most = &bytes;
    if (most == nullptr) return nullptr;
    const double moving_s = most->more / static_cast<double>(options_.link_bytes_per_second);
    return moving_s < kMovingShareMin * (anomaly.measured_s - anomaly.predicted_s) ? nullptr : most;
  }
  // The stage that moves most bytes beyond the prediction, if that takes long enough: one task
  // after the other, or all hosts at once.
  const ComparedBytes* Misplaced(const CellName& cell, const Anomaly& anomaly) const {
    if (!anomaly.slower || cell.level == Level::kStart || cell.level == Level::kHost)
      return nullptr;
    const std::string stage = StageOf(cell);
    const ComparedBytes* most = nullptr;
    for (const ComparedBytes& bytes : comparison_.stage_bytes)
      if (bytes.off && bytes.more > 0 && (stage.empty() || stage == bytes.name) &&
          (most == nullptr || bytes.more > most->more))
        most = &bytes;
    if (most == nullptr || options_.link_bytes_per_second == 0) return most;
    const bool of_tasks = cell.level == Level::kTasks || cell.level == Level::kTask;
    const size_t ways = of_tasks ? TasksOf(stage) : runs_.back().hosts.size();
    const double moving_s = most->more / static_cast<double>(options_.link_bytes_per_second) /
                            static_cast<double>(ways);
    return moving_s < kMovingShareMin * (anomaly.measured_s - anomaly.predicted_s) ? nullptr : most;
  }

  const Workflow& workflow_;
  const std::vector<SeenRun>& draws_;
  const std::vector<SeenRun>& runs_;
  const CompareOptions options_;
  const size_t first_judged_;
  const std::vector<double> typical_s_;
  std::vector<Duration> computing_;    // By task, from the workload.
  std::vector<UsualSeconds> usual_s_;  // By task.
  std::map<std::string, size_t> task_of_id_;
  double workflow_s_ = 0;
  std::vector<JudgedValue> judged_;   // By index of comparison_.cells.
  std::vector<JudgedValue> decided_;  // The same, without what the work of others explains.
  std::vector<Timed> timed_;          // The same index.
  std::map<BlameQuestion, std::vector<Blame>> blames_;
  std::map<BlameQuestion, OwnTime> own_times_;  // First suspects with own evidence.
  // By run and stage, and whether the stage's tasks compute longer.
  std::map<std::pair<size_t, std::string>, std::pair<TakenFromTasks, bool>> taken_;
  std::set<size_t> kept_;  // Cells that others explain, but that a difference between hosts
                           // confirms.
  Comparison comparison_;
};

}  // namespace

const char* ToText(Verdict verdict) {
  static constexpr const char* kNames[] = {"as predicted",  "not measured", "small",  "not yet",
                                           "others slower", "machine busy", "anomaly"};
  return kNames[static_cast<size_t>(verdict)];
}

Comparison Compare(const Workflow& workflow, const std::vector<SeenRun>& draws,
                   const std::vector<SeenRun>& runs, const CompareOptions& options) {
  MOSA_CHECK(draws.size() >= kDrawsMin);
  return Comparer(workflow, draws, runs, options).Compare();
}

}  // namespace mosa::predict
