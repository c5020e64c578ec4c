// Forecasts: runs the predictor for the manager and its callers on a separate thread, since a
// simulation takes longer than the core's loop may wait.
//
// Must outlive the loop that uses it; the receivers of its answers must outlive it. Not
// thread-safe: only one thread may call at a time, the loop's while it runs. Answers arrive one at
// a time on the forecasts' thread, or within the call where noted.
#ifndef MOSA_MANAGER_SERVICE_FORECASTS_H_
#define MOSA_MANAGER_SERVICE_FORECASTS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/model/read_cost.h"
#include "common/model/session.h"
#include "manager/core/manager_core.h"
#include "predictor/model/platform.h"
#include "predictor/run/read_cost.h"

namespace mosa::manager {

// A ReadCostQuery, completed with what the manager knows.
struct ReadCostTask {
  std::vector<std::string> hosts;   // Without repetitions.
  std::vector<NodeId> nodes;        // The storage nodes of `hosts`.
  std::vector<ReadableFile> files;  // Each path once.
  std::vector<uint32_t> set_files;  // All sets concatenated: indexes into `files`.
  std::vector<size_t> set_ends;     // For each set, the end of its files in `set_files`.
};
// InvalidArgument if the query exceeds a limit (kReadAnswersMax, kReadAddendsMax) or names a host
// without a storage node.
Result<ReadCostTask> TaskOf(const ManagerCore& core, Time now, const ReadCostQuery& query);

class Forecasts {
 public:
  using AnswerReads = std::function<void(const Status&, const ReadCostAnswer&)>;

  // Maximum number of waiting questions, besides the one being answered.
  static constexpr size_t kWaitingMax = 32;

  // Precondition: predict::Check(platform).ok(). No caller waits longer than `wait_max`.
  explicit Forecasts(const predict::Platform& platform, Duration wait_max = kWaitMax);
  ~Forecasts();
  Forecasts(const Forecasts&) = delete;
  Forecasts& operator=(const Forecasts&) = delete;

  // Calls `answer` once: at once with ResourceExhausted if too many questions wait, with
  // DeadlineExceeded if the answer takes longer than `wait_max`.
  void PredictReads(ReadCostTask task, AnswerReads answer);
  // Asks for the forecast of copies for so many nodes. Returns a finished forecast, each once; call
  // it repeatedly. Among forecasts not begun, only the latest request counts. Questions about
  // reading wait behind it.
  std::optional<SetCopiesForecast> TakeCopies(uint32_t nodes);
  // The same, computed before it returns.
  std::optional<SetCopiesForecast> ComputeCopies(uint32_t nodes);
  // Answers waiting, later and current questions with Unavailable.
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
  // Not OK if nobody waits for the answer any more.
  Status CheckAwaited(const Question& question) const;

  const predict::Platform platform_;
  const Duration wait_max_;
  predict::ReadCosts read_costs_;  // Used only by the thread.
  std::atomic<bool> stopping_ = false;

  SystemMutex mutex_;
  SystemCondVar changed_;
  std::deque<Question> waiting_ ABSL_GUARDED_BY(mutex_);
  // Number of nodes of the next forecast of copies; 0: none is wanted.
  uint32_t wanted_nodes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Forecasts that were made, or are being made.
  std::set<uint32_t> begun_nodes_ ABSL_GUARDED_BY(mutex_);
  std::deque<SetCopiesForecast> copies_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // Last: starts when all other members exist.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_FORECASTS_H_
