#include "tools/wrap/wrap.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "client-sai/fuse/mount_point.h"
#include "client-sai/fuse/mount_process.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "fmt/format.h"
#include "tools/wrap/held_command.h"
#include "tools/wrap/operations.h"

namespace mosa::wrap {
namespace {

namespace fs = std::filesystem;

// It knows no name before a request has it, the kernel keeps none, and no file bypasses this
// process.
class WrappedMount final : public sai::TracedMount {
 public:
  explicit WrappedMount(const Clock& clock) : clock_(clock) {}
  // The time of day, so that traces of several hosts can be merged.
  Time TraceTime() override { return clock_.Now(); }
  void SetPassthrough(bool) override {}
  std::vector<NamedFile> KnownNames() override { return {}; }
  void RecallNames() override {}

 private:
  const Clock& clock_;
};

bool IsBelow(const fs::path& path, const fs::path& directory) {
  const fs::path relative = path.lexically_relative(directory);
  return !relative.empty() && *relative.begin() != "..";
}

// Absolute, without symbolic links; checked as far as can be before anything is mounted.
Result<WrapOptions> Resolve(const WrapOptions& given) {
  WrapOptions options = given;
  std::error_code error;
  options.directory = fs::canonical(given.directory, error).string();
  if (error)
    return NotFoundError(
        fmt::format("cannot trace the directory {}: {}", given.directory, error.message()));
  MOSA_ASSIGN_OR_RETURN(options.mount_point, sai::PrepareMountPoint(given.mount_point));
  if (IsBelow(options.mount_point, options.directory))
    return InvalidArgumentError(fmt::format(
        "cannot mount on {}: it lies in {}, which would then contain itself; choose a directory "
        "elsewhere",
        options.mount_point, options.directory));
  const bool is_empty = fs::is_empty(options.mount_point, error);
  if (error || !is_empty)
    return FailedPreconditionError(
        fmt::format("cannot mount on {}: {}", options.mount_point,
                    error ? error.message() : "it is not empty; choose an empty directory"));
  const fs::path trace = fs::absolute(given.trace_path).lexically_normal();
  if (!trace.has_filename())
    return InvalidArgumentError(fmt::format(
        "cannot write the trace to {}: name a file, not a directory", given.trace_path));
  const fs::path place = fs::canonical(trace.parent_path(), error);
  if (error)
    return FailedPreconditionError(
        fmt::format("cannot write the trace to {}: {}", trace.string(), error.message()));
  options.trace_path = (place / trace.filename()).string();
  if (IsBelow(options.trace_path, options.mount_point))
    return InvalidArgumentError(
        fmt::format("cannot write the trace to {}: it would lie on the mount and trace itself",
                    options.trace_path));
  return options;
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

sai::Tracer::Options TraceOptions(const WrapOptions& options) {
  const fs::path path(options.trace_path);
  sai::Tracer::Options trace;
  trace.directory = path.parent_path().string();
  trace.file = path.filename().string();
  trace.host = HostName();
  trace.mount_point = options.mount_point;
  return trace;
}

WrapOutcome OutcomeOf(const sai::Tracer& tracer) {
  const auto status = nlohmann::json::parse(tracer.StatusJson());
  return {status.at("file"), status.at("records"), status.at("dropped"), status.at("bytes"),
          status.at("end")};
}

// Returns the command's exit code, or 0 if there is none.
Result<int> ServeUntilEnd(const sai::KernelSession& session, int signals, HeldCommand* command) {
  if (command != nullptr) return command->Run(signals);
  sai::WaitForEnd(session, signals);
  return 0;
}

}  // namespace

Result<WrapOutcome> WrapDirectory(const WrapOptions& given, const std::function<void()>& on_ready) {
  MOSA_ASSIGN_OR_RETURN(const WrapOptions options, Resolve(given));
  MOSA_ASSIGN_OR_RETURN(const auto inodes, InodeTable::Open(options.directory));
  // With the signals, limits and mask that this process was given.
  std::unique_ptr<HeldCommand> command;
  if (!options.command.empty()) {
    MOSA_ASSIGN_OR_RETURN(command, HeldCommand::Hold(options.command, options.mount_point));
  }
  sai::RaiseProcessLimits();
  umask(0);  // What is made has the mode that its maker's umask leaves.
  MOSA_ASSIGN_OR_RETURN(const UniqueFd signals, sai::CatchEndSignals());

  sai::KernelSessionOptions session_options;
  session_options.mount_point = options.mount_point;
  session_options.type = "mosa-trace";
  session_options.flags = kWrapFlags;
  session_options.allow_other = geteuid() == 0;
  session_options.passthrough = false;
  const SystemClock clock;
  WrappedMount mount(clock);
  sai::Tracer tracer(mount, clock);
  Wrap wrap{*inodes, tracer};
  sai::KernelSession session(session_options);  // Its workers end before what they use.
  MOSA_RETURN_IF_ERROR(session.Mount(
      WrapOperations(), &wrap,
      [&wrap](uint64_t inode, sai::kernel::StatxOut& out) { return WrapStatx(wrap, inode, out); }));
  session.StartWorkers();
  // It asks the mount itself where it is, so that it does not trace itself.
  MOSA_RETURN_IF_ERROR(tracer.Start(TraceOptions(options)));
  on_ready();
  MOSA_ASSIGN_OR_RETURN(const int exit_code, ServeUntilEnd(session, signals.get(), command.get()));
  session.Stop();
  // The mount is gone: only this process waits for a slow disk.
  while (!tracer.EndWithin(Seconds(1))) LogInfo("waiting for {}", options.trace_path);
  WrapOutcome outcome = OutcomeOf(tracer);
  outcome.exit_code = exit_code;
  return outcome;
}

}  // namespace mosa::wrap
