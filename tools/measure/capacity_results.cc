#include "tools/measure/capacity_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/base/text_file.h"
#include "common/base/units.h"
#include "predictor/capacity/capacity_json.h"
#include "predictor/capacity/verdict.h"
#include "tools/console/output.h"
#include "tools/runner/record.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::Capacity;
using predict::CapacityLoad;
using predict::Estimate;
using predict::LoadCheck;
using predict::OneSize;
using predict::SizeVerdict;

constexpr uintmax_t kResultBytesMax = 64 << 20;

json EstimateToJson(const Estimate& rate) {
  return {{"median", rate.median}, {"low", rate.low}, {"high", rate.high}};
}

json CheckToJson(const LoadCheck& check) {
  json object = {{"load", TextOf(check.load)},
                 {"share_of", NameOf(check.load.share_of)},
                 {"measured_per_second", EstimateToJson(check.measured)},
                 {"estimated_per_second", EstimateToJson(check.estimated)},
                 {"error_percent", check.error_percent},
                 {"error_percent_max", ErrorPercentMax(check.load)}};
  if (!check.load.is_mix()) {
    object["constant"] = check.constant;
    return object;
  }
  object["equation_7_per_second"] = check.equation_seven;
  object["equation_7_error_percent"] =
      predict::ErrorPercent(check.equation_seven, check.measured.median);
  return object;
}

json VerdictToJson(const SizeVerdict& verdict, const Capacity& capacity) {
  const auto rate = [&](uint32_t read_percent) {
    return EstimateToJson(
        MeasuredOperations(*capacity.Find(OneSize(verdict.size_bytes, read_percent))));
  };
  json object = {{"size_bytes", verdict.size_bytes},     {"reads_per_second", rate(100)},
                 {"writes_per_second", rate(0)},         {"f_rw", verdict.read_write_factor},
                 {"verdict", NameOf(verdict.constancy)}, {"sentence", SentenceOf(verdict)}};
  if (verdict.constancy == predict::Constancy::kUnchecked) return object;
  object["worst_read_percent"] = verdict.worst_read_percent;
  object["worst_error_percent"] = verdict.worst_error_percent;
  if (verdict.resample_read_percent == 0) return object;
  object["resample_read_percent"] = verdict.resample_read_percent;
  object["resampled_error_percent"] = verdict.resampled_error_percent;
  return object;
}

void PrintSeeds(const Capacity& capacity, const std::vector<SizeVerdict>& verdicts) {
  Table table({"SIZE", "100% READ /S", "100% WRITE /S", "F_RW", "READ MB/S", "WRITE MB/S",
               "WORST ERROR", "C"});
  for (const SizeVerdict& verdict : verdicts) {
    const Estimate reads = MeasuredOperations(*capacity.Find(OneSize(verdict.size_bytes, 100)));
    const Estimate writes = MeasuredOperations(*capacity.Find(OneSize(verdict.size_bytes, 0)));
    const double megabytes = static_cast<double>(verdict.size_bytes) / 1e6;
    table.Add({SizeText(verdict.size_bytes), RateText(reads), RateText(writes),
               fmt::format("{:.2f}", verdict.read_write_factor),
               fmt::format("{:.1f}", reads.median * megabytes),
               fmt::format("{:.1f}", writes.median * megabytes),
               verdict.constancy == predict::Constancy::kUnchecked
                   ? "-"
                   : fmt::format("{:.1f} %", verdict.worst_error_percent),
               std::string(NameOf(verdict.constancy))});
  }
  table.Print();
}

void PrintChecks(const std::vector<LoadCheck>& checks) {
  Table table({"LOAD", "ESTIMATED /S", "MEASURED /S", "ERROR", "ALLOWED", "C", "EQ. 7 AS PRINTED"});
  for (const LoadCheck& check : checks) {
    const bool mix = check.load.is_mix();
    const double error = predict::ErrorPercent(check.equation_seven, check.measured.median);
    table.Add({TextOf(check.load), RateText(check.estimated), RateText(check.measured),
               fmt::format("{:.1f} %", check.error_percent),
               fmt::format("{:.0f} %", ErrorPercentMax(check.load)),
               mix ? "-" : fmt::format("{:.0f}", check.constant),
               mix ? fmt::format("{:.0f}/s, {:.1f} %", check.equation_seven, error) : "-"});
  }
  table.Print();
}

}  // namespace

CapacityResults::CapacityResults(std::string path, std::string store, json configuration,
                                 std::string conditions)
    : path_(std::move(path)),
      configuration_(std::move(configuration)),
      conditions_(std::move(conditions)) {
  capacity_.name = std::move(store);
}

Status CapacityResults::Load() {
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) return OkStatus();
  MOSA_ASSIGN_OR_RETURN(Capacity before, ReadCapacityFile(path_));
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path_, kResultBytesMax));
  const json root = json::parse(text);
  const json there = root.value("configuration", json::object());
  std::string other;
  for (const auto& [name, value] : configuration_.items()) {
    const json own = there.is_object() ? there.value(name, json()) : json();
    if (own != value)
      other += fmt::format("{}{} is {} there and {} here", other.empty() ? "" : ", ", name,
                           own.dump(), value.dump());
  }
  if (!other.empty())
    return FailedPreconditionError(
        fmt::format("{} holds results of another store, machine or set of options ({}): give "
                    "another --output, or remove it",
                    path_, other));
  for (const json& note : root.value("notes", json::array()))
    if (note.is_string()) AddNote(note.get<std::string>());
  capacity_.samples = std::move(before.samples);
  return OkStatus();
}

Status CapacityResults::Save(const std::string& outcome) {
  return WriteRecord(path_, {{"mosa_capacity", predict::kCapacityVersion},
                             {"store", capacity_.name},
                             {"outcome", outcome},
                             {"configuration", configuration_},
                             {"conditions", conditions_},
                             {"notes", notes_},
                             {"loads", predict::LoadsToJson(capacity_)}});
}

size_t CapacityResults::Count(const CapacityLoad& load) const {
  const auto* samples = capacity_.Find(load);
  return samples == nullptr ? 0 : samples->size();
}

void CapacityResults::Add(const CapacityLoad& load, const predict::OperationRates& rates) {
  capacity_.samples[load].push_back(rates);
}

Result<Capacity> ReadCapacityFile(const std::string& path) {
  MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(path, kResultBytesMax));
  auto read = predict::ReadCapacity(text);
  if (read.ok()) return read;
  return Status(read.status().code(), fmt::format("{} {}", path, MessageOf(read.status())));
}

std::string SizeText(uint64_t size_bytes) { return FormatBytes(static_cast<int64_t>(size_bytes)); }

std::string RateText(const Estimate& rate) {
  const auto shown = [](double number) {
    return number >= 100 ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
  };
  if (rate.low == rate.high) return shown(rate.median);
  return fmt::format("{} ({}-{})", shown(rate.median), shown(rate.low), shown(rate.high));
}

void PrintCapacity(const Capacity& capacity) {
  const std::vector<SizeVerdict> verdicts = VerdictsOf(capacity);
  const std::vector<LoadCheck> checks = ChecksOf(capacity);
  PrintSeeds(capacity, verdicts);
  if (checks.empty()) return;
  fmt::print("\n");
  PrintChecks(checks);
  fmt::print("\n");
  for (const SizeVerdict& verdict : verdicts) fmt::print("{}\n", SentenceOf(verdict));
}

json ToJson(const Capacity& capacity) {
  json root = {{"store", capacity.name}, {"sizes", json::array()}, {"checks", json::array()}};
  for (const SizeVerdict& verdict : VerdictsOf(capacity))
    root["sizes"].push_back(VerdictToJson(verdict, capacity));
  for (const LoadCheck& check : ChecksOf(capacity)) root["checks"].push_back(CheckToJson(check));
  return root;
}

}  // namespace mosa::cli
