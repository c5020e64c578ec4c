#include "predictor/compare/sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/base/units.h"

namespace mosa::predict {
namespace {

// Suspects whose shares differ by less than this cannot be told apart.
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
      return fmt::format("Tasks of stage '{}' took {} on average, predicted {}", cell.name, seconds,
                         predicted);
    case Level::kStart:
      return fmt::format("Tasks of stage '{}' started {} later than they could have, predicted {}",
                         cell.name, seconds, predicted);
    case Level::kHost:
      return fmt::format("Tasks on host {} took {}, at the pace of other hosts {}", cell.name,
                         seconds, predicted);
    default:
      return fmt::format("Task '{}' took {}, predicted {}", cell.name, seconds, predicted);
  }
}

// How much slower the suspect is.
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
      return fmt::format("{:+.1f} ms per file", blame.factor * 1e3);
    case Part::kLaunch:
      return fmt::format("{:+.1f} ms per task", blame.factor * 1e3);
    default:
      break;
  }
  return fmt::format("{:+.1f} ms per MiB", blame.factor * static_cast<double>(kMiB) * 1e3);
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
    return Capital(fmt::format("{}: {} (its use explains {} of these tasks' deviation).",
                               Describe(best.suspect), best.evidence, share));
  if (!Explains(blamed))
    return fmt::format("No single part explains half of the deviation: the best, {}, explains {}.",
                       Describe(best.suspect), share);
  const std::string requests =
      best.of_requests
          ? fmt::format(", and {:.0f} % of the requests' excess time", *best.of_requests * 100)
          : "";
  std::string text = fmt::format("{} explains {} of the deviation{}, {}", Describe(best.suspect),
                                 share, requests, HowMuch(best, facts));
  std::string rivals;
  for (size_t i = 1; i < blamed.size() && i <= kRivalsMax; ++i) {
    if (blamed[i].of_requests.has_value() != best.of_requests.has_value() ||
        blamed[i].weight() < best.weight() - kExplainedAlike)
      break;
    rivals += fmt::format("{}{}", rivals.empty() ? "" : ", ", Describe(blamed[i].suspect));
  }
  if (!rivals.empty()) text += fmt::format("; these tasks cannot tell it apart from: {}", rivals);
  return Capital(text + ".");
}

bool IsComputing(const Anomaly& anomaly) {
  if (!anomaly.slower || anomaly.blamed.empty()) return false;
  const Part part = anomaly.blamed.front().suspect.part;
  return part == Part::kComputing || part == Part::kProcessor || part == Part::kHost;
}

std::string WhatIsUsual(const OwnSeconds& own) {
  return own.is_beside_runs() ? "that of runs that took as long as predicted"
                              : "the workload's runtime";
}

// Says what used the processors: the tasks themselves, other work, or nothing.
std::string SayProcessors(const Anomaly& anomaly, const AnomalyFacts& facts) {
  std::string said;
  if (facts.others && facts.others->busy && anomaly.slower)
    said = fmt::format(
        " Other work used {:.0f} % of the processors: {}.", facts.others->share * 100,
        facts.beside_p ? fmt::format("only differences between hosts in the same runs count, which "
                                     "are chance in {:.1g} of such runs",
                                     *facts.beside_p)
                       : std::string("the deviation is larger than that explains, or other hosts "
                                     "or a part's own work or bytes confirm it"));
  if (!facts.own || facts.own->usual_s <= 0 || !IsComputing(anomaly)) return said;
  if (ComputeLonger(*facts.own, facts.others ? facts.others->share : 0))
    said += fmt::format(" The tasks' own processor time is {:.2f} times {}: they compute longer.",
                        facts.own->times(), WhatIsUsual(*facts.own));
  else if (facts.others && !facts.others->busy)
    said += fmt::format(
        " The tasks' own processor time is {:.2f} times {}, and other work used {:.0f} % of the "
        "processors: tasks wait, but not for processors that other work uses.",
        facts.own->times(), WhatIsUsual(*facts.own), facts.others->share * 100);
  return said;
}

// Replaces what the suspect suggests to look at first.
std::string OpenFirstByProcessors(const Anomaly& anomaly, const AnomalyFacts& facts) {
  if (!facts.own || facts.own->usual_s <= 0 || !IsComputing(anomaly)) return "";
  const bool everywhere = anomaly.blamed.front().suspect.part == Part::kComputing;
  if (ComputeLonger(*facts.own, facts.others ? facts.others->share : 0))
    return everywhere ? "the workload's runtimes: 'mosa trace workload' of this run shows how long "
                        "tasks compute"
                      : "";
  return everywhere && facts.others && !facts.others->busy
             ? "a CPU quota of the tasks' cgroups ('cpu.max', and 'nr_throttled' in 'cpu.stat'), "
               "and the processors' frequency"
             : "";
}

// How the placement of files differs from the prediction.
std::string Deployed(const AnomalyFacts& facts) {
  if (const ComparedBytes* bytes = facts.misplaced)
    return fmt::format(
        "Stage '{}' read or wrote {} on other nodes, predicted {} to {}: files lie elsewhere than "
        "predicted.",
        bytes->name, Bytes(bytes->measured), Bytes(bytes->drawn.low), Bytes(bytes->drawn.high));
  if (const ComparedBytes* node = facts.fuller)
    return fmt::format(
        "{} of the tasks' output lie on {}, predicted {} to {}: files lie elsewhere than "
        "predicted.",
        Bytes(node->measured), node->name, Bytes(node->drawn.low), Bytes(node->drawn.high));
  return "";
}

}  // namespace

bool BlamesHost(const std::vector<Blame>& blamed, const std::string& host) {
  if (!Explains(blamed) || blamed.front().suspect.host != host) return false;
  if (!blamed.front().evidence.empty()) return true;
  return std::ranges::none_of(blamed, [&](const Blame& blame) {
    return blame.suspect.host.empty() &&
           blame.of_requests.has_value() == blamed.front().of_requests.has_value() &&
           blame.weight() >= blamed.front().weight() - kExplainedAlike;
  });
}

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
      return "moving bytes in mounts or storage nodes, on all hosts";
    case Part::kManager:
      return "the manager";
    case Part::kLaunch:
      return "the start of tasks, on all hosts";
    case Part::kMount:
      return fmt::format("the mount of {}", suspect.host);
    case Part::kPlaces:
      return "where files lie";
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
          "{}: 'free' and /proc/vmstat there (whether the kernel lacks memory for pages, and what "
          "uses it), then who else writes the files that are read there, and whether a trace with "
          "--cold is running",
          host);
    case Part::kComputing:
      return "the machines' load during the runs ('top', /proc/pressure/cpu): what else ran there; "
             "then the workload's runtimes: 'mosa trace workload' of this run shows how long tasks "
             "compute";
    case Part::kNetwork:
      return "the switch between the hosts; then 'mosa identify' again: whether links have changed";
    case Part::kMounts:
      return "'mosa stat MOUNT': whether the kernel reads and writes directly, and if not, why";
    case Part::kManager:
      return "the manager's host: 'top' there, then the manager's log";
    case Part::kLaunch:
      return "one task, started by hand in a mount: how long its program takes to start";
    case Part::kMount:
      return fmt::format("{}: the log of its mount, then 'mosa stat' of the mount and 'top' there",
                         host);
    case Part::kPlaces:
      return "'mosa where' and 'mosa hint explain' of the stage's files: a rule or a hint has put "
             "them "
             "there, or has set the size of their chunks";
  }
  return "";
}

std::string SayOtherChunks(const std::vector<ChunkShare>& chunks) {
  const ChunkShare& most =
      *std::max_element(chunks.begin(), chunks.end(), [](const ChunkShare& a, const ChunkShare& b) {
        return a.measured - a.predicted < b.measured - b.predicted;
      });
  return fmt::format(
      "{:.0f} % of all bytes are in chunks of {}, predicted {:.0f} %: this is not the predicted "
      "deployment; 'mosa hint explain' of a file shows what set its chunk size; if that is "
      "intended, predict with --config chunk={} or with the --rules of the run",
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
      others_s.empty() ? ""
                       : fmt::format("; the other runs took {:.3f} to {:.3f} s", *least, *most);
  return fmt::format(
      "{} alone was off: {}{}; this is not an anomaly unless it persists: make another run", run,
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
      fmt::format("), in {} of {} run{}, since {}: at most {} of the workflow's predicted time.",
                  anomaly.shown_in.size(), anomaly.judged, anomaly.judged == 1 ? "" : "s",
                  anomaly.since, percent(anomaly.effect_share));
  anomaly.cause = Deployed(facts);
  const std::string blamed =
      facts.waits ? "The time is lost between tasks, not in them." : Blamed(anomaly, facts);
  if (!anomaly.cause.empty() && !blamed.empty()) anomaly.cause += " ";
  anomaly.cause += blamed;
  if (!facts.waits) anomaly.cause += SayProcessors(anomaly, facts);
  if (facts.waits) {
    anomaly.open_first =
        "the machine of 'mosa run' ('top' there), which starts tasks one after the other; then "
        "'placed' in the run record: which hosts tasks waited for";
    return;
  }
  if (facts.misplaced != nullptr || facts.fuller != nullptr) {
    anomaly.open_first =
        "'mosa where' and 'mosa hint explain' for that stage's files: which nodes hold them, and "
        "which hint placed them there";
  } else if (!Explains(anomaly.blamed)) {
    anomaly.open_first =
        "the output of the tasks (the record's 'stdout' and 'stderr'), then a trace of one run "
        "('mosa trace run')";
  } else if (!anomaly.slower) {
    anomaly.open_first =
        "the platform file: run 'mosa identify' again; the platform was slower when it was "
        "measured, or the tasks do less than the workload says";
  } else if (const std::string by_processors = OpenFirstByProcessors(anomaly, facts);
             !by_processors.empty()) {
    anomaly.open_first = by_processors;
  } else {
    anomaly.open_first = OpenFirst(anomaly.blamed.front().suspect);
  }
}

}  // namespace mosa::predict
