#include "predictor/envelope/envelope_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace mosa::predict {
namespace {

using nlohmann::json;

// More is a mistake, and what is worked out of it would overflow.
constexpr uint64_t kSizeMax = uint64_t{1} << 50;
constexpr uint32_t kClientsMax = 1'000'000;

Result<EnvelopeCell> CellOf(const json& object) {
  const std::string name = object.at("operation");
  const auto operation = EnvelopeOperationOf(name);
  if (!operation)
    return InvalidArgumentError(fmt::format("there is no operation '{}' in an envelope", name));
  EnvelopeCell cell{*operation, object.at("size_bytes"), object.at("clients")};
  if (cell.clients == 0 || cell.clients > kClientsMax || cell.size_bytes > kSizeMax ||
      (cell.size_bytes == 0) == MovesBytes(*operation))
    return InvalidArgumentError(fmt::format("a cell of '{}' has {} clients and files of {} bytes",
                                            name, cell.clients, cell.size_bytes));
  return cell;
}

Result<Estimate> EstimateOf(const json& object) {
  Estimate rate;
  rate.median = object.at("median");
  rate.low = object.value("low", rate.median);
  rate.high = object.value("high", rate.median);
  rate.confidence = object.value("confidence", 0.0);
  if (std::isfinite(rate.high) && 0 < rate.low && rate.low <= rate.median &&
      rate.median <= rate.high)
    return rate;
  return InvalidArgumentError(
      fmt::format("a cell has the rates {}: they must be positive, low to high", object.dump()));
}

}  // namespace

Result<std::vector<Envelope>> ReadEnvelopes(std::string_view text) {
  std::vector<Envelope> envelopes;
  try {
    const json root = json::parse(text);
    if (root.at("mosa_envelope") != kEnvelopeVersion)
      return InvalidArgumentError(fmt::format("is of version {}, this program reads {}",
                                              root.at("mosa_envelope").dump(), kEnvelopeVersion));
    for (const json& object : root.at("cells")) {
      const std::string system = object.at("system");
      MOSA_ASSIGN_OR_RETURN(const EnvelopeCell cell, CellOf(object));
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
        fmt::format("is no result of 'mosa envelope run': {}", error.what()));
  }
  if (envelopes.empty()) return InvalidArgumentError("has no cells yet");
  return envelopes;
}

}  // namespace mosa::predict
