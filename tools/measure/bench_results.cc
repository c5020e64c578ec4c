#include "tools/measure/bench_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "tools/runner/record.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr const char* kKeys[] = {"pattern", "size", "scale_millionths", "system", "directory"};

json KeysOf(const Cell& cell) {
  return {{"pattern", ToText(cell.pattern)},
          {"size", ToText(cell.size)},
          {"scale_millionths", cell.scale_millionths},
          {"system", cell.name()},
          {"copies", cell.copies},
          {"directory", cell.system.directory}};
}

bool IsSame(const json& entry, const json& keys) {
  return std::all_of(std::begin(kKeys), std::end(kKeys),
                     [&](const char* key) { return entry.at(key) == keys.at(key); });
}

bool IsOfOneGroup(const json& a, const json& b) {
  return a.at("pattern") == b.at("pattern") && a.at("size") == b.at("size") &&
         a.at("scale_millionths") == b.at("scale_millionths");
}

std::vector<double> SecondsOfPhase(const json& entry, const std::string& phase) {
  std::vector<double> seconds;
  for (const json& run : entry.at("runs")) {
    if (run.contains(phase)) seconds.push_back(run.at(phase).at("seconds").get<double>());
  }
  return seconds;
}

std::vector<double> Ratios(const json& entry, const json& by) {
  std::vector<double> ratios = SecondsOfPhase(entry, "stages");
  const std::vector<double> below = SecondsOfPhase(by, "stages");
  ratios.resize(std::min(ratios.size(), below.size()));
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] /= std::max(below[i], 1e-9);
  return ratios;
}

json SummaryToJson(const Summary& summary) {
  json object = {{"count", summary.count}, {"mean", summary.mean}, {"median", summary.median}};
  object["half_width"] = summary.half_width ? json(*summary.half_width) : json(nullptr);
  return object;
}

Status NoResult(const std::string& path, const char* why) {
  return InvalidArgumentError(fmt::format(
      "{} is not a result of 'mosa bench patterns' ({}): give another --output", path, why));
}

}  // namespace

BenchResults::BenchResults(std::string path, json configuration)
    : path_(std::move(path)), configuration_(std::move(configuration)) {}

Status BenchResults::Load() {
  std::ifstream file(path_);
  if (!file) return OkStatus();
  try {
    const json root = json::parse(file);
    const json& configuration = root.at("configuration");
    if (root.at("version") != kVersion || configuration != configuration_) {
      std::string other;
      for (const auto& [name, value] : configuration_.items()) {
        if (configuration.value(name, json()) != value)
          other += fmt::format("{}{} is {} there and {} here", other.empty() ? "" : ", ", name,
                               configuration.value(name, json()).dump(), value.dump());
      }
      return FailedPreconditionError(fmt::format(
          "{} holds runs of another configuration ({}): give another --output, or remove it", path_,
          other.empty() ? "another version" : other));
    }
    std::vector<json> cells;
    for (const json& cell : root.at("cells")) {
      for (const char* key : kKeys) (void)cell.at(key);
      if (SecondsOfPhase(cell, "stages").size() != cell.at("runs").size())
        return NoResult(path_, "a run has no time");
      cells.push_back(cell);
      for (const char* said : {"seconds", "settled", "speedup_over"}) cells.back().erase(said);
    }
    cells_ = std::move(cells);
  } catch (const json::exception& error) {
    return InvalidArgumentError(
        fmt::format("{} is not a result of 'mosa bench patterns' ({}): give another --output",
                    path_, error.what()));
  }
  return OkStatus();
}

Status BenchResults::Save(const std::string& outcome) {
  return WriteRecord(path_, ToJson(outcome));
}

const json* BenchResults::Find(const Cell& cell) const {
  const json keys = KeysOf(cell);
  const auto found = std::find_if(cells_.begin(), cells_.end(),
                                  [&](const json& entry) { return IsSame(entry, keys); });
  return found == cells_.end() ? nullptr : &*found;
}

size_t BenchResults::RunCount(const Cell& cell) const {
  const json* entry = Find(cell);
  return entry == nullptr ? 0 : entry->at("runs").size();
}

void BenchResults::AddRun(const Cell& cell, json run) {
  const json keys = KeysOf(cell);
  auto found = std::find_if(cells_.begin(), cells_.end(),
                            [&](const json& entry) { return IsSame(entry, keys); });
  if (found == cells_.end()) {
    cells_.push_back(keys);
    cells_.back()["runs"] = json::array();
    found = cells_.end() - 1;
  }
  (*found)["runs"].push_back(std::move(run));
}

std::vector<double> BenchResults::SecondsOf(const Cell& cell, const std::string& phase) const {
  const json* entry = Find(cell);
  return entry == nullptr ? std::vector<double>() : SecondsOfPhase(*entry, phase);
}

std::vector<double> BenchResults::RatiosOf(const Cell& cell, const Cell& by) const {
  const json* one = Find(cell);
  const json* other = Find(by);
  if (one == nullptr || other == nullptr) return {};
  return Ratios(*one, *other);
}

const json* BenchResults::LastRun(const Cell& cell) const {
  const json* entry = Find(cell);
  return entry == nullptr || entry->at("runs").empty() ? nullptr : &entry->at("runs").back();
}

json BenchResults::WithSummary(const json& entry) const {
  json object = entry;
  for (const char* phase : {"stages", "stage-in", "stage-out"}) {
    const auto summary = Summarize(SecondsOfPhase(entry, phase));
    if (summary.count == 0) continue;
    object["seconds"][phase] = SummaryToJson(summary);
    if (std::string_view(phase) == "stages") object["settled"] = IsWithin(summary, kIntervalShare);
  }
  // The speedup over each other system.
  for (const json& other : cells_) {
    if (!IsOfOneGroup(entry, other) || other.at("system") == entry.at("system")) continue;
    const auto summary = Summarize(Ratios(other, entry));
    if (summary.count > 0)
      object["speedup_over"][other.at("system").get<std::string>()] = SummaryToJson(summary);
  }
  return object;
}

json BenchResults::ToJson(const std::string& outcome) const {
  json root = {{"version", kVersion},
               {"configuration", configuration_},
               {"outcome", outcome},
               {"cells", json::array()}};
  for (const json& entry : cells_) root["cells"].push_back(WithSummary(entry));
  return root;
}

}  // namespace mosa::cli
