// A command that is made before the mount in which it is to run.
#ifndef MOSA_TOOLS_WRAP_HELD_COMMAND_H_
#define MOSA_TOOLS_WRAP_HELD_COMMAND_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace mosa::wrap {

// Its process is made while this one has no threads yet, nor signals, limits and a file mask of its
// own, and waits. One thread.
class HeldCommand {
 public:
  // Unavailable: no process can be made.
  static Result<std::unique_ptr<HeldCommand>> Hold(const std::vector<std::string>& words,
                                                   const std::string& directory);
  ~HeldCommand();  // If it was not run, it never is.
  HeldCommand(const HeldCommand&) = delete;
  HeldCommand& operator=(const HeldCommand&) = delete;

  // Lets it run in its directory, and returns its exit code, as a shell says it; 127 if there is no
  // such program. `signals` is a signalfd: SIGTERM and SIGHUP are passed on.
  Result<int> Run(int signals);

 private:
  HeldCommand() = default;
  Result<int> Reap();

  pid_t pid_ = -1;  // Until it is reaped.
  UniqueFd ended_;  // Readable then.
  UniqueFd gate_;   // It goes on at a byte, and ends at an end.
};

}  // namespace mosa::wrap

#endif  // MOSA_TOOLS_WRAP_HELD_COMMAND_H_
