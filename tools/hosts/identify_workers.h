// The workers of `mosa identify`, `mosa envelope` and `mosa capacity`, one for each host in the
// list: a worker does what it is asked and reports how long that took. They end with this process.
//
// One thread.
#ifndef MOSA_TOOLS_HOSTS_IDENTIFY_WORKERS_H_
#define MOSA_TOOLS_HOSTS_IDENTIFY_WORKERS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/time.h"
#include "tools/hosts/hosts.h"
#include "tools/hosts/worker.h"

namespace mosa::cli {

class IdentifyWorkers {
 public:
  // Unavailable names the host whose worker cannot be started or does not greet in time.
  static Result<IdentifyWorkers> Start(const std::vector<RunHost>& hosts, Duration at_most);
  IdentifyWorkers(IdentifyWorkers&&) = default;
  IdentifyWorkers& operator=(IdentifyWorkers&&) = delete;
  // A worker that waits for a dead mount cannot end before that answers: it is left to itself.
  ~IdentifyWorkers();

  size_t count() const { return workers_.size(); }
  const std::string& name(size_t host) const { return workers_[host].name; }

  struct Question {
    size_t host = 0;
    nlohmann::json words;
  };
  // After a signal: stop waiting, or ignore it.
  enum class OnSignal { kEnd, kGoOn };
  // Asks all at the same time, and waits for all answers. Returns the error of the first host that
  // fails, with its name; Unavailable if there is no answer after `at_most`, Aborted after a
  // signal. A host may be asked again after either: its late answer is skipped. Precondition: no
  // host twice.
  Result<std::vector<nlohmann::json>> Ask(const std::vector<Question>& questions, Duration at_most,
                                          OnSignal on_signal = OnSignal::kEnd);
  Result<nlohmann::json> Ask(size_t host, nlohmann::json words, Duration at_most,
                             OnSignal on_signal = OnSignal::kEnd);

 private:
  struct HostWorker : Worker {
    std::string name;  // The host's.
    bool lost = false;
  };
  IdentifyWorkers() = default;
  Status Greet(HostWorker& worker, Time until);
  Status Receive(HostWorker& worker, Time until);
  Result<nlohmann::json> AnswerOf(HostWorker& worker, uint64_t number, Time until,
                                  OnSignal on_signal);

  const SystemClock clock_{};
  std::vector<HostWorker> workers_;
  uint64_t number_ = 0;  // The last questions'; an answer has its question's.
};

// What such a process says first.
inline constexpr std::string_view kIdentifyGreeting = "\nmosa identify worker 1\n";

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_HOSTS_IDENTIFY_WORKERS_H_
