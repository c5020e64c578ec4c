// mount_bench PATH... --phases write,read,...: what a file system gives to ordinary programs.
//
// One process per PATH, all started together at a barrier for every phase; a phase's time runs from
// the first start to the last end. Works on any directory, so that a store and its baselines are
// measured by the same program. Every page that is written carries its offset, and every page that
// is read is checked for it. JSON on standard output.
//
// Streams (file NAME.K of process K): `write` makes the file anew (fresh pages), `overwrite` writes
// over its pages, `read` drops the page cache of the file before, `reread` does not. The close is
// part of the time. Names (--files per process, each process in a directory of its own, or with
// --together all in the directory NAME.names of their paths, which are mounts of one store):
// `create` (empty) or `create-small` (--file-bytes each), each with its close; `stat`, `open` (with
// close), `unlink`.
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace mosa::bench {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kProcessesMax = 64;

struct Options {
  std::vector<std::string> paths;
  std::vector<std::string> phases;
  std::vector<pid_t> pids;
  std::string name = "stream";
  std::string tag;  // NAME=VALUE of an attribute that every file of create* is given.
  uint64_t size_bytes = uint64_t{1} << 30;
  uint64_t block_bytes = 1 << 20;
  uint64_t files = 2000;
  uint64_t file_bytes = 1024;
  bool together = false;  // All processes make their files in one directory.
};

// What one process tells the parent, in memory that both share.
struct Report {
  int64_t start_ns;
  int64_t end_ns;
  uint64_t bytes;
  uint64_t operations;
  char error[256];
};
struct Shared {
  pthread_barrier_t barrier;
  Report reports[kProcessesMax];
};

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void Fail(const std::string& what) {
  throw Failure(fmt::format("{}: {}", what, strerrordesc_np(errno)));
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// ---- streams

int OpenStream(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) Fail("cannot open " + path);
  return fd;
}

void WriteStream(int fd, const std::string& path, const Options& options, Report& report) {
  std::vector<char> block(options.block_bytes, 'm');
  for (uint64_t at = 0; at < options.size_bytes; at += block.size()) {
    for (size_t page = 0; page + sizeof(uint64_t) <= block.size(); page += kPageBytes) {
      const uint64_t stamp = at + page;
      std::memcpy(block.data() + page, &stamp, sizeof(stamp));
    }
    for (size_t done = 0; done < block.size();) {
      const ssize_t count = write(fd, block.data() + done, block.size() - done);
      if (count < 0) Fail(fmt::format("cannot write {} at {}", path, at + done));
      done += static_cast<size_t>(count);
    }
    report.bytes += block.size();
    ++report.operations;
  }
  if (close(fd) != 0) Fail("cannot close " + path);
}

void ReadStream(int fd, const std::string& path, const Options& options, Report& report) {
  std::vector<char> block(options.block_bytes);
  for (uint64_t at = 0;;) {
    const ssize_t count = read(fd, block.data(), block.size());
    if (count < 0) Fail(fmt::format("cannot read {} at {}", path, at));
    if (count == 0) break;
    const size_t got = static_cast<size_t>(count);
    const size_t first = (kPageBytes - at % kPageBytes) % kPageBytes;
    for (size_t page = first; page + sizeof(uint64_t) <= got; page += kPageBytes) {
      uint64_t stamp = 0;
      std::memcpy(&stamp, block.data() + page, sizeof(stamp));
      if (stamp != at + page) {
        throw Failure(fmt::format("{} has wrong bytes at {}: stamp {}", path, at + page, stamp));
      }
    }
    at += got;
    report.bytes += got;
    ++report.operations;
  }
  if (report.bytes != options.size_bytes) {
    throw Failure(
        fmt::format("{} has {} bytes instead of {}", path, report.bytes, options.size_bytes));
  }
  close(fd);
}

// ---- names

std::string DirectoryOf(size_t process, const Options& options) {
  if (options.together) return fmt::format("{}/{}.names", options.paths[process], options.name);
  return fmt::format("{}/{}.names.{}", options.paths[process], options.name, process);
}

// What one operation of the phase does to the file `path`.
std::function<void(const std::string& path)> OperationOf(const std::string& phase,
                                                         const Options& options) {
  if (phase == "create" || phase == "create-small") {
    const std::string bytes(phase == "create" ? 0 : options.file_bytes, 's');
    const size_t equals = std::min(options.tag.find('='), options.tag.size());
    const std::string name = options.tag.substr(0, equals);
    const std::string value = name.empty() ? "" : options.tag.substr(equals + 1);
    return [bytes, name, value](const std::string& path) {
      const int fd = OpenStream(path, O_WRONLY | O_CREAT | O_EXCL);
      if (!name.empty() && fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) != 0)
        Fail("cannot tag " + path);
      if (!bytes.empty() &&
          write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
        Fail("cannot write " + path);
      }
      if (close(fd) != 0) Fail("cannot close " + path);
    };
  }
  if (phase == "stat") {
    return [](const std::string& path) {
      struct stat found {};
      if (stat(path.c_str(), &found) != 0) Fail("cannot stat " + path);
    };
  }
  if (phase == "open") {
    return [](const std::string& path) { close(OpenStream(path, O_RDONLY)); };
  }
  if (phase == "unlink") {
    return [](const std::string& path) {
      if (unlink(path.c_str()) != 0) Fail("cannot unlink " + path);
    };
  }
  throw Failure("unknown phase " + phase);
}

// ---- one process, one phase: returns what to do after the barrier

std::function<void(Report&)> Prepare(const std::string& phase, size_t process,
                                     const Options& options) {
  const std::string path = fmt::format("{}/{}.{}", options.paths[process], options.name, process);
  if (phase == "write" || phase == "overwrite") {
    if (phase == "write" && unlink(path.c_str()) != 0 && errno != ENOENT) {
      Fail("cannot unlink " + path);
    }
    return [=](Report& report) {
      const int fd = OpenStream(path, phase == "write" ? O_WRONLY | O_CREAT | O_EXCL : O_WRONLY);
      WriteStream(fd, path, options, report);
    };
  }
  if (phase == "read" || phase == "reread") {
    if (phase == "read") {
      const int fd = OpenStream(path, O_RDONLY);
      posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      close(fd);
    }
    return [=](Report& report) { ReadStream(OpenStream(path, O_RDONLY), path, options, report); };
  }
  const std::string directory = DirectoryOf(process, options);
  if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) Fail("cannot make " + directory);
  const auto operation = OperationOf(phase, options);
  return [=](Report& report) {
    for (uint64_t i = 0; i < options.files; ++i) {
      operation(fmt::format("{}/f{}-{}", directory, process, i));
      ++report.operations;
    }
  };
}

void RunChild(const std::string& phase, size_t process, const Options& options, Shared& shared) {
  Report& report = shared.reports[process];
  bool waited = false;
  try {
    const auto body = Prepare(phase, process, options);
    waited = true;
    pthread_barrier_wait(&shared.barrier);
    report.start_ns = NowNs();
    body(report);
  } catch (const std::exception& error) {
    fmt::format_to_n(report.error, sizeof(report.error) - 1, "{}", error.what());
    if (!waited) pthread_barrier_wait(&shared.barrier);
  }
  report.end_ns = NowNs();
}

// ---- the parent

// User and system time of a process so far, in seconds; 0 if there is none.
double CpuSeconds(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 2));
  std::string field;
  for (int i = 0; i < 11; ++i) fields >> field;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double ChildrenCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

nlohmann::json Summarise(const std::string& phase, const Options& options, const Shared& shared) {
  int64_t start = INT64_MAX;
  int64_t end = 0;
  uint64_t bytes = 0;
  uint64_t operations = 0;
  auto each = nlohmann::json::array();
  for (size_t k = 0; k < options.paths.size(); ++k) {
    const Report& report = shared.reports[k];
    if (report.error[0] != '\0') throw Failure(fmt::format("{}: {}", phase, report.error));
    start = std::min(start, report.start_ns);
    end = std::max(end, report.end_ns);
    bytes += report.bytes;
    operations += report.operations;
    const double own = static_cast<double>(report.end_ns - report.start_ns) * 1e-9;
    each.push_back({{"path", options.paths[k]},
                    {"seconds", own},
                    {"mb_per_s", static_cast<double>(report.bytes) / own / 1e6},
                    {"per_s", static_cast<double>(report.operations) / own}});
  }
  const double seconds = static_cast<double>(end - start) * 1e-9;
  return {{"phase", phase},
          {"seconds", seconds},
          {"bytes", bytes},
          {"operations", operations},
          {"mb_per_s", static_cast<double>(bytes) / seconds / 1e6},
          {"per_s", static_cast<double>(operations) / seconds},
          {"processes", each}};
}

nlohmann::json RunPhase(const std::string& phase, const Options& options, Shared& shared) {
  std::memset(shared.reports, 0, sizeof(shared.reports));
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared.barrier, &attributes,
                       static_cast<unsigned>(options.paths.size() + 1));
  for (size_t k = 0; k < options.paths.size(); ++k) {
    const pid_t pid = fork();
    if (pid < 0) Fail("cannot fork");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      RunChild(phase, k, options, shared);
      _exit(0);
    }
  }
  std::map<pid_t, double> before;
  for (const pid_t pid : options.pids) before[pid] = CpuSeconds(pid);
  const double own_before = ChildrenCpuSeconds();
  pthread_barrier_wait(&shared.barrier);
  for (size_t k = 0; k < options.paths.size(); ++k) {
    int status = 0;
    if (wait(&status) > 0 && WIFSIGNALED(status)) {
      throw Failure(fmt::format("{}: a process was killed by signal {}", phase, WTERMSIG(status)));
    }
  }
  nlohmann::json result = Summarise(phase, options, shared);
  const double own = ChildrenCpuSeconds() - own_before;
  double all = own;
  auto of_pids = nlohmann::json::object();
  for (const pid_t pid : options.pids) {
    const double used = CpuSeconds(pid) - before[pid];
    of_pids[fmt::format("{}", pid)] = used;
    all += used;
  }
  result["cpu_s"] = {{"own", own}, {"pids", of_pids}, {"all", all}};
  const double gigabytes = result["bytes"].get<double>() / 1e9;
  if (gigabytes > 0) result["cpu_s_per_gb"] = all / gigabytes;
  return result;
}

int Run(const Options& options) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Fail("cannot map shared memory");
  Shared& shared = *new (memory) Shared;
  auto phases = nlohmann::json::array();
  for (const std::string& phase : options.phases) {
    phases.push_back(RunPhase(phase, options, shared));
  }
  const nlohmann::json document = {{"size_bytes", options.size_bytes},
                                   {"block_bytes", options.block_bytes},
                                   {"files", options.files},
                                   {"file_bytes", options.file_bytes},
                                   {"phases", phases}};
  std::puts(document.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace mosa::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures streams and names of directories, one process per PATH."};
  mosa::bench::Options options;
  app.add_option("PATH", options.paths, "directories, one process each")->required();
  app.add_option("--phases", options.phases,
                 "write overwrite read reread create create-small stat open unlink")
      ->required()
      ->delimiter(',')
      ->check(CLI::IsMember({"write", "overwrite", "read", "reread", "create", "create-small",
                             "stat", "open", "unlink"}));
  app.add_option("--size", options.size_bytes, "bytes of a stream, a multiple of --block")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--block", options.block_bytes, "bytes per read or write, a multiple of 4K")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--files", options.files, "files per process");
  app.add_option("--file-bytes", options.file_bytes, "bytes of a file of create-small");
  app.add_option("--name", options.name, "what files and directories are called");
  app.add_flag("--together", options.together, "all files in one directory of the paths' store");
  app.add_option("--tag", options.tag, "NAME=VALUE: an attribute of every file that create* makes")
      ->check([](const std::string& tag) {
        return tag.find('=') == std::string::npos ? "is no NAME=VALUE" : "";
      });
  app.add_option("--pid", options.pids, "daemons whose CPU time counts")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  if (options.paths.size() > mosa::bench::kProcessesMax || options.block_bytes == 0 ||
      options.block_bytes % mosa::bench::kPageBytes != 0 ||
      options.size_bytes % options.block_bytes != 0) {
    fmt::print(stderr, "at most {} paths; --block a multiple of {}, --size of --block\n",
               mosa::bench::kProcessesMax, mosa::bench::kPageBytes);
    return 2;
  }
  try {
    return mosa::bench::Run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
