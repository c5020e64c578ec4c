#include "tools/wrap/held_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "common/base/errno_status.h"

namespace mosa::wrap {
namespace {

constexpr int kNotRun = 127;

[[noreturn]] void AwaitAndRun(int gate, const std::string& directory,
                              const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  char go = 0;
  ssize_t got = 0;
  while ((got = read(gate, &go, 1)) < 0 && errno == EINTR) {
  }
  if (got != 1) _exit(kNotRun);
  const char* failed = directory.c_str();
  if (chdir(failed) == 0) {
    failed = arguments[0];
    execvp(arguments[0], arguments.data());
  }
  dprintf(STDERR_FILENO, "mosa: cannot run '%s' in %s: %s: %s\n", arguments[0], directory.c_str(),
          failed, strerror(errno));
  _exit(kNotRun);
}

}  // namespace

Result<std::unique_ptr<HeldCommand>> HeldCommand::Hold(const std::vector<std::string>& words,
                                                       const std::string& directory) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot create a pipe");
  const UniqueFd theirs(ends[0]);
  std::unique_ptr<HeldCommand> command(new HeldCommand());
  command->gate_ = UniqueFd(ends[1]);
  command->pid_ = fork();
  if (command->pid_ < 0) return ErrnoStatus(errno, "cannot start a process for the command");
  if (command->pid_ == 0) {
    command->gate_.reset();  // Else it would wait for itself.
    AwaitAndRun(theirs.get(), directory, words);
  }
  command->ended_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, command->pid_, 0)));
  if (!command->ended_) return ErrnoStatus(errno, "cannot wait for the command");
  return command;
}

HeldCommand::~HeldCommand() {
  gate_.reset();
  if (pid_ > 0) static_cast<void>(Reap());
}

Result<int> HeldCommand::Run(int signals) {
  const char go = 1;
  if (write(gate_.get(), &go, 1) != 1) return ErrnoStatus(errno, "cannot start the command");
  std::array<pollfd, 2> ends = {{{ended_.get(), POLLIN, 0}, {signals, POLLIN, 0}}};
  for (;;) {
    if (poll(ends.data(), ends.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "cannot wait for the command");
    }
    if (ends[0].revents != 0) return Reap();
    signalfd_siginfo info{};
    if (read(signals, &info, sizeof(info)) != sizeof(info)) continue;
    // Ctrl-C has reached it by itself.
    if (info.ssi_signo != SIGINT) kill(pid_, static_cast<int>(info.ssi_signo));
  }
}

Result<int> HeldCommand::Reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "cannot wait for the command");
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace mosa::wrap
