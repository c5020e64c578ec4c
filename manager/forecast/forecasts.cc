#include "manager/forecast/forecasts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace mosa::manager {
namespace {

using Json = nlohmann::ordered_json;

// The file itself has some five levels.
constexpr int kDepthMax = 16;
constexpr size_t kCurvePointsMax = 1000;
constexpr uint64_t kBytesMax = uint64_t{1} << 50;
constexpr double kValueNsMax = 1e15;

Status Wrong(std::string_view name, std::string_view what) {
  return InvalidArgumentError(fmt::format("'{}' of the forecasts is not {}", name, what));
}

bool IsWhole(const Json& value, uint64_t least, uint64_t most) {
  return value.is_number_unsigned() && value.get<uint64_t>() >= least &&
         value.get<uint64_t>() <= most;
}

Result<const Json*> Find(const Json& map, const char* key) {
  const auto found = map.find(key);  // The end if `map` is not an object.
  if (found != map.end()) return &*found;
  return InvalidArgumentError(fmt::format("the forecasts lack '{}'", key));
}

Result<uint64_t> ReadWhole(const Json& map, const char* key, uint64_t most) {
  MOSA_ASSIGN_OR_RETURN(const Json* value, Find(map, key));
  if (IsWhole(*value, 1, most)) return value->get<uint64_t>();
  return Wrong(key, fmt::format("a whole number from 1 to {}", most));
}

// Lists that may be empty have `least` 0.
Result<const Json*> FindList(const Json& map, const char* key, size_t least) {
  MOSA_ASSIGN_OR_RETURN(const Json* list, Find(map, key));
  if (list->is_array() && list->size() >= least) return list;
  return Wrong(key, least > 0 ? "a list with entries" : "a list");
}

Result<Curve> ReadCurve(const Json& map, const char* key, double value_max) {
  MOSA_ASSIGN_OR_RETURN(const Json* list, FindList(map, key, 1));
  Curve curve;
  for (const Json& pair : *list) {
    const bool good = curve.size() < kCurvePointsMax && pair.is_array() && pair.size() == 2 &&
                      IsWhole(pair[0], 0, kBytesMax) && pair[1].is_number() &&
                      pair[1].get<double>() >= 0 && pair[1].get<double>() <= value_max;
    const CurvePoint point =
        good ? CurvePoint{pair[0].get<uint64_t>(), pair[1].get<double>()} : CurvePoint();
    if (!good || (!curve.empty() && point.bytes <= curve.back().bytes))
      return Wrong(key, fmt::format("a list of at most {} pairs of ascending sizes and values from "
                                    "0 to {}",
                                    kCurvePointsMax, value_max));
    curve.push_back(point);
  }
  return curve;
}

Status ReadStripe(const Json& from, ReadCosts& reads) {
  MOSA_ASSIGN_OR_RETURN(const uint64_t chunk_bytes, ReadWhole(from, "chunk_bytes", kBytesMax));
  MOSA_ASSIGN_OR_RETURN(const uint64_t width, ReadWhole(from, "width", UINT32_MAX));
  StripeCurves stripe;
  MOSA_ASSIGN_OR_RETURN(stripe.remote, ReadCurve(from, "remote", kValueNsMax));
  MOSA_ASSIGN_OR_RETURN(const Json* exposed, FindList(from, "exposed", 0));
  for (const Json& each : *exposed) {
    MOSA_ASSIGN_OR_RETURN(const uint64_t positions, ReadWhole(each, "positions", UINT32_MAX));
    MOSA_ASSIGN_OR_RETURN(stripe.exposed[static_cast<uint32_t>(positions)],
                          ReadCurve(each, "curve", 1));
  }
  reads.stripes[chunk_bytes].insert_or_assign(static_cast<uint32_t>(width), std::move(stripe));
  return OkStatus();
}

Result<ReadCosts> ReadReads(const Json& root) {
  MOSA_ASSIGN_OR_RETURN(const Json* from, Find(root, "reads"));
  ReadCosts reads;
  MOSA_ASSIGN_OR_RETURN(reads.in_manager, ReadCurve(*from, "in_manager", kValueNsMax));
  MOSA_ASSIGN_OR_RETURN(reads.whole, ReadCurve(*from, "whole", kValueNsMax));
  MOSA_ASSIGN_OR_RETURN(reads.by_mount, ReadCurve(*from, "by_mount", kValueNsMax));
  MOSA_ASSIGN_OR_RETURN(const Json* stripes, FindList(*from, "stripes", 1));
  for (const Json& stripe : *stripes) MOSA_RETURN_IF_ERROR(ReadStripe(stripe, reads));
  return reads;
}

Result<CopiesForecast> ReadCopies(const Json& root) {
  MOSA_ASSIGN_OR_RETURN(const Json* rows, FindList(root, "copies", 1));
  CopiesForecast copies;
  for (const Json& row : *rows) {
    MOSA_ASSIGN_OR_RETURN(const uint64_t nodes, ReadWhole(row, "nodes", UINT32_MAX));
    MOSA_ASSIGN_OR_RETURN(const Json* sizes, FindList(row, "sizes", 1));
    auto& into = copies[static_cast<uint32_t>(nodes)];
    into.clear();
    for (const Json& size : *sizes) {
      MOSA_ASSIGN_OR_RETURN(const uint64_t bytes, ReadWhole(size, "bytes", kBytesMax));
      MOSA_ASSIGN_OR_RETURN(const uint64_t count, ReadWhole(size, "copies", nodes));
      if (!into.empty() && bytes <= into.back().bytes)
        return Wrong("sizes", "a list of ascending sizes");
      into.push_back({bytes, static_cast<uint32_t>(count)});
    }
  }
  return copies;
}

Json ToJson(const Curve& curve, double unit) {
  Json list = Json::array();
  for (const CurvePoint& point : curve)
    list.push_back({point.bytes, std::round(point.value / unit) * unit});
  return list;
}

}  // namespace

Result<Forecasts> ReadForecasts(std::string_view text) {
  bool is_deep = false;
  const auto keeps = [&](int depth, Json::parse_event_t, Json&) {
    is_deep = is_deep || depth > kDepthMax;
    return !is_deep;
  };
  const Json root = text.size() > kForecastsBytesMax
                        ? Json()
                        : Json::parse(text, keeps, /*allow_exceptions=*/false);
  if (text.size() > kForecastsBytesMax || is_deep)
    return InvalidArgumentError(
        fmt::format("forecasts of {} bytes are too long or too deep: at most {} bytes in {} levels "
                    "are allowed",
                    text.size(), kForecastsBytesMax, kDepthMax));
  if (root.is_discarded()) return InvalidArgumentError("this is not JSON, or it is cut short");
  if (!root.is_object() || !root.contains("mosa_forecasts"))
    return InvalidArgumentError(
        root.is_object() && root.contains("mosa_platform")
            ? "this is a platform file: make forecasts of it with 'mosa forecast --platform FILE "
              "-o FORECASTS'"
            : "this is not a file of 'mosa forecast': it is no JSON object with 'mosa_forecasts'");
  if (const Json& version = root["mosa_forecasts"]; version != kForecastsVersion)
    return InvalidArgumentError(fmt::format(
        "the forecasts have version {}, but this program reads version {}: make them again",
        version.dump(-1, ' ', false, Json::error_handler_t::replace), kForecastsVersion));
  Forecasts forecasts;
  MOSA_ASSIGN_OR_RETURN(forecasts.reads, ReadReads(root));
  MOSA_ASSIGN_OR_RETURN(forecasts.copies, ReadCopies(root));
  return forecasts;
}

std::string WriteForecasts(const Forecasts& forecasts, std::string_view comment) {
  Json root;
  root["mosa_forecasts"] = kForecastsVersion;
  root["comment"] = comment;
  for (const auto& [nodes, sizes] : forecasts.copies) {
    Json row = {{"nodes", nodes}, {"sizes", Json::array()}};
    for (const CopiesForBytes& each : sizes)
      row["sizes"].push_back({{"bytes", each.bytes}, {"copies", each.copies}});
    root["copies"].push_back(std::move(row));
  }
  constexpr double kNanosecond = 1, kShare = 1.0 / 1024;
  Json& reads = root["reads"];
  reads["in_manager"] = ToJson(forecasts.reads.in_manager, kNanosecond);
  reads["whole"] = ToJson(forecasts.reads.whole, kNanosecond);
  reads["by_mount"] = ToJson(forecasts.reads.by_mount, kNanosecond);
  for (const auto& [chunk_bytes, widths] : forecasts.reads.stripes) {
    for (const auto& [width, stripe] : widths) {
      Json row = {{"chunk_bytes", chunk_bytes},
                  {"width", width},
                  {"remote", ToJson(stripe.remote, kNanosecond)},
                  {"exposed", Json::array()}};
      for (const auto& [positions, curve] : stripe.exposed)
        row["exposed"].push_back({{"positions", positions}, {"curve", ToJson(curve, kShare)}});
      reads["stripes"].push_back(std::move(row));
    }
  }
  return root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace mosa::manager
