// Test client: a session over gRPC that answers recalls at once and records the pushes it receives.
#ifndef MOSA_MANAGER_SERVICE_TEST_CLIENT_H_
#define MOSA_MANAGER_SERVICE_TEST_CLIENT_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client-sai/api/grpc_manager_api.h"
#include "common/base/mutex.h"

namespace mosa::manager {

class TestClient final : public sai::SessionListener {
 public:
  TestClient(uint64_t id, const std::string& address,
             const std::optional<ClusterSecret>& secret = std::nullopt,
             Duration start_wait = Seconds(10))
      : id_(id),
        api_(sai::NewGrpcManagerApi(
            {.address = address, .secret = secret, .start_wait = start_wait})) {}
  ~TestClient() override { api_->Stop(); }

  Status Start() { return api_->Start(*this); }
  sai::ManagerApi& api() { return *api_; }

  // Sends one request and returns its reply.
  Reply Ask(Request request) { return api_->Call({std::move(request)}, kWaitMax).back(); }

  FileId NextFile() {
    {
      const SystemMutexLock lock(mutex_);
      if (next_file_ < end_file_) return FileId{next_file_++};
    }
    const Reply reply = Ask(FileIdRangeRequest{});
    const auto& range = std::get<FileIdRangeReply>(reply);
    const SystemMutexLock lock(mutex_);
    next_file_ = range.first.value + 1;
    end_file_ = range.first.value + range.count;
    return range.first;
  }

  MakeRequest MakeOf(FileId parent, std::string name, FileType type = FileType::kRegular) {
    MakeRequest make;
    make.parent = parent;
    make.name = std::move(name);
    make.file = NextFile();
    make.type = type;
    make.permissions = type == FileType::kDirectory ? 0755 : 0644;
    const SystemMutexLock lock(mutex_);
    make.now = now_;
    return make;
  }

  // Waits until `condition` holds for the pushes received so far.
  bool WaitForPush(const std::function<bool(const std::vector<Push>&)>& condition) {
    SystemMutexLock lock(mutex_);
    return changed_.wait_for(
        lock, std::chrono::seconds(10),
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return condition(pushes_); });
  }
  bool WaitForSessions(int count) {
    SystemMutexLock lock(mutex_);
    return changed_.wait_for(
        lock, std::chrono::seconds(60),
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return sessions_ >= count; });
  }
  // Delays every later push by `delay`.
  void SlowPushes(std::chrono::milliseconds delay) { push_delay_ = delay; }
  size_t pushes() const {
    const SystemMutexLock lock(mutex_);
    return pushes_.size();
  }
  int leases_renewed() const {
    const SystemMutexLock lock(mutex_);
    return leases_;
  }
  SessionReady ready() const {
    const SystemMutexLock lock(mutex_);
    return ready_;
  }

  void OnSessionReady(const SessionReady& ready) override {
    const SystemMutexLock lock(mutex_);
    if (sessions_++ == 0) {
      next_file_ = ready.file_ids.first.value;
      end_file_ = next_file_ + ready.file_ids.count;
    }
    ready_ = ready;
    now_ = ready.now;
    changed_.notify_all();
  }
  void OnPush(const Push& push) override {
    std::this_thread::sleep_for(push_delay_.load());
    {
      const SystemMutexLock lock(mutex_);
      pushes_.push_back(push);
      changed_.notify_all();
    }
    if (const auto* const recall = std::get_if<RecallPush>(&push)) {
      api_->Send({RecallDoneRequest{.recall = recall->recall, .holds_open = false}},
                 [](const std::vector<Reply>&) {});
    }
  }
  SessionStart SessionHeld() override {
    SessionStart start;
    start.client = ClientId{id_};
    start.host_identity = "test host";
    start.mount_point = "/test";
    return start;
  }
  void OnLeaseRenewed(Time, Time manager_now) override {
    const SystemMutexLock lock(mutex_);
    now_ = manager_now;
    ++leases_;
  }

 private:
  const uint64_t id_;
  const std::unique_ptr<sai::ManagerApi> api_;

  std::atomic<std::chrono::milliseconds> push_delay_{};
  mutable SystemMutex mutex_;
  SystemCondVar changed_;
  std::vector<Push> pushes_ ABSL_GUARDED_BY(mutex_);
  SessionReady ready_ ABSL_GUARDED_BY(mutex_);
  Time now_ ABSL_GUARDED_BY(mutex_);
  int sessions_ ABSL_GUARDED_BY(mutex_) = 0;
  int leases_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_file_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t end_file_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_SERVICE_TEST_CLIENT_H_
