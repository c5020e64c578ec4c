// mosa-mount: one mount of a Mosa cluster. Runs in the foreground until it is unmounted or told to
// end.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "client-sai/api/bulk_node_api.h"
#include "client-sai/api/grpc_manager_api.h"
#include "client-sai/core/rules.h"
#include "client-sai/fuse/convert.h"
#include "client-sai/fuse/kernel_session.h"
#include "client-sai/fuse/mount_point.h"
#include "client-sai/fuse/mount_process.h"
#include "client-sai/fuse/mount_residence.h"
#include "client-sai/fuse/operations.h"
#include "client-sai/fuse/to_errno.h"
#include "client-sai/sai/filesystem.h"
#include "client-sai/sai/tracing.h"
#include "common/base/clock.h"
#include "common/base/daemon.h"
#include "common/base/exit_code.h"
#include "common/base/host_identity.h"
#include "common/base/log.h"
#include "common/base/version.h"
#include "common/model/metrics_text.h"
#include "common/observe/metrics_server.h"
#include "nlohmann/json.hpp"
#include "proto/convert/credentials.h"
#include "proto/convert/grpc_process.h"
#include "proto/convert/residence.h"

namespace mosa::sai {

namespace {

// At the end, the mount waits at most this long for the disk of a trace.
constexpr Duration kTraceEndMax = Seconds(5);
constexpr const char* kProgram = "mosa-mount";

struct MountOptions {
  std::string mount_point;
  std::string manager;
  std::string node_name;
  std::string secret_path;
  bool allow_other = false;
  bool no_passthrough = false;
  uint32_t minor_max = kernel::kMinorNewest;
  uint32_t threads = 8;
  std::string log_level = "info";
  std::string log_file;
  std::string ready_file;
  std::string metrics;
};

void AddFlags(CLI::App& app, MountOptions& options) {
  app.add_option("mountpoint", options.mount_point, "Empty directory to mount on")->required();
  app.add_option("--manager", options.manager, "Address of the manager, HOST:PORT")->required();
  app.add_option("--name", options.node_name,
                 "Name of this host's storage node, for placement=local; default: none");
  app.add_option("--secret", options.secret_path,
                 "Secret file of the role mount or admin; required if the manager has a secret");
  app.add_flag(
      "--allow-other", options.allow_other,
      "Let other users access the mount; needs root or user_allow_other in /etc/fuse.conf");
  app.add_flag("--no-passthrough", options.no_passthrough,
               "Never let the kernel access local objects directly (FUSE passthrough)");
  app.add_option(
         "--fuse-minor-max", options.minor_max,
         "Newest FUSE protocol, 7.N, to agree on with a kernel whose newer features are faulty")
      ->check(CLI::Range(36U, kernel::kMinorNewest))
      ->capture_default_str();
  app.add_option("--threads", options.threads,
                 "Worker threads kept ready; more are started while all are busy")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--log-level", options.log_level, "Log level: debug, info, warning or error")
      ->capture_default_str();
  app.add_option("--log-file", options.log_file,
                 "File to append the log to; default: standard error");
  app.add_option("--ready-file", options.ready_file, "JSON file to write once the daemon is ready");
  app.add_option("--metrics", options.metrics,
                 "Address to serve /metrics for Prometheus on, HOST:PORT; default: none");
  app.set_config("--config", "", "Read options from FILE, one NAME = VALUE per line");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.footer(
      "Example:\n  mosa-mount /mnt/mosa --manager 10.0.0.1:7400 --name node3 "
      "--secret /etc/mosa/mount.pem");
}

// Checks everything that can be refused without side effects.
Status Validate(const MountOptions& options) {
  MOSA_RETURN_IF_ERROR(ParseLogLevel(options.log_level).status());
  const Status address = CheckListenAddress(options.manager, true);
  if (!address.ok() || options.manager.ends_with(":0")) {
    return InvalidArgumentError(fmt::format("--manager '{}' is not HOST:PORT", options.manager));
  }
  if (options.node_name.size() > kNameBytesMax) {
    return InvalidArgumentError(fmt::format("--name has {} bytes, at most {} are allowed",
                                            options.node_name.size(), kNameBytesMax));
  }
  return OkStatus();
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "mount";
}

Status Serve(Mount& mount, const std::string& mount_point, const MountOptions& options,
             int signals) {
  KernelSession& session = mount.session;
  Filesystem& filesystem = mount.filesystem;
  MOSA_RETURN_IF_ERROR(session.Mount(
      MountOperations(), &mount, [&filesystem](uint64_t inode, kernel::StatxOut& out) {
        const Outcome<AttributesResult> result = filesystem.GetAttributes(FileId{inode});
        if (!result.ok()) return ToErrno(result.failure());
        out = ToStatx(FileId{inode}, *result);
        return 0;
      }));
  session.StartWorkers();
  const KernelAgreement& agreement = session.agreement();
  LogInfo("mounted {} (FUSE 7.{}, passthrough {}, epoch {})", mount_point, agreement.protocol_minor,
          agreement.passthrough ? "on" : fmt::format("off: {}", agreement.passthrough_reason),
          agreement.epoch ? "on" : "off: names are looked up at each use");
  const Status read_ahead = RaiseReadAhead(mount_point, kKernelReadAheadBytes);
  if (!read_ahead.ok())
    LogInfo("the kernel's read-ahead stays at 128 KiB: {}", MessageOf(read_ahead));
  const Status ready =
      WriteReadyFile(options.ready_file, {{"mount", mount_point},
                                          {"passthrough", agreement.passthrough},
                                          {"passthrough_reason", agreement.passthrough_reason}});
  if (ready.ok()) WaitForEnd(session, signals);
  session.Stop();
  return ready;
}

KernelSessionOptions SessionOptionsOf(const MountOptions& options, const std::string& mount_point,
                                      MountResidence& residence) {
  KernelSessionOptions session;
  session.mount_point = mount_point;
  session.allow_other = options.allow_other;
  session.passthrough = !options.no_passthrough;
  session.minor_max = options.minor_max;
  session.threads = options.threads;
  session.residence = &residence.kernel;
  return session;
}

Status Run(const MountOptions& options) {
  RaiseProcessLimits();
  MOSA_ASSIGN_OR_RETURN(const UniqueFd signals, CatchEndSignals());
  std::optional<ClusterSecret> secret;
  if (!options.secret_path.empty()) {
    MOSA_ASSIGN_OR_RETURN(secret, LoadSecret(options.secret_path, {Role::kMount, Role::kAdmin}));
  }
  MOSA_ASSIGN_OR_RETURN(const std::string mount_point, PrepareMountPoint(options.mount_point));
  FilesystemOptions filesystem_options;
  filesystem_options.node_name = options.node_name;
  MOSA_ASSIGN_OR_RETURN(filesystem_options.host_identity, HostIdentity());
  filesystem_options.mount_point = mount_point;
  filesystem_options.passthrough = !options.no_passthrough;

  MountResidence residence;
  filesystem_options.waits = &residence.waits;

  const SystemClock clock;
  KernelSession session(SessionOptionsOf(options, mount_point, residence));
  BulkNodeApiOptions node_options;
  node_options.host_identity = filesystem_options.host_identity;
  node_options.residence = &residence.nodes;
  BulkNodeApi nodes(node_options);
  GrpcManagerOptions manager_options;
  manager_options.address = options.manager;
  manager_options.secret = secret;
  manager_options.residence = &residence.manager;
  const Filesystem* started = nullptr;  // Set before the manager is asked for a session.
  const std::string host = options.node_name.empty() ? HostName() : options.node_name;
  const std::function<ResidenceSnapshot()> snapshot = [&residence, &started] {
    return SnapshotOf(residence, started->StatsJson());
  };
  manager_options.snapshot = [&](const ResidenceQuery& query) {
    ResidenceSnapshot answer = snapshot();
    const bool logs_itself = (query.log_directory + "/").starts_with(mount_point + "/");
    ObeyQuery(logs_itself ? ResidenceQuery() : query, host, residence.log, answer);
    if (logs_itself)
      answer.log.fault = fmt::format(
          "{} lies on this mount, whose log would log itself: choose a directory elsewhere",
          query.log_directory);
    return answer;
  };
  const std::unique_ptr<ManagerApi> manager = NewGrpcManagerApi(manager_options);
  Filesystem filesystem(filesystem_options, *manager, nodes, session, clock);
  started = &filesystem;
  MOSA_ASSIGN_OR_RETURN(const auto metrics, ServeMetrics(options.metrics, [&snapshot] {
                          return MetricsText(snapshot());
                        }));
  MOSA_RETURN_IF_ERROR(filesystem.Start());
  TracedFilesystem traced_filesystem(filesystem, session);
  Tracer tracer(traced_filesystem, clock);
  Mount mount{filesystem, session, tracer, {"", host, mount_point}};
  const Status served = Serve(mount, mount_point, options, signals.get());
  if (tracer.on()) LogInfo("ending the trace together with the mount: {}", tracer.StatusJson());
  const bool traced = tracer.EndWithin(kTraceEndMax);
  const Status stopped = filesystem.Stop();
  LogInfo("ended{}", stopped.ok() ? "" : ": " + MessageOf(stopped));
  Status result = served.ok() ? stopped : served;
  if (!traced) {
    LogWarning("the trace is incomplete: its disk did not take all of it within {} s",
               kTraceEndMax.ns / 1'000'000'000);
    // Its thread still uses objects that a return would destroy.
    _exit(result.ok() ? 0 : FailProgram(kProgram, result));
  }
  return result;
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app(
      "Mount a Mosa cluster on a directory and serve it until unmounted, SIGTERM or SIGINT",
      kProgram);
  app.set_version_flag("--version", VersionLine());
  MountOptions options;
  AddFlags(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : ToExitCode(StatusCode::kInvalidArgument);
  }
  Status status = Validate(options);
  if (status.ok()) {
    status = OpenLog({kProgram, *ParseLogLevel(options.log_level), options.log_file});
  }
  if (status.ok()) status = Run(options);
  if (status.ok()) return 0;
  if (!options.log_file.empty()) LogError("{}", MessageOf(status));
  return FailProgram(kProgram, status);
}

}  // namespace mosa::sai

int main(int argc, char** argv) {
  mosa::PrepareGrpcProcess();
  return mosa::sai::Main(argc, argv);
}
