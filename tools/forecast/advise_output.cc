#include "tools/forecast/advise_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "common/base/units.h"
#include "tools/console/output.h"

namespace mosa::cli {
namespace {

using nlohmann::json;
using predict::ClassAdvice;
using predict::Deployment;
using predict::Gain;
using predict::HintClass;
using predict::HintRuleText;
using predict::RunTime;

constexpr size_t kRulesShownMax = 40;

std::string ShowInterval(const std::optional<predict::Interval<double>>& interval) {
  return interval ? fmt::format("{:.3f} to {:.3f}", interval->low, interval->high) : "-";
}

std::string ShowBytes(double bytes) {
  const std::string size = HumanBytes(static_cast<int64_t>(std::abs(bytes)));
  return bytes < 0 ? "-" + size : size;
}

// Quotes `text` for a shell.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  return quoted + "'";
}

// Quotes only text that a shell would interpret.
std::string Word(const std::string& text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_-.:=").find(c) != std::string_view::npos;
  });
  return is_plain ? text : Quoted(text);
}

std::vector<std::string> RowOf(const char* what, const RunTime& run) {
  return {what,
          fmt::format("{:.3f}", run.measured_s),
          fmt::format("{:.3f}", run.median_s),
          run.draws_failed > 0
              ? fmt::format("{}, {} fail", ShowInterval(run.interval_s), run.draws_failed)
              : ShowInterval(run.interval_s),
          ShowBytes(run.link_bytes),
          ShowBytes(run.store_bytes)};
}

void PrintRuns(const Advice& advice) {
  const predict::HintAdvice& hints = advice.hints;
  Table table({"RUN", "SECONDS", "MEDIAN", "90 % INTERVAL", "OVER THE NETWORK", "PEAK STORED"});
  table.Add(RowOf("no hints, round-robin placement of tasks (dss)", hints.unhinted));
  table.Add(RowOf("mosa run without advice", hints.by_itself));
  table.Add(RowOf("mosa run with only the hints below", hints.advised));
  table.Print();
}

void PrintKept(const Advice& advice) {
  Table table({"STAGE", "READ AS", "FILES", "SAVES S", "90 % INTERVAL", "NETWORK SAVED", "HINTS"});
  for (size_t i = 0; i < advice.classes.size(); ++i) {
    const HintClass& of = advice.classes[i];
    const ClassAdvice& each = advice.hints.classes[i];
    if (!each.kept) continue;
    table.Add({of.stage, of.use, fmt::format("{}", of.files.size()),
               fmt::format("{:.3f}", each.gain.median_s), ShowInterval(each.gain.interval_s),
               ShowBytes(each.gain.link_bytes),
               of.alternatives[each.alternative].text +
                   (each.reason.empty() ? "" : fmt::format(" ({})", each.reason))});
  }
  table.Print();
}

void PrintLeftOut(const Advice& advice) {
  Table table({"STAGE", "READ AS", "FILES", "WOULD SAVE S", "90 % INTERVAL", "HINTS", "WHY NOT"});
  for (size_t i = 0; i < advice.classes.size(); ++i) {
    const HintClass& of = advice.classes[i];
    const ClassAdvice& each = advice.hints.classes[i];
    if (each.kept) continue;
    table.Add({of.stage, of.use, fmt::format("{}", of.files.size()),
               fmt::format("{:.3f}", each.gain.median_s), ShowInterval(each.gain.interval_s),
               of.alternatives[each.alternative].text, each.reason});
  }
  table.Print();
}

void PrintRules(const Advice& advice) {
  size_t count = 0;
  for (const auto& rules : advice.rules) {
    for (const HintRuleText& rule : rules) {
      if (++count > kRulesShownMax) continue;
      // A leading "-" would make it an option.
      fmt::print("  mosa hint rule add {}",
                 Quoted((rule.glob.starts_with('-') ? "./" : "") + rule.glob));
      for (const auto& [name, value] : rule.hints)
        fmt::print(" {}", Word(fmt::format("{}={}", name, value)));
      fmt::print("\n");
    }
  }
  if (count > kRulesShownMax)
    fmt::print("  and {} more: --json and --output have all\n", count - kRulesShownMax);
}

// Prints a remark if the hints as a whole do not pay.
void PrintUnhinted(const Advice& advice) {
  const predict::HintAdvice& hints = advice.hints;
  const Gain& gain = hints.over_unhinted;
  if (gain.pays) return;
  if (hints.advised.draws_failed > 0 || hints.unhinted.draws_failed > 0)
    fmt::print(
        "\nOut of {} draws, the run fails in {} with these hints and in {} without hints and "
        "locations (--system dss).\n",
        std::max(advice.draws, 1U), hints.advised.draws_failed, hints.unhinted.draws_failed);
  else if (std::abs(gain.share) < advice.share_min)
    fmt::print("\nThe run is as fast without hints and locations: use --system dss.\n");
  else
    fmt::print("\nWithout hints and locations (--system dss) the run takes {:.3f} s {}.\n",
               std::abs(gain.median_s),
               gain.median_s < 0 ? "less" : "more in the median, but not in nearly all draws");
}

void PrintHints(const Advice& advice) {
  bool kept = false, left_out = false;
  for (const ClassAdvice& each : advice.hints.classes) (each.kept ? kept : left_out) = true;
  if (kept) {
    fmt::print("\nHints that pay, and what each saves on top of the others:\n");
    PrintKept(advice);
    fmt::print("\nThe same as rules, to be run in the run's directory:\n");
    PrintRules(advice);
  } else {
    fmt::print("\nNo hint pays.\n");
  }
  if (left_out) {
    fmt::print("\nLeft out:\n");
    PrintLeftOut(advice);
  }
  PrintUnhinted(advice);
}

// The fields that differ from the present deployment, as in "hosts=2,chunk=4M".
std::string DifferenceText(const predict::Configuration& configuration,
                           const predict::Configuration& as_is) {
  const std::string text = predict::ToText(configuration), other = predict::ToText(as_is);
  std::string difference;
  // Both name the same fields in the same order.
  for (size_t at = 0, other_at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const size_t other_end = std::min(other.find(',', other_at), other.size());
    if (text.compare(at, end - at, other, other_at, other_end - other_at) != 0)
      difference += (difference.empty() ? "" : ",") + text.substr(at, end - at);
    at = end + 1;
    other_at = other_end + 1;
  }
  return difference.empty() ? text : difference;
}

std::vector<std::string> RowOf(const std::string& what, const Deployment& deployment,
                               const predict::Configuration& as_is) {
  return {what,
          fmt::format("{:.3f}", deployment.run.median_s),
          ShowInterval(deployment.run.interval_s),
          fmt::format("{:.4f}", deployment.node_hours),
          fmt::format("{:.3f}", deployment.over_as_is.median_s),
          ShowInterval(deployment.over_as_is.interval_s),
          DifferenceText(deployment.configuration, as_is)};
}

void PrintDeployments(const Advice& advice) {
  const predict::DeploymentAdvice& deployments = advice.deployments;
  const bool pays = deployments.best.over_as_is.pays;
  fmt::print("\n{} configurations compared, with these hints:\n", advice.points);
  Table table(
      {"", "MEDIAN", "90 % INTERVAL", "NODE-HOURS", "SAVES S", "90 % INTERVAL", "CONFIGURATION"});
  table.Add(RowOf("present", deployments.as_is, advice.configuration));
  if (pays) table.Add(RowOf("fastest", deployments.best, advice.configuration));
  for (const Deployment& each : deployments.cheaper)
    table.Add(RowOf("cheaper", each, advice.configuration));
  table.Print();
  if (!pays) fmt::print("None is faster than the present deployment.\n");
  if (!deployments.cheaper.empty())
    fmt::print(
        "The cheaper ones are as fast as the fastest within the uncertainty of the prediction.\n");
}

json ToJson(const std::optional<predict::Interval<double>>& interval) {
  return interval ? json{interval->low, interval->high} : json();
}

json ToJson(const RunTime& run) {
  return {{"turnaround_s", run.measured_s},
          {"turnaround_median_s", run.median_s},
          {"turnaround_interval_s", ToJson(run.interval_s)},
          {"draws_failed", run.draws_failed},
          {"failure", run.failure.empty() ? json() : json(run.failure)},
          {"bytes_over_network", run.link_bytes},
          {"bytes_stored", run.store_bytes}};
}

json ToJson(const Gain& gain) {
  return {{"seconds", gain.median_s},
          {"interval_s", ToJson(gain.interval_s)},
          {"share", gain.share},
          {"bytes_over_network", gain.link_bytes},
          {"bytes_stored", gain.store_bytes},
          {"pays", gain.pays}};
}

json ToJson(const Deployment& deployment) {
  json object = ToJson(deployment.run);
  object["configuration"] = predict::ToText(deployment.configuration);
  object["node_hours"] = deployment.node_hours;
  object["gain"] = ToJson(deployment.over_as_is);
  return object;
}

json ClassToJson(const Advice& advice, size_t i) {
  const HintClass& of = advice.classes[i];
  const ClassAdvice& each = advice.hints.classes[i];
  json object = {{"stage", of.stage},
                 {"use", of.use},
                 {"files", of.files.size()},
                 {"bytes", of.bytes},
                 {"hints", of.alternatives[each.alternative].text},
                 {"gain", ToJson(each.gain)},
                 {"reason", each.reason.empty() ? json() : json(each.reason)}};
  if (!each.kept) return object;
  object["rules"] = json::array();
  for (const HintRuleText& rule : advice.rules[i])
    object["rules"].push_back({{"glob", rule.glob}, {"hints", rule.hints}});
  return object;
}

}  // namespace

void PrintAdvice(const Advice& advice) {
  PrintRuns(advice);
  PrintHints(advice);
  PrintDeployments(advice);
  fmt::print("{} simulations in {:.1f} s.\n", advice.simulations, advice.seconds);
}

json ToJson(const Advice& advice) {
  json root = {{"workflow", advice.workflow},
               {"configuration", predict::ToText(advice.configuration)},
               {"draws", advice.draws},
               {"simulations", advice.simulations},
               {"seconds", advice.seconds},
               {"runs",
                {{"dss", ToJson(advice.hints.unhinted)},
                 {"by_itself", ToJson(advice.hints.by_itself)},
                 {"advised", ToJson(advice.hints.advised)}}},
               {"gain_over_dss", ToJson(advice.hints.over_unhinted)},
               {"gain_over_by_itself", ToJson(advice.hints.over_by_itself)},
               {"hints", json::array()},
               {"left_out", json::array()}};
  for (size_t i = 0; i < advice.classes.size(); ++i)
    root[advice.hints.classes[i].kept ? "hints" : "left_out"].push_back(ClassToJson(advice, i));
  json cheaper = json::array();
  for (const Deployment& each : advice.deployments.cheaper) cheaper.push_back(ToJson(each));
  root["deployments"] = {{"points", advice.points},
                         {"as_is", ToJson(advice.deployments.as_is)},
                         {"best", ToJson(advice.deployments.best)},
                         {"cheaper", std::move(cheaper)}};
  return root;
}

}  // namespace mosa::cli
