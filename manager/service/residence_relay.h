// ResidenceRelay: asks storage nodes and clients for residence snapshots on behalf of callers, over
// their open streams to the manager. Passes the answers on without decoding them.
//
// Used only by the loop's thread. At most kQuestionsMax questions are open; each ends after
// `answer_max`.
#ifndef MOSA_MANAGER_SERVICE_RESIDENCE_RELAY_H_
#define MOSA_MANAGER_SERVICE_RESIDENCE_RELAY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "common/base/status.h"
#include "common/model/residence.h"
#include "manager/service/core_driver.h"

namespace mosa::manager {

class ResidenceRelay {
 public:
  static constexpr size_t kQuestionsMax = 256;

  // Receives the snapshot as it came. Called once.
  using Done = std::function<void(const Result<std::string>& snapshot)>;

  // `driver` must outlive the relay.
  ResidenceRelay(CoreDriver& driver, Duration answer_max)
      : driver_(driver), answer_max_(answer_max) {}

  // Unavailable if no such node or client is connected; DeadlineExceeded without an answer in time;
  // ResourceExhausted if too many questions are open.
  void Ask(NodeId node, ResidenceQuery query, const Done& done);
  void Ask(ClientId client, ResidenceQuery query, const Done& done);
  // Delivers an answer that has arrived.
  void Answered(ResidenceReport report);
  // Ends overdue questions; `all`: every question.
  void EndOverdue(bool all);

 private:
  struct Question {
    Done done;
    Time deadline;  // On the clock of driver_.Now().
  };

  template <typename Sink>
  void AskBy(Sink* sink, ResidenceQuery query, const Done& done);

  CoreDriver& driver_;
  const Duration answer_max_;
  uint64_t last_query_ = 0;
  std::map<uint64_t, Question> questions_;  // In order of deadline.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_RESIDENCE_RELAY_H_
