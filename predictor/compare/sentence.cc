#include "predictor/compare/sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/base/units.h"

namespace mosa::predict {
namespace {

// A suspect that explains nearly as much cannot be told apart.
constexpr double kExplainedAlike = 0.05;
constexpr size_t kRivalsMax = 3;

std::string Bytes(double bytes) { return HumanBytes(static_cast<int64_t>(bytes)); }

std::string Took(const Anomaly& anomaly, const CellName& cell) {
  const std::string seconds = fmt::format("{:.3f} s", anomaly.measured_s);
  const std::string predicted = fmt::format("{:.3f} s", anomaly.predicted_s);
  switch (cell.level) {
    case Level::kWorkflow:
      return fmt::format("The workflow took {}, predicted {}", seconds, predicted);
    case Level::kStage:
      return fmt::format("Stage '{}' took {}, predicted {}", cell.name, seconds, predicted);
    case Level::kTasks:
      return fmt::format("A task of stage '{}' took {} in the mean, predicted {}", cell.name,
                         seconds, predicted);
    case Level::kStart:
      return fmt::format("A task of stage '{}' could have started {} before it did, predicted {}",
                         cell.name, seconds, predicted);
    case Level::kHost:
      return fmt::format("Tasks on host {} took {}, by the same stages' elsewhere {}", cell.name,
                         seconds, predicted);
    default:
      return fmt::format("Task '{}' took {}, predicted {}", cell.name, seconds, predicted);
  }
}

// By how much the suspect is off.
std::string HowMuch(const Blame& blame, const AnomalyFacts& facts) {
  switch (blame.suspect.part) {
    case Part::kHost:
    case Part::kProcessor:
    case Part::kComputing:
      return fmt::format("{:.2f} times as long as {}", std::max(0.0, 1 + blame.factor),
                         facts.beside_others ? "elsewhere" : "predicted");
    case Part::kLink:
    case Part::kNetwork: {
      const auto rate = static_cast<double>(facts.link_bytes_per_second);
      if (rate <= 0 || blame.factor < 0) break;
      return fmt::format("as if it carried {}/s, not {}/s", Bytes(1 / (1 / rate + blame.factor)),
                         Bytes(rate));
    }
    case Part::kManager:
      return fmt::format("{:+.1f} ms for each file", blame.factor * 1e3);
    case Part::kLaunch:
      return fmt::format("{:+.1f} ms for each task", blame.factor * 1e3);
    default:
      break;
  }
  return fmt::format("{:+.1f} ms for each MiB", blame.factor * static_cast<double>(kMiB) * 1e3);
}

std::string Capital(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string Blamed(const Anomaly& anomaly, const AnomalyFacts& facts) {
  const auto& blamed = anomaly.blamed;
  if (blamed.empty()) return "";
  const Blame& best = blamed.front();
  const std::string share = fmt::format("{:.0f} %", best.explained * 100);
  if (!best.evidence.empty() && best.explained <= 0)
    return Capital(fmt::format("{}: {}.", Describe(best.suspect), best.evidence));
  if (!best.evidence.empty())
    return Capital(
        fmt::format("{}: {} ({} of what these tasks are off by goes with their use of "
                    "it).",
                    Describe(best.suspect), best.evidence, share));
  if (!Explains(blamed))
    return fmt::format("No part alone explains half of it: the best, {}, explains {}.",
                       Describe(best.suspect), share);
  const std::string requests =
      best.of_requests
          ? fmt::format(", and {:.0f} % of what requests stay too long", *best.of_requests * 100)
          : "";
  std::string text = fmt::format("{} explains {} of it{}, {}", Describe(best.suspect), share,
                                 requests, HowMuch(best, facts));
  std::string rivals;
  for (size_t i = 1; i < blamed.size() && i <= kRivalsMax; ++i) {
    if (blamed[i].of_requests.has_value() != best.of_requests.has_value() ||
        blamed[i].weight() < best.weight() - kExplainedAlike)
      break;
    rivals += fmt::format("{}{}", rivals.empty() ? "" : ", ", Describe(blamed[i].suspect));
  }
  if (!rivals.empty()) text += fmt::format("; not to be told apart by these tasks: {}", rivals);
  return Capital(text + ".");
}

bool IsComputing(const Anomaly& anomaly) {
  if (!anomaly.slower || anomaly.blamed.empty()) return false;
  const Part part = anomaly.blamed.front().suspect.part;
  return part == Part::kComputing || part == Part::kProcessor || part == Part::kHost;
}

std::string WhatIsUsual(const OwnSeconds& own) {
  return own.is_beside_runs() ? "those of runs that took as long as predicted"
                              : "what the workload says";
}

// Says who had the processors: the tasks themselves, others, or nobody.
std::string SayProcessors(const Anomaly& anomaly, const AnomalyFacts& facts) {
  std::string said;
  if (facts.others && facts.others->busy && anomaly.slower)
    said = fmt::format(
        " Others had {:.0f} % of the processors: {}.", facts.others->share * 100,
        facts.beside_p
            ? fmt::format("of this only that hosts differ in the same runs counts, by "
                          "chance in {:.1g} of such runs",
                          *facts.beside_p)
            : std::string("it is off by more than that explains, or beside other hosts, or "
                          "by a part's own work or bytes"));
  if (!facts.own || facts.own->usual_s <= 0 || !IsComputing(anomaly)) return said;
  if (ComputeLonger(*facts.own, facts.others ? facts.others->share : 0))
    said += fmt::format(" Tasks' own processor seconds are {:.2f} times {}: they compute longer.",
                        facts.own->times(), WhatIsUsual(*facts.own));
  else if (facts.others && !facts.others->busy)
    said += fmt::format(
        " Tasks' own processor seconds are {:.2f} times {}, and others had {:.0f} % of the "
        "processors: tasks wait for what others do not take.",
        facts.own->times(), WhatIsUsual(*facts.own), facts.others->share * 100);
  return said;
}

// Instead of what is looked at first of the suspect.
std::string OpenFirstByProcessors(const Anomaly& anomaly, const AnomalyFacts& facts) {
  if (!facts.own || facts.own->usual_s <= 0 || !IsComputing(anomaly)) return "";
  const bool everywhere = anomaly.blamed.front().suspect.part == Part::kComputing;
  if (ComputeLonger(*facts.own, facts.others ? facts.others->share : 0))
    return everywhere
               ? "the workload's runtimes: 'mosa trace workload' of this run says what tasks "
                 "compute"
               : "";
  return everywhere && facts.others && !facts.others->busy
             ? "a quota of the tasks' cgroups ('cpu.max', and 'nr_throttled' in 'cpu.stat'), and "
               "the processors' frequency"
             : "";
}

// What is not there as it was predicted.
std::string Deployed(const AnomalyFacts& facts) {
  if (const ComparedBytes* bytes = facts.misplaced)
    return fmt::format(
        "Stage '{}' found or put {} on other nodes, predicted {} to {}: files lie elsewhere.",
        bytes->name, Bytes(bytes->measured), Bytes(bytes->drawn.low), Bytes(bytes->drawn.high));
  if (const ComparedBytes* node = facts.fuller)
    return fmt::format("Of what tasks wrote {} lie on {}, predicted {} to {}: files lie elsewhere.",
                       Bytes(node->measured), node->name, Bytes(node->drawn.low),
                       Bytes(node->drawn.high));
  return "";
}

}  // namespace

bool Explains(const std::vector<Blame>& blamed) {
  return !blamed.empty() &&
         (!blamed.front().evidence.empty() ||
          std::max(blamed.front().explained, blamed.front().weight()) >= kExplainedMin);
}

std::string Describe(const Suspect& suspect) {
  switch (suspect.part) {
    case Part::kHost:
      return fmt::format("host {}", suspect.host);
    case Part::kProcessor:
      return fmt::format("the processor of {}", suspect.host);
    case Part::kLink:
      return fmt::format("the link of {}", suspect.host);
    case Part::kNode:
      return fmt::format("the storage node of {}", suspect.host);
    case Part::kPageCache:
      return fmt::format("the page cache of {}", suspect.host);
    case Part::kComputing:
      return "computing on all hosts";
    case Part::kNetwork:
      return "the network between all hosts";
    case Part::kMounts:
      return "what mounts or storage nodes do with bytes, on all hosts";
    case Part::kManager:
      return "the manager";
    case Part::kLaunch:
      return "the start of tasks, on all hosts";
  }
  return "";
}

std::string OpenFirst(const Suspect& suspect) {
  const std::string& host = suspect.host;
  switch (suspect.part) {
    case Part::kHost:
      return fmt::format(
          "{}: 'top' there (what else runs, stolen time), then the logs of its mount and storage "
          "node",
          host);
    case Part::kProcessor:
      return fmt::format("{}: 'top' there: what else runs, stolen time, the processor's frequency",
                         host);
    case Part::kLink:
      return fmt::format(
          "{}: 'ip -s link' and 'tc -s qdisc' there (rate, drops, errors), then the switch's port",
          host);
    case Part::kNode:
      return fmt::format("{}: the log of its storage node, and whether its RAM disk swaps ('free')",
                         host);
    case Part::kPageCache:
      return fmt::format(
          "{}: 'free' and /proc/vmstat there (whether the kernel lacks memory for pages, and who "
          "has it), then who else writes the files that are read there, and whether a trace is on "
          "that is --cold",
          host);
    case Part::kComputing:
      return "the machines' load in the runs ('top', /proc/pressure/cpu): what else ran there; "
             "then "
             "the workload's runtimes: 'mosa trace workload' of this run says what tasks compute";
    case Part::kNetwork:
      return "the switch between the hosts; then 'mosa identify', whether links are as they were";
    case Part::kMounts:
      return "'mosa stat MOUNT': whether the kernel reads and writes by itself, and why not";
    case Part::kManager:
      return "the manager's host: 'top' there, then the manager's log";
    case Part::kLaunch:
      return "one task by hand in a mount: how long its program takes to start";
  }
  return "";
}

std::string SayOtherChunks(const std::vector<ChunkShare>& chunks) {
  const ChunkShare& most =
      *std::max_element(chunks.begin(), chunks.end(), [](const ChunkShare& a, const ChunkShare& b) {
        return a.measured - a.predicted < b.measured - b.predicted;
      });
  return fmt::format(
      "{:.0f} % of all bytes are in chunks of {}, predicted {:.0f} %: it is another deployment "
      "than "
      "the predicted; 'mosa hint explain' of a file tells who said so, and if it is meant, predict "
      "it with --config chunk={}, or with its --rules",
      most.measured * 100, Bytes(static_cast<double>(most.chunk_bytes)), most.predicted * 100,
      most.chunk_bytes);
}

std::string SayOdd(const std::string& run, const CellName& cell, double measured_s,
                   double predicted_s, const std::vector<double>& others_s) {
  Anomaly odd;
  odd.measured_s = measured_s;
  odd.predicted_s = predicted_s;
  const auto [least, most] = std::minmax_element(others_s.begin(), others_s.end());
  const std::string others =
      others_s.empty() ? "" : fmt::format("; the other runs {:.3f} to {:.3f} s", *least, *most);
  return fmt::format(
      "{} alone was off: {}{}; it is no anomaly unless it persists: make another run", run,
      Took(odd, cell), others);
}

void Explain(const AnomalyFacts& facts, Anomaly& anomaly) {
  const ComparedCell& cell = *facts.cell;
  const auto percent = [](double share) { return fmt::format("{:+.0f} %", share * 100); };
  anomaly.sentence = fmt::format(
      "{} ({}", Took(anomaly, cell.cell),
      percent((anomaly.measured_s + kSmallSeconds) / (anomaly.predicted_s + kSmallSeconds) - 1));
  anomaly.sentence += fmt::format(", 95 %: {} to {}", percent(anomaly.residual_share_interval.low),
                                  percent(anomaly.residual_share_interval.high));
  anomaly.sentence +=
      fmt::format("), in {} of {} run{}, since {}: {} of the workflow's predicted time at most.",
                  anomaly.shown_in.size(), anomaly.judged, anomaly.judged == 1 ? "" : "s",
                  anomaly.since, percent(anomaly.effect_share));
  anomaly.cause = Deployed(facts);
  const std::string blamed =
      facts.waits ? "It lies between tasks, not in them." : Blamed(anomaly, facts);
  if (!anomaly.cause.empty() && !blamed.empty()) anomaly.cause += " ";
  anomaly.cause += blamed;
  if (!facts.waits) anomaly.cause += SayProcessors(anomaly, facts);
  if (facts.waits) {
    anomaly.open_first =
        "the machine of 'mosa run' ('top' there): it hands out tasks one after the other; then the "
        "run record's 'placed': for which hosts tasks have waited";
    return;
  }
  if (facts.misplaced != nullptr || facts.fuller != nullptr) {
    anomaly.open_first =
        "'mosa where' and 'mosa hint explain' of that stage's files: on which nodes they lie, and "
        "who said so";
  } else if (!Explains(anomaly.blamed)) {
    anomaly.open_first =
        "what the tasks printed (the record's 'stdout' and 'stderr'), then a trace of one run "
        "('mosa trace run')";
  } else if (!anomaly.slower) {
    anomaly.open_first =
        "the platform file: 'mosa identify' again; it was slower when that was measured, or the "
        "workload says more than tasks do";
  } else if (const std::string by_processors = OpenFirstByProcessors(anomaly, facts);
             !by_processors.empty()) {
    anomaly.open_first = by_processors;
  } else {
    anomaly.open_first = OpenFirst(anomaly.blamed.front().suspect);
  }
}

}  // namespace mosa::predict
