#include "tools/mosa/envelope_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "common/base/text_file.h"
#include "common/base/units.h"
#include "predictor/envelope/envelope_json.h"
#include "tools/mosa/command.h"
#include "tools/mosa/run_record.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::Envelope;
using predict::EnvelopeCell;
using predict::Estimate;

constexpr uintmax_t kResultBytesMax = 64 << 20;
// Of a sample; its rates are such as ReadEnvelopes() takes.
constexpr double kSecondsMin = 1e-9;
constexpr double kSecondsMax = 1e9;

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
    return InvalidArgumentError(
        fmt::format("{} is no result of 'mosa envelope run' ({}): give another --out", path_, why));
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
      return FailedPreconditionError(fmt::format(
          "{} is of another store, machine or choice of options ({}): give another --out, or "
          "remove it",
          path_, other.empty() ? "another version" : other));
    }
    for (const json& note : root.at("notes")) AddNote(note.get<std::string>());
    for (const json& object : root.at("cells")) {
      const Result<EnvelopeCell> cell = predict::EnvelopeCellOf(object);
      if (!cell.ok()) return refused(MessageOf(cell.status()));
      if (object.at("operations") != OperationsOf(grid_, *cell))
        return refused(fmt::format("{} operations in a cell of {}", object.at("operations").dump(),
                                   OperationsOf(grid_, *cell)));
      for (const double seconds : object.at("seconds")) {
        if (!(seconds >= kSecondsMin && seconds <= kSecondsMax))
          return refused(fmt::format("a sample of {} s", seconds));
        Add(object.at("system"), *cell, seconds);
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

void EnvelopeResults::Add(const std::string& system, const EnvelopeCell& cell, double seconds) {
  cells_[{system, cell}].push_back(seconds);
}

Estimate EnvelopeResults::RateOf(const EnvelopeCell& cell,
                                 const std::vector<double>& seconds) const {
  std::vector<double> rates;
  for (const double taken : seconds)
    rates.push_back(static_cast<double>(OperationsOf(grid_, cell)) / taken);
  return predict::MedianOf(std::move(rates));
}

std::vector<Envelope> EnvelopeResults::Envelopes(const std::vector<std::string>& systems) const {
  std::vector<Envelope> envelopes;
  for (const std::string& name : systems) {
    Envelope envelope{name, {}};
    for (const auto& [key, seconds] : cells_) {
      if (key.first == name) envelope.cells.emplace(key.second, RateOf(key.second, seconds));
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
  for (const auto& [key, seconds] : cells_) {
    const auto& [system, cell] = key;
    const Estimate rate = RateOf(cell, seconds);
    json object = {{"system", system},
                   {"operation", NameOf(cell.operation)},
                   {"size_bytes", cell.size_bytes},
                   {"clients", cell.clients},
                   {"operations", OperationsOf(grid_, cell)},
                   {"seconds", seconds},
                   {"operations_per_second", EstimateToJson(rate, 1)}};
    if (MovesBytes(cell.operation))
      object["bytes_per_second"] = EstimateToJson(rate, static_cast<double>(cell.size_bytes));
    root["cells"].push_back(std::move(object));
  }
  return root;
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

}  // namespace mosa::cli
