// Energy: what a run's hosts draw (Provisioning, section 4.1), as power above idle times how long
// each part of a host is busy:
//
//   E = hosts * idle_w * T + application_w * A + storage_w * S + network_w * N
//
// T is the run's length. A and S are the processor time of programs and of the store, on whichever
// host it is spent, in units of a host's whole processor. N is the time that links transfer, in
// units of a link that is full in both directions. The figures of a PowerLevel are therefore what a
// meter shows above idle when a host does one of the three alone, as hard as it can.
//
// At another frequency all processor work takes 1 / speed of the time; links and their latencies
// stay as they are.
#ifndef MOSA_PREDICTOR_MODEL_ENERGY_H_
#define MOSA_PREDICTOR_MODEL_ENERGY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "predictor/model/platform.h"

namespace mosa::predict {

// A host at one processor frequency.
struct PowerLevel {
  uint32_t frequency_mhz = 0;
  double speed = 1;  // Speed of its cores, relative to those the platform was measured with.
  double idle_w = 0;
  double application_w = 0;
  double storage_w = 0;
  double network_w = 0;
  double spread = 0;  // As Cost::spread, for each of the four.
  bool operator==(const PowerLevel&) const = default;
};

struct PowerProfile {
  std::string machine;   // For people: what was measured,
  std::string measured;  // when,
  std::string by;        // and by what.
  std::vector<PowerLevel> levels;
};

// How long the parts of hosts were busy, for one host or many.
struct HostUse {
  double application_core_s = 0;
  double store_core_s = 0;
  double sending_s = 0;
  double receiving_s = 0;
  HostUse& operator+=(const HostUse& more);
  bool operator==(const HostUse&) const = default;
};

// Returns joules. `cores` are those of one host; `use` is the sum over all hosts.
double EnergyOf(const PowerLevel& level, uint32_t cores, uint32_t hosts, Duration time,
                const HostUse& use);

// The level with each power multiplied by a random factor of its spread, which `draw` selects. Draw
// 0 is the level as measured.
PowerLevel Perturbed(const PowerLevel& level, uint64_t draw);

// The platform with its processors at this level.
Platform AtLevel(Platform platform, const PowerLevel& level);

// The level at `frequency_mhz`. 0 selects the level of speed 1, at which the platform was measured.
// NotFound lists the levels.
Result<PowerLevel> LevelAt(const PowerProfile& profile, uint32_t frequency_mhz);

// A power file, YAML or JSON:
//
//   mosa_power: 1
//   machine: two Xeon E5-2630
//   measured: 2014
//   by: a wattmeter
//   levels:
//     - {frequency_mhz: 2300, speed: 1, idle_w: 91.6, application_w: 33.6, storage_w: 37.5,
//        network_w: 36.1, spread: 0.05}
//
// InvalidArgument is one sentence that names the line.
Result<PowerProfile> ReadPower(std::string_view text);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_MODEL_ENERGY_H_
