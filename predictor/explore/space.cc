#include "predictor/explore/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "common/base/rng.h"
#include "common/base/units.h"
#include "predictor/workflow/document.h"

namespace mosa::predict {
namespace {

constexpr std::string_view kNodes = "nodes";
constexpr std::string_view kFrequency = "frequency";

bool IsOfBytes(std::string_view name) {
  return name == "chunk" || name == "store" || name == "memory";
}
bool IsOfWords(std::string_view name) {
  return name == "manager" || name == "system" || name.starts_with("placement");
}

template <typename Whole>
bool ParseWhole(std::string_view text, Whole& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

Status Wrong(std::string_view name, std::string_view value, std::string_view what) {
  return InvalidArgumentError(fmt::format("the space: {}={}: {}", name, value, what));
}

// A configuration, with the additional properties of a point.
struct Draft {
  Point point;
  uint32_t nodes = 0;  // 0: given by `hosts`.
};

// Lower bounds and canonical forms (lower_bound.h, canonical.h) assume that all hosts are alike.
Status CheckEqualHosts(const Configuration& configuration) {
  if (configuration.unequal_hosts.empty()) return OkStatus();
  const uint32_t first = configuration.unequal_hosts.begin()->first;
  return InvalidArgumentError(
      fmt::format("the space: h{} differs from the other hosts: only 'mosa predict' supports such "
                  "a configuration; leave it out",
                  first + 1));
}

Status SetValue(std::string_view name, std::string_view value, Draft& draft) {
  if (name != kNodes && name != kFrequency) {
    MOSA_RETURN_IF_ERROR(SetField(name, value, draft.point.configuration));
    return CheckEqualHosts(draft.point.configuration);
  }
  uint32_t number = 0;
  if (!ParseWhole(value, number) || number == 0)
    return Wrong(name, value, "it must be a whole number of 1 or more");
  (name == kNodes ? draft.nodes : draft.point.frequency_mhz) = number;
  return OkStatus();
}

// Gives tasks the hosts that storage and manager leave. Fails if the configuration is impossible.
Status Finish(Draft& draft) {
  Configuration& c = draft.point.configuration;
  if (draft.nodes > 0) {
    const uint64_t taken = uint64_t{c.storage_hosts} + (c.manager_apart ? 1 : 0);
    if (taken >= draft.nodes)
      return InvalidArgumentError(fmt::format("nodes={}: {} for storage{} leave no host for tasks",
                                              draft.nodes, c.storage_hosts,
                                              c.manager_apart ? " and one for the manager" : ""));
    c.hosts = draft.nodes - static_cast<uint32_t>(taken);
  }
  return Check(c);
}

Status TooMany(std::string_view name, std::string_view values) {
  return Wrong(name, values, fmt::format("more than {} values", kSpacePointsMax));
}

// Expands "0..19" and "0..19/3"; "64K..4M" doubles.
Status AddRange(std::string_view name, std::string_view text, std::vector<std::string>& values) {
  const size_t dots = text.find("..");
  const std::string_view first = text.substr(0, dots);
  const std::string_view rest = text.substr(dots + 2);
  const size_t slash = rest.find('/');
  const std::string_view last = rest.substr(0, slash);
  if (IsOfBytes(name)) {
    const auto low = ParseBytes(first);
    const auto high = ParseBytes(last);
    if (!low.ok() || !high.ok() || *low <= 0 || *low > *high || slash != std::string_view::npos)
      return Wrong(name, text,
                   "it must be a range of sizes, such as 64K..4M, which is stepped by doubling");
    for (int64_t bytes = *low; bytes <= *high; bytes *= 2) {
      values.push_back(FormatBytes(bytes));
      if (bytes > *high / 2) break;
    }
    return OkStatus();
  }
  uint64_t low = 0, high = 0, step = 1;
  if (!ParseWhole(first, low) || !ParseWhole(last, high) || low > high ||
      (slash != std::string_view::npos && (!ParseWhole(rest.substr(slash + 1), step) || step == 0)))
    return Wrong(name, text, "it must be a range of whole numbers, such as 1..19 or 1..19/3");
  if ((high - low) / step >= kSpacePointsMax) return TooMany(name, text);
  for (uint64_t number = low;; number += step) {
    values.push_back(fmt::format("{}", number));
    if (high - number < step) return OkStatus();
  }
}

Status AddValue(std::string_view name, std::string_view text, std::vector<std::string>& values) {
  if (!IsOfWords(name) && text.find("..") != std::string_view::npos)
    return AddRange(name, text, values);
  if (values.size() >= kSpacePointsMax) return TooMany(name, text);
  values.emplace_back(text);
  return OkStatus();
}

Status CheckNames(const std::vector<Dimension>& dimensions) {
  std::set<std::string_view> names;
  for (const Dimension& dimension : dimensions) {
    if (!names.insert(dimension.name).second)
      return InvalidArgumentError(fmt::format(
          "the space: '{}' occurs twice: give all of its values at once", dimension.name));
    if (dimension.values.empty())
      return InvalidArgumentError(fmt::format("the space: '{}' has no value", dimension.name));
  }
  if (names.contains(kNodes) && names.contains("hosts"))
    return InvalidArgumentError(
        "the space: give either 'nodes', which counts all hosts, or 'hosts', which counts those "
        "that run tasks");
  return OkStatus();
}

Status CheckCount(const std::vector<Dimension>& dimensions) {
  Wide count = 1;
  const Dimension* largest = nullptr;
  for (const Dimension& dimension : dimensions) {
    count = std::min<Wide>(count * dimension.values.size(), Wide{1} << 63);
    if (largest == nullptr || dimension.values.size() > largest->values.size())
      largest = &dimension;
  }
  if (count <= kSpacePointsMax) return OkStatus();
  return InvalidArgumentError(fmt::format(
      "the space has {} points, but at most {} can be explored: give fewer values, '{}' has {}",
      static_cast<uint64_t>(count), kSpacePointsMax, largest->name, largest->values.size()));
}

// Goes through all combinations, and records which values occur in a possible one.
class Enumerator {
 public:
  Enumerator(const std::vector<Dimension>& dimensions, const Configuration& base)
      : dimensions_(dimensions), base_(base), at_(dimensions.size(), 0) {
    for (const Dimension& dimension : dimensions) seen_.emplace_back(dimension.values.size());
  }

  Result<Space> Run() {
    do {
      MOSA_RETURN_IF_ERROR(Visit());
    } while (Advance());
    if (space_.points.empty())
      return InvalidArgumentError(
          fmt::format("the space: none of its configurations is possible: {}", space_.why));
    for (size_t d = 0; d < dimensions_.size(); ++d)
      for (size_t v = 0; v < seen_[d].size(); ++v)
        if (!seen_[d][v].possible)
          return InvalidArgumentError(
              fmt::format("the space: no configuration with {}={} is possible: {}",
                          dimensions_[d].name, dimensions_[d].values[v], seen_[d][v].why));
    return std::move(space_);
  }

 private:
  struct Seen {
    bool possible = false;
    std::string why;  // Why the first combination with this value is impossible.
  };

  Status Visit() {
    Draft draft;
    draft.point.configuration = base_;
    for (size_t d = 0; d < dimensions_.size(); ++d)
      MOSA_RETURN_IF_ERROR(SetValue(dimensions_[d].name, dimensions_[d].values[at_[d]], draft));
    const Status status = Finish(draft);
    if (status.ok()) {
      space_.points.push_back(std::move(draft.point));
    } else if (space_.impossible++ == 0) {
      space_.why = MessageOf(status);
    }
    for (size_t d = 0; d < dimensions_.size(); ++d) {
      Seen& seen = seen_[d][at_[d]];
      seen.possible = seen.possible || status.ok();
      if (!status.ok() && seen.why.empty()) seen.why = MessageOf(status);
    }
    return OkStatus();
  }
  bool Advance() {
    for (size_t d = at_.size(); d > 0; --d) {
      if (++at_[d - 1] < dimensions_[d - 1].values.size()) return true;
      at_[d - 1] = 0;
    }
    return false;
  }

  const std::vector<Dimension>& dimensions_;
  const Configuration& base_;
  std::vector<size_t> at_;
  std::vector<std::vector<Seen>> seen_;
  Space space_;
};

}  // namespace

std::string ToText(const Point& point) {
  const std::string text = ToText(point.configuration);
  return point.frequency_mhz == 0 ? text
                                  : fmt::format("{},frequency={}", text, point.frequency_mhz);
}

Result<Dimension> ParseDimension(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return InvalidArgumentError(
        fmt::format("the space: '{}' is not name=values, such as chunk=64K,1M", text));
  Dimension dimension;
  dimension.name = text.substr(0, equals);
  std::string_view rest = text.substr(equals + 1);
  while (!rest.empty()) {
    const std::string_view value = rest.substr(0, rest.find(','));
    MOSA_RETURN_IF_ERROR(AddValue(dimension.name, value, dimension.values));
    rest.remove_prefix(std::min(value.size() + 1, rest.size()));
  }
  return dimension;
}

Result<std::vector<Dimension>> ReadSpace(std::string_view text) {
  MOSA_ASSIGN_OR_RETURN(const Value root, ParseDocument(text));
  if (root.kind != Value::Kind::kMap)
    return InvalidArgumentError(
        "a space must be a map from names to values, such as chunk: [64K, 1M]");
  std::vector<Dimension> dimensions;
  for (const auto& [name, value] : root.fields) {
    Dimension dimension{name, {}};
    const bool listed = value.kind == Value::Kind::kList;
    if (!listed && !value.is_scalar())
      return InvalidArgumentError(fmt::format(
          "line {}: '{}' needs a value or a list of values, such as [64K, 1M]", value.line, name));
    for (size_t i = 0; i < (listed ? value.items.size() : 1); ++i) {
      const Value& item = listed ? value.items[i] : value;
      if (!item.is_scalar())
        return InvalidArgumentError(
            fmt::format("line {}: a value of '{}' must be one word", item.line, name));
      const Status added = AddValue(name, item.text, dimension.values);
      if (!added.ok())
        return InvalidArgumentError(fmt::format("line {}: {}", item.line, MessageOf(added)));
    }
    dimensions.push_back(std::move(dimension));
  }
  return dimensions;
}

Result<Space> Enumerate(const std::vector<Dimension>& dimensions, const Configuration& base) {
  MOSA_RETURN_IF_ERROR(CheckEqualHosts(base));
  MOSA_RETURN_IF_ERROR(CheckNames(dimensions));
  MOSA_RETURN_IF_ERROR(CheckCount(dimensions));
  return Enumerator(dimensions, base).Run();
}

}  // namespace mosa::predict
