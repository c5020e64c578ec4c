// What each daemon does to be one: memory, signals, the file that says it serves, its last words.
//
// Free functions for a program's main, called before it has threads unless they say otherwise.
#ifndef MOSA_COMMON_BASE_DAEMON_H_
#define MOSA_COMMON_BASE_DAEMON_H_

#include <signal.h>

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace mosa {

// Makes malloc keep large buffers, in few arenas, and give back free memory beyond `kept_bytes`:
// with glibc's defaults every large message is mapped and unmapped, which costs more than sending
// it, and each thread has an arena.
void TuneMalloc(int kept_bytes);

// Blocks SIGTERM, SIGINT and `more`, so that only a waiting thread (sigwait, signalfd) gets them,
// and ignores SIGPIPE. Returns what is blocked.
sigset_t BlockEndSignals(std::initializer_list<int> more = {});

// Tells whoever started this daemon that it serves: writes `facts` and "pid" to `path` as one line
// of JSON, whole or not at all. Nothing if `path` is empty. FailedPrecondition if it cannot be
// written. From any thread.
Status WriteReadyFile(const std::string& path, nlohmann::json facts);

// Prints why `program` fails, as one sentence on standard error. Returns its exit code. From any
// thread.
int FailProgram(std::string_view program, const Status& status);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_DAEMON_H_
