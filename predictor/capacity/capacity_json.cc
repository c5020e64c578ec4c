#include "predictor/capacity/capacity_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace mosa::predict {
namespace {

using nlohmann::json;

constexpr double kRateMin = 1e-9;  // Operations per second of a sample.
constexpr double kRateMax = 1e15;

uint32_t PercentOf(const json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= 100 ? value.get<uint32_t>() : 101;
}

Result<CapacityLoad> LoadOf(const json& object) {
  CapacityLoad load;
  const std::string share_of = object.at("share_of");
  if (share_of == NameOf(ShareOf::kOperations))
    load.share_of = ShareOf::kOperations;
  else if (share_of != NameOf(ShareOf::kClients))
    return InvalidArgumentError(
        fmt::format("has a load with shares of unknown kind '{}'", share_of));
  for (const json& part : object.at("parts")) {
    const json& size = part.at("size_bytes");
    load.parts.push_back({size.is_number_unsigned() ? size.get<uint64_t>() : 0,
                          PercentOf(part.at("read_percent")), PercentOf(part.at("share_percent"))});
  }
  return MakeLoad(load.share_of, std::move(load.parts));
}

Result<std::vector<OperationRates>> SamplesOf(const json& object, const CapacityLoad& load) {
  const auto reads = object.at("reads_per_second").get<std::vector<double>>();
  const auto writes = object.at("writes_per_second").get<std::vector<double>>();
  std::vector<OperationRates> samples;
  for (size_t i = 0; i < reads.size() && i < writes.size(); ++i)
    samples.push_back({reads[i], writes[i]});
  bool good = !samples.empty() && reads.size() == writes.size();
  for (const OperationRates& rates : samples)
    good = good && rates.reads >= 0 && rates.writes >= 0 && rates.all() >= kRateMin &&
           rates.all() <= kRateMax;
  if (good) return samples;
  return InvalidArgumentError(fmt::format(
      "has invalid samples for {}: reads and writes must be equally many, with sums of {} to {}",
      TextOf(load), kRateMin, kRateMax));
}

// Clients on all hosts; 0: not stated.
uint32_t ClientsOf(const json& root) {
  const json jobs = root.value("/configuration/jobs"_json_pointer, json());
  const json hosts = root.value("/configuration/store/hosts"_json_pointer, json());
  if (!jobs.is_number_unsigned() || !hosts.is_array()) return 0;
  const uint64_t clients = std::min<uint64_t>(jobs.get<uint64_t>(), UINT32_MAX) * hosts.size();
  return static_cast<uint32_t>(std::min<uint64_t>(clients, UINT32_MAX));
}

}  // namespace

Result<Capacity> ReadCapacity(std::string_view text) {
  Capacity capacity;
  try {
    const json root = json::parse(text);
    if (root.at("mosa_capacity") != kCapacityVersion)
      return InvalidArgumentError(fmt::format("has version {}, but this program reads {}",
                                              root.at("mosa_capacity").dump(), kCapacityVersion));
    capacity.name = root.at("store");
    capacity.clients = ClientsOf(root);
    for (const json& object : root.at("loads")) {
      MOSA_ASSIGN_OR_RETURN(CapacityLoad load, LoadOf(object));
      MOSA_ASSIGN_OR_RETURN(std::vector<OperationRates> samples, SamplesOf(object, load));
      const std::string name = TextOf(load);
      if (!capacity.samples.emplace(std::move(load), std::move(samples)).second)
        return InvalidArgumentError(fmt::format("has {} twice", name));
    }
  } catch (const json::exception& error) {
    return InvalidArgumentError(
        fmt::format("is not a result of 'mosa capacity run': {}", error.what()));
  }
  return capacity;
}

json LoadsToJson(const Capacity& capacity) {
  json loads = json::array();
  for (const auto& [load, samples] : capacity.samples) {
    json parts = json::array(), reads = json::array(), writes = json::array();
    for (const CapacityPart& part : load.parts)
      parts.push_back({{"size_bytes", part.size_bytes},
                       {"read_percent", part.read_percent},
                       {"share_percent", part.share_percent}});
    for (const OperationRates& rates : samples) {
      reads.push_back(rates.reads);
      writes.push_back(rates.writes);
    }
    loads.push_back({{"share_of", NameOf(load.share_of)},
                     {"parts", std::move(parts)},
                     {"reads_per_second", std::move(reads)},
                     {"writes_per_second", std::move(writes)}});
  }
  return loads;
}

}  // namespace mosa::predict
