#include "predictor/advise/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "common/base/units.h"
#include "common/model/hint_values.h"
#include "predictor/workflow/patterns.h"
#include "predictor/workflow/versions.h"

namespace mosa::predict {
namespace {

constexpr const char* kOthers = "other stages";
constexpr uint64_t kRegionBytesMin = 64 << 10;
constexpr uint64_t kRegionBytesMax = 16 << 20;

void EraseSpeed(HintMap& hints) {
  std::erase_if(hints, [](const auto& hint) { return IsForSpeed(hint.first); });
}

// Hints for speed of each output; other hints stay with the file.
std::map<PathIndex, HintMap> SpeedHintsOf(const Workflow& workflow, uint32_t hosts) {
  std::map<PathIndex, HintMap> speed;
  for (FileHints& plan : PlanHints(workflow, {.hosts = hosts})) {
    std::erase_if(plan.hints, [](const auto& hint) { return !IsForSpeed(hint.first); });
    if (!plan.hints.empty()) speed.emplace(plan.file, std::move(plan.hints));
  }
  return speed;
}

Workflow WithoutSpeedHints(Workflow workflow) {
  for (WorkflowFile& file : workflow.files)
    if (file.producer) EraseSpeed(file.hints);
  workflow.hints_are_whole = false;
  return workflow;
}

std::string TextOf(const HintMap& hints) {
  std::string text;
  for (const auto& [name, value] : hints)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

class Classifier {
 public:
  Classifier(const Workflow& workflow, const CandidateOptions& options)
      : workflow_(workflow),
        options_(options),
        by_itself_(SpeedHintsOf(workflow, options.hosts)),
        graph_(SpeedHintsOf(WithoutSpeedHints(workflow), options.hosts)) {}

  std::vector<HintClass> Classify() {
    Gather();
    if (classes_.size() > options_.classes_max) MergeLeast();
    for (HintClass& each : classes_) AddAlternatives(each);
    return std::move(classes_);
  }

 private:
  void Gather() {
    const std::vector<PathIndex> later = LaterVersionsIn(workflow_);
    std::map<std::pair<std::string, std::string>, size_t> places;
    for (uint32_t i = 0; i < workflow_.files.size(); ++i) {
      const WorkflowFile& file = workflow_.files[i];
      if (!file.producer || std::binary_search(later.begin(), later.end(), PathIndex{i})) continue;
      const std::string& stage = workflow_.at(*file.producer).stage;
      const std::string use = UseOf(PathIndex{i});
      const auto [place, is_new] = places.try_emplace({stage, use}, classes_.size());
      if (is_new) classes_.push_back({stage, use, {}, 0, {}, 0});
      classes_[place->second].files.push_back(PathIndex{i});
      classes_[place->second].bytes += file.size_bytes.value_or(0);
    }
  }
  std::string UseOf(PathIndex index) const {
    const size_t readers = workflow_.at(index).consumers.size();
    if (readers == 0) return "result";
    if (readers > 1) return "fan-out";
    const auto hints = graph_.find(index);
    const bool reduce = hints != graph_.end() && hints->second.at("pattern").starts_with("reduce:");
    return reduce ? "fan-in" : "1:1";
  }
  uint64_t TrafficOf(const HintClass& each) const {
    uint64_t bytes = 0;
    for (const PathIndex file : each.files)
      bytes +=
          workflow_.at(file).size_bytes.value_or(0) * (1 + workflow_.at(file).consumers.size());
    return bytes;
  }
  // Merges the classes with the least traffic into one.
  void MergeLeast() {
    std::vector<size_t> order;
    for (size_t i = 0; i < classes_.size(); ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return TrafficOf(classes_[a]) > TrafficOf(classes_[b]);
    });
    const std::set<size_t> kept(order.begin(),
                                order.begin() + static_cast<int64_t>(options_.classes_max));
    std::vector<HintClass> classes;
    HintClass others{kOthers, "any", {}, 0, {}, 0};
    for (size_t i = 0; i < classes_.size(); ++i) {
      if (kept.contains(i)) {
        classes.push_back(std::move(classes_[i]));
        continue;
      }
      others.files.insert(others.files.end(), classes_[i].files.begin(), classes_[i].files.end());
      others.bytes += classes_[i].bytes;
    }
    std::sort(others.files.begin(), others.files.end());
    classes.push_back(std::move(others));
    classes_ = std::move(classes);
  }

  void AddAlternatives(HintClass& each) const {
    each.alternatives.emplace_back();
    if (each.use == "1:1" || each.use == "fan-in" || each.use == "result")
      AddSame(each, {{"pattern", "pipeline"}});
    if (each.use == "fan-out") {
      AddSame(each, {{"placement", "local"}});
      AddBroadcasts(each);
    }
    AddPlanned(each, graph_);
    each.by_itself = AddPlanned(each, by_itself_);
    for (const HintMap& regions : OtherRegions(each)) AddSame(each, regions);
  }
  // Doubles the number of copies up to the number of nodes and readers.
  void AddBroadcasts(HintClass& each) const {
    size_t readers = 0;
    for (const PathIndex file : each.files)
      readers = std::max(readers, workflow_.at(file).consumers.size());
    const size_t most =
        std::min<size_t>({readers, options_.nodes, PatternOptions().broadcast_copies_max});
    for (size_t copies = 2; copies <= most; copies *= 2)
      AddSame(each, {{"pattern", fmt::format("broadcast:{}", copies)}});
    if (most >= 2) AddSame(each, {{"pattern", fmt::format("broadcast:{}", most)}});
  }
  // Only the workflow can state regions, but their size can be varied.
  std::vector<HintMap> OtherRegions(const HintClass& each) const {
    std::vector<HintMap> others;
    const auto own = by_itself_.find(each.files.front());
    if (own == by_itself_.end() || !own->second.contains("pattern")) return others;
    const std::string& pattern = own->second.at("pattern");
    const size_t colon = pattern.find(':');
    const std::string name = pattern.substr(0, colon);
    if (name != "scatter" && name != "gather") return others;
    const auto bytes = ParseBytes(colon == std::string::npos ? "1M" : pattern.substr(colon + 1));
    if (!bytes.ok()) return others;
    const auto own_bytes = static_cast<uint64_t>(*bytes);
    for (const uint64_t size : {own_bytes / 4, own_bytes * 4})
      if (size >= kRegionBytesMin && size <= kRegionBytesMax && size % 4096 == 0)
        others.push_back({{"pattern", fmt::format("{}:{}", name, size)}});
    return others;
  }
  void AddSame(HintClass& each, const HintMap& hints) const {
    HintAlternative alternative;
    for (const PathIndex file : each.files) alternative.hints.emplace(file, hints);
    Add(each, std::move(alternative));
  }
  size_t AddPlanned(HintClass& each, const std::map<PathIndex, HintMap>& plan) const {
    HintAlternative alternative;
    for (const PathIndex file : each.files)
      if (const auto hints = plan.find(file); hints != plan.end()) alternative.hints.insert(*hints);
    return Add(each, std::move(alternative));
  }
  // Adds an alternative unless it exists. Returns its index.
  static size_t Add(HintClass& each, HintAlternative alternative) {
    for (size_t i = 0; i < each.alternatives.size(); ++i)
      if (each.alternatives[i].hints == alternative.hints) return i;
    const HintMap& first = alternative.hints.begin()->second;
    const bool all_same = alternative.hints.size() == each.files.size() &&
                          std::all_of(alternative.hints.begin(), alternative.hints.end(),
                                      [&](const auto& hints) { return hints.second == first; });
    alternative.text = TextOf(first) + (all_same ? "" : " ...");
    each.alternatives.push_back(std::move(alternative));
    return each.alternatives.size() - 1;
  }

  const Workflow& workflow_;
  const CandidateOptions& options_;
  const std::map<PathIndex, HintMap> by_itself_;  // What `mosa run` uses.
  const std::map<PathIndex, HintMap> graph_;  // What it would use if the workflow gave no hints.
  std::vector<HintClass> classes_;
};

}  // namespace

bool IsForSpeed(std::string_view hint) {
  return hint == "pattern" || hint == "placement" || hint == "chunk_size" || hint == "stripe_width";
}

Status MakeSpeedHintsCanonical(Workflow& workflow) {
  for (WorkflowFile& file : workflow.files)
    for (auto& [name, value] : file.hints) {
      if (!file.producer || !IsForSpeed(name)) continue;
      auto canonical = ParseHint(name, false, value);
      if (!canonical.ok())
        return InvalidArgumentError(
            fmt::format("file '{}': {}", file.path, MessageOf(canonical.status())));
      value = *std::move(canonical);
    }
  return OkStatus();
}

std::vector<HintClass> CandidatesOf(const Workflow& workflow, const CandidateOptions& options) {
  return Classifier(workflow, options).Classify();
}

HintChoice ByItself(const std::vector<HintClass>& classes) {
  HintChoice choice;
  for (const HintClass& each : classes) choice.push_back(each.by_itself);
  return choice;
}

Workflow WithHints(const Workflow& workflow, const std::vector<HintClass>& classes,
                   const HintChoice& choice) {
  Workflow hinted = WithoutSpeedHints(workflow);
  hinted.hints_are_whole = true;
  for (size_t i = 0; i < classes.size(); ++i)
    for (const auto& [file, hints] : classes[i].alternatives[choice[i]].hints)
      for (const auto& [name, value] : hints)
        hinted.files[file.value].hints.insert_or_assign(name, value);
  return hinted;
}

}  // namespace mosa::predict
