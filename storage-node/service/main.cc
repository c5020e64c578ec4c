// mosa-storage: the objects of one node. Runs in the foreground until SIGTERM or SIGINT.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "common/base/daemon.h"
#include "common/base/exit_code.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/units.h"
#include "common/base/version.h"
#include "common/model/metrics_text.h"
#include "common/observe/metrics_server.h"
#include "fmt/format.h"
#include "proto/convert/grpc_process.h"
#include "storage-node/service/storage_node.h"

namespace mosa::node {
namespace {

constexpr int kKeptBytes = 16 << 20;

// The flags as given.
struct Flags {
  std::string name;
  std::string manager;
  std::string listen = "127.0.0.1:0";
  std::string directory;
  std::string limit;
  std::string socket;
  std::string secret;
  std::string log_level = "info";
  std::string log_file;
  std::string ready_file;
  std::string metrics;
  std::string scrub_rate = "8M";
};

void Declare(CLI::App& app, Flags& flags) {
  app.set_config("--config", "", "Read options from FILE, one NAME = VALUE per line")
      ->check(CLI::ExistingFile);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.add_option("--name", flags.name, "Name of the node: unique in the cluster, never changes")
      ->required();
  app.add_option("--manager", flags.manager, "Address of the manager, HOST:PORT")->required();
  app.add_option("--listen", flags.listen, "Address to listen on, HOST:PORT; port 0: any free port")
      ->capture_default_str();
  app.add_option("--dir", flags.directory,
                 "Directory of the objects, on a RAM disk, used by nothing else")
      ->required();
  app.add_option("--limit", flags.limit, "Limit of bytes that objects may take, such as 8G")
      ->required();
  app.add_option("--socket", flags.socket,
                 "Unix socket that passes objects to the local mount; default: DIR/node.sock");
  app.add_option("--secret", flags.secret,
                 "Secret file of the role node; required beyond loopback");
  app.add_option("--scrub-rate", flags.scrub_rate,
                 "Bytes per second to verify against checksums in the background; 0: none")
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level, "Log level: debug, info, warning or error")
      ->capture_default_str();
  app.add_option("--log-file", flags.log_file,
                 "File to append the log to; default: standard error");
  app.add_option("--ready-file", flags.ready_file, "JSON file to write once the daemon is ready");
  app.add_option("--metrics", flags.metrics,
                 "Address to serve /metrics for Prometheus on, HOST:PORT; default: none");
}

Result<uint64_t> SizeOf(std::string_view flag, const std::string& text) {
  const Result<int64_t> parsed = ParseBytes(text);
  if (!parsed.ok())
    return InvalidArgumentError(fmt::format("{}: {}", flag, MessageOf(parsed.status())));
  return static_cast<uint64_t>(*parsed);
}

// Checks every flag, without side effects.
Result<StorageNodeOptions> OptionsOf(const Flags& flags) {
  StorageNodeOptions options;
  options.name = flags.name;
  options.manager_address = flags.manager;
  options.listen = flags.listen;
  options.directory = flags.directory;
  options.socket_path = flags.socket.empty() ? flags.directory + "/node.sock" : flags.socket;
  if (flags.name.empty() || flags.name.size() > kNameBytesMax ||
      flags.name.find(',') != std::string::npos) {
    return InvalidArgumentError(fmt::format(
        "--name is '{}': it must have 1 to {} bytes and no comma", flags.name, kNameBytesMax));
  }
  if (flags.directory.empty()) return InvalidArgumentError("--dir is empty");
  MOSA_ASSIGN_OR_RETURN(options.limit_bytes, SizeOf("--limit", flags.limit));
  if (options.limit_bytes == 0)
    return InvalidArgumentError("--limit is 0, so nothing could be stored");
  MOSA_ASSIGN_OR_RETURN(options.scrub_bytes_per_second, SizeOf("--scrub-rate", flags.scrub_rate));
  MOSA_RETURN_IF_ERROR(CheckListenAddress(flags.listen, !flags.secret.empty()));
  if (flags.secret.empty()) {
    const Status manager = CheckListenAddress(flags.manager, false);
    if (!manager.ok())
      return InvalidArgumentError(fmt::format("--manager: {}", MessageOf(manager)));
  } else {
    MOSA_ASSIGN_OR_RETURN(options.secret, LoadSecret(flags.secret, {Role::kNode}));
  }
  MOSA_RETURN_IF_ERROR(CheckLimit(options.directory, options.limit_bytes));
  return options;
}

int Fail(const Status& status) { return FailProgram("mosa-storage", status); }

int Run(const Flags& flags) {
  Result<StorageNodeOptions> options = OptionsOf(flags);
  if (!options.ok()) return Fail(options.status());
  const Result<LogLevel> level = ParseLogLevel(flags.log_level);
  if (!level.ok()) return Fail(level.status());
  const Status log = OpenLog({.program = "mosa-storage", .level = *level, .file = flags.log_file});
  if (!log.ok()) return Fail(log);

  const sigset_t signals = BlockEndSignals();
  umask(077);
  TuneMalloc(kKeptBytes);

  // The signals stay pending until sigwait takes them.
  options->give_up = [] {
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
  };

  SystemMutex mutex;
  Status outcome;  // Guarded by mutex.
  options->on_shutdown = [&](Status why) {
    {
      const SystemMutexLock lock(mutex);
      outcome = std::move(why);
    }
    ::kill(::getpid(), SIGTERM);
  };
  Result<std::unique_ptr<StorageNode>> node = StorageNode::Start(*options);
  if (!node.ok() && options->give_up()) {
    LogInfo("stopping on a signal: {}", MessageOf(node.status()));
    return 0;
  }
  if (!node.ok()) return Fail(node.status());
  LogInfo("node {} serves {} at {} and {}", flags.name, flags.directory, (*node)->address(),
          (*node)->socket_path());
  auto metrics =
      ServeMetrics(flags.metrics, [&own = **node] { return MetricsText(own.Residence()); });
  if (!metrics.ok()) return Fail(metrics.status());
  const std::string socket = std::filesystem::absolute((*node)->socket_path()).string();
  const Status ready =
      WriteReadyFile(flags.ready_file, {{"address", (*node)->address()}, {"socket", socket}});
  if (!ready.ok()) return Fail(ready);
  int signal_number = 0;
  sigwait(&signals, &signal_number);
  LogInfo("stopping on signal {}", signal_number);
  *metrics = nullptr;
  *node = nullptr;
  const SystemMutexLock lock(mutex);
  return outcome.ok() ? 0 : Fail(outcome);
}

}  // namespace
}  // namespace mosa::node

int main(int argc, char** argv) {
  mosa::PrepareGrpcProcess();
  CLI::App app("Run a storage node of a Mosa cluster, which keeps objects in memory");
  app.set_version_flag("--version", mosa::VersionLine());
  mosa::node::Flags flags;
  mosa::node::Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : mosa::ToExitCode(mosa::StatusCode::kInvalidArgument);
  }
  return mosa::node::Run(flags);
}
