#include "tools/measure/envelope_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "common/base/text_file.h"
#include "common/base/units.h"
#include "predictor/envelope/envelope_json.h"
#include "tools/console/output.h"
#include "tools/runner/record.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::Envelope;
using predict::EnvelopeCell;
using predict::Estimate;

constexpr uintmax_t kResultBytesMax = 64 << 20;
// Limits of a sample, such that ReadEnvelopes() accepts its rates.
constexpr double kSecondsMin = 1e-9;
constexpr double kSecondsMax = 1e9;
// From this share on, a resource counts as used up, as far as samples of less than a second can
// tell.
constexpr double kUsedUpMin = 0.85;

json EstimateToJson(const Estimate& rate, double unit) {
  return {{"median", rate.median * unit},
          {"low", rate.low * unit},
          {"high", rate.high * unit},
          {"confidence", rate.confidence}};
}

// Four digits: "1374", "0.02561".
std::string Short(double number) { return fmt::format("{:.{}g}", number, number >= 1000 ? 6 : 4); }

// "812 (790-833)": the median and the interval around it.
std::string Shown(const Estimate& rate, double unit) {
  const auto shown = [unit](double number) {
    const double value = number * unit;
    return value >= 100 ? fmt::format("{:.0f}", value) : Short(value);
  };
  if (rate.confidence == 0) return shown(rate.median);
  return fmt::format("{} ({}-{})", shown(rate.median), shown(rate.low), shown(rate.high));
}

json FallToJson(const ExplainedFall& each) {
  const auto& [system, fall, busy_share, link_share, used_up] = each;
  return {{"system", system},
          {"operation", NameOf(fall.cell.operation)},
          {"size_bytes", fall.cell.size_bytes},
          {"clients", fall.cell.clients},
          {"operations_per_second", fall.rate},
          {"best_clients", fall.best_clients},
          {"best_operations_per_second", fall.best},
          {"busy_share", busy_share ? json(*busy_share) : json()},
          {"link_share", link_share ? json(*link_share) : json()},
          {"used_up", used_up.empty() ? json() : json(used_up)}};
}

std::string UsedUpText(const ExplainedFall& each) {
  if (!each.used_up.empty()) return each.used_up;
  if (each.busy_share && each.link_share) return "neither processors nor clients' links";
  if (each.busy_share) return "not processors; links are unknown";
  if (each.link_share) return "not clients' links; too short to tell for processors";
  return "unknown";
}

std::string PercentText(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f} %", 100 * *share) : "-";
}

// The median of the samples that have it.
std::optional<double> MedianShare(const std::vector<KeptSample>& samples,
                                  std::optional<double> KeptSample::*share) {
  std::vector<double> shares;
  for (const KeptSample& sample : samples)
    if (sample.*share) shares.push_back(*(sample.*share));
  if (shares.empty()) return std::nullopt;
  return predict::MedianOf(std::move(shares)).median;
}

std::optional<double> ShareAt(const json& shares, size_t index) {
  if (index >= shares.size() || !shares[index].is_number()) return std::nullopt;
  return shares[index].get<double>();
}

void AddRow(const Envelope& envelope, EnvelopeCell cell, double unit, const char* unit_name,
            const std::vector<uint32_t>& clients, Table& table) {
  std::vector<std::string> row = {
      envelope.name, std::string(NameOf(cell.operation)),
      cell.size_bytes == 0 ? "-" : FormatBytes(static_cast<int64_t>(cell.size_bytes)), unit_name};
  bool any = false;
  for (const uint32_t count : clients) {
    cell.clients = count;
    const Estimate* rate = envelope.Find(cell);
    row.push_back(rate == nullptr ? "-" : Shown(*rate, unit));
    any = any || rate != nullptr;
  }
  if (any) table.Add(std::move(row));
}

}  // namespace

json OrNull(const std::optional<double>& number) { return number ? json(*number) : json(); }

EnvelopeResults::EnvelopeResults(std::string path, predict::EnvelopeGrid grid, json configuration,
                                 std::string conditions)
    : path_(std::move(path)),
      grid_(std::move(grid)),
      configuration_(std::move(configuration)),
      conditions_(std::move(conditions)) {}

Status EnvelopeResults::Load() {
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) return OkStatus();
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path_, kResultBytesMax));
  const auto refused = [this](const std::string& why) {
    return InvalidArgumentError(fmt::format(
        "{} is not a result of 'mosa envelope run' ({}): give another --output", path_, why));
  };
  try {
    const json root = json::parse(text);
    const json& configuration = root.at("configuration");
    if (root.at("mosa_envelope") != predict::kEnvelopeVersion || configuration != configuration_) {
      std::string other;
      for (const auto& [name, value] : configuration_.items()) {
        if (configuration.value(name, json()) != value)
          other += fmt::format("{}{} is {} there and {} here", other.empty() ? "" : ", ", name,
                               configuration.value(name, json()).dump(), value.dump());
      }
      return FailedPreconditionError(
          fmt::format("{} holds results of another store, machine or set of options ({}): give "
                      "another --output, or remove it",
                      path_, other.empty() ? "another version" : other));
    }
    for (const json& note : root.at("notes")) AddNote(note.get<std::string>());
    for (const json& object : root.at("cells")) {
      const Result<EnvelopeCell> cell = predict::EnvelopeCellOf(object);
      if (!cell.ok()) return refused(MessageOf(cell.status()));
      if (object.at("operations") != OperationsOf(grid_, *cell))
        return refused(fmt::format("{} operations in a cell of {}", object.at("operations").dump(),
                                   OperationsOf(grid_, *cell)));
      const json busy_shares = object.value("busy_shares", json::array());
      const json link_shares = object.value("link_shares", json::array());
      for (const double seconds : object.at("seconds")) {
        if (!(seconds >= kSecondsMin && seconds <= kSecondsMax))
          return refused(fmt::format("a sample of {} s", seconds));
        const size_t index = Count(object.at("system"), *cell);
        Add(object.at("system"), *cell,
            {seconds, ShareAt(busy_shares, index), ShareAt(link_shares, index)});
      }
    }
  } catch (const json::exception& wrong) {
    return refused(wrong.what());
  }
  return OkStatus();
}

Status EnvelopeResults::Save(const std::string& outcome) {
  outcome_ = outcome;
  return WriteRecord(path_, ToJson());
}

size_t EnvelopeResults::Count(const std::string& system, const EnvelopeCell& cell) const {
  const auto found = cells_.find({system, cell});
  return found == cells_.end() ? 0 : found->second.size();
}

void EnvelopeResults::Add(const std::string& system, const EnvelopeCell& cell,
                          const KeptSample& sample) {
  cells_[{system, cell}].push_back(sample);
}

Estimate EnvelopeResults::RateOf(const EnvelopeCell& cell,
                                 const std::vector<KeptSample>& samples) const {
  std::vector<double> rates;
  for (const KeptSample& sample : samples)
    rates.push_back(static_cast<double>(OperationsOf(grid_, cell)) / sample.seconds);
  return predict::MedianOf(std::move(rates));
}

std::vector<Envelope> EnvelopeResults::Envelopes(const std::vector<std::string>& systems) const {
  std::vector<Envelope> envelopes;
  for (const std::string& name : systems) {
    Envelope envelope{name, {}};
    for (const auto& [key, samples] : cells_) {
      if (key.first == name) envelope.cells.emplace(key.second, RateOf(key.second, samples));
    }
    envelopes.push_back(std::move(envelope));
  }
  return envelopes;
}

json EnvelopeResults::ToJson() const {
  json root = {{"mosa_envelope", predict::kEnvelopeVersion},
               {"outcome", outcome_},
               {"configuration", configuration_},
               {"conditions", conditions_},
               {"notes", notes_},
               {"cells", json::array()}};
  std::set<std::string> systems;
  for (const auto& [key, samples] : cells_) {
    const auto& [system, cell] = key;
    systems.insert(system);
    const Estimate rate = RateOf(cell, samples);
    json seconds = json::array(), busy_shares = json::array(), link_shares = json::array();
    for (const KeptSample& sample : samples) {
      seconds.push_back(sample.seconds);
      busy_shares.push_back(OrNull(sample.busy_share));
      link_shares.push_back(OrNull(sample.link_share));
    }
    json object = {{"system", system},
                   {"operation", NameOf(cell.operation)},
                   {"size_bytes", cell.size_bytes},
                   {"clients", cell.clients},
                   {"operations", OperationsOf(grid_, cell)},
                   {"seconds", std::move(seconds)},
                   {"busy_shares", std::move(busy_shares)},
                   {"link_shares", std::move(link_shares)},
                   {"operations_per_second", EstimateToJson(rate, 1)}};
    if (MovesBytes(cell.operation))
      object["bytes_per_second"] = EstimateToJson(rate, static_cast<double>(cell.size_bytes));
    root["cells"].push_back(std::move(object));
  }
  root["falls"] = json::array();
  for (const ExplainedFall& each : Falls({systems.begin(), systems.end()}))
    root["falls"].push_back(FallToJson(each));
  return root;
}

std::vector<ExplainedFall> EnvelopeResults::Falls(const std::vector<std::string>& systems) const {
  std::vector<ExplainedFall> all;
  for (const Envelope& envelope : Envelopes(systems)) {
    for (const predict::Fall& fall : predict::FallsOf(envelope)) {
      const std::vector<KeptSample>& samples = cells_.at({envelope.name, fall.cell});
      ExplainedFall explained{envelope.name, fall, MedianShare(samples, &KeptSample::busy_share),
                              MedianShare(samples, &KeptSample::link_share), ""};
      if (explained.busy_share.value_or(0) >= kUsedUpMin)
        explained.used_up = "processors";
      else if (explained.link_share.value_or(0) >= kUsedUpMin)
        explained.used_up = "links";
      all.push_back(std::move(explained));
    }
  }
  return all;
}

void PrintEnvelopes(const std::vector<Envelope>& envelopes) {
  std::vector<uint32_t> clients;
  for (const Envelope& envelope : envelopes) {
    for (const uint32_t count : envelope.clients()) {
      if (std::find(clients.begin(), clients.end(), count) == clients.end())
        clients.push_back(count);
    }
  }
  std::sort(clients.begin(), clients.end());
  std::vector<std::string> heading = {"SYSTEM", "OPERATION", "SIZE", "UNIT"};
  for (const uint32_t count : clients)
    heading.push_back(fmt::format("{} CLIENT{}", count, count == 1 ? "" : "S"));
  Table table(heading);
  for (const predict::EnvelopeOperation operation : predict::kEnvelopeOperations) {
    for (const Envelope& envelope : envelopes) {
      if (!MovesBytes(operation)) AddRow(envelope, {operation, 0, 0}, 1, "op/s", clients, table);
      for (const uint64_t size : envelope.sizes()) {
        if (!MovesBytes(operation)) break;
        AddRow(envelope, {operation, size, 0}, 1, "op/s", clients, table);
        AddRow(envelope, {operation, size, 0}, static_cast<double>(size) / 1e6, "MB/s", clients,
               table);
      }
    }
  }
  table.Print();
}

void PrintFalls(const std::vector<ExplainedFall>& falls, const std::vector<Envelope>& envelopes) {
  size_t untold = 0;
  for (const Envelope& envelope : envelopes)
    for (const auto& [cell, rate] : envelope.cells) untold += rate.confidence == 0 ? 1 : 0;
  if (untold > 0)
    fmt::print("{} cell{} based on one sample: whether curves fall there is unknown.\n", untold,
               untold == 1 ? " is" : "s are");
  if (falls.empty()) {
    fmt::print("No curve falls with more clients, beyond the intervals.\n");
    return;
  }
  Table table({"FALLS", "OPERATION", "SIZE", "CLIENTS", "OP/S", "BEST CLIENTS", "BEST OP/S",
               "CORES BUSY", "LINK BUSY", "USED UP"});
  for (const ExplainedFall& each : falls) {
    const predict::Fall& fall = each.fall;
    table.Add({each.system, std::string(NameOf(fall.cell.operation)),
               MovesBytes(fall.cell.operation)
                   ? FormatBytes(static_cast<int64_t>(fall.cell.size_bytes))
                   : "-",
               fmt::format("{}", fall.cell.clients), Short(fall.rate),
               fmt::format("{}", fall.best_clients), Short(fall.best), PercentText(each.busy_share),
               PercentText(each.link_share), UsedUpText(each)});
  }
  table.Print();
}

}  // namespace mosa::cli
