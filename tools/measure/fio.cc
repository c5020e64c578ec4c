#include "tools/measure/fio.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/unique_fd.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr size_t kPrintedBytesMax = 16 << 20;
constexpr int kNotFound = 127;  // The exit code of shells.

[[noreturn]] void RunChild(pid_t parent, std::vector<char*>& arguments, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNotFound);
  signal(SIGINT, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(arguments[0], arguments.data());
  _exit(kNotFound);
}

// Reads until the pipe is closed; false if `until_readable` comes first.
bool ReadAll(int from, int until_readable, std::string& printed) {
  char buffer[65536];
  pollfd waits[] = {{from, POLLIN, 0}, {until_readable, POLLIN, 0}};
  for (;;) {
    if (poll(waits, 2, -1) < 0 && errno == EINTR) continue;
    if (waits[1].revents != 0) return false;
    const ssize_t bytes = read(from, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return true;
    if (printed.size() < kPrintedBytesMax) printed.append(buffer, static_cast<size_t>(bytes));
  }
}

// The complaint of fio: its line that begins like this, or its last one.
std::string ComplaintIn(const std::string& printed) {
  constexpr std::string_view kOwn = "fio: ";
  std::string complaint = "it printed nothing";
  for (size_t begin = 0; begin < printed.size();) {
    const size_t end = std::min(printed.find('\n', begin), printed.size());
    const std::string line = printed.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with(kOwn)) return line.substr(kOwn.size());
    if (line.starts_with("{")) break;
    if (!line.empty()) complaint = line;
  }
  return complaint;
}

Status Failed(const std::string& printed) {
  std::string complaint = ComplaintIn(printed);
  if (complaint.find("No space left") != complaint.npos)
    return ResourceExhaustedError("fio: " + complaint);
  if (complaint.find("support direct=1") != complaint.npos)
    complaint += " (--pages cached does without)";
  return FailedPreconditionError("fio: " + complaint);
}

}  // namespace

Result<std::string> RunFio(const std::vector<std::string>& arguments, int until_readable) {
  std::vector<std::string> words = {"fio"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return UnavailableError(fmt::format("cannot make a pipe: {}", strerror(errno)));
  const UniqueFd output(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t self = getpid();
  const pid_t pid = fork();
  if (pid == 0) RunChild(self, pointers, theirs.get());
  if (pid < 0) return UnavailableError(fmt::format("cannot start fio: {}", strerror(errno)));
  theirs.reset();
  std::string printed;
  const bool whole = ReadAll(output.get(), until_readable, printed);
  if (!whole) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!whole) return AbortedError("fio was stopped by a new request or the end of input");
  if (WIFSIGNALED(status))
    return UnavailableError(fmt::format("fio was killed by signal {} ({})", WTERMSIG(status),
                                        strsignal(WTERMSIG(status))));
  // If fio exists but cannot start, its loader says why.
  if (WEXITSTATUS(status) == kNotFound && printed.empty())
    return NotFoundError("fio is not in PATH: install it (package 'fio')");
  if (WEXITSTATUS(status) != 0) return Failed(printed);
  return printed;
}

Result<predict::OperationRates> FioRatesOf(const std::string& printed) {
  // fio may print messages before and after it.
  const size_t begin = printed.starts_with("{") ? 0 : printed.find("\n{");
  const size_t end = printed.rfind("\n}");
  if (begin != printed.npos && end != printed.npos && begin < end) {
    const json root = json::parse(printed.substr(begin, end + 2 - begin), nullptr, false);
    try {
      predict::OperationRates sum;
      for (const json& job : root.at("jobs")) {
        const double reads = job.at("read").at("iops"), writes = job.at("write").at("iops");
        if (!(reads + writes > 0))
          return FailedPreconditionError(
              fmt::format("fio: job {} completed no operation: give more --seconds",
                          job.at("jobname").get<std::string>()));
        sum.reads += reads;
        sum.writes += writes;
      }
      return sum;
    } catch (const json::exception&) {
    }
  }
  return FailedPreconditionError(
      "the output of fio is not JSON that this program understands: install fio 3 or later");
}

Result<json> DoFioStep(const std::string& step, const json& words, int until_readable) {
  if (step == "version") {
    MOSA_ASSIGN_OR_RETURN(std::string version, RunFio({"--version"}, until_readable));
    version.resize(std::min(version.find('\n'), version.size()));
    return json{{"version", version}};
  }
  MOSA_ASSIGN_OR_RETURN(
      const std::string printed,
      RunFio(words.at("arguments").get<std::vector<std::string>>(), until_readable));
  MOSA_ASSIGN_OR_RETURN(const predict::OperationRates rates, FioRatesOf(printed));
  return json{{"reads", rates.reads}, {"writes", rates.writes}};
}

}  // namespace mosa::cli
