#include "predictor/model/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "common/base/hash.h"
#include "common/base/rng.h"
#include "predictor/model/draws.h"
#include "predictor/workflow/fields.h"

namespace mosa::predict {
namespace {

constexpr int kPowerVersion = 1;
constexpr double kWattsMax = 1e6;
constexpr double kLevelSpeedMin = 0.01;
constexpr double kLevelSpeedMax = 100;
constexpr double kMegahertzMax = 1e5;
constexpr size_t kLevelsMax = 100;

// Takes the fields of one level; keeps the first fault.
class LevelReader {
 public:
  LevelReader(const Value& map, std::vector<std::string>& faults) : map_(map), fields_(faults) {}

  PowerLevel Read() {
    fields_.AllowOnly(
        map_,
        {"frequency_mhz", "speed", "idle_w", "application_w", "storage_w", "network_w", "spread"},
        "a level");
    PowerLevel level;
    double frequency = 0;
    if (Take("frequency_mhz", 1, kMegahertzMax, frequency)) {
      level.frequency_mhz = static_cast<uint32_t>(frequency);
      if (frequency != level.frequency_mhz)
        fields_.Fault(map_.line,
                      fmt::format("frequency_mhz is {}: it must be a whole number", frequency));
    }
    Take("speed", kLevelSpeedMin, kLevelSpeedMax, level.speed);
    Take("idle_w", 0, kWattsMax, level.idle_w);
    Take("application_w", 0, kWattsMax, level.application_w);
    Take("storage_w", 0, kWattsMax, level.storage_w);
    Take("network_w", 0, kWattsMax, level.network_w);
    if (map_.Find("spread") != nullptr) Take("spread", 0, kSpreadMax, level.spread);
    return level;
  }

 private:
  bool Take(std::string_view key, double low, double high, double& number) {
    const Value* value = map_.Find(key);
    if (value == nullptr || !value->is_scalar()) {
      fields_.Fault(map_.line, fmt::format("a level needs '{}', a number", key));
      return false;
    }
    const char* end = value->text.data() + value->text.size();
    const auto [read, error] = std::from_chars(value->text.data(), end, number);
    if (error == std::errc() && read == end && number >= low && number <= high) return true;
    fields_.Fault(value->line, fmt::format("{} is '{}': it must be a number from {} to {}", key,
                                           value->text.substr(0, 80), low, high));
    return false;
  }

  const Value& map_;
  Fields fields_;
};

void CheckFrequencies(const PowerProfile& profile, Fields& fields) {
  if (profile.levels.empty() || profile.levels.size() > kLevelsMax)
    fields.Fault(1, fmt::format("a power file has 1 to {} levels, not {}", kLevelsMax,
                                profile.levels.size()));
  std::set<uint32_t> known;
  for (const PowerLevel& level : profile.levels)
    if (!known.insert(level.frequency_mhz).second)
      fields.Fault(1, fmt::format("two levels have {} MHz", level.frequency_mhz));
}

}  // namespace

HostUse& HostUse::operator+=(const HostUse& more) {
  application_core_s += more.application_core_s;
  store_core_s += more.store_core_s;
  sending_s += more.sending_s;
  receiving_s += more.receiving_s;
  return *this;
}

double EnergyOf(const PowerLevel& level, uint32_t cores, uint32_t hosts, Duration time,
                const HostUse& use) {
  const double idle_s = static_cast<double>(hosts) * (static_cast<double>(time.ns) / 1e9);
  return level.idle_w * idle_s + level.application_w * (use.application_core_s / cores) +
         level.storage_w * (use.store_core_s / cores) +
         level.network_w * ((use.sending_s + use.receiving_s) / 2);
}

PowerLevel Perturbed(const PowerLevel& level, uint64_t draw) {
  PowerLevel drawn = level;
  if (draw == 0) return drawn;
  // Independent of the platform's draws.
  Rng rng(HashCombine(draw, Hash64("power")));
  for (double* power : {&drawn.idle_w, &drawn.application_w, &drawn.storage_w, &drawn.network_w})
    *power *= FactorOf(level.spread, rng);
  return drawn;
}

Platform AtLevel(Platform platform, const PowerLevel& level) {
  platform.host.speed *= level.speed;
  return platform;
}

Result<PowerLevel> LevelAt(const PowerProfile& profile, uint32_t frequency_mhz) {
  std::string known;
  for (const PowerLevel& level : profile.levels) {
    if (frequency_mhz == 0 ? level.speed == 1 : level.frequency_mhz == frequency_mhz) return level;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", level.frequency_mhz);
  }
  if (frequency_mhz == 0)
    return NotFoundError(
        fmt::format("the power file has no level of speed 1: name a frequency of {} MHz", known));
  return NotFoundError(
      fmt::format("the power file has no level of {} MHz, only {}", frequency_mhz, known));
}

Result<PowerProfile> ReadPower(std::string_view text) {
  MOSA_ASSIGN_OR_RETURN(const Value root, ParseDocument(text));
  const Value* version = root.Find("mosa_power");
  if (version == nullptr)
    return InvalidArgumentError("this is not a power file: it has no 'mosa_power'");
  if (version->text != fmt::format("{}", kPowerVersion))
    return InvalidArgumentError(
        fmt::format("line {}: the power file has version '{}', but this program reads version {}",
                    version->line, version->text.substr(0, 80), kPowerVersion));
  std::vector<std::string> faults;
  Fields fields(faults);
  fields.AllowOnly(root, {"mosa_power", "machine", "measured", "by", "levels"}, "a power file");
  PowerProfile profile;
  profile.machine = fields.Text(root, "machine", "the power file");
  profile.measured = fields.Text(root, "measured", "the power file");
  profile.by = fields.Text(root, "by", "the power file");
  for (const Value* level : fields.Maps(root, "levels", "the power file"))
    profile.levels.push_back(LevelReader(*level, faults).Read());
  CheckFrequencies(profile, fields);
  if (!faults.empty()) return InvalidArgumentError(faults.front());
  return profile;
}

}  // namespace mosa::predict
