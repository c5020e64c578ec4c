// Two mounts on the real manager core with real object directories, for the tests of the file
// system.
#ifndef MOSA_CLIENT_SAI_SAI_CLUSTER_FIXTURE_H_
#define MOSA_CLIENT_SAI_SAI_CLUSTER_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/base/rng.h"
#include "common/base/units.h"
#include "tests/support/local_mount.h"

namespace mosa::sai {

using testing::LocalManager;
using testing::LocalMount;
using testing::LocalNodes;

template <typename T>
::testing::AssertionResult Ok(const Outcome<T>& outcome) {
  if (outcome.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << static_cast<int>(outcome.failure().reason) << ": " << outcome.failure().message;
}

template <typename T>
ErrorReason ReasonOf(const Outcome<T>& outcome) {
  return outcome.ok() ? ErrorReason::kNone : outcome.failure().reason;
}

inline std::string Pattern(size_t size, uint64_t seed) {
  Rng rng(seed);
  std::string text(size, '\0');
  for (size_t i = 0; i + 8 <= size; i += 8) {
    const uint64_t value = rng.Next();
    std::memcpy(text.data() + i, &value, 8);
  }
  return text;
}

// Waits up to five seconds for `condition`; returns whether it became true.
inline bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Nodes "a" and "b"; mount a() is on a's host, b() on b's.
class Cluster {
 public:
  explicit Cluster(uint64_t a_bytes = 256 * kMiB, uint64_t b_bytes = 256 * kMiB,
                   bool passthrough = false) {
    manager::ManagerOptions options;
    manager_ = std::make_unique<LocalManager>(options, clock_);
    nodes_ = std::make_unique<LocalNodes>(*manager_);
    node_a = nodes_->Add("a", a_bytes);
    node_b = nodes_->Add("b", b_bytes);
    a_ = std::make_unique<LocalMount>(*manager_, *nodes_, "a", clock_, passthrough);
    b_ = std::make_unique<LocalMount>(*manager_, *nodes_, "b", clock_, passthrough);
  }
  ~Cluster() {
    a_.reset();
    b_.reset();
    manager_.reset();
  }
  LocalMount& a() { return *a_; }
  LocalMount& b() { return *b_; }
  // Runs b's queued work before it returns.
  void UnmountB() { b_.reset(); }
  LocalManager& manager() { return *manager_; }
  LocalNodes& nodes() { return *nodes_; }

  NodeId node_a;
  NodeId node_b;

 private:
  SystemClock clock_;
  std::unique_ptr<LocalManager> manager_;
  std::unique_ptr<LocalNodes> nodes_;
  std::unique_ptr<LocalMount> a_;
  std::unique_ptr<LocalMount> b_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_SAI_CLUSTER_FIXTURE_H_
