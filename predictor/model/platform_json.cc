#include "predictor/model/platform_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "predictor/model/platform_fields.h"

namespace mosa::predict {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPlatformBytesMax = 1 << 20;

bool IsEvidence(std::string_view key) {
  return key == "notes" || key == "figures" || key == "measurements";
}
bool IsComment(std::string_view key) { return key.starts_with("comment"); }

// Reads one value after the other. After the first fault, which is kept, it reads nothing.
class FieldReader {
 public:
  explicit FieldReader(const Json& root) : root_(root) {}

  template <typename T>
  void operator()(const char* section, const char* field, T& value) {
    known_.insert(*section == 0 ? field : section);
    if (*section != 0) sections_.insert({section, field});
    if (!fault_.empty()) return;
    const std::string name = *section == 0 ? field : fmt::format("{}.{}", section, field);
    const Json* from = &root_;
    if (*section != 0) from = MapAt(root_, section, section);
    if (from == nullptr) return;
    const auto found = from->find(field);
    if (found == from->end()) {
      fault_ = fmt::format("'{}' is missing", name);
      return;
    }
    Take(name, *found, value);
  }

  // Returns the first fault; if there is none, the first unknown field.
  std::string Fault() const {
    if (!fault_.empty()) return fault_;
    for (const auto& [key, value] : root_.items()) {
      if (key == "mosa_platform" || IsComment(key) || IsEvidence(key)) continue;
      if (!known_.contains(key)) return fmt::format("'{}' is not a field of a platform", key);
      if (!value.is_object()) continue;
      for (const auto& [field, inner] : value.items())
        if (!sections_.contains({key, field}) && !IsComment(field))
          return fmt::format("'{}.{}' is not a field of a platform", key, field);
    }
    return "";
  }

 private:
  const Json* MapAt(const Json& from, const char* key, const std::string& name) {
    const auto found = from.find(key);
    if (found != from.end() && found->is_object()) return &*found;
    fault_ = fmt::format("'{}' is missing or not an object", name);
    return nullptr;
  }
  void Wrong(const std::string& name, const char* what, const Json& value) {
    fault_ = fmt::format("'{}' must be {}, not {}", name, what,
                         value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  void Take(const std::string& name, const Json& from, std::string& value) {
    if (!from.is_string()) return Wrong(name, "a text", from);
    value = from.get<std::string>();
  }
  void Take(const std::string& name, const Json& from, bool& value) {
    if (!from.is_boolean()) return Wrong(name, "true or false", from);
    value = from.get<bool>();
  }
  void Take(const std::string& name, const Json& from, double& value) {
    if (!from.is_number()) return Wrong(name, "a number", from);
    value = from.get<double>();
  }
  template <typename Whole>
  requires std::is_unsigned_v<Whole>
  void Take(const std::string& name, const Json& from, Whole& value) {
    if (!from.is_number_unsigned() || from.get<uint64_t>() > std::numeric_limits<Whole>::max())
      return Wrong(name, "a whole number, 0 or more", from);
    value = static_cast<Whole>(from.get<uint64_t>());
  }
  void Take(const std::string& name, const Json& from, Cost& cost) {
    if (!from.is_object()) return Wrong(name, "an object with ns_per_call", from);
    for (const auto& [key, value] : from.items()) {
      double* const part = key == "ns_per_call"   ? &cost.ns_per_call
                           : key == "ns_per_byte" ? &cost.ns_per_byte
                           : key == "spread"      ? &cost.spread
                                                  : nullptr;
      if (part != nullptr)
        Take(fmt::format("{}.{}", name, key), value, *part);
      else if (!IsComment(key))
        fault_ = fmt::format("'{}.{}' is not a field of a cost", name, key);
      if (!fault_.empty()) return;
    }
    if (!from.contains("ns_per_call")) fault_ = fmt::format("'{}.ns_per_call' is missing", name);
  }

  const Json& root_;
  std::string fault_;
  std::set<std::string> known_;
  std::set<std::pair<std::string, std::string>> sections_;
};

Status CheckVersion(const Json& root) {
  const auto version = root.find("mosa_platform");
  if (version == root.end())
    return InvalidArgumentError("this is not a platform file: it has no 'mosa_platform'");
  if (*version == kPlatformVersion) return OkStatus();
  return InvalidArgumentError(fmt::format(
      "the platform file has version {}, but this program reads version {}: make it again",
      version->dump(-1, ' ', false, Json::error_handler_t::replace), kPlatformVersion));
}

// Rounds to four significant digits.
double Rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

void Put(const Evidence& evidence, Json& root) {
  root["notes"] = evidence.notes;
  root["figures"] = Json::array();
  for (const Evidence::Figure& figure : evidence.figures)
    root["figures"].push_back({{"name", figure.name},
                               {"value", Rounded(figure.value)},
                               {"interval_95", {Rounded(figure.low), Rounded(figure.high)}},
                               {"measured", figure.measured}});
  root["measurements"] = Json::array();
  for (const Evidence::Measurement& each : evidence.measurements) {
    Json row = {
        {"what", each.what},       {"unit", each.unit},        {"mean", Rounded(each.mean)},
        {"interval_95", nullptr},  // One sample has no interval.
        {"samples", each.samples}, {"outliers", each.dropped}, {"within_5_percent", each.settled}};
    if (each.samples >= 2)
      row["interval_95"] = {Rounded(each.mean - each.half_width),
                            Rounded(each.mean + each.half_width)};
    if (each.modelled) row["modelled"] = Rounded(*each.modelled);
    root["measurements"].push_back(std::move(row));
  }
}

}  // namespace

Result<Platform> ReadPlatform(std::string_view text) {
  if (text.size() > kPlatformBytesMax)
    return InvalidArgumentError(
        fmt::format("a platform file of {} bytes is too long: at most {} are allowed", text.size(),
                    kPlatformBytesMax));
  // The JSON library's parser recurses over nested values.
  if (std::count(text.begin(), text.end(), '[') + std::count(text.begin(), text.end(), '{') > 1000)
    return InvalidArgumentError("a platform file must not have more than 1000 objects");
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const size_t at = std::min(error.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n');
    return InvalidArgumentError(fmt::format("line {}: this is not JSON, or it is cut short", line));
  } catch (const Json::exception&) {
    return InvalidArgumentError("a number of the platform file is out of range, such as 1e999");
  }
  if (!root.is_object()) return InvalidArgumentError("a platform file must be one JSON object");
  MOSA_RETURN_IF_ERROR(CheckVersion(root));
  Platform platform;
  FieldReader reader(root);
  VisitFields(platform, reader);
  if (const std::string fault = reader.Fault(); !fault.empty()) return InvalidArgumentError(fault);
  MOSA_RETURN_IF_ERROR(Check(platform));
  return platform;
}

std::string WritePlatform(const Platform& platform, const Evidence* evidence) {
  Json root;
  root["mosa_platform"] = kPlatformVersion;
  VisitFields(platform, [&root](const char* section, const char* field, const auto& value) {
    Json& into = *section == 0 ? root[field] : root[section][field];
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, Cost>)
      into = {{"ns_per_call", value.ns_per_call},
              {"ns_per_byte", value.ns_per_byte},
              {"spread", value.spread}};
    else
      into = value;
  });
  if (evidence != nullptr) Put(*evidence, root);
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace mosa::predict
