#include "tools/measure/bench_patterns.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/base/hash.h"
#include "tools/cluster/process.h"
#include "tools/console/output.h"
#include "tools/console/progress.h"
#include "tools/measure/bench_plan.h"
#include "tools/measure/bench_report.h"
#include "tools/measure/bench_results.h"
#include "tools/measure/bench_run.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Bench {
 public:
  Bench(const BenchPlan& plan, const PatternsRequest& options, RunPlace place,
        BenchResults& results)
      : plan_(plan), options_(options), place_(std::move(place)), results_(results) {}

  Status Run() {
    for (const Group& group : plan_.groups) total_ += group.cells.size() * plan_.repeats_min;
    Status status;
    for (const Group& group : plan_.groups) {
      status = RunGroup(group);
      if (!status.ok()) break;
    }
    bar_.End();
    const bool interrupted = cluster::InterruptGuard::Interrupted() != 0;
    // Keeps the scratch directory only after a failure, for inspection.
    if (interrupted) RemoveScratch();
    const Status saved = results_.Save(status.ok()   ? "done"
                                       : interrupted ? "interrupted"
                                                     : "failed");
    if (interrupted && !status.ok())
      return AbortedError(
          fmt::format("interrupted: run the same command again to continue with {}", options_.out));
    return status.ok() ? saved : status;
  }

 private:
  Status RunGroup(const Group& group) {
    for (size_t repeat = 0; repeat < plan_.repeats_max; ++repeat) {
      if (repeat >= plan_.repeats_min) {
        if (IsSettled(group)) return OkStatus();
        total_ += group.cells.size();
      }
      for (size_t i = 0; i < group.cells.size(); ++i) {
        // Rotates the order, so that no cell is always the first after a pause.
        const Cell& cell = group.cells[(i + repeat) % group.cells.size()];
        ++done_;
        if (results_.RunCount(cell) > repeat) continue;
        MOSA_RETURN_IF_ERROR(RunOnce(cell, repeat));
      }
    }
    return OkStatus();
  }

  bool IsSettled(const Group& group) const {
    return std::all_of(group.cells.begin(), group.cells.end(), [this](const Cell& cell) {
      return IsWithin(Summarize(results_.SecondsOf(cell, "stages")), kIntervalShare);
    });
  }

  Status RunOnce(const Cell& cell, size_t repeat) {
    const std::string name =
        fmt::format("{} {} {}", ToText(cell.pattern), ToText(cell.size), cell.name());
    bar_.Show(done_ - 1, total_, SecondsLeft(), name);
    const Time begin = clock_.Monotonic();
    // Keeps 53 bits, which readers of JSON take exactly.
    const uint64_t seed =
        HashCombine(HashCombine(options_.seed, repeat), Hash64(cell.name())) >> 11;
    auto run = RunCell(place_, cell, options_.width, seed);
    if (!run.ok())
      return Status(run.status().code(),
                    fmt::format("{}, run {}: {}", name, repeat + 1, MessageOf(run.status())));
    taken_ = taken_ + (clock_.Monotonic() - begin);
    ++taken_runs_;
    results_.AddRun(cell, *std::move(run));
    RemoveScratch();
    return results_.Save("running");
  }

  void RemoveScratch() const {
    std::error_code ignored;
    fs::remove_all(place_.scratch, ignored);
  }

  double SecondsLeft() const {
    if (taken_runs_ == 0) return 0;
    const double each = static_cast<double>(taken_.ns) / 1e9 / static_cast<double>(taken_runs_);
    return each * static_cast<double>(total_ - std::min(total_, done_ - 1));
  }

  const BenchPlan& plan_;
  const PatternsRequest& options_;
  const RunPlace place_;
  BenchResults& results_;
  const SystemClock clock_;
  ProgressBar bar_;
  size_t total_ = 0, done_ = 0;
  Duration taken_;
  size_t taken_runs_ = 0;
};

Status CheckBackend(const std::string& option, const std::string& directory) {
  if (directory.empty() || directory.find("{host}") != std::string::npos) return OkStatus();
  std::error_code error;
  if (fs::path(directory).is_absolute() && fs::is_directory(directory, error)) return OkStatus();
  return NotFoundError(
      fmt::format("{} {}: no such directory: give the absolute path of a backend directory", option,
                  directory));
}

Status CheckPlaces(const BenchPlan& plan, const PatternsRequest& options,
                   const std::vector<RunHost>& hosts) {
  MOSA_RETURN_IF_ERROR(CheckBackend("--stage-in", options.stage_in));
  MOSA_RETURN_IF_ERROR(CheckBackend("--stage-out", options.stage_out));
  for (const Group& group : plan.groups) {
    for (const Cell& cell : group.cells) {
      const auto parts = predict::MakeSynthetic({.pattern = cell.pattern,
                                                 .size = cell.size,
                                                 .scale_millionths = cell.scale_millionths,
                                                 .width = options.width,
                                                 .copies = cell.copies,
                                                 .stage_in = !options.stage_in.empty(),
                                                 .stage_out = !options.stage_out.empty(),
                                                 .compute = {}});
      const Status fits =
          CheckPlace(cell.system, hosts, options.workdir, predict::StoredBytes(parts, cell.copies));
      if (!fits.ok())
        return Status(fits.code(), fmt::format("{} {}: {}", ToText(cell.pattern), ToText(cell.size),
                                               MessageOf(fits)));
    }
  }
  return OkStatus();
}

Result<std::vector<RunHost>> FindAllHosts(PatternsRequest& options) {
  options.hosts.cluster = options.cluster.name;
  options.hosts.cluster_directory = options.cluster.directory;
  MOSA_ASSIGN_OR_RETURN(FoundHosts found, FindHosts(options.hosts));
  if (!found.silent.empty())
    return UnavailableError(
        fmt::format("host {} does not answer: bring its mount back, or leave "
                    "the host out with --hosts",
                    found.silent.front()));
  return std::move(found.hosts);
}

Status CheckNames(PatternsRequest& options, size_t hosts) {
  const fs::path workdir = options.workdir;
  if (workdir.empty() || workdir.has_parent_path() || workdir == "." || workdir == "..")
    return InvalidArgumentError(fmt::format(
        "--workdir '{}': give the name of a directory that the benchmark may create and remove",
        options.workdir));
  if (options.width == 0) options.width = static_cast<uint32_t>(hosts);
  if (options.width <= predict::kSyntheticWidthMax) return OkStatus();
  return InvalidArgumentError(fmt::format("--width {}: at most {} pipelines, readers or writers",
                                          options.width, predict::kSyntheticWidthMax));
}

json ConfigurationOf(const PatternsRequest& options, const std::vector<RunHost>& hosts) {
  json list = json::array();
  for (const RunHost& host : hosts)
    list.push_back({{"name", host.name},
                    {"mount", host.mount_point},
                    {"slots", host.slots},
                    {"link_bytes_per_second", host.link_bytes_per_second}});
  return {{"hosts", std::move(list)},
          {"width", options.width},
          {"seed", options.seed},
          {"stage_in", options.stage_in},
          {"stage_out", options.stage_out}};
}

}  // namespace

Status RunPatterns(PatternsRequest options, bool as_json) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<RunHost> hosts, FindAllHosts(options));
  options.plan.hosts = static_cast<uint32_t>(hosts.size());
  MOSA_RETURN_IF_ERROR(CheckNames(options, hosts.size()));
  MOSA_ASSIGN_OR_RETURN(const BenchPlan plan, PlanBench(options.plan));
  const cluster::InterruptGuard guard;
  const auto lock = LockRecord(options.out);
  if (!lock.ok())
    return FailedPreconditionError(fmt::format(
        "cannot write {}, or another benchmark is writing it: give another --output and --workdir",
        options.out));
  BenchResults results(options.out, ConfigurationOf(options, hosts));
  MOSA_RETURN_IF_ERROR(results.Load());
  MOSA_RETURN_IF_ERROR(CheckPlaces(plan, options, hosts));
  RunPlace place;
  place.hosts = hosts;
  if (options.hosts.mount.empty()) {
    MOSA_ASSIGN_OR_RETURN(place.meters,
                          MetersOfCluster(options.cluster.directory, options.cluster.name));
  }
  place.workdir = options.workdir;
  place.stage_in = options.stage_in;
  place.stage_out = options.stage_out;
  std::error_code error;
  place.scratch = fs::absolute(options.out, error).string() + ".run";
  place.program = fs::read_symlink("/proc/self/exe", error);
  place.held = lock->get();
  fs::remove_all(place.scratch, error);
  const Status ended = Bench(plan, options, std::move(place), results).Run();
  if (as_json) {
    PrintJson(results.ToJson(ended.ok() ? "done" : "failed"));
  } else {
    PrintTable(plan, results);
    if (options.map) PrintMaps(plan, results);
  }
  return ended;
}

}  // namespace mosa::cli
