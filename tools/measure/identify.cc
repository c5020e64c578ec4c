#include "tools/measure/identify.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/base/version.h"
#include "predictor/model/platform_json.h"
#include "tools/cluster/process.h"
#include "tools/console/output.h"
#include "tools/measure/identify_measure.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNotesTold = 12;

Duration OfSeconds(double seconds) { return Nanoseconds(static_cast<int64_t>(seconds * 1e9)); }

// The last tenth of the budget is for the fit.
double FitSeconds(double budget) {
  return std::clamp(budget / 10, std::min(3.0, budget / 2), 12.0);
}

// The share of the time that is left; none after a signal.
double PartLeft(Time begin, Time now, Time end) {
  if (now >= end || cluster::InterruptGuard::Interrupted() != 0) return 0;
  return static_cast<double>((end - now).ns) / static_cast<double>((end - begin).ns);
}

Status CheckOptions(const IdentifyRequest& options) {
  if (!(options.budget_seconds >= 2 && options.budget_seconds <= kIdentifyBudgetMax))
    return InvalidArgumentError(fmt::format("--budget {}: give 2 to {} seconds",
                                            options.budget_seconds, kIdentifyBudgetMax));
  if (!options.paths.empty() && !options.hosts.mount.empty())
    return InvalidArgumentError("give either --path or --mount, not both");
  if (options.paths.size() > kIdentifyHostsMax)
    return InvalidArgumentError(fmt::format("--path is given {} times: give at most {}",
                                            options.paths.size(), kIdentifyHostsMax));
  if (options.paths.size() > 1 && !options.hosts.names.empty())
    return InvalidArgumentError(
        "several --path are directories of this machine: leave out --hosts");
  std::error_code error;
  if (fs::is_directory(options.out, error))
    return FailedPreconditionError(
        fmt::format("cannot write {}: it is a directory, give --output a file in it", options.out));
  const fs::path parent = fs::absolute(options.out, error).parent_path();
  if (!fs::is_directory(parent, error) || access(parent.c_str(), W_OK) != 0)
    return FailedPreconditionError(
        fmt::format("cannot write {}: give another --output", options.out));
  return OkStatus();
}

Result<FoundHosts> FindAll(IdentifyRequest& options) {
  options.hosts.cluster = options.cluster.name;
  options.hosts.cluster_directory = options.cluster.directory;
  if (options.paths.size() == 1) options.hosts.mount = options.paths.front();
  if (options.paths.size() <= 1) return FindHosts(options.hosts);
  FoundHosts all;
  for (size_t i = 0; i < options.paths.size(); ++i) {
    HostsRequest request = options.hosts;
    request.mount = options.paths[i];
    MOSA_ASSIGN_OR_RETURN(FoundHosts found, FindHosts(request));
    found.hosts.front().name = fmt::format("path-{}", i + 1);
    all.hosts.push_back(std::move(found.hosts.front()));
  }
  return all;
}

class Scratch {
 public:
  Scratch() {
    std::string path = fs::temp_directory_path().string() + "/mosa-identify-XXXXXX";
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string Today(Time now) {
  const std::time_t seconds = now.ns / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", parts);
}

// Writes under another name first: readers see either the old file or the new one.
Status WriteFile(const std::string& path, const std::string& text) {
  const std::string temporary = fmt::format("{}.{}", path, getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0) return OkStatus();
  const int error = errno;
  std::remove(temporary.c_str());
  return FailedPreconditionError(fmt::format("cannot write {}: {}", path, strerror(error)));
}

// The most important notes come first. `rest` says where the others are.
void Tell(const std::vector<std::string>& notes, const std::string& rest) {
  for (size_t i = 0; i < std::min(notes.size(), kNotesTold); ++i)
    fmt::print(stderr, "mosa identify: {}\n", notes[i]);
  if (notes.size() > kNotesTold)
    fmt::print(stderr, "mosa identify: {} further notes are {}\n", notes.size() - kNotesTold, rest);
}

size_t MeasuredFigures(const predict::Evidence& evidence) {
  size_t measured = 0;
  for (const auto& figure : evidence.figures) measured += figure.measured ? 1 : 0;
  return measured;
}

void Summarize(const predict::Evidence& evidence, const std::string& out, double seconds) {
  size_t settled = 0;
  for (const auto& each : evidence.measurements) settled += each.settled ? 1 : 0;
  fmt::print(
      "Wrote {}: {} of {} figures from {} measurements in {:.0f} s, {} of them within 5 %.\n", out,
      MeasuredFigures(evidence), evidence.figures.size(), evidence.measurements.size(), seconds,
      settled);
}

}  // namespace

Status CheckFigures(const predict::Evidence& evidence, const IdentifyRequest& options) {
  if (MeasuredFigures(evidence) > 0) return OkStatus();
  return FailedPreconditionError(fmt::format(
      "0 of {} figures could be measured ({} measurements, --budget {}), so {} is not "
      "written: {}measure when the machines are idle",
      evidence.figures.size(), evidence.measurements.size(), options.budget_seconds, options.out,
      options.budget_seconds < kIdentifyBudgetMax
          ? fmt::format("give a larger --budget (up to {} seconds), or ", kIdentifyBudgetMax)
          : ""));
}

Status RunIdentify(IdentifyRequest options, bool as_json) {
  const SystemClock clock;
  const Time begin = clock.Monotonic();
  MOSA_RETURN_IF_ERROR(CheckOptions(options));
  const cluster::InterruptGuard guard;
  MOSA_ASSIGN_OR_RETURN(FoundHosts hosts, FindAll(options));
  const Scratch scratch;
  if (scratch.path().empty())
    return FailedPreconditionError(fmt::format("cannot make a directory below {}: {}",
                                               fs::temp_directory_path().string(),
                                               strerror(errno)));
  MeasureOptions measure;
  measure.hosts_in_all = hosts.hosts.size() + hosts.silent.size();
  measure.one_machine = options.paths.empty() && options.hosts.mount.empty();
  measure.hosts = std::move(hosts.hosts);
  if (measure.hosts.size() > options.hosts_max)
    measure.hosts.erase(measure.hosts.begin() + options.hosts_max, measure.hosts.end());
  measure.scratch = scratch.path();
  measure.until = begin + OfSeconds(options.budget_seconds - FitSeconds(options.budget_seconds));
  MOSA_ASSIGN_OR_RETURN(Measurements measured, Measure(std::move(measure)).Run());
  const Time fit_begin = clock.Monotonic();
  const Time last = begin + OfSeconds(options.budget_seconds - 0.2);
  measured.known.measured = Today(clock.Now());
  measured.known.by = fmt::format("mosa identify {}", Version());
  MOSA_ASSIGN_OR_RETURN(predict::Identified found,
                        predict::Identify(measured.known, measured.deployment, measured.findings,
                                          [&clock, fit_begin, last] {
                                            return PartLeft(fit_begin, clock.Monotonic(), last);
                                          }));
  if (cluster::InterruptGuard::Interrupted() != 0) return AbortedError("interrupted");
  predict::Evidence& evidence = found.evidence;
  evidence.notes.insert(evidence.notes.begin(), measured.direct.notes.begin(),
                        measured.direct.notes.end());
  evidence.measurements.insert(evidence.measurements.begin(), measured.direct.measurements.begin(),
                               measured.direct.measurements.end());
  if (Status enough = CheckFigures(evidence, options); !enough.ok()) {
    Tell(evidence.notes, "not shown");
    return enough;
  }
  const std::string text = predict::WritePlatform(found.platform, &evidence);
  MOSA_RETURN_IF_ERROR(WriteFile(options.out, text));
  Tell(evidence.notes, fmt::format("in {}", options.out));
  const double seconds = static_cast<double>((clock.Monotonic() - begin).ns) / 1e9;
  if (as_json)
    fmt::print("{}", text);
  else
    Summarize(evidence, options.out, seconds);
  return OkStatus();
}

}  // namespace mosa::cli
