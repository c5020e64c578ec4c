// Forecasts: what the predictor says to the manager and to those who ask it, on a thread of its
// own, since simulating takes longer than the core's loop may wait.
//
// Lifetime: outlives the loop that uses it. Threads: all calls from the core's loop; answers are
// given on the forecasts' thread, one after the other.
#ifndef MOSA_MANAGER_SERVICE_FORECASTS_H_
#define MOSA_MANAGER_SERVICE_FORECASTS_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/model/read_cost.h"
#include "manager/core/manager_core.h"
#include "predictor/model/platform.h"
#include "predictor/run/read_cost.h"

namespace mosa::manager {

// A question of ReadCostQuery with what the manager knows.
struct ReadCostTask {
  std::vector<std::string> hosts;
  std::vector<NodeId> nodes;        // The hosts'.
  std::vector<ReadableFile> files;  // Of all sets, in a row.
  std::vector<size_t> set_ends;     // Of each set, behind its last file.
};
// InvalidArgument: a set of hosts that is too large, or a name that no storage node has.
Result<ReadCostTask> TaskOf(const ManagerCore& core, Time now, const ReadCostQuery& query);

class Forecasts {
 public:
  using AnswerReads = std::function<void(const Status&, const ReadCostAnswer&)>;

  // Questions that wait, beside the one that is being answered.
  static constexpr size_t kWaitingMax = 32;

  // Precondition: predict::Check(platform).ok().
  explicit Forecasts(const predict::Platform& platform);
  ~Forecasts();
  Forecasts(const Forecasts&) = delete;
  Forecasts& operator=(const Forecasts&) = delete;

  // `answer` is called once: at once with ResourceExhausted if too many wait.
  void PredictReads(ReadCostTask task, AnswerReads answer);
  // How many copies pay among so many nodes, once that is known; each number is told once. It is
  // asked for here, and taken from here: call it again and again.
  std::optional<SetCopiesForecast> TakeCopies(uint32_t nodes);
  // The same, computed while the caller waits: before there is a loop.
  std::optional<SetCopiesForecast> ComputeCopies(uint32_t nodes);
  // What waits is answered with Unavailable, and so is whatever comes.
  void Stop();

 private:
  void Run();
  ReadCostAnswer Answer(const ReadCostTask& task, Status& status);

  const predict::Platform platform_;
  predict::ReadCosts read_costs_;  // Of the thread.
  uint32_t asked_nodes_ = 0;       // Of the loop: the last number that TakeCopies was asked about.

  std::mutex mutex_;  // Guards what is below.
  std::condition_variable changed_;
  std::deque<std::function<void(bool stopping)>> waiting_;
  std::optional<SetCopiesForecast> copies_;
  bool stopping_ = false;
  bool ending_ = false;

  std::thread thread_;  // Last: begins when all else is there.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_FORECASTS_H_
