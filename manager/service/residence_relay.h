// ResidenceRelay: asks storage nodes and clients for their snapshots on behalf of others, over the
// streams that they have open to the manager, and passes the answers on unread.
//
// Runs on the loop's thread. At most kQuestionsMax are open; each ends after `answer_max`.
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

  // The snapshot as it came. Called once.
  using Done = std::function<void(const Result<std::string>& snapshot)>;

  // `driver` must outlive it.
  ResidenceRelay(CoreDriver& driver, Duration answer_max)
      : driver_(driver), answer_max_(answer_max) {}

  // Unavailable if nobody of that id is connected; DeadlineExceeded if it does not answer in time;
  // ResourceExhausted if too many are asked already.
  void Ask(NodeId node, ResidenceQuery query, const Done& done);
  void Ask(ClientId client, ResidenceQuery query, const Done& done);
  // An answer has come.
  void Answered(ResidenceReport report);
  // Ends questions that have waited too long; `all`: no answer is waited for any more.
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
  std::map<uint64_t, Question> questions_;  // In the order of their deadlines.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_RESIDENCE_RELAY_H_
