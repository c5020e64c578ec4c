// Capacities as `mosa capacity run` writes them: JSON with stable names.
//
//   {"mosa_capacity": 1, "store": "/mnt/nfs", ...
//    "loads": [{"share_of": "clients",
//               "parts": [{"size_bytes": 4096, "read_percent": 100, "share_percent": 100}],
//               "reads_per_second": [812.3, ...], "writes_per_second": [0, ...]}]}
//
// Rates are operations per second of all clients together, one per sample. A capacity measured by
// other means may be written by hand; unknown fields are ignored. Pure.
#ifndef MOSA_PREDICTOR_CAPACITY_CAPACITY_JSON_H_
#define MOSA_PREDICTOR_CAPACITY_CAPACITY_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "common/base/status.h"
#include "predictor/capacity/capacity.h"

namespace mosa::predict {

inline constexpr int kCapacityVersion = 1;

// InvalidArgument says what is wrong with the text.
Result<Capacity> ReadCapacity(std::string_view text);
// Returns the "loads" array.
nlohmann::json LoadsToJson(const Capacity& capacity);

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_CAPACITY_CAPACITY_JSON_H_
