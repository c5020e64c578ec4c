#include "tools/stage/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "common/base/clock.h"
#include "common/base/units.h"
#include "common/model/hint_values.h"
#include "tools/cluster/process.h"
#include "tools/console/output.h"
#include "tools/console/xattr.h"
#include "tools/stage/plan.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kNamedInRefusal = 3;
constexpr size_t kFailuresShownMax = 20;

bool IsStore(const std::string& mount_point) { return MosaAttribute(mount_point, "mount").ok(); }

std::string Size(uint64_t bytes) { return HumanBytes(static_cast<int64_t>(bytes)); }

// The cluster on this machine that the mount belongs to, or this mount alone.
void ChooseCluster(CopyRequest& options) {
  if (!options.hosts.mount.empty()) return;
  const std::string clusters =
      fs::absolute(options.manager.cluster.directory).lexically_normal() / "";
  const std::string& mount = options.request.mount_point;
  if (mount.starts_with(clusters)) {
    const std::string below = mount.substr(clusters.size());
    options.manager.cluster.name = below.substr(0, below.find('/'));
  } else if (!options.request.unstaged) {
    options.hosts.mount = mount;
  }
  options.hosts.cluster = options.manager.cluster.name;
  options.hosts.cluster_directory = options.manager.cluster.directory;
}

// Finds which end is the store, and checks that the other one is not.
Status FindEnds(CopyRequest& options) {
  StageRequest& request = options.request;
  std::error_code error;
  fs::path real = fs::weakly_canonical(fs::absolute(options.paths.back(), error), error);
  if (error) return NotFoundError(fmt::format("{}: {}", options.paths.back(), error.message()));
  if (!real.has_filename()) real = real.parent_path();
  request.target = real;
  request.sources.assign(options.paths.begin(), options.paths.end() - 1);
  if (request.sources.empty() != request.unstaged)
    return InvalidArgumentError(request.unstaged
                                    ? "--unstaged chooses the files: name only where they go"
                                    : "name at least one source, and where it goes");
  // Other programs would make a file of that name.
  const std::string_view last = options.paths.back();
  const bool is_directory = last.ends_with('/') || last.ends_with("/.");
  if (request.sources.size() == 1 && !is_directory &&
      fs::is_regular_file(request.sources.front(), error) && !fs::exists(real, error))
    return NotFoundError(
        fmt::format("there is no directory {0}: to make it and stage the file into it, write {0}/",
                    options.paths.back()));
  MOSA_ASSIGN_OR_RETURN(const MountedPath target, FindMountOfNew(request.target));
  if (request.out == IsStore(target.mount_point))
    return InvalidArgumentError(
        request.target + (request.out
                              ? " is on a Mosa mount itself: name a directory outside of the store"
                              : " is not on a Mosa mount: name a directory in the store"));
  if (!request.out) request.mount_point = target.mount_point;
  for (const std::string& source : request.sources) {
    MOSA_ASSIGN_OR_RETURN(const MountedPath mounted, FindMount(source));
    if (request.out != IsStore(mounted.mount_point))
      return InvalidArgumentError(
          source + (request.out ? " is not on a Mosa mount: there is nothing to stage out"
                                : " is on a Mosa mount already: it needs no staging"));
    if (request.out && request.mount_point.empty()) request.mount_point = mounted.mount_point;
  }
  return OkStatus();
}

nlohmann::json ToJson(const StageRequest& request, const StageReport& report, double seconds) {
  nlohmann::json hosts = nlohmann::json::array(), failures = nlohmann::json::array();
  for (const auto& [name, copied] : report.hosts)
    hosts.push_back({{"host", name}, {"files", copied.files}, {"bytes", copied.bytes}});
  for (const StageFailure& failure : report.failures) {
    nlohmann::json item = {{"error", MessageOf(failure.status)}};
    PutBytes(item, "path", failure.path);
    failures.push_back(std::move(item));
  }
  nlohmann::json json = {{"direction", request.out ? "out" : "in"},
                         {"files", report.files},
                         {"bytes", report.bytes},
                         {"skipped", report.skipped},
                         {"hosts", std::move(hosts)},
                         {"failed", std::move(failures)},
                         {"seconds", seconds}};
  if (request.out) json["staged"] = report.marked;
  PutBytes(json, "target", request.target);
  return json;
}

void ShowHosts(const StageReport& report) {
  Table table({"HOST", "FILES", "BYTES"});
  for (const auto& [name, copied] : report.hosts)
    table.Add({name, fmt::format("{}", copied.files), Size(copied.bytes)});
  if (!report.hosts.empty()) table.Print();
}

void NamePassedOver(const StageReport& report) {
  for (size_t i = 0; i < std::min(report.passed_over.size(), kFailuresShownMax); ++i)
    fmt::print(stderr, "mosa stage: skipping {}: an interrupted run left it behind\n",
               report.passed_over[i]);
}

void Summarize(const StageReport& report, double seconds) {
  fmt::print(stderr, "Staged {}, {}, in {:.1f} s; {} of them were there already.\n",
             Counted(report.files, "file"), Size(report.bytes), seconds, report.skipped);
  NamePassedOver(report);
}

// The status of a run that has ended so. With several failures the code is of one that the user
// has to know of before he tries again.
Status StatusOf(const Status& run, const StageReport& report) {
  const size_t count = report.failures.size();
  if (count == 0) return run;
  if (count == 1 && run.ok()) return report.failures.front().status;
  StatusCode code = report.failures.front().status.code();
  for (const StatusCode grave : {StatusCode::kResourceExhausted, StatusCode::kDataLoss})
    for (const StageFailure& failure : report.failures)
      if (failure.status.code() == grave) code = grave;
  for (size_t i = 0; i < std::min(count, kFailuresShownMax); ++i)
    fmt::print(stderr, "mosa: {}\n", MessageOf(report.failures[i].status));
  if (!run.ok()) return run;
  return Status(code, fmt::format("{} files or directories could not be staged; {} could: the same "
                                  "command tries the others again",
                                  count, report.files));
}

Status RunStage(CopyRequest& options, StageReport& report) {
  MOSA_RETURN_IF_ERROR(FindEnds(options));
  ChooseCluster(options);
  // Before there are threads: it forks.
  MOSA_ASSIGN_OR_RETURN(const FoundHosts found, FindHosts(options.hosts));
  for (const std::string& name : found.silent)
    fmt::print(stderr, "mosa stage: host {} is left out: it does not answer\n", name);
  StageRequest& request = options.request;
  std::error_code error;
  if (request.mount_point.empty())
    request.mount_point = fs::canonical(found.hosts.front().mount_point, error);
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManagerOf(options.manager, request.mount_point));
  return Stage(request, found.hosts, *manager, report);
}

// How `mosa stage out` is told of the same manager.
std::string WordsFor(const ManagerChoice& choice) {
  if (!choice.address.empty())
    return fmt::format(" --mount MOUNT --manager {}{}", choice.address,
                       choice.secret.empty() ? "" : " --secret " + choice.secret);
  const bool usual = choice.cluster.directory == cluster::DefaultDirectory();
  return fmt::format(" --name {}{}", choice.cluster.name,
                     usual ? "" : " --dir " + choice.cluster.directory);
}

Status StageOutUnstaged(const ManagerChoice& choice, const std::string& target) {
  CopyRequest options;
  options.manager = choice;
  options.request.out = options.request.unstaged = true;
  options.paths = {target};
  const SystemClock clock;
  const Time begin = clock.Monotonic();
  StageReport report;
  const Status run = RunStage(options, report);
  Summarize(report, static_cast<double>((clock.Monotonic() - begin).ns) / 1e9);
  return StatusOf(run, report);
}

}  // namespace

Result<uint64_t> CheckAllStaged(const ManagerChoice& choice, const std::string& what,
                                const std::string& override) {
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(choice));
  MOSA_ASSIGN_OR_RETURN(const UnstagedFiles unstaged, manager->ListUnstaged(kNamedInRefusal));
  if (const std::string warning = WarningFor(unstaged); !warning.empty())
    fmt::print(stderr, "{}\n", warning);
  if (unstaged.files == 0) return unstaged.all_files - unstaged.kept_files;
  return FailedPreconditionError(RefusalFor(
      unstaged, what, fmt::format("mosa stage out --unstaged{} DIR", WordsFor(choice)), override));
}

Result<uint64_t> StageBeforeDown(const cluster::ClusterState& state, const ManagerChoice& choice,
                                 const std::string& stage_out, bool dry_run) {
  if (!state.complete) return uint64_t{0};
  if (!state.manager_runs())
    return FailedPreconditionError(fmt::format(
        "cluster '{}' cannot say which files of lifetime=keep are nowhere else, since its manager "
        "has ended: start it again with 'mosa cluster restart{}', or give them up with --discard",
        state.plan.name, WordsFor(choice)));
  if (!stage_out.empty() && dry_run) {
    MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(choice));
    MOSA_ASSIGN_OR_RETURN(const UnstagedFiles unstaged, manager->ListUnstaged(0));
    fmt::print(stderr, "Would copy {}, {}, to {}\n", Counted(unstaged.files, "file"),
               Size(unstaged.bytes), stage_out);
    return unstaged.all_files - unstaged.kept_files;
  }
  if (!stage_out.empty()) MOSA_RETURN_IF_ERROR(StageOutUnstaged(choice, stage_out));
  return CheckAllStaged(choice, fmt::format("cluster '{}'", state.plan.name), "--discard");
}

Status RunCopy(CopyRequest options, bool as_json) {
  for (HintValue& hint : options.request.hints) {
    if (std::find(kHintNames.begin(), kHintNames.end(), hint.name) == kHintNames.end())
      return InvalidArgumentError(
          fmt::format("'{}' is not a hint: 'mosa hint set --help' lists them", hint.name));
    MOSA_ASSIGN_OR_RETURN(hint.value, ParseHint(hint.name, false, hint.value));
  }
  const SystemClock clock;
  const Time begin = clock.Monotonic();
  const cluster::InterruptGuard guard;
  StageReport report;
  const Status run = RunStage(options, report);
  const double seconds = static_cast<double>((clock.Monotonic() - begin).ns) / 1e9;
  // What was done before it ended is done.
  if (run.ok() || report.files > 0 || !report.failures.empty()) {
    if (as_json) {
      PrintJson(ToJson(options.request, report, seconds));
      NamePassedOver(report);
    } else {
      ShowHosts(report);
      Summarize(report, seconds);
    }
  }
  return StatusOf(run, report);
}

Status ShowUnstaged(const ManagerChoice& choice, bool as_json) {
  if (!as_json) return CheckAllStaged(choice, "the store", "").status();
  MOSA_ASSIGN_OR_RETURN(const auto manager, ConnectManager(choice));
  MOSA_ASSIGN_OR_RETURN(const UnstagedFiles unstaged, manager->ListUnstaged(10'000));
  nlohmann::json first = nlohmann::json::array();
  for (const UnstagedFile& file : unstaged.first) {
    nlohmann::json item = {{"bytes", file.size_bytes}};
    PutBytes(item, "path", file.path);
    first.push_back(std::move(item));
  }
  PrintJson({{"files", unstaged.files},
             {"bytes", unstaged.bytes},
             {"first", std::move(first)},
             {"kept_files", unstaged.kept_files},
             {"all_files", unstaged.all_files},
             {"all_bytes", unstaged.all_bytes}});
  return unstaged.files == 0 ? OkStatus()
                             : FailedPreconditionError(fmt::format(
                                   "{} files of lifetime=keep are unstaged", unstaged.files));
}

}  // namespace mosa::cli
