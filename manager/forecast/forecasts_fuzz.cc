// Whatever the bytes, forecasts are read or refused. Forecasts that were read answer questions, and
// are read again as they were written.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "manager/forecast/forecasts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using mosa::NodeId;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto forecasts = mosa::manager::ReadForecasts(text);
  if (!forecasts.ok()) {
    MOSA_CHECK(forecasts.status().code() == mosa::StatusCode::kInvalidArgument);
    return 0;
  }
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{5'000'000}, uint64_t{1} << 62}) {
    for (const std::vector<NodeId>& nodes :
         {std::vector<NodeId>{}, {NodeId{1}}, {NodeId{1}, NodeId{2}, NodeId{3}}}) {
      mosa::ReadableFile file;
      file.size_bytes = bytes;
      file.layout.chunk_bytes = 12288;
      if (!nodes.empty()) {
        auto& segment = file.layout.segments.emplace_back();
        segment.width = static_cast<uint32_t>(nodes.size());
        segment.nodes = nodes;
      }
      const auto costs = CostsOf(forecasts->reads, file);
      MOSA_CHECK(costs.elsewhere.time.ns >= 0);
      for (const auto& [node, cost] : costs.holders) MOSA_CHECK(cost.time.ns >= 0);
    }
    MOSA_CHECK(ChooseCopies(forecasts->copies, 3, bytes).copies > 0);
  }
  const auto again = mosa::manager::ReadForecasts(WriteForecasts(*forecasts, "again"));
  MOSA_CHECK(again.ok());
  MOSA_CHECK(WriteForecasts(*again, "") == WriteForecasts(*forecasts, ""));
  return 0;
}
