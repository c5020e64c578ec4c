#include "client-sai/sai/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/base/sync.h"

namespace mosa::sai {
namespace {

// Tasks that wait to be released one by one, and record when they start.
class Gate {
 public:
  void Pass(uint64_t lane, int number) {
    MutexLock lock(mutex_);
    started_.emplace_back(lane, number);
    changed_.notify_all();
    while (!open_ && !allowed_.contains({lane, number})) changed_.wait(lock);
  }
  void Allow(uint64_t lane, int number) {
    const MutexLock lock(mutex_);
    allowed_[{lane, number}] = true;
    changed_.notify_all();
  }
  void Open() {
    const MutexLock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Returns the started tasks of `lane`, in order, once `count` tasks of all lanes have started.
  std::vector<int> StartedOf(uint64_t lane, size_t count) {
    MutexLock lock(mutex_);
    while (started_.size() < count) changed_.wait(lock);
    std::vector<int> numbers;
    for (const auto& [its, number] : started_)
      if (its == lane) numbers.push_back(number);
    return numbers;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::pair<uint64_t, int>> started_;
  std::map<std::pair<uint64_t, int>, bool> allowed_;
  bool open_ = false;
};

TEST(Lanes, KeepsAFullLaneWaitingInOrderWhileOthersGoOn) {
  Gate gate;
  Executor executor(4);
  Lanes lanes(executor);
  const FileId file{7};
  for (int i = 0; i < 4; ++i) lanes.Run({file, 0}, 1, [&gate, i] { gate.Pass(0, i); });
  for (int i = 0; i < 3; ++i) lanes.Run({file, 1}, 2, [&gate, i] { gate.Pass(1, i); });
  // One task of lane 0 and two of lane 1 run, on three of four threads.
  EXPECT_EQ(gate.StartedOf(0, 3), (std::vector{0}));
  gate.Allow(0, 0);
  EXPECT_EQ(gate.StartedOf(0, 4), (std::vector{0, 1}));
  auto second = gate.StartedOf(1, 4);
  std::sort(second.begin(), second.end());
  EXPECT_EQ(second, (std::vector{0, 1}));
  gate.Allow(1, 1);
  EXPECT_EQ(gate.StartedOf(1, 5).size(), 3U);
  gate.Open();
  executor.Stop();
  EXPECT_EQ(gate.StartedOf(0, 7), (std::vector{0, 1, 2, 3}));
}

TEST(Lanes, RunsWhatStillWaitsWhenTheExecutorStops) {
  Executor executor(1);
  Lanes lanes(executor);
  int ran = 0;
  for (int i = 0; i < 5; ++i) lanes.Run({FileId{1}, 0}, 1, [&ran] { ++ran; });
  executor.Stop();
  EXPECT_EQ(ran, 5);
}

}  // namespace
}  // namespace mosa::sai
