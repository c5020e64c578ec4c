// The processes of `mosa identify`, `mosa envelope` and `mosa capacity` on the hosts: one for each
// that is asked for, which does what it is told and says how long it took. They end with this
// process.
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
  // Unavailable names the host where none can be started, or says nothing in time.
  static Result<IdentifyWorkers> Start(const std::vector<RunHost>& hosts, Duration at_most);
  IdentifyWorkers(IdentifyWorkers&&) = default;
  IdentifyWorkers& operator=(IdentifyWorkers&&) = delete;
  // A process that waits for a dead mount cannot end before that answers: it is left to itself.
  ~IdentifyWorkers();

  size_t count() const { return workers_.size(); }
  const std::string& name(size_t host) const { return workers_[host].name; }

  struct Question {
    size_t host = 0;
    nlohmann::json words;
  };
  // After a signal: no more waiting, or as if there had been none.
  enum class OnSignal { kEnd, kGoOn };
  // Asks all at the same time, and waits for all answers. What a host cannot do is its error, with
  // the host's name: the first one's; Unavailable if there is no answer after `at_most`, Aborted
  // after a signal. A host may be asked again after either: its late answer is skipped.
  // Precondition: no host twice.
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

  const SystemClock clock_;
  std::vector<HostWorker> workers_;
  uint64_t number_ = 0;  // The last questions'; an answer has its question's.
};

// What such a process says first.
inline constexpr std::string_view kIdentifyGreeting = "\nmosa identify worker 1\n";

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_HOSTS_IDENTIFY_WORKERS_H_
