// A whole cluster of real processes on loopback, in a directory of its own: one manager, storage
// nodes, mounts. Any of them can be stopped, killed and started again with the same flags. Nodes
// are named "n0", "n1", ...; mount i says that it is on node i (and reaches it by descriptors, as
// all are on this host).
//
// A test owns it. Its end, also by a crash of the test, ends the processes; the destructor unmounts
// and removes the directory. Not thread-safe.
#ifndef MOSA_TESTS_SUPPORT_PROCESS_CLUSTER_H_
#define MOSA_TESTS_SUPPORT_PROCESS_CLUSTER_H_

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "nlohmann/json.hpp"

namespace mosa::testing {

// One daemon: its command line, and its process while it runs.
class DaemonProcess {
 public:
  // `log` gets standard output and standard error; `ready_file` is what the daemon writes when it
  // serves.
  DaemonProcess(std::vector<std::string> command, std::filesystem::path log,
                std::filesystem::path ready_file);
  DaemonProcess(DaemonProcess&& other) noexcept;
  DaemonProcess& operator=(DaemonProcess&&) = delete;
  ~DaemonProcess();  // Kills it.

  // Starts it and waits for its ready file, whose JSON is returned. Unavailable quotes the log if
  // it ends before, or takes longer than `wait_max`.
  Result<nlohmann::json> Start(Duration wait_max = Seconds(20));
  // SIGKILL; returns when it is gone. Nothing if it does not run.
  void Kill();
  // SIGTERM; returns the exit code, 128 + signal if it was killed, DeadlineExceeded (and killed)
  // after `wait_max`.
  Result<int> Stop(Duration wait_max = Seconds(20));
  // The same for a process that ends by itself.
  Result<int> Wait(Duration wait_max);

  pid_t pid() const { return pid_; }  // 0: does not run.
  std::string LogText() const;
  void Replace(const std::string& flag, const std::string& value);

 private:
  std::vector<std::string> command_;
  std::filesystem::path log_;
  std::filesystem::path ready_file_;
  pid_t pid_ = 0;
};

struct ProcessClusterOptions {
  size_t nodes = 2;
  size_t mounts = 2;
  std::string node_limit = "1G";
  std::vector<std::string> manager_flags;
  std::vector<std::string> node_flags;
  std::vector<std::string> mount_flags;
};

class ProcessCluster {
 public:
  // Why clusters with mounts cannot run here; empty if they can.
  static std::string WhyNot();
  static Result<std::unique_ptr<ProcessCluster>> Start(const ProcessClusterOptions& options);
  ~ProcessCluster();
  ProcessCluster(const ProcessCluster&) = delete;
  ProcessCluster& operator=(const ProcessCluster&) = delete;

  DaemonProcess& manager() { return *manager_; }
  DaemonProcess& node(size_t i) { return nodes_.at(i); }
  DaemonProcess& mount_process(size_t i) { return mounts_.at(i); }
  // Where mount i is mounted.
  std::filesystem::path mount(size_t i) const;
  const std::filesystem::path& directory() const { return directory_; }
  // What mount i wrote into its ready file when it was last started here.
  const nlohmann::json& mount_ready(size_t i) const { return mount_ready_.at(i); }
  // Starts it again after Kill or Stop.
  Status StartMount(size_t i);
  // All logs, for the message of a failed test.
  std::string LogText() const;

 private:
  ProcessCluster() = default;
  Status StartManager(const ProcessClusterOptions& options);
  Status StartNode(const ProcessClusterOptions& options, size_t i);
  Status AddMount(const ProcessClusterOptions& options, size_t i);

  std::filesystem::path directory_;
  std::string manager_address_;
  std::optional<DaemonProcess> manager_;
  std::vector<DaemonProcess> nodes_;
  std::vector<DaemonProcess> mounts_;
  std::vector<nlohmann::json> mount_ready_;
};

}  // namespace mosa::testing

#endif  // MOSA_TESTS_SUPPORT_PROCESS_CLUSTER_H_
