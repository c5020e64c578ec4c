#include "predictor/model/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "common/base/hash.h"
#include "common/base/rng.h"
#include "predictor/model/draws.h"
#include "predictor/model/platform_fields.h"

namespace mosa::predict {
namespace {

// Limits on costs: above any real service time, and small enough that sums do not overflow.
constexpr double kNsMax = 1e13;
constexpr double kNsPerByteMax = 1e6;
constexpr uint64_t kWholeMax = uint64_t{1} << 60;

std::string NameOf(const char* section, const char* field) {
  return *section == 0 ? std::string(field) : fmt::format("{}.{}", section, field);
}

std::string WrongNumber(const std::string& name, double value, double most) {
  if (value >= 0 && value <= most) return "";
  return fmt::format("{} is {}: it must be a number from 0 to {}", name, value, most);
}

std::string Wrong(const std::string& name, const Cost& cost) {
  std::string wrong = WrongNumber(name + ".ns_per_call", cost.ns_per_call, kNsMax);
  if (wrong.empty()) wrong = WrongNumber(name + ".ns_per_byte", cost.ns_per_byte, kNsPerByteMax);
  return wrong.empty() ? WrongNumber(name + ".spread", cost.spread, kSpreadMax) : wrong;
}
std::string Wrong(const std::string& name, double value) {
  if (name != "host.speed") return WrongNumber(name, value, kSpreadMax);
  if (value >= kSpeedMin && value <= kSpeedMax) return "";
  return fmt::format("{} is {}: it must be from {} to {}", name, value, kSpeedMin, kSpeedMax);
}
std::string Wrong(const std::string& name, uint64_t value) {
  if (value <= kWholeMax) return "";
  return fmt::format("{} is {}: it must be at most {}", name, value, kWholeMax);
}
std::string Wrong(const std::string& name, uint32_t value) {
  if (value <= kCoresMax) return "";
  return fmt::format("{} is {}: it must be at most {}", name, value, kCoresMax);
}
std::string Wrong(const std::string&, bool) { return ""; }
std::string Wrong(const std::string&, const std::string&) { return ""; }

}  // namespace

Duration Cost::Of(uint64_t bytes) const {
  const double ns = ns_per_call + static_cast<double>(bytes) * ns_per_byte;
  return Nanoseconds(std::llround(std::min(ns, static_cast<double>(kServiceMax.ns))));
}

Status Check(const Platform& platform) {
  std::string wrong;
  VisitFields(platform, [&wrong](const char* section, const char* field, const auto& value) {
    if (wrong.empty()) wrong = Wrong(NameOf(section, field), value);
  });
  const auto needs = [&wrong](const char* name, double value) {
    if (wrong.empty() && !(value > 0))
      wrong = fmt::format("{} is {}: it must be above 0", name, value);
  };
  needs("host.cores", platform.host.cores);
  const auto needs_rate = [&wrong](const char* name, uint64_t value) {
    if (wrong.empty() && value < kLinkBytesPerSecondMin)
      wrong = fmt::format("{} is {}: it must be at least {}", name, value, kLinkBytesPerSecondMin);
  };
  needs_rate("host.out_bytes_per_second", platform.host.out_bytes_per_second);
  needs_rate("host.in_bytes_per_second", platform.host.in_bytes_per_second);
  needs("client.fuse_read_bytes", static_cast<double>(platform.client.fuse_read_bytes));
  needs("client.fuse_write_bytes", static_cast<double>(platform.client.fuse_write_bytes));
  needs("client.io_threads", platform.client.io_threads);
  needs("client.fetch_threads", platform.client.fetch_threads);
  return wrong.empty() ? OkStatus() : InvalidArgumentError(wrong);
}

Platform Perturbed(const Platform& platform, uint64_t draw) {
  Platform drawn = platform;
  if (draw == 0) return drawn;
  Rng rng(draw);
  VisitFields(drawn, [&rng](const char*, const char*, auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, Cost>) {
      const double factor = FactorOf(value.spread, rng);
      value.ns_per_call *= factor;
      value.ns_per_byte *= factor;
    }
  });
  const double factor = FactorOf(drawn.network.spread, rng);
  for (uint64_t* rate : {&drawn.host.out_bytes_per_second, &drawn.host.in_bytes_per_second})
    *rate = std::max(kLinkBytesPerSecondMin,
                     static_cast<uint64_t>(static_cast<double>(*rate) * factor));
  return drawn;
}

double ModelFactor(const Platform& platform, uint64_t draw) {
  constexpr uint64_t kModelDraws = 0x6d6f64656c;  // Independent of the figures' draws.
  if (draw == 0) return 1;
  Rng rng(HashCombine(draw, kModelDraws));
  return std::exp(platform.model.spread * NormalDraw(rng));
}

double FactorOfWhole(double factor, Duration time, Duration computing) {
  if (time.ns == 0) return 1;
  const double modelled = static_cast<double>((time - computing).ns);
  return 1 + (factor - 1) * (modelled / static_cast<double>(time.ns));
}

bool HasSpread(const Platform& platform) {
  return platform.model.spread > 0 || Perturbed(platform, 1) != platform;
}

}  // namespace mosa::predict
