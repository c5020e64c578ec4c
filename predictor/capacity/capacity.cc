#include "predictor/capacity/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/units.h"

namespace mosa::predict {
namespace {

const SizeCapacity& Of(const SizeCapacities& sizes, const CapacityPart& part) {
  const auto found = sizes.find(part.size_bytes);
  MOSA_CHECK(found != sizes.end());
  return found->second;
}

// Returns the rate of each part, in order: operations per second, reads and writes together.
std::vector<double> PartRates(const SizeCapacities& sizes, const CapacityLoad& load) {
  std::vector<double> rates;
  double seconds = 0;  // Store time for one operation of the mix.
  for (const CapacityPart& part : load.parts) {
    const double alone = Of(sizes, part).OperationsAt(part.read_percent);
    rates.push_back(part.share_percent / 100.0 * alone);
    seconds += part.share_percent / 100.0 / alone;
  }
  if (load.share_of == ShareOf::kClients) return rates;
  for (size_t i = 0; i < rates.size(); ++i)
    rates[i] = load.parts[i].share_percent / 100.0 / seconds;
  return rates;
}

}  // namespace

double SizeCapacity::ConstantAt(uint32_t read_percent) const {
  MOSA_CHECK(read_percent <= 100);
  const auto above = constants_.lower_bound(read_percent);
  if (above->first == read_percent || above == constants_.begin()) return above->second;
  const auto below = std::prev(above);
  const double share = static_cast<double>(read_percent - below->first) /
                       static_cast<double>(above->first - below->first);
  return below->second + share * (above->second - below->second);
}

Estimate SizeCapacity::ConstantOf(const std::vector<OperationRates>& samples) const {
  std::vector<double> constants;
  for (const OperationRates& rates : samples) constants.push_back(ConstantOf(rates));
  return MedianOf(std::move(constants));
}

double SizeCapacity::OperationsAt(uint32_t read_percent) const {
  const double writes = 100.0 - read_percent;
  return 100 * ConstantAt(read_percent) / (read_percent + writes * read_write_factor_);
}

OperationRates EstimateRates(const SizeCapacities& sizes, const CapacityLoad& load) {
  const std::vector<double> rates = PartRates(sizes, load);
  OperationRates sum;
  for (size_t i = 0; i < rates.size(); ++i) {
    const double reads = load.parts[i].read_percent / 100.0;
    sum.reads += rates[i] * reads;
    sum.writes += rates[i] * (1 - reads);
  }
  return sum;
}

double EquationSeven(const SizeCapacities& sizes, const CapacityLoad& load) {
  return EstimateRates(sizes, {ShareOf::kClients, load.parts}).all();
}

double BytesPerSecond(const CapacityLoad& load, const SizeCapacities& sizes) {
  const std::vector<double> rates = PartRates(sizes, load);
  double sum = 0;
  for (size_t i = 0; i < rates.size(); ++i)
    sum += rates[i] * static_cast<double>(load.parts[i].size_bytes);
  return sum;
}

double ErrorPercent(double estimated, double measured) {
  return std::abs(estimated - measured) / measured * 100;
}

const std::vector<OperationRates>* Capacity::Find(const CapacityLoad& load) const {
  const auto found = samples.find(load);
  return found == samples.end() ? nullptr : &found->second;
}

std::vector<uint64_t> Capacity::seeded_sizes() const {
  std::vector<uint64_t> sizes;
  for (const auto& [load, taken] : samples) {
    const uint64_t size = load.parts.front().size_bytes;
    if (load == OneSize(size, 100) && Find(OneSize(size, 0)) != nullptr) sizes.push_back(size);
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

Estimate MeasuredOperations(const std::vector<OperationRates>& samples) {
  std::vector<double> all;
  for (const OperationRates& rates : samples) all.push_back(rates.all());
  return MedianOf(std::move(all));
}

CapacityModel ModelOf(const Capacity& capacity, bool resampled) {
  CapacityModel model;
  for (const uint64_t size : capacity.seeded_sizes()) {
    const Estimate reads = MeasuredOperations(*capacity.Find(OneSize(size, 100)));
    const Estimate writes = MeasuredOperations(*capacity.Find(OneSize(size, 0)));
    model.median.emplace(size, SizeCapacity(reads.median, writes.median));
    model.low.emplace(size, SizeCapacity(reads.low, writes.low));
    model.high.emplace(size, SizeCapacity(reads.high, writes.high));
  }
  for (const auto& [load, samples] : capacity.samples) {
    const CapacityPart& part = load.parts.front();
    const auto found = model.median.find(part.size_bytes);
    if (!resampled || load.is_mix() || load.is_seed() || found == model.median.end()) continue;
    SizeCapacity& low = model.low.at(part.size_bytes);
    SizeCapacity& high = model.high.at(part.size_bytes);
    found->second.Resample(part.read_percent, found->second.ConstantOf(samples).median);
    low.Resample(part.read_percent, low.ConstantOf(samples).low);
    high.Resample(part.read_percent, high.ConstantOf(samples).high);
  }
  return model;
}

Result<Estimate> CapacityModel::Operations(const CapacityLoad& load) const {
  for (const CapacityPart& part : load.parts) {
    if (median.contains(part.size_bytes)) continue;
    std::string known;
    for (const auto& [size, capacity] : median)
      known += (known.empty() ? "" : ", ") + FormatBytes(static_cast<int64_t>(size));
    const std::string size = FormatBytes(static_cast<int64_t>(part.size_bytes));
    return NotFoundError(
        fmt::format("I/O of {} was not measured, only {}: add its two seeds with 'mosa capacity "
                    "run --sizes {}'",
                    size, known.empty() ? "nothing" : known, size));
  }
  return Estimate{EstimateRates(median, load).all(), EstimateRates(low, load).all(),
                  EstimateRates(high, load).all(), 0};
}

}  // namespace mosa::predict
