// `mosa bench patterns`: what is asked for, checked whole before the first run; then cell by cell,
// the systems of a group in turns, so that their ratios are of the same minutes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "common/base/hash.h"
#include "tools/cluster/process.h"
#include "tools/mosa/bench.h"
#include "tools/mosa/bench_plan.h"
#include "tools/mosa/bench_progress.h"
#include "tools/mosa/bench_report.h"
#include "tools/mosa/bench_results.h"
#include "tools/mosa/bench_run.h"
#include "tools/mosa/cluster.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct PatternsOptions {
  ClusterChoice cluster;
  HostsRequest hosts;
  PlanRequest plan;
  uint32_t width = 0;  // 0: as many as hosts.
  uint64_t seed = 1;
  std::string workdir = "mosa-bench";
  std::string stage_in, stage_out;
  std::string out = "patterns.json";
  bool map = false;
};

class Bench {
 public:
  Bench(const BenchPlan& plan, const PatternsOptions& options, RunPlace place,
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
    // Only a failure leaves something to be looked at.
    if (interrupted) RemoveScratch();
    const Status saved = results_.Save(status.ok()   ? "done"
                                       : interrupted ? "interrupted"
                                                     : "failed");
    if (interrupted && !status.ok())
      return AbortedError(
          fmt::format("interrupted: the same command goes on with {}", options_.out));
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
        // Nobody is always the first after a pause.
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
    // Readers of JSON take 53 bits whole.
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
  const PatternsOptions& options_;
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
      fmt::format("{} {}: there is no such directory: give the backend's, an absolute path", option,
                  directory));
}

Status CheckPlaces(const BenchPlan& plan, const PatternsOptions& options,
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

Result<std::vector<RunHost>> FindAllHosts(PatternsOptions& options) {
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

Status CheckNames(PatternsOptions& options, size_t hosts) {
  const fs::path workdir = options.workdir;
  if (workdir.empty() || workdir.has_parent_path() || workdir == "." || workdir == "..")
    return InvalidArgumentError(fmt::format(
        "--workdir '{}': give the name of a directory that the benchmark may make and remove",
        options.workdir));
  if (options.width == 0) options.width = static_cast<uint32_t>(hosts);
  if (options.width <= predict::kSyntheticWidthMax) return OkStatus();
  return InvalidArgumentError(fmt::format("--width {}: at most {} pipelines, readers or writers",
                                          options.width, predict::kSyntheticWidthMax));
}

json ConfigurationOf(const PatternsOptions& options, const std::vector<RunHost>& hosts) {
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

Status RunBench(PatternsOptions options, const CommandLine& line) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<RunHost> hosts, FindAllHosts(options));
  options.plan.hosts = static_cast<uint32_t>(hosts.size());
  MOSA_RETURN_IF_ERROR(CheckNames(options, hosts.size()));
  MOSA_ASSIGN_OR_RETURN(const BenchPlan plan, PlanBench(options.plan));
  const cluster::InterruptGuard guard;
  const auto lock = LockRecord(options.out);
  if (!lock.ok())
    return FailedPreconditionError(
        fmt::format("{} cannot be written, or another benchmark writes it: give another --out and "
                    "--workdir",
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
  if (line.json) {
    PrintJson(results.ToJson(ended.ok() ? "done" : "failed"));
  } else {
    PrintTable(plan, results);
    if (options.map) PrintMaps(plan, results);
  }
  return ended;
}

void AddPlanOptions(CLI::App& command, PlanRequest& plan) {
  command
      .add_option("--patterns", plan.patterns,
                  "Patterns to run; default: pipeline,reduce,broadcast,scatter,gather")
      ->delimiter(',');
  command
      .add_option("--sizes", plan.sizes,
                  "File sizes of the Opportunity Study, Table 2; default: small,medium,large")
      ->delimiter(',');
  command
      .add_option("--scale", plan.scales,
                  "Factor on file sizes: 0.1 for all, large=0.02 for one of them; default: 1")
      ->delimiter(',');
  command
      .add_option("--systems", plan.systems,
                  "Comma-separated systems, as listed above; default: dss,wass,local")
      ->delimiter(',');
  command
      .add_option("--replicas", plan.replicas,
                  "Numbers of copies of the broadcast file with wass; default: 1,2,4,8,12,16,N")
      ->delimiter(',');
  command
      .add_option("--repeats", plan.repeats,
                  "Runs, MIN..MAX: until the 95 % interval of the mean is within 5 %, or MAX")
      ->capture_default_str();
}

}  // namespace

void AddBenchPatterns(CLI::App& noun, CommandLine& line) {
  auto options = std::make_shared<PatternsOptions>();
  CLI::App* command = noun.add_subcommand(
      "patterns",
      "Run synthetic workflow patterns on several stores and verify every byte\n\n"
      "  mosa bench patterns --scale 0.1 --out patterns.json\n"
      "  mosa bench patterns --patterns pipeline --systems dss,wass,path=nfs:/mnt/nfs\n"
      "  mosa bench patterns --mount /mnt/mosa --hosts a,b --exec 'ssh {host}'\n\n"
      "A system is one of the following.\n"
      "  dss            Mosa without hints and data locality\n"
      "  wass           Mosa with hints and data locality\n"
      "  local[=DIR]    a directory on each host's own file system, for pipelines only\n"
      "  path=NAME:DIR  any other mounted directory; {host} stands for the host's name\n\n"
      "Runs that --out already has are not repeated. All hosts need this program at the same\n"
      "path.");
  AddHostChoice(*command, options->cluster, options->hosts);
  command->add_option("--slots", options->hosts.slots,
                      "Tasks at a time on each host; default: a share of the cores, 1 with --exec");
  command->add_option(
      "--link", options->hosts.link,
      "Link rate for the scheduler, such as 1gbit; default: the cluster's, or 16gbit");
  AddPlanOptions(*command, options->plan);
  command->add_option("--width", options->width,
                      "Number of pipelines, readers or writers; default: the number of hosts");
  command->add_option("--stage-in", options->stage_in,
                      "Backend directory that pipelines read their input from, timed separately");
  command->add_option("--stage-out", options->stage_out,
                      "Backend directory that results are written to, timed separately");
  command->add_option("--seed", options->seed, "Seed of the generated file contents")
      ->capture_default_str();
  command
      ->add_option("--workdir", options->workdir,
                   "Directory to create and remove below each system's directory")
      ->capture_default_str();
  command
      ->add_option("--out", options->out,
                   "Results file, JSON; if it exists, the measurement continues with it")
      ->capture_default_str();
  command->add_flag("--map", options->map,
                    "Also show where each stage ran and where its files are stored");
  command->callback(
      [options, &line] { line.action = [options, &line] { return RunBench(*options, line); }; });
}

void AddBench(CLI::App& app, CommandLine& line) {
  CLI::App* noun = app.add_subcommand(
      "bench", "Benchmark stores with synthetic workflows, and check them against predictions");
  noun->require_subcommand(1);
  AddBenchPatterns(*noun, line);
  AddBenchGate(*noun, line);
  AddBenchWork(*noun, line);
}

}  // namespace mosa::cli
