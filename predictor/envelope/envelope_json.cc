#include "predictor/envelope/envelope_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace mosa::predict {
namespace {

using nlohmann::json;

// Larger values are mistakes, and calculations with them could overflow.
constexpr uint64_t kSizeMax = uint64_t{1} << 50;
constexpr uint64_t kClientsMax = 1'000'000;
constexpr double kRateMin = 1e-9;  // Operations per second.
constexpr double kRateMax = 1e15;

std::optional<uint64_t> WholeNumber(const json& value, uint64_t most) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > most) return std::nullopt;
  return value.get<uint64_t>();
}

Result<Estimate> EstimateOf(const json& object) {
  Estimate rate;
  rate.median = object.at("median");
  rate.low = object.value("low", rate.median);
  rate.high = object.value("high", rate.median);
  rate.confidence = object.value("confidence", 0.0);
  if (kRateMin <= rate.low && rate.low <= rate.median && rate.median <= rate.high &&
      rate.high <= kRateMax)
    return rate;
  return InvalidArgumentError(
      fmt::format("a cell has the rates {}, but rates must be {} to {}, from low to high",
                  object.dump(), kRateMin, kRateMax));
}

}  // namespace

Result<EnvelopeCell> EnvelopeCellOf(const json& object) {
  const std::string name = object.at("operation");
  const auto operation = EnvelopeOperationOf(name);
  if (!operation)
    return InvalidArgumentError(fmt::format("an envelope has no operation '{}'", name));
  const auto size = WholeNumber(object.at("size_bytes"), kSizeMax);
  const auto clients = WholeNumber(object.at("clients"), kClientsMax);
  if (size && clients && *clients > 0 && (*size > 0) == MovesBytes(*operation))
    return EnvelopeCell{*operation, *size, static_cast<uint32_t>(*clients)};
  return InvalidArgumentError(fmt::format("a cell of '{}' has {} clients and files of {} bytes",
                                          name, object.at("clients").dump(),
                                          object.at("size_bytes").dump()));
}

Result<std::vector<Envelope>> ReadEnvelopes(std::string_view text) {
  std::vector<Envelope> envelopes;
  try {
    const json root = json::parse(text);
    if (root.at("mosa_envelope") != kEnvelopeVersion)
      return InvalidArgumentError(fmt::format("has version {}, but this program reads {}",
                                              root.at("mosa_envelope").dump(), kEnvelopeVersion));
    for (const json& object : root.at("cells")) {
      const std::string system = object.at("system");
      MOSA_ASSIGN_OR_RETURN(const EnvelopeCell cell, EnvelopeCellOf(object));
      MOSA_ASSIGN_OR_RETURN(const Estimate rate, EstimateOf(object.at("operations_per_second")));
      auto envelope = std::find_if(envelopes.begin(), envelopes.end(),
                                   [&](const Envelope& known) { return known.name == system; });
      if (envelope == envelopes.end())
        envelope = envelopes.insert(envelopes.end(), Envelope{system, {}});
      if (!envelope->cells.emplace(cell, rate).second)
        return InvalidArgumentError(fmt::format("has '{}' of {} bytes by {} clients twice",
                                                NameOf(cell.operation), cell.size_bytes,
                                                cell.clients));
    }
  } catch (const json::exception& error) {
    return InvalidArgumentError(
        fmt::format("is not a result of 'mosa envelope run': {}", error.what()));
  }
  if (envelopes.empty()) return InvalidArgumentError("has no cells yet");
  return envelopes;
}

}  // namespace mosa::predict
