// Forecasts: what the predictor says to the manager and to its callers, on a thread of its
// own, since simulating takes longer than the core's loop may wait.
//
// Lifetime: outlives the loop that uses it, and what answers are given to. Threads: one calls at a
// time, the core's loop while there is one; answers come on the forecasts' thread, one after the
// other, or in the call itself where it says so.
#ifndef MOSA_MANAGER_SERVICE_FORECASTS_H_
#define MOSA_MANAGER_SERVICE_FORECASTS_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/model/read_cost.h"
#include "common/model/session.h"
#include "manager/core/manager_core.h"
#include "predictor/model/platform.h"
#include "predictor/run/read_cost.h"

namespace mosa::manager {

// A question of ReadCostQuery with what the manager knows.
struct ReadCostTask {
  std::vector<std::string> hosts;   // Each once.
  std::vector<NodeId> nodes;        // The hosts'.
  std::vector<ReadableFile> files;  // Each path once.
  std::vector<uint32_t> set_files;  // All sets in a row: indexes into `files`.
  std::vector<size_t> set_ends;     // For each set, where its files end.
};
// InvalidArgument: more than one question may ask (kReadAnswersMax, kReadAddendsMax), or a name
// that no storage node has.
Result<ReadCostTask> TaskOf(const ManagerCore& core, Time now, const ReadCostQuery& query);

class Forecasts {
 public:
  using AnswerReads = std::function<void(const Status&, const ReadCostAnswer&)>;

  // Questions that wait, beside the one that is being answered.
  static constexpr size_t kWaitingMax = 32;

  // Precondition: predict::Check(platform).ok(). Nobody waits longer than `wait_max` for an answer.
  explicit Forecasts(const predict::Platform& platform, Duration wait_max = kWaitMax);
  ~Forecasts();
  Forecasts(const Forecasts&) = delete;
  Forecasts& operator=(const Forecasts&) = delete;

  // `answer` is called once: at once with ResourceExhausted if too many wait; with DeadlineExceeded
  // if it takes longer than anybody waits.
  void PredictReads(ReadCostTask task, AnswerReads answer);
  // How many copies pay among so many nodes, once that is known; each number is told once. It is
  // asked for here, and taken from here: call it again and again. Of the numbers that no forecast
  // has begun for, only the last counts. Questions about reading wait behind it.
  std::optional<SetCopiesForecast> TakeCopies(uint32_t nodes);
  // The same, computed while the caller waits.
  std::optional<SetCopiesForecast> ComputeCopies(uint32_t nodes);
  // What waits is answered with Unavailable, and so is whatever comes, and what is being answered.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Question {
    ReadCostTask task;
    AnswerReads answer;
    Clock::time_point asked;
  };

  void Run();
  void Serve(const Question& question);
  Result<ReadCostAnswer> Answer(const Question& question);
  // Whether it still makes sense to go on.
  Status CheckAwaited(const Question& question) const;

  const predict::Platform platform_;
  const Duration wait_max_;
  predict::ReadCosts read_costs_;  // Used only by the thread.
  std::atomic<bool> stopping_ = false;

  std::mutex mutex_;  // Guards what is below.
  std::condition_variable changed_;
  std::deque<Question> waiting_;
  uint32_t wanted_nodes_ = 0;       // A forecast of copies for so many is to be made; 0: none.
  std::set<uint32_t> begun_nodes_;  // For so many it was, or is being made.
  std::deque<SetCopiesForecast> copies_;
  bool ending_ = false;

  std::thread thread_;  // Last: begins when all else is there.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_FORECASTS_H_
