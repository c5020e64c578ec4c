#include "tests/support/process_cluster.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mosa::testing {

namespace fs = std::filesystem;

namespace {

constexpr auto kPollPause = std::chrono::milliseconds(5);

std::string ReadText(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// In the child between fork and exec: only calls that are safe there.
[[noreturn]] void RunChild(const std::vector<char*>& arguments, const char* log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  setpgid(0, 0);
  const int output = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int input = open("/dev/null", O_RDONLY);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

DaemonProcess::DaemonProcess(std::vector<std::string> command, fs::path log, fs::path ready_file)
    : command_(std::move(command)), log_(std::move(log)), ready_file_(std::move(ready_file)) {
  command_.insert(command_.end(), {"--ready-file", ready_file_.string()});
}

DaemonProcess::DaemonProcess(DaemonProcess&& other) noexcept
    : command_(std::move(other.command_)),
      log_(std::move(other.log_)),
      ready_file_(std::move(other.ready_file_)),
      pid_(std::exchange(other.pid_, 0)) {}

DaemonProcess::~DaemonProcess() { Kill(); }

Result<nlohmann::json> DaemonProcess::Start(Duration wait_max) {
  MOSA_CHECK(pid_ == 0);
  fs::remove(ready_file_);
  std::vector<char*> arguments;
  for (std::string& word : command_) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) return ErrnoStatus(errno, "cannot fork");
  if (pid_ == 0) RunChild(arguments, log_.c_str(), parent);

  const SystemClock clock;
  const Time limit = clock.Monotonic() + wait_max;
  while (clock.Monotonic() < limit) {
    const nlohmann::json ready = nlohmann::json::parse(ReadText(ready_file_), nullptr, false);
    if (ready.is_object()) return ready;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      return UnavailableError(fmt::format("{} ended with {} before it was ready: {}",
                                          fmt::join(command_, " "), ExitCode(status), LogText()));
    }
    std::this_thread::sleep_for(kPollPause);
  }
  Kill();
  return UnavailableError(fmt::format("{} was not ready after {} s: {}", fmt::join(command_, " "),
                                      wait_max.ns / 1'000'000'000, LogText()));
}

void DaemonProcess::Kill() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

Result<int> DaemonProcess::Stop(Duration wait_max) {
  MOSA_CHECK(pid_ != 0);
  kill(pid_, SIGTERM);
  return Wait(wait_max);
}

Result<int> DaemonProcess::Wait(Duration wait_max) {
  MOSA_CHECK(pid_ != 0);
  const SystemClock clock;
  const Time limit = clock.Monotonic() + wait_max;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) != pid_) {
    if (clock.Monotonic() >= limit) {
      Kill();
      return DeadlineExceededError(fmt::format("{} still ran after {} s: {}", command_[0],
                                               wait_max.ns / 1'000'000'000, LogText()));
    }
    std::this_thread::sleep_for(kPollPause);
  }
  pid_ = 0;
  return ExitCode(status);
}

std::string DaemonProcess::LogText() const { return ReadText(log_); }

void DaemonProcess::Replace(const std::string& flag, const std::string& value) {
  for (size_t i = 0; i + 1 < command_.size(); ++i) {
    if (command_[i] == flag) command_[i + 1] = value;
  }
}

std::string ProcessCluster::WhyNot() {
  if (geteuid() != 0) return "mounting without fusermount3 needs root";
  if (access("/dev/fuse", R_OK | W_OK) != 0) return "there is no /dev/fuse";
  return "";
}

Result<std::unique_ptr<ProcessCluster>> ProcessCluster::Start(
    const ProcessClusterOptions& options) {
  // Objects belong on a RAM disk.
  std::string pattern = "/dev/shm/mosa-test-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return ErrnoStatus(errno, "cannot make " + pattern);
  std::unique_ptr<ProcessCluster> cluster(new ProcessCluster);
  cluster->directory_ = pattern;
  MOSA_RETURN_IF_ERROR(cluster->StartManager(options));
  for (size_t i = 0; i < options.nodes; ++i) {
    MOSA_RETURN_IF_ERROR(cluster->StartNode(options, i));
  }
  for (size_t i = 0; i < options.mounts; ++i) {
    MOSA_RETURN_IF_ERROR(cluster->AddMount(options, i));
  }
  return cluster;
}

ProcessCluster::~ProcessCluster() {
  for (size_t i = 0; i < mounts_.size(); ++i) {
    if (mounts_[i].pid() != 0) mounts_[i].Stop(Seconds(20)).IgnoreError();  // Killed then.
    umount2(mount(i).c_str(), MNT_DETACH);
  }
  nodes_.clear();
  manager_.reset();
  std::error_code ignored;  // A directory that stays is in memory, and named after the test.
  fs::remove_all(directory_, ignored);
}

Status ProcessCluster::StartManager(const ProcessClusterOptions& options) {
  fs::create_directory(directory_ / "manager");
  std::vector<std::string> command = {MOSA_BINARY_DIR "/mosa-manager", "--listen", "127.0.0.1:0",
                                      "--data-dir", directory_ / "manager"};
  command.insert(command.end(), options.manager_flags.begin(), options.manager_flags.end());
  manager_.emplace(std::move(command), directory_ / "manager.log", directory_ / "manager.ready");
  MOSA_ASSIGN_OR_RETURN(const nlohmann::json ready, manager_->Start());
  manager_address_ = ready.at("address").get<std::string>();
  manager_->Replace("--listen", manager_address_);  // The same one when it is started again.
  return OkStatus();
}

Status ProcessCluster::StartNode(const ProcessClusterOptions& options, size_t i) {
  const std::string name = fmt::format("n{}", i);
  fs::create_directory(directory_ / name);
  std::vector<std::string> command = {MOSA_BINARY_DIR "/mosa-storage",
                                      "--name",
                                      name,
                                      "--manager",
                                      manager_address_,
                                      "--listen",
                                      "127.0.0.1:0",
                                      "--dir",
                                      directory_ / name,
                                      "--limit",
                                      options.node_limit,
                                      "--socket",
                                      directory_ / (name + ".sock")};
  command.insert(command.end(), options.node_flags.begin(), options.node_flags.end());
  nodes_.emplace_back(std::move(command), directory_ / (name + ".log"),
                      directory_ / (name + ".ready"));
  return nodes_.back().Start().status();
}

Status ProcessCluster::AddMount(const ProcessClusterOptions& options, size_t i) {
  fs::create_directory(mount(i));
  std::vector<std::string> command = {
      MOSA_BINARY_DIR "/mosa-mount", mount(i), "--manager", manager_address_, "--name",
      fmt::format("n{}", i)};
  command.insert(command.end(), options.mount_flags.begin(), options.mount_flags.end());
  const std::string base = mount(i);
  mounts_.emplace_back(std::move(command), base + ".log", base + ".ready");
  mount_ready_.emplace_back();
  return StartMount(i);
}

Status ProcessCluster::StartMount(size_t i) {
  MOSA_ASSIGN_OR_RETURN(mount_ready_.at(i), mounts_.at(i).Start());
  return OkStatus();
}

fs::path ProcessCluster::mount(size_t i) const { return directory_ / fmt::format("mount{}", i); }

std::string ProcessCluster::LogText() const {
  std::string text = "manager: " + manager_->LogText();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    text += fmt::format("\nnode {}: {}", i, nodes_[i].LogText());
  }
  for (size_t i = 0; i < mounts_.size(); ++i) {
    text += fmt::format("\nmount {}: {}", i, mounts_[i].LogText());
  }
  return text;
}

}  // namespace mosa::testing
