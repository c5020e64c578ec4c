// The steps that every daemon shares: memory tuning, signals, the ready file, the final error
// message.
//
// Call these from main before it starts threads, unless a function says otherwise.
#ifndef MOSA_COMMON_BASE_DAEMON_H_
#define MOSA_COMMON_BASE_DAEMON_H_

#include <signal.h>

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace mosa {

// Makes malloc keep large buffers, use few arenas, and return free memory beyond `kept_bytes` to
// the system. With glibc's defaults every large message is mapped and unmapped, which costs more
// than sending it, and each thread gets its own arena.
void TuneMalloc(int kept_bytes);

// Blocks SIGTERM, SIGINT and `more`, so that they are delivered only to a thread that waits for
// them (sigwait, signalfd). Ignores SIGPIPE. Returns the blocked set.
sigset_t BlockEndSignals(std::initializer_list<int> more = {});

// Tells the process that started this daemon that it now serves. Writes `facts` and "pid" to `path`
// as one line of JSON, atomically. Does nothing if `path` is empty. FailedPrecondition if the file
// cannot be written. Thread-safe.
Status WriteReadyFile(const std::string& path, nlohmann::json facts);

// Prints one sentence on standard error that says why `program` fails, and returns its exit code.
// Thread-safe.
int FailProgram(std::string_view program, const Status& status);

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_DAEMON_H_
