#include "common/base/daemon.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "common/base/exit_code.h"

namespace mosa {

void TuneMalloc(int kept_bytes) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // The maximum that glibc accepts.
  mallopt(M_TRIM_THRESHOLD, kept_bytes);
  mallopt(M_ARENA_MAX, 4);
}

sigset_t BlockEndSignals(std::initializer_list<int> more) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  for (const int number : more) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

Status WriteReadyFile(const std::string& path, nlohmann::json facts) {
  if (path.empty()) return OkStatus();
  facts["pid"] = ::getpid();
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::trunc);
  // Paths need not be UTF-8, but JSON must be.
  file << facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  file.close();
  if (file.fail() || std::rename(part.c_str(), path.c_str()) != 0) {
    return FailedPreconditionError(fmt::format("cannot write the ready file {}: {}", path,
                                               std::generic_category().message(errno)));
  }
  return OkStatus();
}

int FailProgram(std::string_view program, const Status& status) {
  std::fprintf(stderr, "%s\n", fmt::format("{}: {}", program, MessageOf(status)).c_str());
  return ToExitCode(status.code());
}

}  // namespace mosa
