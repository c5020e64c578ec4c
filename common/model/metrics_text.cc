#include "common/model/metrics_text.h"

#include <fmt/format.h>

#include <iterator>

#include "common/base/utf8.h"

namespace mosa {

namespace {

// Bounds are bucket limits, so the counts below them are exact: 16 us, 65 us, ..., 69 s.
constexpr int kBoundFirstLog2 = 14;
constexpr int kBoundLastLog2 = 36;
constexpr int kBoundStepLog2 = 2;

// Replaces characters that a metric's name may not have. The names come from code, not from users.
std::string MetricName(const std::string& component, const std::string& rest) {
  std::string name = fmt::format("mosa_{}_{}", component, rest);
  for (char& c : name) {
    const bool known = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (!known) c = '_';
  }
  return name;
}

// Labels are UTF-8. In a name that is not, each non-ASCII byte becomes "?".
std::string LabelValue(const std::string& text) {
  const bool is_text = IsUtf8(text);
  std::string value;
  for (const char c : text) {
    if (c == '\\' || c == '"') {
      value += '\\';
      value += c;
    } else if (c == '\n') {
      value += "\\n";
    } else {
      value += !is_text && static_cast<unsigned char>(c) >= 0x80 ? '?' : c;
    }
  }
  return value;
}

double ToSeconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

void AddRow(const std::string& name, const ResidenceRow& row, std::string& text) {
  const auto out = std::back_inserter(text);
  const std::string labels =
      fmt::format("class=\"{}\",peer=\"{}\"", LabelValue(row.name), LabelValue(row.peer));
  uint64_t below = 0;
  size_t bucket = 0;
  for (int log2 = kBoundFirstLog2; log2 <= kBoundLastLog2; log2 += kBoundStepLog2) {
    const Duration bound{int64_t{1} << log2};
    for (; DurationBucketLimit(bucket) <= bound; ++bucket) below += row.times.counts[bucket];
    fmt::format_to(out, "{}_bucket{{{},le=\"{}\"}} {}\n", name, labels,
                   ToSeconds(static_cast<uint64_t>(bound.ns)), below);
  }
  const uint64_t count = row.times.Count();
  fmt::format_to(out, "{}_bucket{{{},le=\"+Inf\"}} {}\n", name, labels, count);
  fmt::format_to(out, "{}_sum{{{}}} {}\n", name, labels, ToSeconds(row.times.sum_ns));
  fmt::format_to(out, "{}_count{{{}}} {}\n", name, labels, count);
}

}  // namespace

std::string MetricsText(const ResidenceSnapshot& snapshot) {
  std::string text;
  const auto out = std::back_inserter(text);
  const std::string requests = MetricName(snapshot.component, "request_seconds");
  fmt::format_to(out, "# HELP {} Residence time of requests, by class and peer.\n", requests);
  fmt::format_to(out, "# TYPE {} histogram\n", requests);
  for (const ResidenceRow& row : snapshot.rows) AddRow(requests, row, text);
  for (const ResidenceAmount& amount : snapshot.amounts) {
    const std::string name = MetricName(snapshot.component, amount.name);
    fmt::format_to(out, "# TYPE {0}{1} {2}\n{0}{1} {3}\n", name, amount.is_total ? "_total" : "",
                   amount.is_total ? "counter" : "gauge", amount.value);
  }
  const std::string start = MetricName(snapshot.component, "start_time_seconds");
  fmt::format_to(out, "# TYPE {0} gauge\n{0} {1:.3f}\n", start,
                 static_cast<double>(snapshot.started.ns) / 1e9);
  return text;
}

std::string MetricsText(std::string_view component, const std::vector<LimitStatus>& limits) {
  std::string text;
  const auto out = std::back_inserter(text);
  const std::string used = MetricName(std::string(component), "limit_used");
  const std::string most = MetricName(std::string(component), "limit_max");
  fmt::format_to(out, "# HELP {0} Current use of each limited resource.\n# TYPE {0} gauge\n", used);
  for (const LimitStatus& limit : limits)
    fmt::format_to(out, "{}{{limit=\"{}\"}} {}\n", used, LabelValue(limit.name), limit.used);
  fmt::format_to(out, "# HELP {0} Limit of each limited resource.\n# TYPE {0} gauge\n", most);
  for (const LimitStatus& limit : limits) {
    if (limit.limit == 0) continue;
    fmt::format_to(out, "{}{{limit=\"{}\"}} {}\n", most, LabelValue(limit.name), limit.limit);
  }
  return text;
}

}  // namespace mosa
