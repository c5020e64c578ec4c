// mosa-manager: names, layouts and space of one cluster. Runs in the foreground until SIGTERM or
// SIGINT.
#include <signal.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/daemon.h"
#include "common/base/exit_code.h"
#include "common/base/log.h"
#include "common/base/text_file.h"
#include "common/base/units.h"
#include "common/base/version.h"
#include "common/model/metrics_text.h"
#include "common/observe/metrics_server.h"
#include "fmt/format.h"
#include "manager/service/manager_server.h"
#include "nlohmann/json.hpp"
#include "proto/convert/grpc_process.h"

namespace mosa::manager {
namespace {

constexpr int kKeptBytes = 128 << 20;

// The flags as given.
struct Flags {
  std::string listen = "127.0.0.1:7400";
  std::string data_directory;
  std::string cluster_name = "mosa";
  std::string secret;
  std::string chunk_size = "1M";
  uint32_t stripe_width = 0;
  std::string default_placement = "stripe";
  std::string grant_size = "64M";
  std::string inline_size = "16K";
  std::optional<uint64_t> names_max;
  std::string small_files_max, attributes_max;
  uint32_t user_share_percent = 75;
  std::string forecasts;
  bool fsync = false;
  bool restored = false;
  bool bulk_tls = false;
  std::string log_level = "info";
  std::string log_file;
  std::string ready_file;
  std::string metrics;
};

void Declare(CLI::App& app, Flags& flags) {
  app.set_config("--config", "", "Read options from FILE, one NAME = VALUE per line")
      ->check(CLI::ExistingFile);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.add_option("--listen", flags.listen, "Address to listen on, HOST:PORT; port 0: any free port")
      ->capture_default_str();
  app.add_option("--data-dir", flags.data_directory,
                 "Directory of the database, used by nothing else")
      ->required();
  app.add_option("--cluster-name", flags.cluster_name,
                 "Name of the cluster; must match an existing database")
      ->capture_default_str();
  app.add_option("--secret", flags.secret,
                 "Secret file of the role manager; required beyond loopback");
  app.add_option("--chunk-size", flags.chunk_size,
                 "Chunk size of files without a hint, a multiple of 4K up to 1G")
      ->capture_default_str();
  app.add_option("--stripe-width", flags.stripe_width,
                 "Nodes per striped file without a hint; 0: all nodes")
      ->capture_default_str();
  app.add_option("--default-placement", flags.default_placement,
                 "Placement of files without a hint: near, stripe or local")
      ->capture_default_str();
  app.add_option("--grant-size", flags.grant_size,
                 "Most space that a mount holds ahead of need on a node")
      ->capture_default_str();
  app.add_option("--inline-size", flags.inline_size,
                 "Size up to which the manager keeps a file's bytes itself; 0: none")
      ->capture_default_str();
  app.add_option("--names-max", flags.names_max,
                 "Limit of file and directory names; default: by memory and data directory");
  app.add_option("--small-files-max", flags.small_files_max,
                 "Limit of bytes of files kept by the manager; default: by data directory");
  app.add_option("--attributes-max", flags.attributes_max,
                 "Limit of bytes of extended attributes; default: by memory and data directory");
  app.add_option("--user-share", flags.user_share_percent,
                 "Percentage of each of these limits that one user other than root may use")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_option("--forecasts", flags.forecasts,
                 "File written by 'mosa forecast', for costs of reading and replicas=auto");
  app.add_flag("--bulk-tls", flags.bulk_tls,
               "Encrypt file contents between mounts and nodes, and between nodes");
  app.add_flag("--fsync", flags.fsync,
               "Sync changes to disk before acknowledging them, to survive machine crashes");
  app.add_flag("--restored", flags.restored,
               "Start from an older copy of the database: nodes put unknown objects aside");
  app.add_option("--log-level", flags.log_level, "Log level: debug, info, warning or error")
      ->capture_default_str();
  app.add_option("--log-file", flags.log_file,
                 "File to append the log to; default: standard error");
  app.add_option("--ready-file", flags.ready_file, "JSON file to write once the daemon is ready");
  app.add_option("--metrics", flags.metrics,
                 "Address to serve /metrics for Prometheus on, HOST:PORT; default: none");
}

Result<uint64_t> SizeBetween(std::string_view flag, const std::string& text, uint64_t min,
                             uint64_t max) {
  const Result<int64_t> parsed = ParseBytes(text);
  if (!parsed.ok()) {
    return InvalidArgumentError(fmt::format("{}: {}", flag, MessageOf(parsed.status())));
  }
  const auto size = static_cast<uint64_t>(*parsed);
  if (size < min || size > max) {
    return InvalidArgumentError(fmt::format("{} is {}, but must be from {} to {}", flag, text,
                                            FormatBytes(static_cast<int64_t>(min)),
                                            FormatBytes(static_cast<int64_t>(max))));
  }
  return size;
}

Result<ChosenLimits> LimitsOf(const Flags& flags) {
  constexpr uint64_t kBytesMax = uint64_t{1} << 50;
  ChosenLimits limits;
  if (flags.names_max == 0) return InvalidArgumentError("--names-max is 0, but must be above 0");
  limits.names = flags.names_max;
  if (!flags.small_files_max.empty()) {
    MOSA_ASSIGN_OR_RETURN(limits.inline_bytes,
                          SizeBetween("--small-files-max", flags.small_files_max, 0, kBytesMax));
  }
  if (!flags.attributes_max.empty()) {
    MOSA_ASSIGN_OR_RETURN(limits.attribute_bytes,
                          SizeBetween("--attributes-max", flags.attributes_max, 0, kBytesMax));
  }
  return limits;
}

// Checks every flag, without side effects.
Result<ServerOptions> OptionsOf(const Flags& flags) {
  constexpr uint64_t kKiB = 1024;
  ServerOptions options;
  options.listen = flags.listen;
  options.data_directory = flags.data_directory;
  options.fsync = flags.fsync;
  options.restored = flags.restored;
  options.bulk_tls = flags.bulk_tls;
  options.core.cluster_name = flags.cluster_name;
  options.core.stripe_width = flags.stripe_width;
  options.core.default_placement = flags.default_placement;
  if (flags.data_directory.empty()) return InvalidArgumentError("--data-dir is empty");
  if (flags.cluster_name.empty() || flags.cluster_name.size() > kNameBytesMax) {
    return InvalidArgumentError(fmt::format("--cluster-name has {} bytes, but must have 1 to {}",
                                            flags.cluster_name.size(), kNameBytesMax));
  }
  MOSA_ASSIGN_OR_RETURN(options.core.chunk_bytes, SizeBetween("--chunk-size", flags.chunk_size,
                                                              4 * kKiB, kKiB * kKiB * kKiB));
  if (options.core.chunk_bytes % (4 * kKiB) != 0) {
    return InvalidArgumentError(
        fmt::format("--chunk-size is {}, but must be a multiple of 4K", flags.chunk_size));
  }
  MOSA_ASSIGN_OR_RETURN(
      options.core.grant_bytes,
      SizeBetween("--grant-size", flags.grant_size, kKiB * kKiB, kKiB * kKiB * kKiB * kKiB));
  MOSA_ASSIGN_OR_RETURN(options.core.inline_bytes_max,
                        SizeBetween("--inline-size", flags.inline_size, 0, kInlineBytesMax));
  MOSA_ASSIGN_OR_RETURN(options.limits, LimitsOf(flags));
  options.user_share_percent = flags.user_share_percent;
  constexpr uint32_t kStripeWidthMax = 1024;
  if (flags.stripe_width > kStripeWidthMax) {
    return InvalidArgumentError(fmt::format("--stripe-width is {}, but must be at most {}",
                                            flags.stripe_width, kStripeWidthMax));
  }
  if (flags.default_placement != "stripe" && flags.default_placement != "local" &&
      flags.default_placement != "near") {
    return InvalidArgumentError(fmt::format(
        "--default-placement is '{}', but must be near, stripe or local", flags.default_placement));
  }
  MOSA_RETURN_IF_ERROR(CheckListenAddress(flags.listen, !flags.secret.empty()));
  if (!flags.secret.empty()) {
    MOSA_ASSIGN_OR_RETURN(options.secret, LoadSecret(flags.secret, {Role::kManager}));
  }
  if (!flags.forecasts.empty()) {
    MOSA_ASSIGN_OR_RETURN(const std::string text, ReadText(flags.forecasts, kForecastsBytesMax));
    const auto forecasts = ReadForecasts(text);
    if (!forecasts.ok()) {
      return InvalidArgumentError(
          fmt::format("--forecasts {}: {}", flags.forecasts, MessageOf(forecasts.status())));
    }
    options.forecasts = *forecasts;
  }
  return options;
}

int Fail(const Status& status) { return FailProgram("mosa-manager", status); }

int Run(const Flags& flags) {
  const Result<ServerOptions> options = OptionsOf(flags);
  if (!options.ok()) return Fail(options.status());
  const Result<LogLevel> level = ParseLogLevel(flags.log_level);
  if (!level.ok()) return Fail(level.status());
  const Status log = OpenLog({.program = "mosa-manager", .level = *level, .file = flags.log_file});
  if (!log.ok()) return Fail(log);

  const sigset_t signals = BlockEndSignals();
  umask(077);
  TuneMalloc(kKeptBytes);

  Result<std::unique_ptr<ManagerServer>> server = ManagerServer::Start(*options);
  if (!server.ok()) return Fail(server.status());
  LogInfo("cluster {} is served at {}", options->core.cluster_name, (*server)->address());
  auto metrics = ServeMetrics(flags.metrics, [&manager = **server] {
    return MetricsText(manager.Residence()) + MetricsText("manager", manager.Limits());
  });
  if (!metrics.ok()) return Fail(metrics.status());
  const Status ready = WriteReadyFile(flags.ready_file, {{"address", (*server)->address()}});
  if (!ready.ok()) return Fail(ready);
  int signal_number = 0;
  sigwait(&signals, &signal_number);
  LogInfo("stopping on signal {}", signal_number);
  *metrics = nullptr;
  (*server)->Stop();
  return 0;
}

}  // namespace
}  // namespace mosa::manager

int main(int argc, char** argv) {
  mosa::PrepareGrpcProcess();
  CLI::App app("Run the manager of a Mosa cluster, which keeps its names, layouts and space");
  app.set_version_flag("--version", mosa::VersionLine());
  mosa::manager::Flags flags;
  mosa::manager::Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : mosa::ToExitCode(mosa::StatusCode::kInvalidArgument);
  }
  return mosa::manager::Run(flags);
}
